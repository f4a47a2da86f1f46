"""One `[[models]]` table: the names callers write, the engines behind them, what is filled in and forced."""

import difflib
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from gateway.routes import OF_ENGINES
from gateway.settings.fields import BaseUrl, Name, Whole
from gateway.settings.overrides import faults
from gateway.settings.sections import Section

DEFAULT_MAX_INFLIGHT = 256


def _overrides(values: dict[str, Any]) -> dict[str, Any]:
    found = faults(values)
    if found:
        raise ValidationError.from_exception_data(
            "overrides",
            [
                InitErrorDetails(
                    type=PydanticCustomError("override", "{text}", {"text": fault.text}),
                    loc=fault.where,
                    input=None,
                )
                for fault in found
            ],
        )
    return values


def _id(value: str) -> str:
    if "*" in value:
        raise ValueError("must not hold a *; only an alias may end in one")
    return value


def _alias(value: str) -> str:
    if "*" in value[:-1]:
        raise ValueError("must hold a * as its last character alone")
    return value


def _variant_name(value: str) -> str:
    if re.search(r"[:*\s]", value):
        raise ValueError("must be a name without colon, * or white space")
    return value


def _engines(value: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(value)) < len(value):
        raise ValueError("must not list an engine twice")
    return value


def _route(value: str) -> str:
    if value not in OF_ENGINES:
        near = difflib.get_close_matches(value, OF_ENGINES, n=1)
        raise ValueError(f"must be one of the model routes, as in {near[0] if near else OF_ENGINES[0]}")
    return value


Overrides = Annotated[dict[str, Any], AfterValidator(_overrides)]
Id = Annotated[Name, AfterValidator(_id)]
Alias = Annotated[Name, AfterValidator(_alias)]
VariantName = Annotated[Name, AfterValidator(_variant_name)]
Engines = Annotated[tuple[BaseUrl, ...], Field(min_length=1), AfterValidator(_engines)]
Route = Annotated[str, AfterValidator(_route)]


class Variant(Section):
    """Defaults that callers choose by writing `id:variant`. Variants have defaults alone."""

    defaults: Overrides = Field(default_factory=dict, description="used where the caller is silent")


class Model(Section):
    """One model that callers can write. All requests share its dicts: read them, never change them."""

    id: Id = Field(description="what callers write")
    aliases: tuple[Alias, ...] = Field(default=(), description="further names; a trailing * matches")
    engines: Engines = Field(description="addresses, with or without /v1")
    kind: Literal["vllm", "openai"] = Field(
        default="vllm", description='"openai" for any other server with this API'
    )
    engine_model: Name | None = Field(
        default=None, description="the engine's name for it, if that is not the id"
    )
    routes: Annotated[tuple[Route, ...], Field(min_length=1)] | None = Field(
        default=None, description="only for an engine that serves less than all"
    )
    cache_isolation: Literal["key", "none"] = Field(
        default="key", description="whether keys share prefix-cache entries"
    )
    max_inflight: Whole = Field(default=DEFAULT_MAX_INFLIGHT, ge=1, description="calls in the engine at once")
    allow_chat_template: bool = Field(
        default=False, strict=True, description="whether callers may send a chat_template"
    )
    template_kwargs: bool = Field(
        default=True,
        strict=True,
        description="whether chat_template_kwargs are sent at all; Mistral's tokenizers refuse them",
    )
    reasoning_content: bool = Field(
        default=False, strict=True, description="whether chat answers tell reasoning by its older name too"
    )
    defaults: Overrides = Field(default_factory=dict, description="used where the caller is silent")
    force: Overrides = Field(default_factory=dict, description="wins over the caller")
    variants: dict[VariantName, Variant] = Field(default_factory=dict, description="named sets of defaults")
