"""Where in a JSON text something stands: `logit_bias.50256`, `messages[0].content`."""

import re

import orjson

MAX_TOKENS = 4000  # about two milliseconds; a field that stands behind more is not named
LONGEST = 100
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[][{},:]', re.DOTALL)


def path_to(raw: bytes, position: int) -> str | None:
    """The dotted name of the value at this byte, cut to 100 characters; None if it is not found cheaply."""
    stack: list[str | int | None] = []  # of an object the name that is being read, of a list the index
    last = b""
    for count, token in enumerate(_TOKEN.finditer(raw, 0, position)):
        if count == MAX_TOKENS:
            return None
        match token[0]:
            case b"{":
                stack.append(None)
            case b"[":
                stack.append(0)
            case b"}" | b"]" if stack:
                stack.pop()
            case b"," if stack:
                index = stack[-1]
                stack[-1] = index + 1 if type(index) is int else None
            case b":" if stack:
                stack[-1] = _name(last)
            case text:
                last = text
    path = "".join(f"[{step}]" if type(step) is int else f".{step}" for step in stack if step is not None)
    return path.removeprefix(".")[:LONGEST] or None


def _name(text: bytes) -> str:
    try:
        return str(orjson.loads(text))
    except orjson.JSONDecodeError:
        return "?"
