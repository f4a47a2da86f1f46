"""Forms that are none, or hold what they may not: a clear refusal that names the part, never a 500."""

import pytest

from tests.callers import CHAT, Caller, ask, request
from tests.fake_engine import scripts
from tests.fake_engine.handle import FakeEngine
from tests.public.forms import BOUNDARY, FILE, SOUND, SPEECH, field, form, part, upload
from tests.running import Gateway

MODEL = field("model", "fake-model")
WHOLE = form([MODEL, FILE])
WRONG = {
    "no form": (b"not-multipart", "file"), "nothing": (b"", "file"),
    "another boundary": (form([MODEL, FILE], "other"), "file"),
    "no parts": (form([]), "file"), "no file": (form([MODEL]), "file"),
    "a file as text": (form([MODEL, field("file", "./a.mp3")]), "file"),
    "an empty file": (form([MODEL, part('name="file"; filename="a.wav"')]), "file"),
    "two files": (form([MODEL, FILE, FILE]), "file"),
    "another file": (form([MODEL, FILE, part('name="other"; filename="a"', b"x")]), "other"),
    "cut in the file": (WHOLE[:-100], "file"), "cut in a field": (WHOLE[:80], "model"),
    "without the last line": (WHOLE.removesuffix(f"--{BOUNDARY}--\r\n".encode()), "file"),
    "many parts": (form([MODEL, *[field(f"f{n}", "") for n in range(64)], FILE]), "f63"),
    "a long field": (form([MODEL, field("prompt", "x" * 65_537), FILE]), "prompt"),
    "a long head": (form([MODEL, part('name="file"; filename="' + "x" * 9_000 + '"', SOUND)]), "model"),
    "many heads": (form([part('name="model"' + "\r\nx-a: b" * 50, b"fake-model"), FILE]), "file"),
    "a head twice": (form([part(b'name="a"\r\nContent-Disposition: form-data; name="b"'), FILE]), "file"),
    "lines like boundaries": (
        form([MODEL, part('name="file"; filename="a"', f"\r\n--{BOUNDARY}x".encode() * 70)]), "file",
    ),
    "a long white line": (form([MODEL])[:-4] + b" " * 80_000, "model"),
    "no name": (form([part("filename=x", b"x"), FILE]), None),
    "an empty name": (form([field("", "x"), FILE]), None),
    "a long name": (form([field("n" * 101, "x"), FILE]), None),
    "a bare line feed in a name": (form([part('name="a"; filename="a\nb: c"', b"x"), FILE]), "a"),
    "a name that is not UTF-8": (form([part(b'name="file"; filename="\xff.wav"', SOUND)]), "file"),
    "a text that is not UTF-8": (form([MODEL, part('name="prompt"', b"\xff"), FILE]), "prompt"),
    "base64": (
        form([MODEL, part('name="file"; filename="a"\r\nContent-Transfer-Encoding: base64', b"eA")]), "file",
    ),
    "a content type with a line feed": (
        form([MODEL, part('name="file"; filename="a"\r\ncontent-type: a/b\nx: y', SOUND)]), "file",
    ),
    "no model": (form([FILE]), "model"), "an empty model": (form([field("model", ""), FILE]), "model"),
    "two models": (form([MODEL, MODEL, FILE]), "model"),
    "stream": (form([MODEL, field("stream", "maybe"), FILE]), "stream"),
    "streams": (form([MODEL, field("stream", "true"), field("stream", "false"), FILE]), "stream"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
async def test_what_is_wrong_with_a_form_is_a_400_that_names_the_part(
    gateway: Gateway, fake_engine: FakeEngine, name: str
) -> None:
    """In one part or in many; nothing of it reaches the engine."""
    body, param = WRONG[name]
    answer = await ask(gateway, upload(gateway.key, body))
    assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "invalid_request", param)
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body[:20_000])
    head = upload(gateway.key, b"", [("transfer-encoding", "chunked")]).replace(b"content-length: 0\r\n", b"")
    if len(body) < 20_000:
        assert (await ask(gateway, head + chunks + b"0\r\n\r\n")).error == answer.error
    assert await fake_engine.requests() == []


async def test_a_connection_outlives_what_was_wrong_with_a_whole_form(gateway: Gateway) -> None:
    """Its body was read to the end, so the next request may follow."""
    async with Caller(gateway) as caller:
        for body in (form([MODEL]), WHOLE[:-100], form([FILE]), b"not-multipart"):
            await caller.send(upload(gateway.key, body))
            assert (await caller.answer()).status == 400


async def test_an_unknown_model_is_404(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """As on any route."""
    answer = await ask(gateway, upload(gateway.key, form([field("model", "nope"), FILE])))
    assert (answer.status, answer.error["code"], answer.error["param"]) == (404, "model_not_found", "model")
    assert await fake_engine.requests() == []


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 415), ("", 415), ("application/x-www-form-urlencoded", 415),
        ("multipart/mixed; boundary=x", 415), ("text/plain", 415),
        (f"multipart/form-data; boundary={BOUNDARY}; charset=latin-1", 415),
        ("multipart/form-data", 400), ("multipart/form-data; boundary=", 400),
        ("multipart/form-data; boundary=" + "x" * 300, 400),
        (f'Multipart/Form-Data; charset=UTF-8; boundary="{BOUNDARY}"', 200),
    ],
)  # fmt: skip
async def test_the_content_type_says_that_it_is_a_form(
    gateway: Gateway, fake_engine: FakeEngine, content_type: str, status: int
) -> None:
    """Anything else is refused before the body is read."""
    await fake_engine.script(scripts.answer('{"text":"hello"}'))
    head = request("POST", SPEECH, [
        ("x-api-key", gateway.key), ("content-type", content_type), ("content-length", str(len(WHOLE))),
    ])  # fmt: skip
    async with Caller(gateway) as caller:
        await caller.send(head + (WHOLE if status == 200 else b""))
        answer = await caller.answer()
    assert answer.status == status
    if status != 200:
        assert answer.error["code"] == ("unsupported_media_type" if status == 415 else "invalid_request")


async def test_a_form_is_no_json_and_json_needs_the_others(gateway: Gateway, fake_engine: FakeEngine) -> None:
    """415 on the routes that take JSON."""
    answer = await ask(gateway, upload(gateway.key, WHOLE, path=CHAT))
    assert (answer.status, answer.error["code"]) == (415, "unsupported_media_type")
    assert await fake_engine.requests() == []
