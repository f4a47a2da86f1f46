"""What went wrong by the engine's log: known messages, and memory that ran out, at a start or later."""

import re
from collections.abc import Iterator

from gateway.doctor.evidence import EngineLog
from gateway.doctor.finding import Finding, Unseen
from gateway.doctor.profile import Profile
from gateway.doctor.running.message import Message
from gateway.doctor.running.messages import MESSAGES

START = "non-default args:"  # entrypoints/serve/utils/api_utils.py: once a start
READY = "Application startup complete"  # uvicorn's
OUT_OF_MEMORY = re.compile(
    r"CUDA out of memory\. Tried to allocate [\d.]+ [KMG]iB|CUDA error: out of memory|NV_ERR_NO_MEMORY"
)
# torch tells of all processes of the card in the same message.
OTHER = re.compile(r"Process (\d+) has ([\d.]+) ([KMG])iB memory in use")
OWN = re.compile(r"this process has ([\d.]+) ([KMG])iB memory in use")
MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}
FATAL = re.compile(
    r"EngineCore (?:failed to start|encountered a fatal error)|Engine core initialization failed"
)
MOST_OF_EVIDENCE = 240
STEP_TOKENS = 2048  # vLLM's max-num-batched-tokens on most cards where nothing is said


def findings(log: EngineLog, profile: Profile | Unseen) -> Iterator[Finding]:
    """What the log says is wrong with the last start; of the one before, how it died if it had served."""
    check = "engine-log"
    *before, last = log.text.split(START)
    found = list(_of_start(check, last, profile))
    if not found and before and READY in before[-1]:
        found = [finding for finding in _of_start(check, before[-1], profile) if finding.severity == "error"]
    if not found:
        found = [Finding(check, "ok", "The engine's log names no known trouble", log.origin)]
    yield from found


def _of_start(check: str, text: str, profile: Profile | Unseen) -> Iterator[Finding]:
    plain = _plain(text)
    found = _told(check, plain, echo=False)
    if READY not in plain and not any(finding.severity == "error" for finding in found):
        found += _told(check, plain, echo=True)[:1]
    # Marked as errors of a kind of their own by the lines around: torch says the same in all of them.
    special = any(finding.severity == "error" for finding in found)
    if not special and (memory := OUT_OF_MEMORY.search(plain)):
        found.append(_out_of_memory(check, plain, memory[0], profile))
        special = True
    if not special and (fatal := FATAL.search(plain)):
        mend = (
            "docker compose logs vllm | grep -m1 -B2 -A40 Traceback, and look for the last line in "
            "vLLM's issues"
        )
        found.append(Finding(check, "error", "The engine died of something unknown here", fatal[0], mend))
    yield from found


def _told(check: str, text: str, *, echo: bool) -> list[Finding]:
    known = (_known(check, message, text) for message in MESSAGES if message.echo == echo)
    return [finding for finding in known if finding]


def _known(check: str, message: Message, text: str) -> Finding | None:
    match = re.search(message.pattern, text)
    if not match:
        return None
    mend = message.mend if isinstance(message.mend, str) else message.mend(match)
    return Finding(check, message.severity, message.title, match[0][:MOST_OF_EVIDENCE], mend)


def _out_of_memory(check: str, text: str, said: str, profile: Profile | Unseen) -> Finding:
    on_request = READY in text.partition(said)[0]
    if shared := _shared(text):
        title = f"Out of memory on a card that is shared: {shared}"
        mend = (
            "fix the cache's size, kv-cache-memory-bytes: 2147483648 or less, and lower "
            "gpu-memory-utilization to "
            "what is free: the start asks for that share all the same"
        )
        return Finding(check, "error", title, said, mend)
    step, share = _flag(profile, "max-num-batched-tokens"), _flag(profile, "gpu-memory-utilization")
    fewer = f"max-num-batched-tokens: {int(step or STEP_TOKENS) // 2}"
    lower = f"gpu-memory-utilization: {share - 0.03:.2f}" if share else "gpu-memory-utilization lower by 0.03"
    if on_request:
        title = "Out of memory on a request: the activations of a long prompt did not fit"
        return Finding(check, "error", title, said, f"{fewer}; if it comes again, {lower}")
    title = "Out of memory at start, while the engine measured or warmed up"
    return Finding(check, "error", title, said, f"{lower}; then {fewer}, and a smaller max-num-seqs")


def _shared(text: str) -> str:
    """Who else has memory of the card, by torch's message; empty if nobody has.

    In a container the driver tells the engine's own process by its number outside: then the two have as much.
    """
    own = OWN.search(text)
    mine = float(own[1]) * MIB[own[2]] if own else 0.0
    for number, size, unit in OTHER.findall(text):
        theirs = float(size) * MIB[unit]
        if abs(theirs - mine) > 0.1 * mine:
            return f"process {number} has {theirs / 1024:.1f} GiB"
    return ""


def _flag(profile: Profile | Unseen, name: str) -> float | None:
    return None if isinstance(profile, Unseen) else profile.number(name)


def _plain(text: str) -> str:
    """Without what loggers put before each line, colours too: a message may go over several."""
    colourless = re.sub(r"\x1b\[[\d;]*m", "", text)
    return re.sub(
        r"(?m)^(?:\(\w+(?: \w+)* pid=\d+\) )?(?:[A-Z]+ [\d-]+ [\d:]+ \[[^\]]+\] ?)?", "", colourless
    )
