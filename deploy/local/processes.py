"""Runs one program to its end, its output in a log file and its newest line shown as progress."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.local.problem import Problem
from deploy.local.progress import Step

POLL_SECONDS = 0.5
TAIL_BYTES = 4096

# What points Python or pip at an environment other than the one that is meant.
_MISLEADING = frozenset({"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_USER", "PIP_TARGET", "PIP_PREFIX"})


def outside_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The operator's environment, for programs that are not the gateway.

    Proxies, certificates and pip's settings pass; the gateway's settings (secrets among them) do not.
    Where `SSL_CERT_FILE` alone names the operator's CA, pip is told too: older ones read only `PIP_CERT`.
    """
    kept = {k: v for k, v in environ.items() if k not in _MISLEADING and not k.startswith("GATEWAY_")}
    if kept.get("SSL_CERT_FILE"):
        kept.setdefault("PIP_CERT", kept["SSL_CERT_FILE"])
    return kept


def tail(log: Path, lines: int, since: int = 0) -> list[str]:
    """The last lines of a log that are not empty; none if there is no such file.

    `since` is the size in bytes after which lines count. A log that is shorter by now was begun anew.
    """
    try:
        with log.open("rb") as file:
            size = log.stat().st_size
            file.seek(max(since if since <= size else 0, size - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]


def run(
    argv: Sequence[str | Path],
    *,
    step: Step,
    log: Path,
    environ: Mapping[str, str] | None = None,
    hands_on: Sequence[int] = (),
) -> None:
    """Runs a program to its end. Raises Problem with its last lines if it fails.

    `hands_on` are open files that it gets, and all that it starts.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("ab") as output,
        subprocess.Popen(
            [str(part) for part in argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environ if environ is not None else outside_environment()),
            pass_fds=hands_on,
        ) as process,
    ):
        try:
            _follow(process, step, log)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise Problem(_failure(step.title, log))


def _follow(process: subprocess.Popen[bytes], step: Step, log: Path) -> None:
    while True:
        try:
            process.wait(timeout=POLL_SECONDS)
        except subprocess.TimeoutExpired:
            step.note("".join(tail(log, 1)))
        else:
            return


def _failure(title: str, log: Path) -> str:
    last = tail(log, 8)
    if any("No space left on device" in line for line in last):
        return f"{title}: the disk is full. Free some space, then run the same command again (log: {log})."
    return "\n    ".join([f"{title} failed. The last lines of {log}:", *last])
