"""An uploaded form: its fields for the policy, its one file in a spool, and both again for the engine.

The texts of a form become what the policy looks at: switches and whole numbers by name, lists where a name
comes more than once. What the policy left alone goes on as it came.
"""

import re
import secrets
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
from starlette.types import Receive

from gateway.public import body, head
from gateway.public.body import Held
from gateway.public.form_body import FormBody
from gateway.public.head import Headers
from gateway.public.multipart import Cutter
from gateway.public.part import Part
from gateway.public.spool import Spool
from gateway.public.turn import Turn
from gateway.usage import Record

SLICE_BYTES = 4096  # what nearly is a boundary costs the parser a microsecond a byte
_SWITCHES = frozenset({"stream", "stream_include_usage", "stream_continuous_usage_stats"})
_WHOLE_NUMBERS = frozenset(
    {"n", "best_of", "n_cmpl", "logprobs", "top_logprobs", "prompt_logprobs", "max_completion_tokens"}
)
# As pydantic reads them, and so the engine.
_TRUE = frozenset({"1", "on", "t", "true", "y", "yes"})
_FALSE = frozenset({"0", "off", "f", "false", "n", "no"})
_WHOLE = re.compile(r"[+-]?\d{1,18}")


class Form:
    """`with Form(...) as form`: read once; what it holds is let go at the end."""

    def __init__(self, folder: Path, held: Held) -> None:
        self._parts: list[Part] = []
        self._spool = Spool(folder, held)
        self._held = held

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spool.close()

    async def read(self, headers: Headers, receive: Receive, max_bytes: int, record: Record) -> None:
        """Take the form in, to its end.

        Raises InvalidRequest that names the part, RequestTooLarge, UnsupportedMediaType, QueueFull,
        StorageFull; ClientClosed if the caller leaves.
        """
        coding, boundary = head.check_form(headers, max_bytes)
        cutter, turn = Cutter(boundary, self._held), Turn()
        async with aclosing(body.arriving(coding, receive, max_bytes, record)) as pieces:
            async for piece in pieces:
                for start in range(0, len(piece), SLICE_BYTES):
                    of_file = cutter.feed(piece[start : start + SLICE_BYTES])
                    if of_file:
                        await self._spool.append(of_file)
                    await turn.end()
        cutter.end(self._spool.size_bytes)
        self._parts = cutter.parts

    def fields(self) -> dict[str, Any]:
        """All but the file, by name; a list where a name came more than once or ends in `[]`.

        Raises InvalidRequest for a text that is not UTF-8.
        """
        found: dict[str, Any] = {}
        for part in self._parts:
            if part.filename is not None:
                continue
            value = _typed(part.name, part.text())
            if part.name in found or part.name.endswith("[]"):
                found[part.name] = [*_listed(found.get(part.name, [])), value]
            else:
                found[part.name] = value
        return found

    def write(self, prepared: Mapping[str, Any]) -> tuple[FormBody, bytes]:
        """The form for an engine and its content type: these fields and the file.

        Each stands where it stood, new ones at the end.
        """
        came = self.fields()
        parts: list[Part] = []
        seen: set[str] = set()
        for part in self._parts:
            name = part.name
            if part.filename is not None or (name in prepared and prepared[name] == came[name]):
                parts.append(part)
            elif name in prepared and name not in seen:
                parts += _written(name, prepared[name])
            seen.add(name)
        for name, value in prepared.items():
            if name not in seen:
                parts += _written(name, value)
        boundary = secrets.token_hex(16)
        return FormBody(parts, self._spool, boundary), f"multipart/form-data; boundary={boundary}".encode()


def _typed(name: str, text: str) -> Any:
    """What cannot be converted stays as it is: whoever looks at it says what is wrong with it."""
    if name not in _SWITCHES and name not in _WHOLE_NUMBERS:
        return text
    if not text:
        return None  # what the engine takes for silence, too
    if name in _WHOLE_NUMBERS:
        return int(text) if _WHOLE.fullmatch(text) else text
    word = text.lower()
    return word in _TRUE if word in _TRUE or word in _FALSE else text


def _listed(value: Any) -> list[Any]:
    return value if type(value) is list else [value]


def _written(name: str, value: Any) -> list[Part]:
    return [
        Part(name, None, b"", bytearray(_text(each).encode())) for each in _listed(value) if each is not None
    ]


def _text(value: Any) -> str:
    return value if type(value) is str else orjson.dumps(value).decode()
