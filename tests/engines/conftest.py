"""A fake engine of this folder's own: probes are counted here, and other tests' gateways probe too."""

from collections.abc import Iterator

import pytest

from tests.fake_engine.handle import Process


@pytest.fixture(scope="package")
def fake_engine_process() -> Iterator[Process]:
    """One process for all tests here."""
    process = Process()
    process.start()
    yield process
    process.kill()
