"""A response as it is written: head and body in one packet, and nothing in a head that could end it early."""

import asyncio
from typing import Any, cast

import pytest
from uvicorn.server import ServerState

from gateway.app.listeners import listener
from gateway.app.protocol import BoundedProtocol

REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


class Wire(asyncio.Transport):
    """Takes the place of a socket; like uvloop's, it raises once it is closed for good."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = self.gone = False

    def write(self, data: bytes) -> None:  # type: ignore[override]  # bytes are all that is written here
        if self.gone:
            raise RuntimeError("the handler is closed")
        self.written.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        """Nothing is read here."""

    def resume_reading(self) -> None:
        """Nothing is read here."""


def connection(app: Any) -> tuple[BoundedProtocol, Wire]:
    """The protocol of one connection, as uvicorn makes it, and what it writes to."""
    config = listener(app, keep_alive_seconds=1, client_stall_seconds=1, grace_seconds=1).config
    config.load()
    kind = cast(type[BoundedProtocol], config.http_protocol_class)
    loop = asyncio.get_running_loop()
    protocol = kind(config=config, server_state=ServerState(), app_state={}, _loop=loop)
    wire = Wire()
    protocol.connection_made(wire)
    return protocol, wire


async def answered(*messages: dict[str, Any], request: bytes = REQUEST) -> Wire:
    """What a caller of an application gets that sends these messages."""

    async def app(_scope: object, _receive: object, send: Any) -> None:
        for message in messages:
            await send(message)

    protocol, wire = connection(app)
    protocol.data_received(request)
    await asyncio.gather(*protocol.tasks, return_exceptions=True)
    protocol.connection_lost(ConnectionResetError())  # with None it would close what is closed already
    return wire


def start(*headers: tuple[bytes, bytes], status: int = 200) -> dict[str, Any]:
    """The message that a response begins with."""
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(piece: bytes = b"", *, more: bool = False) -> dict[str, Any]:
    """A piece of a response's body."""
    return {"type": "http.response.body", "body": piece, "more_body": more}


LENGTH_OF_FOUR = (b"content-length", b"4")


async def test_a_short_answer_is_one_packet() -> None:
    """Head and body."""
    wire = await answered(start(LENGTH_OF_FOUR), body(b"word"))
    assert wire.written == [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nword"]
    assert not wire.closed


async def test_a_body_in_pieces_begins_with_its_head() -> None:
    """The rest follows as it comes."""
    wire = await answered(start(LENGTH_OF_FOUR), body(b"wo", more=True), body(b"rd"))
    assert wire.written == [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nwo", b"rd"]


async def test_a_long_body_is_not_copied() -> None:
    """It is a write of its own."""
    long = bytes(100_000)
    wire = await answered(start((b"content-length", b"100000")), body(long))
    assert wire.written[1] is long


async def test_a_head_without_a_length_goes_out_at_once() -> None:
    """A stream's first byte may come much later."""
    wire = await answered(start((b"content-type", b"text/event-stream")), body(b"x", more=True), body())
    assert wire.written == [
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        b"1\r\nx\r\n",
        b"0\r\n\r\n",
    ]


@pytest.mark.parametrize(
    ("request_head", "headers", "said"),
    [
        (b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", [], [b"connection: close"]),
        (REQUEST, [(b"connection", b"close")], [b"connection: close"]),
        (REQUEST, [(b"connection", b"keep-alive")], [b"connection: keep-alive"]),
        (REQUEST, [], []),
    ],
)
async def test_who_wants_the_end_of_the_connection_gets_it(
    request_head: bytes, headers: list[tuple[bytes, bytes]], said: list[bytes]
) -> None:
    """Said once, by whichever side asks for it."""
    wire = await answered(start(LENGTH_OF_FOUR, *headers), body(b"word"), request=request_head)
    lines = wire.written[0].split(b"\r\n")
    assert [line for line in lines if line.startswith(b"connection")] == said
    assert wire.closed is (b"connection: close" in said)


async def test_an_answer_without_a_body_has_none() -> None:
    """To HEAD the length is told and nothing sent, and 204 has no length."""
    head = b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n"
    wire = await answered(start(LENGTH_OF_FOUR), body(b"word"), request=head)
    assert b"".join(wire.written) == b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
    wire = await answered(start(status=204), body())
    assert b"".join(wire.written) == b"HTTP/1.1 204 No Content\r\n\r\n"


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\nb", b"a\0", b"a\x7f", b"a\r\n"])
async def test_a_header_that_would_end_the_head_is_not_written(value: bytes) -> None:
    """Whatever it would add: the connection ends instead, or tells of a fault."""
    wire = await answered(start(LENGTH_OF_FOUR, (b"x-name", value)), body(b"word"))
    assert b"x-name" not in b"".join(wire.written)
    assert wire.closed


@pytest.mark.parametrize("piece", [b"wor", b"words"])
async def test_a_body_of_another_length_is_not_written(piece: bytes) -> None:
    """What follows on the connection would be taken for its end, or it for what follows."""
    wire = await answered(start(LENGTH_OF_FOUR), body(piece))
    assert piece not in b"".join(wire.written)
    assert wire.closed


async def test_an_engines_bytes_for_a_caller_who_is_gone_harm_nobody() -> None:
    """They arrive in the same moment; raising would end the engine's connection with an error in the log."""
    protocol, wire = connection(None)
    told = []
    protocol.on_lost(lambda: told.append("lost"))
    protocol.write(b"x")
    wire.gone = True
    protocol.connection_lost(None)
    protocol.write(b"y")
    assert told == ["lost"]
    assert wire.written == [b"1\r\nx\r\n"]
