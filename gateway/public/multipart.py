"""A multipart body cut into its parts as it arrives, by python-multipart, with bounds on each."""

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, MultipartState

from gateway.errors import GatewayError, InvalidRequest, quote
from gateway.public import part
from gateway.public.body import Held
from gateway.public.part import Part

FILE = "file"
MAX_PARTS = 64
MAX_FIELD_BYTES = 65_536
MAX_PADDING_BYTES = 65_536  # white space behind boundaries, which nobody sends, and which is slow to read


class Cutter:
    """Fed with a body; `parts` are those that have begun, in order. The one file's bytes are handed out."""

    def __init__(self, boundary: bytes, held: Held) -> None:
        self.parts: list[Part] = []
        self.whole = False
        self._held = held
        self._delimiter = b"\r\n--" + boundary
        self._delimiters = self._padding_bytes = 0
        self._of_file: list[bytes] = []
        self._header = (bytearray(), bytearray())
        self._headers: dict[bytes, bytes] = {}
        self._parser = MultipartParser(
            boundary,
            {
                "on_header_field": self._on_header_field,
                "on_header_value": self._on_header_value,
                "on_header_end": self._on_header_end,
                "on_headers_finished": self._on_headers_finished,
                "on_part_data": self._on_part_data,
                "on_end": self._on_end,
            },
        )

    def feed(self, piece: bytes) -> bytes:
        """The file's bytes among these. Raises InvalidRequest, naming the part, and QueueFull."""
        self._delimiters += piece.count(self._delimiter)
        try:
            self._parser.write(piece)
        except FormParserError as error:
            raise self._broken("is no valid multipart form", cause=str(error)) from error
        if self._parser.state == MultipartState.BOUNDARY_PADDING:
            self._padding_bytes += len(piece)
        if self._delimiters > MAX_PARTS + 1 or self._padding_bytes > MAX_PADDING_BYTES:
            raise self._broken(f"has more than {MAX_PARTS} parts, or lines that begin like a boundary")
        of_file, self._of_file = self._of_file, []
        return b"".join(of_file)

    def end(self, file_bytes: int) -> None:
        """No more will come. Raises InvalidRequest if something is missing."""
        if not self.whole:
            raise self._broken("ends before its last part does: send all of it, with the closing boundary")
        if not any(part.filename is not None for part in self.parts):
            raise _without_file()
        if not file_bytes:
            raise InvalidRequest(f"'{FILE}' is empty.", param=FILE)

    def _broken(self, what: str, *, cause: str | None = None) -> GatewayError:
        param = self.parts[-1].name if self.parts else FILE
        return InvalidRequest(f"The body {what}.", param=param, cause=cause)

    # What the parser calls

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header[0].extend(data[start:end])

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header[1].extend(data[start:end])

    def _on_header_end(self) -> None:
        name, value = (bytes(text) for text in self._header)
        if self._headers.setdefault(name.lower(), value) is not value:
            raise self._broken("has a part with the same header twice")
        self._header = (bytearray(), bytearray())

    def _on_headers_finished(self) -> None:
        new = part.of_headers(self._headers)
        self._headers = {}
        if len(self.parts) == MAX_PARTS:
            raise InvalidRequest(f"The form has more than {MAX_PARTS} parts.", param=new.name)
        if new.filename is None and new.name == FILE:
            raise InvalidRequest(
                f"'{FILE}' came as text: send a file, with curl as '-F {FILE}=@NAME'.", param=FILE
            )
        if new.filename is not None and (new.name != FILE or any(p.name == FILE for p in self.parts)):
            raise InvalidRequest(
                f"This route takes one file, in '{FILE}'; there is another in {quote(new.name)}.",
                param=new.name,
            )
        self.parts.append(new)

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        current = self.parts[-1]
        if current.filename is not None:
            self._of_file.append(data[start:end])
            return
        if len(current.value) + end - start > MAX_FIELD_BYTES:
            raise InvalidRequest(
                f"{quote(current.name)} is longer than {MAX_FIELD_BYTES} bytes.", param=current.name
            )
        self._held.grow(end - start)
        current.value += data[start:end]

    def _on_end(self) -> None:
        self.whole = True


def _without_file() -> InvalidRequest:
    return InvalidRequest(f"The form has no '{FILE}': send the sound in it.", param=FILE)
