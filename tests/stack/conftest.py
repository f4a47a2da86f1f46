"""One Docker engine and one running stack for the tests of this folder, ended after the last of them.

The tests go from what a caller sees to what destroys: later ones find what earlier ones left.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from deploy.local import engine as local_engine
from deploy.local import models
from deploy.local.problem import Problem
from tests.stack import checkout, images, machine
from tests.stack.commands import CommandFailed
from tests.stack.engine import Engine
from tests.stack.stack import Container, Stack

ORDER = (
    *("test_up", "test_reach", "test_faults", "test_watch"),
    *("test_bad_flag", "test_restore", "test_stop", "test_logs"),
)
RAN = pytest.StashKey[list[Container]]()
TOOK = pytest.StashKey[dict[str, float]]()


@contextlib.contextmanager
def timed(config: pytest.Config, step: str) -> Iterator[None]:
    """Note for the summary how long a step took."""
    began = time.monotonic()
    yield
    config.stash.setdefault(TOOK, {})[step] = time.monotonic() - began


@pytest.fixture(scope="package")
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    """A running Docker engine without containers. Skips where there can be none."""
    if reason := machine.why_not():
        pytest.skip(f"the compose stack is not started here: {reason}")
    try:
        local_engine.install()
        models.smollm2()
    except Problem as problem:
        pytest.skip(f"the compose stack is not started here: {str(problem).splitlines()[0]}")
    async with contextlib.AsyncExitStack() as exits:
        with timed(request.config, "Docker engine"):
            engine = await exits.enter_async_context(machine.docker())
        yield engine


@pytest.fixture(scope="package")
async def stack(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[Stack]:
    """The stack, up and well, as a first `make up` leaves it."""
    folder = tmp_path_factory.mktemp("stack")
    stack = Stack(engine, checkout.copy(folder / "checkout"), checkout.weights(folder / "weights"))
    with timed(request.config, "images"):
        await images.provide(engine, stack.folder)
    try:
        with timed(request.config, "make up"):
            await stack.up()
        yield stack
    finally:
        # An engine that has gone has failed tests already.
        with contextlib.suppress(CommandFailed):
            request.config.stash[RAN] = list((await stack.containers()).values())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of this folder into their order; those of others stay where they are."""
    here = [index for index, item in enumerate(items) if item.path.parent == Path(__file__).parent]
    ordered = sorted((items[index] for index in here), key=_place)
    for index, item in zip(here, ordered, strict=True):
        items[index] = item


def _place(item: pytest.Item) -> int:
    name = item.path.stem
    return ORDER.index(name) if name in ORDER else -1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which containers really ran, and what it took to have them."""
    if ran := config.stash.get(RAN, []):
        terminalreporter.section("containers that ran (tests/stack)")
        for step, seconds in config.stash.get(TOOK, {}).items():
            terminalreporter.line(f"{step}: {seconds:.0f} s")
        for one in ran:
            terminalreporter.line(
                f"{one.service:17} {one.image:36} {one.state}, "
                f"{one.restarts} restarts, exit code {one.exit_code}"
            )
