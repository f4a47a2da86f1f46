"""An engine that cannot start is not started for ever: some thirty failed starts wedge a DGX Spark."""

import asyncio
from pathlib import Path

from tests.running import wait_for
from tests.stack.stack import Stack

STARTS_SECONDS = 600.0


async def test_a_bad_flag_is_tried_twice_and_then_waits(stack: Stack) -> None:
    """The third start within 30 minutes says what is wrong and waits. (`test_restore` starts it again.)"""
    profile = stack.folder / stack.variables["PROFILE_FILE"]
    # In place, as an editor may: the container has this very file.
    await asyncio.to_thread(_append, profile, "no-such-flag: true\n")
    await stack.compose("restart", "--no-deps", "vllm")

    async def waits() -> bool:
        return "this is start 3 within 30 minutes" in await stack.compose("logs", "vllm")

    await wait_for(waits, STARTS_SECONDS, pause_seconds=0.5)
    log = await stack.compose("logs", "--no-log-prefix", "vllm")
    assert log.count("unrecognized arguments: --no-such-flag") == 2
    assert (await stack.containers())["vllm"].state == "running"


def _append(file: Path, line: str) -> None:
    with file.open("a") as opened:
        opened.write(line)
