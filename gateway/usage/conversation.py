"""What of a conversation becomes prompt: messages and their parts, tool calls and results, media, tools.

In the words of all three dialects, since engines take most of them everywhere. Media are counted and never
read; what is of no known shape counts as nothing.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from gateway.usage.shape import (
    CHATS,
    IMAGES,
    JSON_BYTES,
    MESSAGES,
    MOST_ITEMS,
    RENDERED_BYTES,
    SOUNDS,
    TOOLED,
    UNSYSTEMED,
    Read,
    Shape,
    each,
)

_IMAGES = frozenset(
    {
        "image_url", "input_image", "image", "image_embeds", "image_pil", "video_url", "video",
        "video_embeds", "input_file", "file_url", "file", "document",
    }
)  # fmt: skip
_SOUNDS = frozenset({"input_audio", "audio_url", "audio", "audio_embeds"})
_CALL_BYTES = 30  # what a template writes around a tool call
_SYSTEM = ("system", "developer")
_FEW_KWARGS = 16
_LONG_WORD = 32


def read(messages: Any, shape: Shape, read_one: Read, *, has_system: bool = False) -> None:
    """The messages of one prompt, or a text in their place; `has_system`: its system message is elsewhere."""
    parts = shape.parts
    parts[CHATS] += 1
    first = messages[0] if type(messages) is list and messages else None
    if not has_system and not (type(first) is dict and first.get("role") in _SYSTEM):
        parts[UNSYSTEMED] += 1
    if type(messages) is list:
        if not _read_plain(messages, shape):
            each(messages, shape, MOST_ITEMS, read_one)
    elif type(messages) is str:
        parts[MESSAGES] += 1
        shape.write(messages)


def _read_plain(messages: list[Any], shape: Shape) -> bool:
    """Whether all messages are texts with a role, as in most chats: they are read here then, and quickly."""
    if len(messages) > MOST_ITEMS:
        return False
    texts = []
    for value in messages:
        if type(value) is not dict or len(value) != 2 or "role" not in value:
            return False
        said = value.get("content")
        if type(said) is not str:
            return False
        texts.append(said)
    shape.parts[MESSAGES] += len(texts)
    shape.write(*texts)
    return True


def read_tools(tools: Any, shape: Shape) -> None:
    """The tools of one prompt."""
    if type(tools) is list and tools:
        shape.parts[TOOLED] += 1
        shape.parts[JSON_BYTES] += _json_bytes(tools)


def read_rendered(value: Any, shape: Shape) -> None:
    """What stands beside the messages and may be rendered with them: documents, kwargs of the template.

    Switches, numbers and short words are none of it.
    """
    if type(value) is dict:
        if len(value) <= _FEW_KWARGS and not any(map(_is_long, value.values())):
            return
    elif not _is_long(value):
        return
    shape.parts[RENDERED_BYTES] += _json_bytes(value)


def _is_long(value: Any) -> bool:
    if type(value) is str:
        return len(value) > _LONG_WORD
    return type(value) in (dict, list) and bool(value)


def message(value: Any, shape: Shape, quota: int) -> None:
    """One message of a chat or of the Messages API."""
    if type(value) is not dict:
        return
    shape.parts[MESSAGES] += 1
    if value.get("role") == "user":
        shape.hear_user()
    content(value.get("content"), shape, quota)
    calls = value.get("tool_calls")
    if type(calls) is list:
        each(calls, shape, quota, _call)
    thought = value.get("reasoning") or value.get("reasoning_content")
    if type(thought) is str:
        shape.think(thought)


def item(value: Any, shape: Shape, quota: int) -> None:
    """One item of a response's input: a message, or a call, its result, a thought."""
    kind = value.get("type") if type(value) is dict else None
    if kind in ("function_call", "custom_tool_call"):
        _tool_use(value, shape, quota)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        _tool_result(value, shape, quota)
    elif kind == "reasoning":
        parts = value.get("content")
        if type(parts) is list:
            each(parts, shape, quota, _reasoning_text)
    else:
        message(value, shape, quota)


def content(value: Any, shape: Shape, quota: int) -> None:
    """A text, or a list of parts."""
    if type(value) is str:
        shape.write(value)
    elif type(value) is list:
        each(value, shape, quota, part)


def part(value: Any, shape: Shape, quota: int) -> None:
    """A part of a message, by its type; engines take some by the name of their field alone."""
    if type(value) is str:
        shape.write(value)
    if type(value) is not dict:
        return
    kind = value.get("type")
    text = value.get("text")
    if type(text) is str:
        shape.write(text)
    elif type(kind) is str and kind in _BLOCKS:
        _BLOCKS[kind](value, shape, quota)
    elif not _IMAGES.isdisjoint(value) or (type(kind) is str and kind in _IMAGES):
        shape.parts[IMAGES] += 1
    elif not _SOUNDS.isdisjoint(value) or (type(kind) is str and kind in _SOUNDS):
        shape.parts[SOUNDS] += 1


def _thinking(block: Mapping[str, Any], shape: Shape, _quota: int) -> None:
    thought = block.get("thinking")
    if type(thought) is str:
        shape.think(thought)


def _reasoning_text(value: Any, shape: Shape, _quota: int) -> None:
    if type(value) is dict and type(value.get("text")) is str:
        shape.think(value["text"])


def _tool_result(block: Mapping[str, Any], shape: Shape, quota: int) -> None:
    """Engines make a message of its own of it."""
    shape.parts[MESSAGES] += 1
    content(block.get("content"), shape, quota)
    content(block.get("output"), shape, quota)


def _tool_use(block: Mapping[str, Any], shape: Shape, _quota: int) -> None:
    """A tool call, whose arguments come as an object or as JSON in a text."""
    arguments = block.get("arguments")
    if arguments is None:
        arguments = block.get("input")
    shape.parts[JSON_BYTES] += _CALL_BYTES + _json_bytes(block.get("name")) + _json_bytes(arguments)


def _added_tool(block: Mapping[str, Any], shape: Shape, _quota: int) -> None:
    shape.parts[JSON_BYTES] += _json_bytes(block.get("tool"))


def _call(value: Any, shape: Shape, quota: int) -> None:
    function = value.get("function") if type(value) is dict else None
    if type(function) is dict:
        _tool_use(function, shape, quota)


_BLOCKS = {
    "thinking": _thinking,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "tool_addition": _added_tool,
}


def _json_bytes(value: Any) -> int:
    """How long a value is as JSON; a text is taken to hold JSON already, and not to be long otherwise."""
    if value is None:
        return 0
    if type(value) is str:
        return len(value)
    try:
        return len(orjson.dumps(value))
    except orjson.JSONEncodeError:
        return 0
