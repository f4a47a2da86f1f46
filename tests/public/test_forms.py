"""Uploads: fields through the policy, the file through a spool, both to the engine as they came."""

import asyncio
import gzip
import hashlib
import json
import os
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from tests.callers import Caller, ask, chat, send_all_then_read
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.public.forms import BOUNDARY, FILE, SOUND, SPEECH, field, form, part, read, upload
from tests.running import Gateway, wait_for

HEARD = scripts.answer('{"text":"hello"}')
MODEL = field("model", "fake-model")
MIB = 1 << 20


@pytest.mark.parametrize("path", [SPEECH, "/v1/audio/translations"])
async def test_an_upload_reaches_the_engine_as_it_came(
    gateway: Gateway, fake_engine: FakeEngine, path: str
) -> None:
    """Order, texts, file name, content types and bytes; with a length and a boundary of the gateway's."""
    await fake_engine.script(HEARD)
    parts = [
        field("prompt", "naïve\r\n--x"), field("timestamp_granularities[]", "word"), FILE, MODEL,
        part('name="language"\r\nContent-Type: text/plain; charset=utf-8', b"en"), field("empty", ""),
        field("timestamp_granularities[]", "segment"), field("temperature", "0.50"),
    ]  # fmt: skip
    answer = await ask(gateway, upload(gateway.key, form(parts), [("cookie", "a=b")], path))
    assert (answer.status, answer.body) == (200, b'{"text":"hello"}')
    [seen] = await fake_engine.requests()
    assert seen.target == path
    assert await read(seen) == [
        ("prompt", "naïve\r\n--x"), ("timestamp_granularities[]", "word"),
        ("file", ("speech.wav", "audio/wav", SOUND)), ("model", "fake-model"), ("language", "en"),
        ("empty", ""), ("timestamp_granularities[]", "segment"), ("temperature", "0.50"),
    ]  # fmt: skip
    content_type = seen.header("content-type") or ""
    assert content_type.startswith("multipart/form-data; boundary=")
    assert BOUNDARY not in content_type
    assert seen.header("content-length") == str(len(seen.body))
    assert seen.header("transfer-encoding") is None
    assert seen.header("cookie") is None


async def test_fields_pass_the_policy_as_any_others(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """Aliases, defaults where the caller is silent, force, and what callers may not set."""
    defaults = {"temperature": 0.5, "language": "de", "stop": ["a", "b"]}
    key = (await gateway.create_key(name="audio", defaults=defaults, force={"seed": 3}))["key"]
    await fake_engine.script(HEARD)
    parts = [
        field("language", "fr"), field("seed", "7"), field("priority", "-1"), field("cache_salt", "x"),
        field("model", "default"), FILE, field("stream", ""),
    ]  # fmt: skip
    assert (await ask(gateway, upload(key, form(parts)))).status == 200
    [seen] = await fake_engine.requests()
    fields = [pair for pair in await read(seen) if pair[0] not in ("file", "cache_salt")]
    assert fields == [
        ("language", "fr"), ("seed", "3"), ("model", "fake-model"), ("stream", ""),
        ("temperature", "0.5"),
    ]  # fmt: skip
    assert all(value != "x" for name, value in await read(seen) if name == "cache_salt")


@pytest.mark.parametrize("word", ["true", "True", "1", "yes"])
async def test_a_stream_is_known_however_true_is_written(
    gateway: Gateway, fake_engine: FakeEngine, word: str
) -> None:
    """As the engine would read it; a stream comes as one."""
    await fake_engine.script(scripts.stream(events=2))
    answer = await ask(gateway, upload(gateway.key, form([MODEL, field("stream", word), FILE])))
    assert answer.headers["content-type"].startswith("text/event-stream")
    [seen] = await fake_engine.requests()
    assert dict(await read(seen))["stream"].lower() == word.lower()


@pytest.mark.parametrize(
    ("head", "filename"),
    [
        ('filename="naïve 声.wav"', "naïve 声.wav"), ("filename=plain.wav", "plain.wav"),
        ("filename=\"x.wav\"; filename*=UTF-8''na%C3%AFve%20%E5%A3%B0.wav", "naïve 声.wav"),
        ("filename*=utf-8'en'a%22b%0D%0Ac.wav", 'a"b%0D%0Ac.wav'),
        ("filename*=iso-8859-1''na%EFve.wav", "naïve.wav"),
        ('filename="a\\"b.wav"', 'a"b.wav'), ('filename="a\\\\b\\\\"', "a\\b\\"),
        ('filename="a%22b.wav"', "a%22b.wav"),
        ("filename=\"a; filename*=utf-8''b.wav\"", "a; filename*=utf-8''b.wav"), ('filename=""', ""),
    ],
)  # fmt: skip
async def test_file_names_arrive_as_they_were_meant(
    gateway: Gateway, fake_engine: FakeEngine, head: str, filename: str
) -> None:
    """In UTF-8, however they were written; none can end its line."""
    await fake_engine.script(HEARD)
    body = form([MODEL, part(f'name="file"; {head}', SOUND), field("language", "en")])
    assert (await ask(gateway, upload(gateway.key, body))).status == 200
    [seen] = await fake_engine.requests()
    assert await read(seen) == [
        ("model", "fake-model"), ("file", (filename, None, SOUND)), ("language", "en"),
    ]  # fmt: skip


WHOLE = form([MODEL, FILE])


async def test_openais_client_is_understood(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """What it makes of a call arrives as it meant it."""
    await fake_engine.script(HEARD)
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0) as client:
        answer = await client.audio.transcriptions.create(
            file=("声.wav", SOUND),
            model="default",
            temperature=0.2,
            timestamp_granularities=["word", "segment"],
            response_format="verbose_json",
            extra_body={"priority": 5},
        )
    assert answer.text == "hello"
    [seen] = await fake_engine.requests()
    found = [(name, value) for name, value in await read(seen) if name not in ("file", "cache_salt")]
    assert sorted(found) == [
        ("model", "fake-model"), ("response_format", "verbose_json"), ("temperature", "0.2"),
        ("timestamp_granularities[]", "segment"), ("timestamp_granularities[]", "word"),
    ]  # fmt: skip
    assert dict(await read(seen))["file"][0::2] == ("声.wav", SOUND)


async def test_a_compressed_form_is_unpacked(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """As any body."""
    await fake_engine.script(HEARD)
    data = upload(gateway.key, gzip.compress(WHOLE), [("content-encoding", "gzip")])
    assert (await ask(gateway, data)).status == 200
    [seen] = await fake_engine.requests()
    assert dict(await read(seen))["file"][2] == SOUND


def spools(gateway: Gateway) -> list[str]:
    """The files of uploads that the gateway's process has open."""
    folder = Path(f"/proc/{gateway.process.pid}/fd")
    names = []
    for link in folder.iterdir():
        try:
            names.append(str(link.readlink()))
        except FileNotFoundError:
            continue  # closed meanwhile
    return [name for name in names if name.startswith(f"{gateway.data_dir}/spool/")]


async def no_spools(gateway: Gateway) -> None:
    """Wait until all are closed."""

    async def closed() -> bool:
        return not spools(gateway)

    await wait_for(closed, 60)


LARGE = os.urandom(MIB) * 9 + b"end"
LARGE_FORM = form([MODEL, part('name="file"; filename="a.wav"', LARGE), field("language", "en")])


async def test_a_large_file_goes_through_a_nameless_file(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """Held on disk while the engine works, with little memory; gone when the call is over."""
    await fake_engine.script(scripts.gated("answer", [{"reply": "digest"}]))
    before = await gateway.metric("process_resident_memory_bytes")
    calls = [asyncio.create_task(ask(gateway, upload(gateway.key, LARGE_FORM))) for _ in range(6)]
    await fake_engine.wait(running=6)
    assert len(spools(gateway)) == 6
    assert list((gateway.data_dir / "spool").iterdir()) == []
    assert await gateway.metric("process_resident_memory_bytes") - before < 40 * MIB
    await fake_engine.open_gate("answer", 6)
    for call in calls:
        assert json.loads((await call).body)["bytes"] > len(LARGE)
    await no_spools(gateway)


async def test_a_dead_kept_connection_costs_an_upload_nothing(
    gateway: Gateway, fake_engine: FakeEngine
) -> None:
    """The file is read again from its start, over a new connection."""
    await fake_engine.script(scripts.chat(), times=1)
    await fake_engine.script([{"reset": True}], times=1, at="head")
    await fake_engine.script([{"reply": "digest"}])
    assert (await ask(gateway, chat(gateway.key))).status == 200
    answer = await ask(gateway, upload(gateway.key, LARGE_FORM))
    assert answer.status == 200
    [seen] = [seen for seen in await fake_engine.requests(SPEECH) if seen.body]
    assert json.loads(answer.body)["sha256"] == hashlib.sha256(seen.body).hexdigest()
    assert dict(await read(seen))["file"][2] == LARGE


async def test_who_leaves_takes_the_upload_along(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """In the midst of sending it, while the engine reads it, and while it works on it."""
    data = upload(gateway.key, LARGE_FORM)
    await fake_engine.script([{"gate": "never"}], at="head", times=1)
    await fake_engine.script([{"hang": True}])
    async with Caller(gateway) as sending, Caller(gateway) as reading, Caller(gateway) as working:
        await sending.send(data[: 4 * MIB])
        await reading.send(data)
        await fake_engine.wait(running=1)
        await working.send(data)
        await fake_engine.wait(running=2)

        async def all_spooled() -> bool:
            return len(spools(gateway)) == 3

        await wait_for(all_spooled, 60)
    await no_spools(gateway)
    await fake_engine.reset()
    await fake_engine.script(HEARD)
    assert (await ask(gateway, upload(gateway.key, LARGE_FORM))).status == 200


async def test_an_upload_over_the_limit_is_413(narrow: Gateway, fake_engine: FakeEngine) -> None:
    """By its length before it is read, without one as soon as it is over, and packed when it is unpacked."""
    large = form([MODEL, part('name="file"; filename="a.wav"', bytes(1_100_000))])
    answer = await ask(narrow, upload(narrow.key, large))
    assert (answer.status, answer.error["code"]) == (413, "request_too_large")
    head = upload(narrow.key, b"", [("transfer-encoding", "chunked")]).replace(b"content-length: 0\r\n", b"")
    first = large[:300]
    chunk = b"10000\r\n" + bytes(65_536) + b"\r\n"
    late = await send_all_then_read(narrow, head + b"%x\r\n%b\r\n" % (len(first), first), chunk, 40)
    assert late.startswith(b"HTTP/1.1 413 ")
    packed = upload(narrow.key, gzip.compress(large), [("content-encoding", "gzip")])
    assert (await ask(narrow, packed)).status == 413
    assert await fake_engine.requests() == []


async def test_what_uploads_held_is_given_back(narrow: Gateway, fake_engine: FakeEngine) -> None:
    """Refused or served, whatever was wrong with them: two megabytes of memory are never used up."""
    await fake_engine.script(HEARD)
    large = form([MODEL, part('name="file"; filename="a.wav"', bytes(900_000))])
    for _ in range(4):
        assert (await ask(narrow, upload(narrow.key, large))).status == 200
        assert (await ask(narrow, upload(narrow.key, large[:-200]))).status == 400
        assert (await ask(narrow, upload(narrow.key, large.replace(b"fake-model", b"no")))).status == 404
    assert (await ask(narrow, upload(narrow.key, large))).status == 200
