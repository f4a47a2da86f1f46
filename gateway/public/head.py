"""What a request's head says of its body, judged before the body is asked for."""

from collections.abc import Iterable
from typing import NamedTuple

from python_multipart.multipart import parse_options_header

from gateway.errors import InvalidRequest, RequestTooLarge, UnsupportedMediaType, quote
from gateway.public.decode import CODINGS

MAX_BOUNDARY_CHARACTERS = 200
_ALIASES = {"x-gzip": "gzip", "identity": ""}
_TAKEN = ", ".join(CODINGS)

Headers = Iterable[tuple[bytes, bytes]]


class FormHead(NamedTuple):
    """How a form is packed and what stands between its parts."""

    coding: str
    boundary: bytes


def check_json(headers: Headers, max_bytes: int) -> str:
    """The coding that a JSON body is packed in, "" for none.

    Raises RequestTooLarge and UnsupportedMediaType.
    """
    coding = ""
    for name, value in headers:
        if name == b"content-length" and int(value) > max_bytes:
            raise too_large(max_bytes)
        if name == b"content-type" and value != b"application/json":
            _check_json_type(value)
        elif name == b"content-encoding":
            coding = _coding(value, coding)
    return coding


def check_form(headers: Headers, max_bytes: int) -> FormHead:
    """How a multipart body comes. Raises as `check_json`, and InvalidRequest for a boundary that is none."""
    coding, content_type = "", b""
    for name, value in headers:
        if name == b"content-length" and int(value) > max_bytes:
            raise too_large(max_bytes)
        if name == b"content-type":
            content_type = value
        elif name == b"content-encoding":
            coding = _coding(value, coding)
    return FormHead(coding, _boundary(content_type))


def too_large(max_bytes: int) -> RequestTooLarge:
    """The refusal of a body over the limit, packed or unpacked."""
    return RequestTooLarge(f"The body is larger than the {max_bytes} bytes that this gateway takes.")


def _coding(value: bytes, before: str) -> str:
    name = value.decode("latin-1").strip().lower()
    coding = _ALIASES.get(name, name)
    if not coding:
        return before
    if before or coding not in CODINGS:
        name = f"{before}, {name}" if before else name
        raise UnsupportedMediaType(
            f"The body's encoding {quote(name)} is not taken: send it uncompressed or as one of {_TAKEN}.",
            headers=[(b"accept-encoding", _TAKEN.encode())],
        )
    return coding


def _check_json_type(value: bytes) -> None:
    kind, _, parameters = value.decode("latin-1").lower().partition(";")
    kind = kind.strip()
    charset = next(
        (p.partition("=")[2] for p in parameters.split(";") if p.strip().startswith("charset")), ""
    )
    is_json = kind == "application/json" or kind.endswith("+json")
    if kind and not (is_json and charset.strip(' "') in ("", "utf-8", "utf8")):
        raise UnsupportedMediaType(
            f"The content type {quote(value.decode('latin-1'))} is not taken here: "
            "send JSON in UTF-8 as 'Content-Type: application/json'."
        )


def _boundary(content_type: bytes) -> bytes:
    kind, options = parse_options_header(content_type)
    charset = options.get(b"charset", b"utf-8").lower()
    if kind.strip() != b"multipart/form-data" or charset not in (b"utf-8", b"utf8"):
        raise UnsupportedMediaType(
            f"The content type {quote(content_type.decode('latin-1'))} is not taken here: "
            "send a form in UTF-8 as 'Content-Type: multipart/form-data; boundary=…'."
        )
    boundary = options.get(b"boundary", b"")
    if not 0 < len(boundary) <= MAX_BOUNDARY_CHARACTERS:
        raise InvalidRequest(
            "The content type names no boundary: let your HTTP library write this header by itself."
        )
    return boundary
