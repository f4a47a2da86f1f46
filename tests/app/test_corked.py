"""A transport that gathers small writes, and that nobody can write to any more once it is gone."""

import asyncio
import contextlib
from typing import cast

import uvicorn
from uvicorn.server import ServerState

from gateway.app.corked import Corked
from gateway.app.listeners import listener
from gateway.app.protocol import BoundedProtocol


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


def test_what_is_written_together_goes_out_in_one_piece() -> None:
    """A head and its body are one packet; before and after, each write is its own."""
    wire = Wire()
    corked = Corked(wire)
    corked.write(b"a")
    with corked:
        corked.write(b"b")
        corked.write(b"c")
        assert wire.written == [b"a"]
    corked.write(b"d")
    assert wire.written == [b"a", b"bc", b"d"]


def test_what_is_held_is_written_whatever_happens_inside() -> None:
    """An exception, a close: nothing that was said is lost."""
    wire = Wire()
    corked = Corked(wire)
    with contextlib.suppress(ValueError), corked:
        corked.write(b"a")
        int("no number")
    assert wire.written == [b"a"]
    with corked:
        corked.write(b"b")
        corked.close()
    assert wire.written == [b"a", b"b"]
    assert wire.closed


def test_nothing_inside_writes_nothing() -> None:
    """Not even an empty piece."""
    wire = Wire()
    with Corked(wire):
        pass
    assert wire.written == []


async def test_an_engines_bytes_for_a_caller_who_is_gone_harm_nobody() -> None:
    """They arrive in the same moment; raising would end the engine's connection with an error in the log."""
    made = listener(_never, keep_alive_seconds=1, client_stall_seconds=1, grace_seconds=1)
    protocol = connection(made.config)
    wire = Wire()
    protocol.connection_made(wire)
    told = []
    protocol.on_lost(lambda: told.append("lost"))
    protocol.write(b"x")
    wire.gone = True
    protocol.connection_lost(None)
    protocol.write(b"y")
    assert told == ["lost"]
    assert wire.written == [b"1\r\nx\r\n"]


async def _never(_scope: object, _receive: object, _send: object) -> None:
    raise AssertionError("no request was sent")


def connection(config: uvicorn.Config) -> BoundedProtocol:
    """The protocol of one connection, as uvicorn makes it."""
    config.load()
    made = cast(type[BoundedProtocol], config.http_protocol_class)
    return made(config=config, server_state=ServerState(), app_state={}, _loop=asyncio.get_running_loop())
