"""What follows from an engine's list of models. Pure: the list comes in, models and lines come out."""

from collections.abc import Sequence
from contextlib import suppress

from pydantic import ValidationError

from gateway.engines.health import Served
from gateway.settings import Model


def models(url: str, served: Sequence[Served]) -> list[Model]:
    """The models that callers can write without any [[models]]."""
    found: dict[str, Model] = {}
    for entry in served:
        with suppress(ValidationError):  # A name that no caller could write, as one with a * in it.
            found[entry.id] = Model(id=entry.id, engines=(url,), engine_model=entry.id, kind=entry.kind)
    return list(found.values())


def lengths(served: Sequence[Served]) -> dict[str, int]:
    """The most tokens of a prompt and its answer, by the engine's names, where it tells them."""
    return {entry.id: entry.max_model_len for entry in served if entry.max_model_len is not None}


def not_served(model: Model, url: str, lists: Sequence[str]) -> str:
    """A line for the operator on a configured model that an engine does not list."""
    name = model.engine_model or model.id
    return f"{url}: model {model.id}: the engine lists {', '.join(lists)} and not {name}: set engine_model"
