"""Known attacks and accidents, one connection each: each has got past some HTTP server or proxy.

`answers` stands where it is known: one for each request that is whole, or one refusal and no word more.
"""

import gzip
import json
from collections.abc import Iterator

from tests.callers import CALL
from tests.fuzz.connections import KEY, End, Script
from tests.fuzz.grammar import LAST

BODY = json.dumps({**CALL, "max_tokens": 2}).encode()
STREAM = json.dumps({**CALL, "max_tokens": 2, "stream": True}).encode()
SQUEEZED = gzip.compress(BODY, mtime=0)
POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer " + KEY + b"\r\n"
SMUGGLED = b"POST /invocations HTTP/1.1\r\nhost: smuggled\r\ncontent-length: 2\r\n\r\n{}"
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
LONG_BYTES = 3000
TLS_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)


def call(body: bytes = BODY, fields: bytes = b"", *, length: bytes | None = None) -> bytes:
    """A chat call with a length, its own unless another is given."""
    size = b"%d" % len(body) if length is None else length
    return POST + fields + b"content-length: " + size + b"\r\n\r\n" + body


def chunks(
    body: bytes = BODY, fields: bytes = b"", *, coding: bytes = b"chunked", framed: bytes = b""
) -> bytes:
    """A chat call in chunks, in one unless it is `framed` already."""
    data = framed or b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return POST + fields + b"transfer-encoding: " + coding + b"\r\n\r\n" + data


def form(content_type: bytes, body: bytes) -> bytes:
    """A call of a route that takes forms."""
    head = POST.replace(b"/v1/chat/completions", b"/v1/audio/transcriptions")
    return head + b"content-type: %b\r\ncontent-length: %d\r\n\r\n%b" % (content_type, len(body), body)


# Of two readings of one request, servers on the way have each taken the other: refused, and the end.
SMUGGLING = {
    "length, chunks": chunks(fields=b"content-length: 4\r\n") + SMUGGLED,
    "chunks, length": POST + b"transfer-encoding: chunked\r\ncontent-length: 6\r\n\r\n0\r\n\r\nG" + SMUGGLED,
    "two lengths": call(fields=b"content-length: 0\r\n") + SMUGGLED,
    "two equal lengths": call(b"{}", b"content-length: 2\r\n") + SMUGGLED,
    "a length in a trailer": chunks(framed=b"2\r\n{}\r\n0\r\ncontent-length: 9\r\n\r\n") + SMUGGLED,
    "a list of lengths": call(length=b"0, 2") + SMUGGLED,
    "a signed length": call(length=b"+2") + SMUGGLED,
    "a negative length": call(length=b"-1") + SMUGGLED,
    "a hex length": call(length=b"0x10") + SMUGGLED,
    "an octal-looking length": call(length=b"0_2") + SMUGGLED,
    "a length with a NUL": call(length=b"2\x00") + SMUGGLED,
    "an endless length": call(length=b"9" * 40) + SMUGGLED,
    "an unknown coding": chunks(coding=b"xchunked") + SMUGGLED,
    "chunked with a tab before": chunks(coding=b"\x0bchunked") + SMUGGLED,
    "chunked with a NUL": chunks(coding=b"chunked\x00") + SMUGGLED,
    "chunked, then identity": chunks(coding=b"chunked, identity") + SMUGGLED,
    "a space before the colon": call(fields=b"transfer-encoding : chunked\r\n") + SMUGGLED,
    "a folded coding": call(fields=b"transfer-encoding:\r\n chunked\r\n") + SMUGGLED,
    "a coding behind a bare line feed": call(fields=b"x: y\ntransfer-encoding: chunked\r\n") + SMUGGLED,
    "a coding behind a bare return": call(fields=b"x: y\rtransfer-encoding: chunked\r\n") + SMUGGLED,
    "a size with a sign": chunks(framed=b"+2\r\n{}\r\n0\r\n\r\n") + SMUGGLED,
    "a size with 0x": chunks(framed=b"0x2\r\n{}\r\n0\r\n\r\n") + SMUGGLED,
    "a size of 17 digits": chunks(framed=b"10000000000000002\r\n{}\r\n0\r\n\r\n") + SMUGGLED,
    "a size that is none": chunks(framed=b"zz\r\n{}\r\n0\r\n\r\n") + SMUGGLED,
    "an empty size": chunks(framed=b"\r\n{}\r\n0\r\n\r\n") + SMUGGLED,
    "a chunk longer than its size": chunks(framed=b"2\r\n{}{}\r\n0\r\n\r\n") + SMUGGLED,
    "a chunk without its end": chunks(framed=b"2\r\n{}0\r\n\r\n") + SMUGGLED,
    "chunk lines that end in a line feed": chunks(framed=b"2\n{}\n0\n\n") + SMUGGLED,
}
NO_HTTP = {
    "TLS": TLS_HELLO,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "HTTP/0.9": b"GET /healthz\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.9\r\n",
    "SMTP": b"EHLO x\r\n",
    "a proxy's greeting": b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n" + HEALTH,
    "noise": bytes(range(256)),
    "NULs": bytes(1000),
    "a lower-case method": b"get /healthz HTTP/1.1\r\n\r\n",
    "an unknown method": b"BREW /pot HTTP/1.1\r\n\r\n",
    "CONNECT": b"CONNECT evil.example:443 HTTP/1.1\r\nhost: evil.example\r\n\r\n",
    "a NUL in the target": b"GET /v1/\x00 HTTP/1.1\r\n\r\n",
    "a target of its own kind": b"GET evil.example:443 HTTP/1.1\r\n\r\n",
    "HTTP/2.0 by word": b"GET /healthz HTTP/2.0\r\n\r\n",
    "a version that is none": b"GET /healthz HTTP/1.1x\r\n\r\n",
    "a header without a colon": b"GET /healthz HTTP/1.1\r\nhost\r\n\r\n",
    "a header without a name": b"GET /healthz HTTP/1.1\r\n: x\r\n\r\n",
    "a NUL in a name": b"GET /healthz HTTP/1.1\r\nx\x00: y\r\n\r\n",
    "a NUL in a value": b"GET /healthz HTTP/1.1\r\nx: \x00\r\n\r\n",
    "a folded header": b"GET /healthz HTTP/1.1\r\nx: y\r\n z\r\n\r\n",
    "a head that begins folded": b"GET /healthz HTTP/1.1\r\n x: y\r\n\r\n",
    "bare line feeds": b"GET /healthz HTTP/1.1\nhost: x\n\n",
    "bare returns": b"GET /healthz HTTP/1.1\rhost: x\r\r",
    "an endless target": b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    "an endless name": b"GET /healthz HTTP/1.1\r\n" + b"x" * 70_000 + b": y\r\n\r\n",
    "an endless value": b"GET /healthz HTTP/1.1\r\nx: " + b"y" * 70_000 + b"\r\n\r\n",
    "a thousand headers": b"GET /healthz HTTP/1.1\r\n" + b"x: y\r\n" * 1000 + b"\r\n",
}
# Whole requests, however odd: so many answers.
WHOLE = {
    "TRACE": (b"TRACE / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer " + KEY + b"\r\n\r\n", 1),
    "OPTIONS of all": (b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n", 1),
    "an absolute target": (b"GET http://evil.example/healthz HTTP/1.1\r\nhost: x\r\n\r\n", 1),
    "two spaces": (b"GET  /healthz HTTP/1.1\r\n\r\n", 1), "no host": (b"GET /healthz HTTP/1.1\r\n\r\n", 1),
    "two hosts": (b"GET /healthz HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n", 1),
    "a body on GET": (b"GET /healthz HTTP/1.1\r\ncontent-length: 4\r\n\r\nabcd" + HEALTH, 2),
    "an offer of h2c": (b"GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\nx-a: b\r\n\r\n", 1),
    "a websocket": (
        b"GET /v1/realtime HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", 1,
    ),
    "a pipeline": (HEALTH * 9, 9),
    "calls in a pipeline": (call() + call(STREAM) + chunks() + call(STREAM), 4),
    "a call behind a refusal": (call(b"[1]") + call(), 2), "a body that is a request": (call(SMUGGLED), 1),
    "extensions and trailers": (chunks(framed=b"2;a=b\r\n{}\r\n0\r\nx-api-key: z\r\nhost: z\r\n\r\n"), 1),
    "gzip": (call(SQUEEZED, b"content-encoding: gzip\r\n"), 1),
    "gzip that is none": (call(BODY, b"content-encoding: gzip\r\n"), 1),
    "gzip cut short": (call(SQUEEZED[:-9], b"content-encoding: gzip\r\n"), 1),
    "gzip that grows": (call(gzip.compress(bytes(3 << 20), mtime=0), b"content-encoding: gzip\r\n"), 1),
    "a form that is none": (form(b"multipart/form-data; boundary=x", b"abc"), 1),
    "a form without a boundary": (form(b"multipart/form-data", b"abc"), 1),
    "a form that stops": (form(b"multipart/form-data; boundary=x", b"--x\r\ncontent-disposition: form-da"),
    1),
}  # fmt: skip
# The gateway waits for what never comes, and ends it.
UNFINISHED = {
    "half a head": b"GET /healthz HTTP/1.1\r\nhost: x\r\n",
    "half a line": b"GET /hea",
    "a body that stops": call(length=b"100000"),
    "chunks that stop": chunks(framed=b"ffff\r\n{"),
    "no last chunk": chunks(framed=b"2\r\n{}\r\n"),
    "trailers that stop": chunks(framed=b"2\r\n{}\r\n0\r\nx: y\r\n"),
    "expected, not sent": call(b"", b"expect: 100-continue\r\n", length=b"5"),
    "nothing": b"",
}


def _corpus() -> Iterator[Script]:
    for name, data in (SMUGGLING | NO_HTTP).items():
        # What looks like the beginning of a head is decided by the blank line behind it.
        yield Script(name, data + LAST, answers=1)
        if len(data) < LONG_BYTES:
            yield Script(f"{name}, in pieces", data + LAST, step=1, answers=1)
    for name, (data, answers) in WHOLE.items():
        yield Script(name, data + LAST, answers=answers + 1)
        yield Script(f"{name}, in pieces", data + LAST, step=1, answers=answers + 1)
        yield from _left(name, data)
    for name, data in UNFINISHED.items():
        yield Script(name, data)
        yield from _left(name, data)


def _left(name: str, data: bytes) -> Iterator[Script]:
    ends: tuple[End, ...] = ("half", "close", "reset")
    yield from (Script(f"{name}, {end}", data, end=end) for end in ends)


CORPUS = tuple(_corpus())
