"""Compressed bodies on the wire: taken in three encodings, counted as what they become."""

import asyncio
import gzip
import json
import zlib

import pytest
import zstandard

from tests.callers import CALL, CHAT, Answer, Caller, ask, chat, request
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway, wait_for

CONTENT = json.dumps(CALL).encode()
LIMIT_BYTES = 33_554_432
PACKED = {
    "gzip": gzip.compress(CONTENT), "GZip": gzip.compress(CONTENT), "x-gzip": gzip.compress(CONTENT),
    "deflate": zlib.compress(CONTENT), "zstd": zstandard.ZstdCompressor().compress(CONTENT),
}  # fmt: skip


def packed(gateway: Gateway, encoding: str, content: bytes) -> bytes:
    """A chat call with this encoding in its head."""
    return chat(gateway.key, content, [("content-encoding", encoding)])


@pytest.mark.parametrize("encoding", PACKED)
async def test_a_compressed_body_is_served(gateway: Gateway, fake_engine: FakeEngine, encoding: str) -> None:
    """The engine gets it plain, with its own length and no word of an encoding; in one part or many."""
    assert (await ask(gateway, packed(gateway, encoding, PACKED[encoding]))).status == 200
    fields = [("x-api-key", gateway.key), ("content-encoding", encoding), ("transfer-encoding", "chunked")]
    async with Caller(gateway) as caller:
        await caller.send(request("POST", CHAT, fields))
        for byte in PACKED[encoding]:
            await caller.send(b"1\r\n%c\r\n" % byte)
        await caller.send(b"0\r\n\r\n")
        assert (await caller.answer()).status == 200
        await caller.send(chat(gateway.key))
        assert (await caller.answer()).status == 200
    for seen in await fake_engine.requests():
        assert seen.json()["messages"] == CALL["messages"]
        assert seen.header("content-encoding") is None
        assert seen.header("content-length") == str(len(seen.body))


@pytest.mark.parametrize(
    "encodings", [["br"], ["foo"], ["gzip, identity"], ["gzip", "gzip"], ["deflate", "zstd"], ["aws-chunked"]]
)
async def test_any_other_encoding_is_415_that_names_it_and_those_that_are_taken(
    gateway: Gateway, fake_engine: FakeEngine, encodings: list[str]
) -> None:
    """The bytes are not looked at: several encodings in a row are none that is taken."""
    answer = await ask(gateway, chat(gateway.key, fields=[("content-encoding", name) for name in encodings]))
    assert (answer.status, answer.error["code"]) == (415, "unsupported_media_type")
    assert ", ".join(encodings) in answer.error["message"]
    assert "gzip, deflate, zstd" in answer.error["message"]
    assert answer.headers["accept-encoding"] == "gzip, deflate, zstd"
    assert await fake_engine.requests() == []


@pytest.mark.parametrize("encoding", ["identity", "", "Identity"])
async def test_no_encoding_may_be_said_aloud(gateway: Gateway, encoding: str) -> None:
    """As some libraries do."""
    assert (await ask(gateway, packed(gateway, encoding, CONTENT))).status == 200


BROKEN = {
    "plain": CONTENT, "empty": b"", "cut": gzip.compress(CONTENT)[:-3],
    "more": gzip.compress(CONTENT) + b"{}", "changed": gzip.compress(CONTENT)[:20] + bytes(30),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
async def test_what_cannot_be_unpacked_is_a_400_that_says_so(
    gateway: Gateway, fake_engine: FakeEngine, name: str
) -> None:
    """The connection goes on; the engine hears nothing."""
    async with Caller(gateway) as caller:
        await caller.send(packed(gateway, "gzip", BROKEN[name]))
        answer = await caller.answer()
        if answer.headers.get("connection") != "close":
            await caller.send(chat(gateway.key))
            assert (await caller.answer()).status == 200
    assert (answer.status, answer.error["code"]) == (400, "invalid_request")
    assert "gzip" in answer.error["message"]
    assert all(seen.json()["messages"] for seen in await fake_engine.requests())


async def test_what_was_unpacked_is_judged_like_any_body(gateway: Gateway) -> None:
    """Compressing hides nothing."""
    for content in (b"[1]", b'{"model":"m\xff"}', b"\xef\xbb\xbf{}"):
        assert (await ask(gateway, packed(gateway, "gzip", gzip.compress(content)))).error[
            "code"
        ] == "invalid_json"


def bombs() -> dict[str, bytes]:
    """A call in 256 MiB of white space, and 65 MiB of it without an end."""
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    padding = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(256))
    return {"zstd": padding + packer.flush(), "gzip": gzip.compress(b" " * (65 << 20), 1)[:-100]}


async def test_a_bomb_is_413_and_costs_no_more_than_the_limit(
    gateway: Gateway, fake_engine: FakeEngine
) -> None:
    """Counted as it is unpacked. Small calls go on meanwhile."""
    before = await gateway.metric("process_resident_memory_bytes")
    for encoding, content in bombs().items():
        assert len(content) < LIMIT_BYTES // 100
        refusing = asyncio.create_task(ask(gateway, packed(gateway, encoding, content)))
        assert (await ask(gateway, chat(gateway.key))).status == 200
        answer = await refusing
        assert (answer.status, answer.error["code"]) == (413, "request_too_large")
        assert str(LIMIT_BYTES) in answer.error["message"]
    assert await gateway.metric("process_resident_memory_bytes") - before < 2 * LIMIT_BYTES
    assert len(await fake_engine.requests()) == 2


async def test_what_a_body_becomes_counts_as_held_and_is_given_back(
    narrow: Gateway, fake_engine: FakeEngine
) -> None:
    """Two small bodies that are large within fill the memory for bodies; the third is 503 queue_full."""
    large = packed(narrow, "gzip", gzip.compress(json.dumps({**CALL, "padding": "x" * 900_000}).encode()))
    assert len(large) < 10_000
    await fake_engine.script(scripts.gated("answer", scripts.chat()), times=2)

    async def call() -> Answer:
        return await ask(narrow, large)

    held = [asyncio.create_task(call()) for _ in range(2)]
    await fake_engine.wait(running=2)
    refused = await call()
    assert (refused.status, refused.error["code"]) == (503, "queue_full")
    await fake_engine.open_gate("answer", 2)
    assert {(await task).status for task in held} == {200}
    for _ in range(4):
        broken = packed(narrow, "gzip", gzip.compress(b" " * 900_000)[:-1])
        assert (await ask(narrow, broken)).status == 400

    async def passes() -> bool:
        return (await call()).status == 200

    await wait_for(passes, 30)
