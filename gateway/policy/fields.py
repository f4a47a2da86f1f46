"""Fields that callers may not set: taken out of the body before anything is filled in."""

from typing import Any

from gateway.errors import InvalidRequest, quote
from gateway.policy.spellings import TEMPLATE_KWARGS, remove
from gateway.routes import Path

_FORBIDDEN: tuple[Path, ...] = (
    ("priority",),
    ("cache_salt",),
    ("kv_transfer_params",),
    ("ec_transfer_params",),
    ("request_id",),
    ("session_id",),
    ("vllm_xargs",),
    ("mm_processor_kwargs",),
    ("media_io_kwargs",),
    ("prompt_embeds",),
    ("stream_interval",),  # tokens held back: a stream that is cut could no longer be counted by its events
)
_CHAT_TEMPLATE: Path = ("chat_template",)
_FORBIDDEN_KWARGS: tuple[Path, ...] = ((TEMPLATE_KWARGS, "chat_template"), (TEMPLATE_KWARGS, "tokenize"))
_TOP_LEVEL = frozenset(path[0] for path in (*_FORBIDDEN, _CHAT_TEMPLATE))


def drop(body: dict[str, Any], *, allow_chat_template: bool) -> list[str]:
    """Take the forbidden fields out of `body`; answers their dotted names.

    Raises InvalidRequest if `chat_template_kwargs` is no object.
    """
    dropped: list[str] = []
    if not _TOP_LEVEL.isdisjoint(body):
        dropped += remove(body, _FORBIDDEN if allow_chat_template else (*_FORBIDDEN, _CHAT_TEMPLATE))
    kwargs = body.get(TEMPLATE_KWARGS)
    if kwargs is not None:
        if type(kwargs) is not dict:
            raise InvalidRequest(
                f"'{TEMPLATE_KWARGS}' must be an object; it is {quote(kwargs)}.", param=TEMPLATE_KWARGS
            )
        dropped += remove(body, _FORBIDDEN_KWARGS)
    return dropped
