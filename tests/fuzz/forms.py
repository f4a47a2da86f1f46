"""Uploaded forms: a valid one, and ones whose parts, heads, boundaries and bytes are odd."""

import re
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.callers import MODEL
from tests.fuzz.bodies import FORBIDDEN

ROUTES = ("/v1/audio/transcriptions", "/v1/audio/translations")
_NAME = re.compile(rb'\bname="([^"]*)"')
_FILENAME = re.compile(rb'\bfilename="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Part:
    """One part; `filename` None is a field. `more` are further header lines."""

    name: bytes
    value: bytes
    filename: bytes | None = None
    more: bytes = b""

    def text(self) -> bytes:
        """The part as it is sent."""
        filename = b"" if self.filename is None else b'; filename="%b"' % self.filename
        return b'content-disposition: form-data; name="%b"%b\r\n%b\r\n%b\r\n' % (
            self.name, filename, self.more, self.value,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """One call: `sound` if the form is one that the gateway must take, and the engine must get whole."""

    route: str
    content_type: bytes
    body: bytes
    parts: tuple[Part, ...]
    sound: bool

    def __repr__(self) -> str:
        return f"Form({self.route!r}, {self.content_type!r}, {self.body[:1500]!r} of {len(self.body)} bytes)"


FILE = Part(b"file", b"RIFF\x00\xff\r\n--x\r\n" * 9, b"a.wav", b"content-type: audio/wav\r\n")
MODEL_PART = Part(b"model", MODEL.encode())
FIELDS = (
    Part(b"language", b"en"), Part(b"prompt", "ünï\r\n😀".encode()), Part(b"response_format", b"json"),
    Part(b"temperature", b"0.0"), Part(b"stream", b"false"), Part(b"timestamp_granularities[]", b"word"),
    Part(b"timestamp_granularities[]", b"segment"), Part(b"zzz_future", b'{"a": 1}'), Part(b"seed", b"7"),
)  # fmt: skip
ODD_PARTS = (
    Part(b"file", b"text instead"), Part(b"file", b"second", b"b.wav"), Part(b"other", b"y", b"c.wav"),
    Part(b"", b"x"), Part(b"language", b"\xff\xfe"), Part(b"prompt", b"x" * 70_000),
    Part(b"stream", b"maybe"), Part(b"model", b"nope"), Part(b"model", b""), Part(b"n", b"99"),
    Part(b"n", b"9" * 30), Part(b"stream", b"\x00"), Part(b"a" * 5000, b"x"), Part(b"l\xffnguage", b"x"),
    Part(b"x", b"y", None, b"content-length: 99\r\n"),
    Part(b"x", b"eHg=", None, b"content-transfer-encoding: base64\r\n"),
    Part(b"x", b"y", None, b"no colon\r\n"),
    Part(b"x", b"y", None, b"content-type: text/plain; charset=utf-16\r\n"), Part(b"prompt", b"\x00\r\n--"),
    *(Part(name.encode(), b"1") for name in FORBIDDEN),
)  # fmt: skip
FILENAMES = (
    b"",
    b"../../etc/passwd",
    "ünï😀.wav".encode(),
    b"a\\b.wav",
    b"%22.wav",
    b"x" * 3000,
    b"\xff.wav",
    b"a;b=c",
)
BOUNDARIES = (b"x", b"-" * 70, b"a'()+_,-./:=?b", b"0123456789" * 7)
ODD_TYPES = (
    b"multipart/form-data", b"multipart/form-data; boundary=", b"multipart/form-data; boundary=other",
    b"multipart/form-data; boundary=" + b"x" * 300, b"multipart/mixed; boundary=x", b"application/json", b"",
    b'multipart/form-data; boundary="x', b"multipart/form-data; boundary=x; boundary=y", b"audio/wav",
    b"multipart/form-data; boundary=\xff", b"MULTIPART/FORM-DATA; BOUNDARY=x",
)  # fmt: skip


@st.composite
def form(draw: st.DrawFn) -> Form:
    """A form, sound in half of the cases."""
    boundary = draw(st.sampled_from(BOUNDARIES))
    parts = [FILE, MODEL_PART, *draw(st.lists(st.sampled_from(FIELDS), max_size=4, unique=True))]
    if draw(st.booleans()):
        parts[0] = replace(
            FILE, filename=draw(st.sampled_from(FILENAMES[1:3])), value=draw(st.binary(min_size=1))
        )
    sound = draw(st.booleans())
    if not sound:
        for _ in range(draw(st.integers(1, 2))):
            parts = draw(spoilt(parts))
    parts = draw(st.permutations(parts))
    body = b"".join(b"--%b\r\n%b" % (boundary, part.text()) for part in parts) + b"--%b--\r\n" % boundary
    kind = b'multipart/form-data; boundary="%b"' % boundary
    if not sound and draw(st.booleans()):
        kind, body = draw(st.sampled_from([kind, *ODD_TYPES])), draw(torn(body))
    sound = sound and not any(b"\r\n--" + boundary in part.value for part in parts)
    return Form(draw(st.sampled_from(ROUTES)), kind, body, tuple(parts), sound)


@st.composite
def spoilt(draw: st.DrawFn, parts: list[Part]) -> list[Part]:
    """The parts, one of them odd, gone, or there too often."""
    kind = draw(st.sampled_from(("odd", "odd", "gone", "often", "named")))
    if kind == "gone":
        return parts[1:]
    if kind == "often":
        return parts + [Part(b"x", b"y")] * draw(st.sampled_from((2, 70)))
    if kind == "named":
        return [replace(parts[0], filename=draw(st.sampled_from(FILENAMES))), *parts[1:]] if parts else []
    return [*parts, draw(st.sampled_from(ODD_PARTS))]


@st.composite
def torn(draw: st.DrawFn, body: bytes) -> bytes:
    """The bytes, cut or mutated."""
    at = draw(st.integers(0, len(body)))
    kind = draw(st.sampled_from(("cut", "noise", "lines", "before", "behind", "none")))
    if kind == "cut":
        return body[:at]
    if kind == "noise":
        return body[:at] + draw(st.binary(min_size=1, max_size=9)) + body[at:]
    if kind == "lines":
        return body.replace(b"\r\n", draw(st.sampled_from((b"\n", b"\r", b"\r\n\r\n"))))
    return {"before": b"preamble\r\n" + body, "behind": body + b"epilogue", "none": body}[kind]


def parts_of(content_type: str, body: bytes) -> list[Part]:
    """The parts of a form that the gateway wrote, whose boundary stands nowhere in them."""
    boundary = b"--" + content_type.partition("boundary=")[2].encode()
    first, *middle, last = body.split(boundary)
    assert first == b"", body[:200]
    assert last == b"--\r\n", body[-200:]
    found = []
    for text in middle:
        head, _, value = text.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name, filename = _NAME.search(head), _FILENAME.search(head)
        assert name, head
        found.append(Part(name[1], value.removesuffix(b"\r\n"), filename and filename[1]))
    return found
