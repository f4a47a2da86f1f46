"""What no single setting can be wrong about: names that clash, listeners that collide, nothing to serve."""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.settings.fault import Fault, Where
from gateway.settings.overrides import TEMPLATE_KWARGS
from gateway.settings.problems import dotted
from gateway.settings.schema import Settings


def clashes(values: Mapping[str, Any]) -> Iterator[Fault]:
    """Names that two models claim, or one claims twice. Works on what is written, valid or not."""
    taken: dict[str, Where] = {}
    for where, name in _claimed(values.get("models")):
        if name in taken:
            yield Fault(where, f"is {name!r}, a name that {dotted(taken[name])} has: rename one of them")
        else:
            taken[name] = where


def nothing_to_serve(values: Mapping[str, Any]) -> Iterator[str]:
    """A problem where neither models nor an engine to discover them from are set."""
    if not values.get("models") and values.get("upstream_url") is None:
        yield (
            "There is no model to serve: set GATEWAY_UPSTREAM_URL to an engine, as in http://127.0.0.1:8000, "
            "or write [[models]] into gateway.toml"
        )


def same_port(settings: Settings) -> Iterator[str]:
    """A problem where both listeners would bind one address."""
    if settings.port == settings.ops_port != 0 and settings.host == settings.ops_host:
        yield f"GATEWAY_PORT and GATEWAY_OPS_PORT are both {settings.port}: give each listener its own port"


# Names that scripts may rely on already, of parts that are still to come.
NOT_IN_FORCE = ("admission", "files", "batches")
NOT_IN_FORCE_OF_A_MODEL = ("max_inflight",)


def unused(settings: Settings) -> Iterator[str]:
    """Warnings about settings without effect: another one stands above, or this version lacks the part."""
    if settings.models and settings.upstream_url:
        yield "GATEWAY_UPSTREAM_URL is not used, because there are [[models]]"
    usual = Settings()
    for name in NOT_IN_FORCE:
        if _at(settings, name) != _at(usual, name):
            yield f"{name} is set, and this version does not act on it yet"
    for model in settings.models:
        layers = (model.defaults, model.force, *(variant.defaults for variant in model.variants.values()))
        if not model.template_kwargs and any(TEMPLATE_KWARGS in layer for layer in layers):
            yield f"{TEMPLATE_KWARGS} of model {model.id} are not sent, because its template_kwargs is false"
        for name in NOT_IN_FORCE_OF_A_MODEL:
            if getattr(model, name) != type(model).model_fields[name].default:
                yield f"{name} of model {model.id} is set, and this version does not act on it yet"


def _at(settings: Settings, name: str) -> object:
    value: object = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _claimed(models: object) -> Iterator[tuple[Where, str]]:
    for index, model in enumerate(models if isinstance(models, list) else ()):
        if isinstance(model, dict):
            for where, name in _claimed_by(model):
                if isinstance(name, str):
                    yield ("models", index, *where), name


def _claimed_by(model: Mapping[str, Any]) -> Iterator[tuple[Where, object]]:
    yield ("id",), model.get("id")
    aliases, variants = model.get("aliases"), model.get("variants")
    for position, alias in enumerate(aliases if isinstance(aliases, list) else ()):
        yield ("aliases", position), alias
    for variant in variants if isinstance(variants, dict) else ():
        yield ("variants", variant), f"{model.get('id')}:{variant}"
