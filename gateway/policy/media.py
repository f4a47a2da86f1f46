"""Media by reference: what an engine would fetch, from inside the operator's network, where a caller says.

vLLM takes a part of a message for media by the name of its field, with or without a `type`; so it is
the fields that are looked at here. Which hosts an engine itself may ask is a flag of the engine's, and the
profiles set both alike.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from gateway.errors import InvalidRequest, quote

_BY_URL = frozenset({"image_url", "audio_url", "video_url"})
_INLINE = frozenset({"input_audio", "image_embeds", "audio_embeds", "video_embeds", "image_pil"})
_MEDIA = _BY_URL | _INLINE
_AMBIGUOUS = re.compile(r"[\s\\\x00-\x20]")


def check(body: dict[str, Any], media: str | tuple[str, ...]) -> None:
    """Raise InvalidRequest, naming the part, for media in chat messages that the policy does not allow.

    `media`: "data" for `data:` URLs alone, "none" for no media, or the https hosts that may be named too.
    """
    messages = body.get("messages")
    for number, message in enumerate(messages if type(messages) is list else ()):
        content = message.get("content") if type(message) is dict else None
        if type(content) is list:
            _check_parts(content, f"messages[{number}].content", media)


def _check_parts(parts: list[Any], where: str, media: str | tuple[str, ...]) -> None:
    for number, part in enumerate(parts):
        if type(part) is not dict or _MEDIA.isdisjoint(part):
            continue
        for field in sorted(_MEDIA & part.keys()):
            param = f"{where}[{number}].{field}"
            if media == "none":
                raise InvalidRequest("This gateway takes no images, sound or video.", param=param)
            if field in _BY_URL:
                _check_urls(part[field], param, media)


def _check_urls(value: Any, param: str, media: str | tuple[str, ...]) -> None:
    for url in _urls(value):
        if not url.lower().startswith("data:") and not _allowed(url, media):
            hosts = "" if media == "data" else f" or https from {', '.join(media)}"
            raise InvalidRequest(
                f"The URL {quote(url)} is not fetched for you: send a 'data:' URL{hosts}.", param=param
            )


def _urls(value: Any) -> Iterator[str]:
    """The URL of a part, given as it is or as an object's `url`."""
    if type(value) is dict:
        value = value.get("url")
    if type(value) is str:
        yield value


def _allowed(url: str, media: str | tuple[str, ...]) -> bool:
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
