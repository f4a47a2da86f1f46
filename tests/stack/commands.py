"""Runs one program to its end without holding up the event loop; a failure holds what it wrote."""

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


class CommandFailed(Exception):
    """A program ended with another code than 0; the message holds the end of what it wrote."""


async def run(
    argv: Sequence[str | Path],
    *,
    environ: Mapping[str, str] = os.environ,
    folder: Path | None = None,
    seconds: float = 600,
) -> str:
    """What it wrote to standard output. Raises CommandFailed, or TimeoutError after having killed it."""
    process = await asyncio.create_subprocess_exec(
        *map(str, argv),
        env=dict(environ),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        said = f"{out.decode(errors='replace')[-2000:]}{err.decode(errors='replace')[-4000:]}"
        raise CommandFailed(f"{' '.join(map(str, argv[:6]))} ended with {process.returncode}:\n{said}")
    return out.decode(errors="replace")
