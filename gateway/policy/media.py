"""Media by reference: what an engine would fetch, from inside the operator's network, where a caller says.

Engines take a part of a message for media by the name of its field, with or without a `type`; so it is
the fields that are looked at here, in every place of a body that can hold parts, whatever the route. Which
hosts an engine itself may ask is a flag of the engine's, and the profiles set both alike.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from gateway.errors import InvalidRequest, quote

# Where a body holds parts, or messages of parts: conversations, items of a response, texts to score.
_PLACES = frozenset(
    {
        "messages", "input", "previous_input_messages", "system", "instructions", "prompt",
        "query", "queries", "documents", "items", "text_1", "text_2", "data_1", "data_2",
    }
)  # fmt: skip
_BY_URL = frozenset({"image_url", "audio_url", "video_url", "file_url", "source"})
_INLINE = frozenset(
    {"input_audio", "image_embeds", "audio_embeds", "video_embeds", "image_pil", "multimodal_data"}
)
_EMBEDS = frozenset({"data", "prompt_embeds"})  # of a part whose type is prompt_embeds
_UUID = "uuid"  # vLLM keeps what it read by this name, for everybody who knows it, and no salt is part of it
_MEDIA = _BY_URL | _INLINE | {"image", "input_image"}  # as names of fields and as types
_INSIDE = frozenset({"content", "output"})
_TOLD = _BY_URL | _INLINE | _EMBEDS | _INSIDE | {_UUID}
_MOST_LEVELS = 6  # a list of conversations, a message's parts and the parts of a tool's result are four
_AMBIGUOUS = re.compile(r"[\s\\\x00-\x20]")

Media = str | tuple[str, ...]


@dataclass(slots=True)
class _Refused:
    """Why a part is refused; `path` grows from its field outwards."""

    why: str
    path: list[str]


def check(body: Mapping[str, Any], media: Media) -> None:
    """Raise InvalidRequest, naming the part, for media that the policy does not allow, anywhere in a body.

    `media`: "data" for `data:` URLs alone, "none" for no media, or the https hosts that may be named too.
    """
    for field, value in body.items():
        if field in _PLACES:
            found = _in(value, media, _MOST_LEVELS)
            if found is not None:
                path = "".join(reversed(found.path))
                raise InvalidRequest(found.why, param=f"{field}{path}")


def _in(value: Any, media: Media, levels: int) -> _Refused | None:
    kind = type(value)
    if kind is not list and kind is not dict:
        return None
    if not levels:
        return _Refused("The parts of this request are nested deeper than any engine reads.", [])
    return _in_list(value, media, levels) if kind is list else _in_object(value, media, levels)


def _in_list(items: list[Any], media: Media, levels: int) -> _Refused | None:
    """Token ids are not looked through: they may be millions, and no engine takes a part among them."""
    if not items or type(items[0]) is int:
        return None
    for number, item in enumerate(items):
        kind = type(item)
        if kind is dict:
            found = _in_object(item, media, levels)
        elif kind is list:
            found = _in(item, media, levels - 1)
        else:
            continue
        if found is not None:
            found.path.append(f"[{number}]")
            return found
    return None


def _in_object(item: Mapping[str, Any], media: Media, levels: int) -> _Refused | None:
    if _TOLD.isdisjoint(item):
        return None
    for field, value in item.items():
        if field not in _TOLD or value is None:
            continue
        if field == _UUID:
            continue
        if field in _INSIDE:
            if type(value) is str:
                continue
            found = _in(value, media, levels - 1)
            if found is None:
                continue
            found.path.append(f".{field}")
            return found
        why = _why(item, field, value, media)
        if why:
            return _Refused(why, [f".{field}"])
    if item.get(_UUID) is not None and _is_media(item):
        return _Refused("Media by 'uuid' would be shared with other callers: leave it out.", [f".{_UUID}"])
    return None


def _is_media(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    return not _MEDIA.isdisjoint(part) or (type(kind) is str and kind in _MEDIA)


def _why(item: Mapping[str, Any], field: str, value: Any, media: Media) -> str | None:
    """Why one field of a part is refused, or None."""
    if field in _EMBEDS:
        embeds = field == "prompt_embeds" or item.get("type") == "prompt_embeds"
        return "Prompts as embeddings are not taken here: send text or token ids." if embeds else None
    if field == "source" and type(value) is not dict:
        return None
    if media == "none" and field != "file_url":
        return "This gateway takes no images, sound or video."
    if field in _INLINE:
        return None
    url = value.get("url") if type(value) is dict else value
    if type(url) is not str or url[:5].lower() == "data:" or _allowed(url, media):
        return None
    hosts = f" or https from {', '.join(media)}" if type(media) is tuple else ""
    inline = "its bytes in a source of type 'base64'" if field == "source" else "a 'data:' URL"
    return f"The URL {quote(url)} is not fetched for you: send {inline}{hosts}."


def _allowed(url: str, media: Media) -> bool:
    # What two parsers may read as two hosts is no host that was allowed.
    if type(media) is not tuple or _AMBIGUOUS.search(url):
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    plain = parts.scheme == "https" and parts.username is None and port in (None, 443)
    return plain and parts.hostname in media
