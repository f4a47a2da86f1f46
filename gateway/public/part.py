"""One part of a form: what its head says, read strictly, and its head as it is written anew."""

import re
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from python_multipart.multipart import parse_options_header

from gateway.errors import InvalidRequest

MAX_NAME_CHARACTERS = 100
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_EXTENDED = re.compile(rb";\s*filename\*\s*=\s*(utf-8|iso-8859-1)'[^']*'([^\s;]*)", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]")
_CONTENT_TYPE = re.compile(rb"[\x20-\x7e\x80-\xff]*")
_AS_IT_IS = (b"7bit", b"8bit", b"binary")


@dataclass(slots=True)
class Part:
    """A field, or a file if it has a `filename`; `value` is the text of a field alone."""

    name: str
    filename: str | None
    content_type: bytes
    value: bytearray = field(default_factory=bytearray)

    def text(self) -> str:
        """The field's text. Raises InvalidRequest for what is not UTF-8."""
        return _utf8(bytes(self.value), "value", self.name)

    def head(self) -> bytes:
        """Its head on the wire, up to and with the empty line."""
        lines = [f'Content-Disposition: form-data; name="{_quoted(self.name)}"'.encode()]
        if self.filename is not None:
            lines[0] += f'; filename="{_quoted(self.filename)}"'.encode()
        if self.content_type:
            lines.append(b"Content-Type: " + self.content_type)
        return b"\r\n".join([*lines, b"", b""])


def of_headers(headers: dict[bytes, bytes]) -> Part:
    """The part with this head, names in lower case. Raises InvalidRequest for a head that is none."""
    disposition = headers.get(b"content-disposition", b"")
    kind, options = parse_options_header(disposition)
    name = _utf8(options.get(b"name", b""), "name", None)
    if kind.strip() != b"form-data" or not name:
        raise InvalidRequest("A part of the form has no name: 'Content-Disposition: form-data; name=…'.")
    if len(name) > MAX_NAME_CHARACTERS:
        raise InvalidRequest(f"A name in the form is longer than {MAX_NAME_CHARACTERS} characters.")
    filename = _filename(disposition, options, name)
    if _CONTROL.search(name) or (filename and _CONTROL.search(filename)):
        raise InvalidRequest("A name in the form holds control characters.", param=name)
    content_type = headers.get(b"content-type", b"")
    if not _CONTENT_TYPE.fullmatch(content_type):
        raise InvalidRequest(f"The content type of '{name}' holds control characters.", param=name)
    if headers.get(b"content-transfer-encoding", b"binary").strip().lower() not in _AS_IT_IS:
        raise InvalidRequest(f"'{name}' has a transfer encoding: send its bytes as they are.", param=name)
    return Part(name, filename, content_type.strip())


def _filename(disposition: bytes, options: dict[bytes, bytes], name: str) -> str | None:
    extended = _EXTENDED.search(_QUOTED.sub(b'""', disposition))
    if extended is not None:
        text = unquote_to_bytes(extended[2])
        return text.decode("latin-1") if extended[1][:1] in b"iI" else _utf8(text, "file name", name)
    plain = options.get(b"filename")
    return None if plain is None else _utf8(plain, "file name", name)


def _utf8(text: bytes, what: str, name: str | None) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        of = f" of '{name}'" if name else ""
        raise InvalidRequest(f"A {what}{of} in the form is not UTF-8.", param=name) from error


def _quoted(text: str) -> str:
    """As a quoted string; line ends as browsers write them, since none may stand in a head."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return escaped.replace("\r", "%0D").replace("\n", "%0A")
