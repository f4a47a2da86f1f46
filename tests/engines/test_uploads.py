"""Bodies that are read while they are sent: as fast as the engine takes them, and again on a retry."""

import asyncio
import hashlib
import json

import pytest

from gateway.engines import Client, ConnectionLost, Exchange
from tests.engines.calls import HEADERS, PATH, call, client_of, post, rest, until
from tests.engines.loops import on_each_loop
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine

MIB = 1 << 20
PIECE = bytes(range(256)) * 1024


class Repeated:
    """So many times the same piece; notes how often it was read from its start, and how much."""

    def __init__(self, pieces: int, *, announced: int = 0, fails_at: int = -1, hangs_at: int = -1) -> None:
        self.size_bytes = announced or pieces * len(PIECE)
        self.read_bytes = self.starts = 0
        self._end = pieces * len(PIECE)
        self._fails_at = fails_at
        self._hangs_at = hangs_at
        self.hangs = False

    async def read(self, start: int) -> bytes:
        """One piece, as a disk would give it."""
        self.starts += start == 0
        await asyncio.sleep(0)
        if start == self._fails_at:
            raise OSError(5, "Input/output error")
        if start == self._hangs_at:
            await self._hang()
        piece = PIECE if start < self._end else b""
        self.read_bytes += len(piece)
        return piece

    async def _hang(self) -> None:
        self.hangs = True
        try:
            await asyncio.Event().wait()
        finally:
            self.hangs = False


async def digest(exchange: Exchange) -> dict[str, object]:
    """What the engine says that it got."""
    try:
        await exchange.head()
        found: dict[str, object] = json.loads(await rest(exchange))
        return found
    finally:
        exchange.close()


def expected(pieces: int) -> dict[str, object]:
    """The digest of so many pieces."""
    return {"bytes": pieces * len(PIECE), "sha256": hashlib.sha256(PIECE * pieces).hexdigest()}


async def upload(client: Client, source: Repeated) -> Exchange:
    """The exchange of a request with this body."""
    return await client.send(b"POST", PATH, HEADERS, source)


@on_each_loop
async def test_an_upload_arrives_whole_with_its_length_and_the_connection_goes_on(engine: FakeEngine) -> None:
    """Announced with a length, read once; the next requests, of either kind, take the same connection."""
    await engine.script([{"reply": "digest"}])
    async with client_of(engine) as client:
        for pieces in (40, 1):
            source = Repeated(pieces)
            assert await digest(await upload(client, source)) == expected(pieces)
            assert (source.starts, source.read_bytes) == (1, source.size_bytes)
            assert (await call(client))[0] == 200
    assert (await engine.stats())["connections"] == 1
    assert (await engine.requests())[0].header("content-length") == str(40 * len(PIECE))


@on_each_loop
async def test_no_more_is_read_than_the_engine_takes(engine: FakeEngine) -> None:
    """An engine that does not read holds the upload up; it goes on when the engine does."""
    await engine.script([{"gate": "read"}, {"read_body": True}, {"reply": "digest"}], at="head")
    source = Repeated(200)
    async with client_of(engine) as client:
        exchange = await upload(client, source)
        answer = asyncio.create_task(digest(exchange))
        await engine.wait(requests=1)
        await until(lambda: source.read_bytes)
        read_bytes = -1
        while source.read_bytes != read_bytes:  # until nothing moves any more
            read_bytes = source.read_bytes
            await asyncio.sleep(0.2)
        assert 0 < read_bytes < source.size_bytes // 2
        await engine.open_gate("read")
        assert await answer == expected(200)


@on_each_loop
async def test_a_dead_kept_connection_is_replaced_and_the_body_read_anew(engine: FakeEngine) -> None:
    """From its start, once more and not twice."""
    retries: list[None] = []
    await engine.script(scripts.chat(), times=1)
    await engine.script([{"reset": True}], times=1, at="head")
    await engine.script([{"reply": "digest"}])
    async with client_of(engine, on_reconnect=lambda: retries.append(None)) as client:
        assert (await call(client))[0] == 200
        source = Repeated(40)
        assert await digest(await upload(client, source)) == expected(40)
    assert source.starts == 2
    assert len(retries) == 1


@pytest.mark.parametrize(
    ("pieces", "announced", "fails_at"),
    [(40, 0, 20 * len(PIECE)), (4, 5 * len(PIECE), -1), (4, 3, -1)],
    ids=["failing", "short", "long"],
)
@on_each_loop
async def test_a_body_that_cannot_be_read_ends_the_request(
    engine: FakeEngine, pieces: int, announced: int, fails_at: int
) -> None:
    """A disk that fails, a body shorter or longer than announced: the engine never takes it for whole."""
    async with client_of(engine) as client:
        exchange = await upload(client, Repeated(pieces, announced=announced, fails_at=fails_at))
        with pytest.raises(ConnectionLost, match="could not be read"):
            await exchange.head()
        exchange.close()
        await engine.wait(open=0)
    assert await engine.requests() == []


@on_each_loop
async def test_who_leaves_in_the_midst_of_an_upload_ends_it(engine: FakeEngine) -> None:
    """Nothing more is read, and the engine sees the end."""
    source = Repeated(200, hangs_at=20 * len(PIECE))
    async with client_of(engine) as client:
        exchange = await upload(client, source)
        await until(lambda: source.hangs)
        exchange.close()
        await engine.wait(open=0)
        assert not source.hangs
    assert await engine.requests() == []


@on_each_loop
async def test_an_early_answer_counts_and_ends_the_upload(engine: FakeEngine) -> None:
    """The engine refuses before it has read all: its words arrive, the connection is not used again."""
    await engine.script([*scripts.error(413, "too large"), {"gate": "read"}], at="head")
    async with client_of(engine) as client:
        exchange = await upload(client, Repeated(200))
        await exchange.head()
        assert exchange.status == 413
        assert b"too large" in await rest(exchange)
        exchange.close()
        assert client.pool.idle_connections == 0
        await engine.open_gate("read")
        await engine.wait(open=0)


@on_each_loop
async def test_an_engine_that_dies_in_an_upload_is_noticed(engine: FakeEngine) -> None:
    """By who waits for its answer."""
    await engine.script([{"gate": "read"}, {"reset": True}], at="head")
    async with client_of(engine) as client:
        exchange = await upload(client, Repeated(200))
        await engine.wait(requests=1)
        await engine.open_gate("read")
        with pytest.raises(ConnectionLost):
            await exchange.head()
        exchange.close()


@on_each_loop
async def test_a_body_of_no_bytes_is_whole_at_once(engine: FakeEngine) -> None:
    """Nothing to read, a length of zero."""
    async with client_of(engine) as client:
        exchange = await client.send(b"POST", PATH, HEADERS, Repeated(0))
        exchange.close()
        exchange = await post(client)
        await rest(exchange)
        exchange.close()
