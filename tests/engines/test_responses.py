"""What the client makes of an engine's bytes."""

import pytest

from gateway.engines import BadResponse, ConnectionLost, EngineFailure
from tests.engines.calls import call, client_of, post, rest
from tests.engines.loops import on_each_loop
from tests.fake_engine import answers, scripts
from tests.fake_engine.handle import FakeEngine
from tests.fake_engine.scripts import Steps, send

KIB = 1024
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"

WHOLE: dict[str, tuple[Steps, int, bytes]] = {
    "content-length": (scripts.answer(b"hello"), 200, b"hello"),
    "empty": (scripts.answer(b""), 200, b""),
    "error status": (scripts.answer(b"no", status=404), 404, b"no"),
    "chunked": ([send(CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")], 200, b"abcde"),
    "chunked, no chunk": ([send(CHUNKED + b"0\r\n\r\n")], 200, b""),
    "chunk extensions and trailers": (scripts.with_trailers(b"hello"), 200, b"hello"),
    "until the connection ends": (scripts.until_close(b"hello"), 200, b"hello"),
    "until the connection ends, empty": (scripts.until_close(b""), 200, b""),
    "HTTP/1.0": ([send(b"HTTP/1.0 200 OK\r\n\r\nhello"), {"close": True}], 200, b"hello"),
    "interim responses first": (scripts.interim(scripts.answer(b"hello")), 200, b"hello"),
    "an interim response with a body": (
        [send(b"HTTP/1.1 199 Odd\r\ncontent-length: 3\r\n\r\nodd"), *scripts.answer(b"hello")],
        200,
        b"hello",
    ),
    "204 with a length": (scripts.no_content(204), 204, b""),
    "304 with a length": (scripts.no_content(304), 304, b""),
    "no reason phrase": ([send(b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok")], 200, b"ok"),
    "head of 64 KiB": (scripts.oversize_head(64 * KIB), 200, b"ok"),
}

BAD: dict[str, Steps] = {
    "no HTTP": scripts.garbage(),
    "HTTP/2": [send(b"HTTP/2 200\r\ncontent-length: 2\r\n\r\nok")],
    "head over 64 KiB": scripts.oversize_head(65 * KIB),
    "head over 64 KiB, in pieces": scripts.oversize_head(80 * KIB, split=8 * KIB),
    "head without an end": [send(OK + b"x-padding: " + b"x" * 100 * KIB), {"hang": True}],
    "interim responses without an end": [send(b"HTTP/1.1 102 Wait\r\n\r\n" * 4 * KIB), {"hang": True}],
    "length and chunked": [send(OK + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n")],
    "two lengths": [send(OK + b"content-length: 3\r\ncontent-length: 4\r\n\r\nabcd")],
    "length that is no number": [send(OK + b"content-length: x\r\n\r\n")],
    "folded header": [send(OK + b"x: a\r\n b\r\ncontent-length: 0\r\n\r\n")],
    "NUL in a header": [send(OK + b"x: a\0b\r\ncontent-length: 0\r\n\r\n")],
    "chunk size that is no number": [send(CHUNKED + b"zz\r\nabc\r\n")],
    "chunk longer than it says": [send(CHUNKED + b"2\r\nabc\r\n0\r\n\r\n")],
    "trailers without an end": [send(CHUNKED + b"0\r\nx: " + b"x" * 100 * KIB), {"hang": True}],
    "switching protocols": [send(b"HTTP/1.1 101 Go\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n")],
}

CUT: dict[str, Steps] = {
    "before a byte": [{"close": True}],
    "reset before a byte": [{"reset": True}],
    "in the head": [send(OK + b"content-le"), {"close": True}],
    "after an interim response": [send(b"HTTP/1.1 100 Continue\r\n\r\n"), {"close": True}],
    "before the length is reached": [send(OK + b"content-length: 5\r\n\r\nabc"), {"close": True}],
    "in a chunk": [send(CHUNKED + b"5\r\nabc"), {"close": True}],
    "between chunks": [send(CHUNKED + b"3\r\nabc\r\n"), {"close": True}],
    "before the trailers end": [send(CHUNKED + b"3\r\nabc\r\n0\r\n"), {"close": True}],
    "reset in a chunk": [send(CHUNKED + b"5\r\nabc"), {"reset": True}],
}


@pytest.mark.parametrize("name", WHOLE)
@on_each_loop
async def test_every_kind_of_body_is_read_to_its_end(engine: FakeEngine, name: str) -> None:
    """Status and body are right, whatever ends the body."""
    steps, status, body = WHOLE[name]
    await engine.script(steps)
    async with client_of(engine) as client:
        assert await call(client) == (status, body)


@pytest.mark.parametrize("name", ["chunked", "interim responses first", "chunk extensions and trailers"])
@on_each_loop
async def test_a_response_may_come_byte_by_byte(engine: FakeEngine, name: str) -> None:
    """Where the network cuts the bytes makes no difference."""
    steps, status, body = WHOLE[name]
    await engine.script([{**step, "split": 1} for step in steps])
    async with client_of(engine) as client:
        assert await call(client) == (status, body)


@pytest.mark.parametrize("name", BAD)
@on_each_loop
async def test_what_is_not_http_is_refused(engine: FakeEngine, name: str) -> None:
    """A response that breaks HTTP/1.1 or its bounds is a BadResponse and costs the connection."""
    await engine.script(BAD[name])
    async with client_of(engine) as client:
        with pytest.raises(BadResponse):
            await call(client)
        await engine.wait(open=0)


@pytest.mark.parametrize("name", CUT)
@on_each_loop
async def test_a_response_that_is_cut_short_never_looks_whole(engine: FakeEngine, name: str) -> None:
    """The connection ends where HTTP does not let the response end: ConnectionLost."""
    await engine.script(CUT[name])
    async with client_of(engine) as client:
        with pytest.raises(ConnectionLost):
            await call(client)


@on_each_loop
async def test_what_came_before_the_cut_is_handed_out(engine: FakeEngine) -> None:
    """A caller sees all tokens that the engine sent before it died."""
    await engine.script([send(CHUNKED + b"3\r\nabc\r\n"), {"close": True}])
    async with client_of(engine) as client:
        exchange = await post(client)
        assert await exchange.chunk() == b"abc"
        assert not exchange.complete
        for _ in range(2):
            with pytest.raises(ConnectionLost):
                await exchange.chunk()
        exchange.close()


@on_each_loop
async def test_the_end_of_a_long_body_may_come_alone(engine: FakeEngine) -> None:
    """The bound for what holds no body counts from the last byte of a body."""
    body = b"x" * 300 * KIB
    end = send(b"0\r\nx-trailer: 1\r\n\r\n", split=1, pace=0.001)
    await engine.script([send(CHUNKED + answers.chunk(body)), {"gate": "end"}, end])
    async with client_of(engine) as client:
        exchange = await post(client)
        taken = b""
        while len(taken) < len(body):
            taken += await exchange.chunk()
        await engine.open_gate("end")
        assert await exchange.chunk() == b""
        assert exchange.complete
        exchange.close()


@on_each_loop
async def test_a_reset_does_not_complete_a_body_that_ends_with_the_connection(engine: FakeEngine) -> None:
    """Only an orderly end does."""
    await engine.script([send(OK + b"\r\nabc"), {"gate": "read"}, {"reset": True}])
    async with client_of(engine) as client:
        exchange = await post(client)
        assert await exchange.chunk() == b"abc"
        await engine.open_gate("read")
        with pytest.raises(ConnectionLost):
            await exchange.chunk()
        exchange.close()


@on_each_loop
async def test_headers_are_as_sent_with_names_in_lower_case(engine: FakeEngine) -> None:
    """Order, repetitions and values are kept; white space, trailers and interim responses' are not."""
    early = b"HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"
    fields = b"X-One: a, b  \r\nX-Empty:\r\nx-one: c\r\nTransfer-Encoding: chunked\r\n\r\n"
    await engine.script([send(early + OK + fields + b"1\r\nx\r\n0\r\nX-Trailer: 1\r\n\r\n")])
    async with client_of(engine) as client:
        exchange = await post(client)
        assert await rest(exchange) == b"x"
        assert exchange.headers == [
            (b"x-one", b"a, b"),
            (b"x-empty", b""),
            (b"x-one", b"c"),
            (b"transfer-encoding", b"chunked"),
        ]
        exchange.close()


@on_each_loop
async def test_an_answer_to_head_has_no_body(engine: FakeEngine) -> None:
    """Whatever length it promises, the response is complete with its head."""
    await engine.script([send(answers.head(200, [("content-length", "5")]))])
    async with client_of(engine) as client:
        exchange = await client.send(b"HEAD", b"/v1/chat/completions", [])
        await exchange.head()
        assert (exchange.status, exchange.complete) == (200, True)
        assert await exchange.chunk() == b""
        exchange.close()


@on_each_loop
async def test_chunks_arrive_one_by_one_as_they_are_sent(engine: FakeEngine) -> None:
    """Nothing is held back: the engine sends the next event only after the last one was handed out."""
    await engine.script(scripts.stream(events=3, gate="next"))
    async with client_of(engine) as client:
        exchange = await post(client)
        data = await exchange.chunk()
        for number in range(3):
            assert f"tok{number}".encode() not in data
            await engine.open_gate("next")
            while f"tok{number} ".encode() not in data:
                data += await exchange.chunk()
        assert (data + await rest(exchange)).endswith(b"data: [DONE]\n\n")
        exchange.close()


@on_each_loop
async def test_a_failure_names_its_cause_for_the_log(engine: FakeEngine) -> None:
    """The text is what an operator needs, and every failure is of one family."""
    await engine.script(scripts.garbage())
    async with client_of(engine) as client:
        with pytest.raises(EngineFailure, match="Expected HTTP"):
            await call(client)
