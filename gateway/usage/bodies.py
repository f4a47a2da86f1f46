"""The shape of a body's prompts, on every route.

A body may hold anything anywhere, since no engine has judged it yet: nothing here raises, and what is of no
known shape counts as nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from gateway.routes import Route
from gateway.usage import conversation
from gateway.usage.shape import MESSAGES, MOST_ITEMS, PROMPTS, SOUNDS, Read, Shape, each

_KWARGS = "chat_template_kwargs"
_FIRST = ("text_1", "queries", "data_1")
_SECOND = ("text_2", "documents", "items", "data_2")

_Body: TypeAlias = Mapping[str, Any]
_Reader: TypeAlias = Callable[[_Body, Shape], None]


def shape(body: _Body, route: Route) -> Shape:
    """What the prompts of this body are made of; nothing on a route that tells no tokens."""
    formed = Shape()
    reader = _READERS.get(route.template)
    if reader is not None:
        reader(body, formed)
        formed.close()
    return formed


def _chat(body: _Body, shape: Shape) -> None:
    conversation.read(body.get("messages"), shape, conversation.message)
    if "tools" in body:
        conversation.read_tools(body["tools"], shape)
    if "documents" in body:
        conversation.read_rendered(body["documents"], shape)
    if _KWARGS in body:
        conversation.read_rendered(body[_KWARGS], shape)


def _instructed(system_field: str, messages_field: str, read_one: Read, *others: str) -> _Reader:
    """The reader of a dialect whose system message has a field of its own; `others` may be rendered too."""

    def reader(body: _Body, shape: Shape) -> None:
        system = body.get(system_field)
        if system:
            shape.parts[MESSAGES] += 1
            conversation.content(system, shape, MOST_ITEMS)
        conversation.read(body.get(messages_field), shape, read_one, has_system=bool(system))
        conversation.read_tools(body.get("tools"), shape)
        for field in others:
            if field in body:
                conversation.read_rendered(body[field], shape)

    return reader


def _completion(body: _Body, shape: Shape) -> None:
    _prompts(body.get("prompt"), shape)
    conversation.content(body.get("suffix"), shape, 1)


def _embedded(body: _Body, shape: Shape) -> None:
    messages = body.get("messages")
    if type(messages) is list:
        conversation.read(messages, shape, conversation.message)
        conversation.read_rendered(body.get(_KWARGS), shape)
    else:
        _prompts(body.get("input"), shape)


def _prompts(value: Any, shape: Shape) -> None:
    """One prompt or a list of them; a list of token ids is one."""
    if type(value) is not list or (value and type(value[0]) is int):
        _prompt(value, shape, MOST_ITEMS)
    else:
        each(value, shape, MOST_ITEMS, _prompt)


def _prompt(value: Any, shape: Shape, quota: int) -> None:
    if type(value) is list:
        shape.id_prompts += 1
        shape.ids += len(value)
    else:
        shape.parts[PROMPTS] += 1
        conversation.part(value, shape, quota)


def _rerank(body: _Body, shape: Shape) -> None:
    _pairs(body.get("query"), body.get("documents"), shape)
    _instruct(body, shape)


def _score(body: _Body, shape: Shape) -> None:
    first = next((body[field] for field in _FIRST if body.get(field) is not None), None)
    second = next((body[field] for field in _SECOND if body.get(field) is not None), None)
    _pairs(first, second, shape)
    _instruct(body, shape)


def _instruct(body: _Body, shape: Shape) -> None:
    """Templates that compare texts render both with each pair."""
    for field in (_KWARGS, "instruction"):
        if field in body:
            each_pair = Shape()
            conversation.read_rendered(body[field], each_pair)
            shape.add(each_pair, shape.parts[PROMPTS])


def _pairs(first: Any, second: Any, shape: Shape) -> None:
    """Each text of one side with its neighbour on the other, or a single one with all of them."""
    sides = [_side(first), _side(second)]
    pairs = max(side.prompts for side in sides)
    for side in sides:
        shape.add(side, pairs if side.prompts == 1 else 1)
    shape.parts[PROMPTS] = pairs


def _side(value: Any) -> Shape:
    side = Shape()
    each(value if type(value) is list else [value], side, MOST_ITEMS, _compared)
    return side


def _compared(value: Any, shape: Shape, quota: int) -> None:
    """One text to compare: a text, an object with parts, or a document with a text."""
    shape.parts[PROMPTS] += 1
    if type(value) is dict and "content" in value:
        conversation.content(value["content"], shape, quota)
    else:
        conversation.part(value, shape, quota)


def _recording(body: _Body, shape: Shape) -> None:
    shape.parts[PROMPTS] += 1
    shape.parts[SOUNDS] += 1
    conversation.content(body.get("prompt"), shape, 1)


_READERS: dict[str, _Reader] = {
    "/v1/chat/completions": _chat,
    "/v1/completions": _completion,
    "/v1/responses": _instructed(
        "instructions", "input", conversation.item, _KWARGS, "previous_input_messages"
    ),
    "/v1/messages": _instructed("system", "messages", conversation.message, _KWARGS),
    "/v1/embeddings": _embedded,
    "/classify": _embedded,
    "/pooling": _embedded,
    "/v1/rerank": _rerank,
    "/v1/score": _score,
    "/v1/audio/transcriptions": _recording,
    "/v1/audio/translations": _recording,
}
