"""Requests as no client should write them: a grammar for hypothesis, from nearly right to noise.

Each script ends with a plain request that asks for the connection's end, so that the gateway answers at once
even where the bytes before it left something open.
"""

import json
import zlib
from typing import Any, TypeVar

from hypothesis import strategies as st

from gateway.routes import ROUTES
from tests.callers import CALL
from tests.fuzz.connections import KEY, End, Script

LAST = b"\r\n\r\nGET /healthz HTTP/1.1\r\nhost: last\r\nconnection: close\r\n\r\n"

METHODS = (b"POST", b"GET", b"HEAD", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"TRACE", b"BREW", b"post", b"")
PATHS = tuple(route.template.replace("{id}", "default").encode() for route in ROUTES)
ODD_TARGETS = (
    b"*", b"/", b"", b"//", b"//evil.example/v1/models", b"/v1/v1/models", b"/chat/completions", b"/metrics",
    b"/admin/keys", b"/readyz", b"/v1/chat/completions/render", b"/invocations", b"/v1/models/%00%0d%0a",
    b"/v1/models/%ff%fe", b"/v1/models/../../admin/keys", b"/v1/%6dodels", b"/v1/models#x", b"/v1\\models",
    b"http://evil.example/v1/models", b"https://evil.example:99999/", b"evil.example:443", b"/\x00",
    b"/\xff\xfe", b"/v1/models/" + b"a" * 5000, b"/v1/models?" + b"a=%zz&" * 300, b"/v1/models/%",
    b"http://", b"/ /", b"/\t",
)  # fmt: skip
VERSIONS = (
    b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/1.2", b"HTTP/1.1x", b"http/1.1",
    b"",
)  # fmt: skip
ODD_VALUES: dict[bytes, tuple[bytes, ...]] = {
    b"content-length": (b"0", b"5", b"-1", b"+5", b"0x5", b"5, 5", b"5 5", b"9" * 25, b"", b"\xb5", b"1e3"),
    b"transfer-encoding": (
        b"chunked", b"Chunked", b"xchunked", b"chunked, identity", b"identity", b"gzip, chunked",
        b"\x0bchunked", b"chunked\x00", b"chunked, chunked", b"", b'"chunked"',
    ),
    b"expect": (b"100-continue", b"100-Continue", b"200-ok", b""),
    b"connection": (b"close", b"keep-alive", b"upgrade", b"Upgrade, HTTP2-Settings", b"content-length",
    b"\xff"),
    b"upgrade": (b"websocket", b"h2c", b"TLS/1.0", b""),
    b"content-encoding": (b"gzip", b"deflate", b"zstd", b"br", b"identity", b"gzip, gzip", b"GZIP", b"foo",
    b""),
    b"content-type": (
        b"application/json; charset=utf-8", b"application/json;charset=bogus", b"text/plain", b"a/b; x=\"",
        b"application/vnd.api+json", b"multipart/form-data; boundary=x", b"multipart/form-data", b"\xff",
        b"",
    ),
    b"authorization": (b"Bearer", b"Bearer \xff\xfe", b"bearer  x", b"Basic eDp4",
    b"Bearer sk-gw-aaaaaaaaaaaa-b", b""),
    b"x-api-key": (b"\xe2\x82\xac", b"sk-gw-", b"x" * 3000),
    b"x-forwarded-for": (b"1.2.3.4", b"::ffff:1.2.3.4, [::1]:8", b"fe80::1%eth0", b",,,", b"\xff",
    b"9" * 400),
    b"x-request-id": (b"mine", b"a b", b"\xff" * 9, b"x" * 200),
    b"host": (b"", b"evil.example", b"a b", b"\xff", b"[::1"), b"origin": (b"https://evil.example", b"null"),
    b"cookie": (b"a=b; " * 100,), b"x-vllm-priority": (b"-9",), b"range": (b"bytes=0-1",),
    b"te": (b"trailers",), b"http2-settings": (b"AAMAAABk",),
}  # fmt: skip
ODD_LINES = (
    b"no colon", b": no name", b"na me: x", b"x-a : x", b" folded", b"\tfolded", b"x-\x00: y", b"x: \x00",
    b"x: a\rb", b"\xff\xfe: x", b"x-long: " + b"a" * 3000, b"x: \x7f\x1b[31m",
    b"transfer-encoding\t: chunked",
)  # fmt: skip
ENDS = (b"\r\n", b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"")


T = TypeVar("T")


def mostly(usual: T, *others: T) -> st.SearchStrategy[T]:
    """The usual in three of four cases: what is wrong everywhere gets no farther than the parser."""
    return st.sampled_from([usual] * 3 * len(others) + list(others))


def chat_body() -> st.SearchStrategy[bytes]:
    """A body that is a call, or something near one, or no JSON at all. None asks for many tokens."""
    call = {**CALL, "max_tokens": 2}
    bodies: list[Any] = [
        call, {**call, "stream": True}, {**call, "model": "nope"}, {**call, "model": 5}, {}, [], "x", None,
        {**call, "n": 99}, {**call, "chat_template_kwargs": 1}, {**call, "messages": "x" * 2000},
        {"model": "default", "prompt": ["a", "b"], "input": ["x"], "documents": ["y"], "tokens": [1, 2]},
    ]  # fmt: skip
    good = st.sampled_from([json.dumps(body).encode() for body in bodies])
    raw = [
        b"", b" ", b"\xef\xbb\xbf{}", b'{"a":NaN}', b'{"a":"\\ud800"}', b"[" * 3000, b'{"a":' * 999, b"\xff",
        b"{}{}", b'{"a":1e999}', b"1" * 30,
        b"--x\r\ncontent-disposition: form-data; name=file; filename=\xff\r\n\r\ny\r\n--x--", b"--x--",
        b'{"model":"fake-model"', b"\x28\xb5\x2f\xfd\x00\x58", b"\x1f\x8b\x08\x00",
    ]  # fmt: skip
    squeezed = good.map(lambda body: zlib.compress(body, wbits=31))
    return good | st.sampled_from(raw) | squeezed | st.binary(max_size=40)


@st.composite
def chunked(draw: st.DrawFn, body: bytes) -> bytes:
    """The body in chunks: with extensions, trailers and, often, a mistake of framing."""
    cut = draw(st.integers(0, len(body)))
    size = draw(
        mostly(b"%x", b"%X", b"%x;a=b", b'%x;a="\r\n"', b"0%x", b"%x ", b"0x%x", b"-%x", b"f%x", b"%xg")
    )
    end = draw(mostly(b"\r\n", b"\n", b""))
    parts = [size % len(part) + b"\r\n" + part + end for part in (body[:cut], body[cut:]) if part]
    tail = mostly(
        b"0\r\n\r\n", b"0\r\nx-a: b\r\n\r\n", b"0\r\nte: x\r\n", b"0\r\n", b"", b"0" * 17 + b"\r\n\r\n"
    )
    return b"".join(parts) + draw(tail)


@st.composite
def request(draw: st.DrawFn) -> bytes:
    """One request, a few mistakes in it."""
    usual = draw(mostly(True, False))
    method = b"POST" if usual else draw(st.sampled_from(METHODS) | st.binary(max_size=6))
    target = draw(st.sampled_from(PATHS if usual else ODD_TARGETS + PATHS))
    target += draw(mostly(b"", b"/", b"//", b"?a=b", b"?", b"%2f", b"/x"))
    version = b"HTTP/1.1" if usual else draw(st.sampled_from(VERSIONS))
    body = draw(chat_body())
    lines = [b"host: x", b"authorization: Bearer " + KEY]
    framing = draw(mostly("length", "chunked", "chunked", "both", "wrong", "none"))
    if framing in ("length", "both"):
        lines.append(b"content-length: %d" % len(body))
    elif framing == "wrong":
        lines.append(b"content-length: %d" % draw(st.integers(0, 2 * len(body) + 9)))
    if framing in ("chunked", "both"):
        lines.append(b"transfer-encoding: chunked")
        body = draw(chunked(body))
    for _ in range(draw(mostly(0, 1, 1, 3))):
        lines.insert(draw(st.integers(0, len(lines))), draw(odd_line()))
    end = b"\r\n" if usual else draw(st.sampled_from(ENDS))
    head = b" ".join((method, target, version)) + end + b"".join(line + end for line in lines)
    return head + b"\r\n" + body


def odd_line() -> st.SearchStrategy[bytes]:
    """A header line that is odd by its value or by its shape."""
    fields = [name + b": " + value for name, values in ODD_VALUES.items() for value in values]
    return st.sampled_from([*fields * 3, *ODD_LINES]) | st.binary(max_size=30)


@st.composite
def mutated(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes with up to four places cut out, doubled, overwritten or filled with noise."""
    for _ in range(draw(mostly(0, 1, 2, 4))):
        start = draw(st.integers(0, len(data)))
        size = draw(st.sampled_from((1, 1, 2, 5, 40)))
        kind = draw(st.sampled_from(("cut", "double", "noise", "sign")))
        middle = data[start : start + size]
        if kind == "cut":
            middle = b""
        elif kind == "double":
            middle *= draw(st.sampled_from((2, 50)))
        elif kind == "noise":
            middle = draw(st.binary(min_size=1, max_size=8))
        else:
            middle = draw(
                st.sampled_from((b"\r\n", b"\n", b"\r", b"\0", b" ", b":", b"\r\n\r\n", b"\xff", b"{", b'"'))
            )
        data = data[:start] + middle + data[start + size :]
    return data


@st.composite
def script(draw: st.DrawFn) -> Script:
    """One connection: a pipeline, mutated or not, whole or in pieces, and some way to end it."""
    data = draw(mutated(b"".join(draw(st.lists(request(), min_size=1, max_size=3)))))
    end: End = draw(mostly("read", "half", "close", "reset"))
    if end == "read":
        data += LAST
    return Script("grammar", data, draw(mostly(1_000_000, 1000, 100, 7, 1)), end)
