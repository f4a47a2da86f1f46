"""Uploads as callers send them, and as the engine reads them: vLLM's own framework takes them apart here."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartParser

from tests.callers import Fields, request
from tests.fake_engine.handle import Seen

SPEECH = "/v1/audio/transcriptions"
BOUNDARY = "the-callers-own-boundary"
SOUND = b"RIFF\x00\xff--the-callers-own-boundar\r\n--" + bytes(range(256)) * 20
FILE = (b'name="file"; filename="speech.wav"\r\nContent-Type: audio/wav', SOUND)


def part(disposition: str | bytes, content: bytes = b"") -> tuple[bytes, bytes]:
    """A part: what follows `form-data; ` in its head, more headers behind it, and its content."""
    return disposition if isinstance(disposition, bytes) else disposition.encode(), content


def field(name: str, text: str) -> tuple[bytes, bytes]:
    """A text field."""
    return part(f'name="{name}"', text.encode())


def form(parts: Sequence[tuple[bytes, bytes]], boundary: str = BOUNDARY) -> bytes:
    """The body of these parts."""
    line = f"--{boundary}\r\n".encode()
    written = [
        line + b"Content-Disposition: form-data; " + head + b"\r\n\r\n" + content + b"\r\n"
        for head, content in parts
    ]
    return b"".join([*written, f"--{boundary}--\r\n".encode()])


def upload(key: str, body: bytes, fields: Fields = (), path: str = SPEECH) -> bytes:
    """A call with this body; its content type is that of `form`, if none is given."""
    given = [("content-type", f"multipart/form-data; boundary={BOUNDARY}")]
    if any(name == "content-type" for name, _ in fields):
        given = []
    return request("POST", path, [("x-api-key", key), *given, *fields], body)


async def read(seen: Seen) -> list[tuple[str, Any]]:
    """Name and value of each part, in order; of a file its name, its content type and its bytes."""

    async def stream() -> AsyncGenerator[bytes, None]:
        yield seen.body

    found = await MultiPartParser(Headers(dict(seen.headers)), stream()).parse()
    return [
        (name, await _file(value) if isinstance(value, UploadFile) else value)
        for name, value in found.multi_items()
    ]


async def _file(sent: UploadFile) -> tuple[str | None, str | None, bytes]:
    content = await sent.read()
    await sent.close()
    return sent.filename, sent.content_type, content
