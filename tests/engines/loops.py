"""Runs a test on both event loops: uvloop is what serves, asyncio's own shows that nothing leans on it."""

import asyncio
import inspect
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, cast

import pytest
import uvloop

from tests.fake_engine.fixtures import fresh
from tests.fake_engine.handle import Process

DEADLINE_SECONDS = 180.0
LOOPS = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


def on_each_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """An asynchronous test as a plain one that runs once on each loop; `engine` is a fresh fake engine."""

    @pytest.mark.parametrize("loop", LOOPS)
    def run(fake_engine_process: Process, loop: str, **arguments: Any) -> None:
        async def play() -> None:
            async with asyncio.timeout(DEADLINE_SECONDS), AsyncExitStack() as stack:
                if "engine" in wanted:
                    arguments["engine"] = await stack.enter_async_context(fresh(fake_engine_process))
                await test(**arguments)

        with warnings.catch_warnings():
            # uvloop warns of a socket that a failed test left open, and never closes if the warning raises.
            warnings.simplefilter("default", ResourceWarning)
            with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
                runner.run(play())

    wanted = inspect.signature(test).parameters
    own = [value for name, value in inspect.signature(run).parameters.items() if name != "arguments"]
    rest = [value for name, value in wanted.items() if name != "engine"]
    plain: Any = run
    plain.__signature__ = inspect.Signature([*own, *rest])
    plain.__name__, plain.__doc__, plain.__module__ = test.__name__, test.__doc__, test.__module__
    plain.pytestmark += getattr(test, "pytestmark", [])
    return cast(Callable[..., None], plain)
