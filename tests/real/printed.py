"""What a client's program prints, run in a process of its own."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

SECONDS = 300.0


async def by(command: Sequence[str | Path], environ: Mapping[str, str]) -> str:
    """The standard output of a command. Fails the test if it fails."""
    process = await asyncio.create_subprocess_exec(
        *command, env=environ,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, errors = await asyncio.wait_for(process.communicate(), SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, errors.decode(errors="replace")
    return out.decode()
