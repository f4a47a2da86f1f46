"""Our client and aiohttp's, given the same bytes: both find the same answer or both find none."""

from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from gateway.engines import EngineFailure
from tests.engines.calls import call, client_of
from tests.engines.loops import on_each_loop
from tests.engines.test_responses import CHUNKED, CUT, OK, WHOLE
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.fake_engine.scripts import Steps, send

CLOSE: Steps = [{"close": True}]
BOTH_LENGTHS = OK + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
SSE = OK + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

RECORDED: dict[str, Steps] = {
    **{f"whole: {name}": [*steps, *CLOSE] for name, (steps, _, _) in WHOLE.items() if "64 KiB" not in name},
    **{f"cut: {name}": steps for name, steps in CUT.items() if "gate" not in str(steps)},
    "a proxy's page": [*scripts.html_502(), *CLOSE],
    "a stream": [*scripts.stream(3), *CLOSE],
    "a stream without [DONE]": [*scripts.stream(3, end="no_done"), *CLOSE],
    "a stream cut": scripts.stream(3, end="close"),
    "a stream reset": scripts.stream(3, end="reset"),
    "a stream byte by byte": [{**step, "split": 1} for step in scripts.stream(1)] + CLOSE,
    "a line of 1 MiB": [*scripts.events([b"data: " + b"x" * (1 << 20) + b"\n\n"]), *CLOSE],
    "chunk sizes in capitals and with zeros": [send(SSE + b"00A\r\n0123456789\r\n0\r\n\r\n"), *CLOSE],
    "no HTTP": scripts.garbage(),
    "length and chunked": [send(BOTH_LENGTHS), *CLOSE],
    "two lengths": [send(OK + b"content-length: 3\r\ncontent-length: 4\r\n\r\nabcd"), *CLOSE],
    "length that is no number": [send(OK + b"content-length: x\r\n\r\n"), *CLOSE],
    "negative length": [send(OK + b"content-length: -1\r\n\r\n"), *CLOSE],
    "chunk size that is no number": [send(CHUNKED + b"zz\r\nabc\r\n"), *CLOSE],
    "chunk size beyond all bounds": [send(CHUNKED + b"f" * 20 + b"\r\nabc\r\n"), *CLOSE],
    "chunk longer than it says": [send(CHUNKED + b"2\r\nabc\r\n0\r\n\r\n"), *CLOSE],
    "not chunked in the end": [send(OK + b"transfer-encoding: chunked, identity\r\n\r\nabc"), *CLOSE],
    "status of two digits": [send(b"HTTP/1.1 20 OK\r\ncontent-length: 0\r\n\r\n"), *CLOSE],
    "status that is no number": [send(b"HTTP/1.1 abc OK\r\ncontent-length: 0\r\n\r\n"), *CLOSE],
    "header without a colon": [send(OK + b"nonsense\r\ncontent-length: 0\r\n\r\n"), *CLOSE],
    "header name with a space": [send(OK + b"content length: 0\r\ncontent-length: 0\r\n\r\n"), *CLOSE],
    "NUL in a header": [send(OK + b"x: a\0b\r\ncontent-length: 0\r\n\r\n"), *CLOSE],
}

Outcome = tuple[int, bytes] | str


async def ours(engine: FakeEngine) -> Outcome:
    """What our client reads."""
    async with client_of(engine) as client:
        try:
            return await call(client)
        except EngineFailure:
            return "failure"


async def aiohttps(engine: FakeEngine) -> Outcome:
    """What aiohttp reads."""
    async with aiohttp.ClientSession(auto_decompress=False, trust_env=False) as session:
        try:
            async with session.post(engine.url + "/v1/chat/completions", data=b"{}") as answer:
                return answer.status, await answer.read()
        except aiohttp.ClientError:
            return "failure"


@pytest.mark.parametrize("name", RECORDED)
@on_each_loop
async def test_both_read_the_same(engine: FakeEngine, name: str) -> None:
    """The same status and the same body, or a failure on both sides."""
    await engine.script(RECORDED[name])
    readers: list[Callable[[FakeEngine], Awaitable[Outcome]]] = [ours, aiohttps]
    outcomes = [await read(engine) for read in readers]
    assert outcomes[0] == outcomes[1]
