"""Fixtures that hand a fake engine to a test. A conftest imports them by name."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from tests.fake_engine.handle import FakeEngine, Process


@pytest.fixture(scope="session")
def fake_engine_process() -> Iterator[Process]:
    """One process for the whole run."""
    process = Process()
    process.start()
    yield process
    process.kill()


@asynccontextmanager
async def fresh(process: Process) -> AsyncIterator[FakeEngine]:
    """A running engine as if it had just been started."""
    if not process.alive:
        process.start()
    async with FakeEngine(process=process) as engine:
        await engine.reset()
        yield engine


@pytest.fixture
async def fake_engine(fake_engine_process: Process) -> AsyncIterator[FakeEngine]:
    """The engine of that process, reset."""
    async with fresh(fake_engine_process) as engine:
        yield engine
