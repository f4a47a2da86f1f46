"""The public routes, one table of data: who serves a path, what its bodies hold, how its answers speak.

What is not here is 404, and no engine hears of it. What a room makes of a row stands in that room:
`public` finds it, `policy` changes the body by it, `relay` reads the answer by it.
"""

from dataclasses import dataclass
from typing import Literal

_JSON = ("application/json",)
_BYTES = (*_JSON, "application/octet-stream")
_TEXTS = (*_JSON, "text/plain", "text/vtt", "text/srt", "application/x-subrip")

Path = tuple[str] | tuple[str, str]
"""A field, or a field of an object: `("reasoning", "effort")`."""


@dataclass(frozen=True, slots=True)
class Route:
    """One public route. `template` is its path, its name in metrics, and the path at the engine.

    - `served`: "engine" by a live call; "api" by FastAPI, with a key; "open" by FastAPI, without.
    - `body`: how the request comes. `dialect`: in whose shape errors and streams are told.
    - `has_template`: a chat template is rendered. `generates`: tokens are made. `embeds`: a prompt is read
      through the prefix cache, though nothing is generated.
    - `answers`: the content types of good answers that are no streams.
    - `streams`: `stream: true` is honoured. `asks_usage`: usage on a stream comes only to who asks for it.
    - `usage`: where an answer or a stream's event tells tokens, as a dotted name; "" nowhere.
    - `repeats`: an answer may hold what its caller sent, as objects.
    - `output_caps`: the fields that cap the output, the one to write first. `prompts`: the field that may
      list several prompts. `hears`: the words on thinking that the engine itself acts on there.
    """

    template: str
    methods: tuple[str, ...] = ("POST",)
    served: Literal["engine", "api", "open"] = "engine"
    body: Literal["json", "form"] = "json"
    dialect: Literal["openai", "responses", "messages"] = "openai"
    answers: tuple[str, ...] = _JSON
    has_template: bool = False
    generates: bool = False
    embeds: bool = False
    streams: bool = False
    asks_usage: bool = False
    usage: Literal["", "usage", "response.usage", "message.usage"] = ""
    repeats: bool = False
    output_caps: tuple[str, ...] = ()
    prompts: str | None = None
    hears: tuple[Path, ...] = ()


_READ = ("GET", "HEAD")

ROUTES = (
    Route(
        "/v1/chat/completions",
        has_template=True,
        generates=True,
        streams=True,
        asks_usage=True,
        usage="usage",
        output_caps=("max_completion_tokens", "max_tokens"),
        hears=(("reasoning_effort",),),
    ),
    Route(
        "/v1/completions",
        generates=True,
        streams=True,
        asks_usage=True,
        usage="usage",
        output_caps=("max_tokens",),
        prompts="prompt",
    ),
    Route(
        "/v1/responses",
        dialect="responses",
        has_template=True,
        generates=True,
        streams=True,
        usage="response.usage",
        repeats=True,
        output_caps=("max_output_tokens",),
        hears=(("reasoning", "effort"),),
    ),
    Route(
        "/v1/messages",
        dialect="messages",
        has_template=True,
        generates=True,
        streams=True,
        usage="message.usage",
        output_caps=("max_tokens",),
        hears=(("output_config", "effort"), ("thinking",)),
    ),
    Route(
        "/v1/messages/count_tokens",
        dialect="messages",
        has_template=True,
        hears=(("output_config", "effort"), ("thinking",)),
    ),
    Route("/v1/embeddings", answers=_BYTES, embeds=True, usage="usage", prompts="input"),
    Route("/v1/rerank", embeds=True, usage="usage", repeats=True, prompts="documents"),
    Route("/v1/score", embeds=True, usage="usage"),
    Route("/classify", embeds=True, usage="usage", prompts="input"),
    Route("/pooling", answers=_BYTES, embeds=True, usage="usage", prompts="input"),
    Route("/tokenize", has_template=True),
    Route("/detokenize"),
    Route(
        "/v1/audio/transcriptions",
        body="form",
        answers=_TEXTS,
        generates=True,
        streams=True,
        asks_usage=True,
        usage="usage",
        output_caps=("max_completion_tokens",),
    ),
    Route(
        "/v1/audio/translations",
        body="form",
        answers=_TEXTS,
        generates=True,
        streams=True,
        asks_usage=True,
        usage="usage",
        output_caps=("max_completion_tokens",),
    ),
    Route("/v1/models", _READ, served="api"),
    Route("/v1/models/{id}", _READ, served="api"),
    Route("/healthz", _READ, served="open"),
)

BY_TEMPLATE = {route.template: route for route in ROUTES}
OF_ENGINES = tuple(route.template for route in ROUTES if route.served == "engine")
