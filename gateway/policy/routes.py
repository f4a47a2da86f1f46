"""The routes whose bodies policy changes, as data. Which routes callers may use is not decided here."""

from dataclasses import dataclass

from gateway.policy.spellings import CHAT_OUTPUT_CAP, THINKING, Matter, Path


@dataclass(frozen=True, slots=True)
class Route:
    """What a route's bodies can hold.

    `output_caps` cap the output, the one to write first; `hears` are the words on thinking that the engine
    itself acts on there; `prompts` is the field that may list several prompts; `matters` are what can be
    said there in several spellings.
    """

    has_template: bool = False
    generates: bool = False
    streams_usage: bool = False
    output_caps: tuple[str, ...] = ()
    prompts: str | None = None
    hears: tuple[Path, ...] = ()
    matters: frozenset[Matter] = frozenset()


_BY_NAME = {
    "/v1/chat/completions": Route(
        has_template=True,
        generates=True,
        streams_usage=True,
        output_caps=("max_completion_tokens", "max_tokens"),
        hears=(("reasoning_effort",),),
        matters=frozenset({THINKING, CHAT_OUTPUT_CAP}),
    ),
    "/v1/completions": Route(
        generates=True,
        streams_usage=True,
        output_caps=("max_tokens",),
        prompts="prompt",
    ),
    "/v1/responses": Route(
        has_template=True,
        generates=True,
        output_caps=("max_output_tokens",),
        hears=(("reasoning", "effort"),),
        matters=frozenset({THINKING}),
    ),
    "/v1/messages": Route(
        has_template=True,
        generates=True,
        output_caps=("max_tokens",),
        hears=(("output_config", "effort"), ("thinking",)),
        matters=frozenset({THINKING}),
    ),
    "/v1/messages/count_tokens": Route(
        has_template=True,
        hears=(("output_config", "effort"), ("thinking",)),
        matters=frozenset({THINKING}),
    ),
}
_UNLISTED = Route()


def find(route: str) -> Route:
    """The row of a route. One that is not listed neither generates nor has a template: nothing is filled."""
    return _BY_NAME.get(route, _UNLISTED)
