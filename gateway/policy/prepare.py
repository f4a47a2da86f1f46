"""From the body that a caller sent to the body that the engine gets.

Precedence, lowest first: model defaults, variant defaults, key defaults, the caller, key force, model
force. Defaults are therefore filled in from the highest down, each into what is still silent.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from gateway.errors import InvalidRequest
from gateway.keys import Key
from gateway.policy import caps, media, routes, spellings, streaming, thinking
from gateway.policy.catalogue import Target
from gateway.policy.fields import drop
from gateway.policy.layers import Layer
from gateway.policy.merge import Written, fill, leaves, override
from gateway.policy.routes import Route
from gateway.settings import Model, Policy


class Prepared(NamedTuple):
    """The body to send and what the relay must know about it.

    `include_usage`: the caller asked for usage on the stream. `choices`: n for each prompt. `dropped`: dotted
    names of the caller's fields that were taken out. `sources`: who set each leaf of the body, by its
    dotted path; filled by `explain` alone.
    """

    body: dict[str, Any]
    stream: bool
    include_usage: bool
    choices: int
    dropped: tuple[str, ...]
    sources: Mapping[str, str] = MappingProxyType({})


def apply(body: dict[str, Any], *, route: str, target: Target, key: Key, policy: Policy) -> Prepared:
    """The body for the engine. `body` itself is changed; no object of defaults or force ever is.

    Raises InvalidRequest for a field of a wrong type, for more than the policy allows, and for a route that
    the model does not serve.
    """
    return _prepare(body, route, target, key, policy, None)


def explain(body: dict[str, Any], *, route: str, target: Target, key: Key, policy: Policy) -> Prepared:
    """What `apply` would answer, with `sources`. It is the same code with the writers noted down."""
    written: dict[str, str] = {}
    prepared = _prepare(body, route, target, key, policy, written)
    return prepared._replace(sources={path: written.get(path, "caller") for path in leaves(prepared.body)})


def _prepare(
    body: dict[str, Any], route: str, target: Target, key: Key, policy: Policy, written: Written
) -> Prepared:
    row = routes.find(route)
    _check_served(target.model, route)
    if row.has_template:
        media.check(body, policy.media)
    dropped = drop(body, allow_chat_template=target.model.allow_chat_template)
    forces = _layers(key.force, "key.force", target.force, row)
    for layer in forces:
        dropped += _give_way(body, layer)
    for layer in _layers(key.defaults, "key.defaults", target.defaults, row):
        _fill(body, layer, written)
    for layer in forces:
        _give_way(body, layer)
        override(body, layer.values, layer.source, written)
    thinking.spell_out(body, row, written)
    _name_model(body, target.model, written)
    stream, include_usage = streaming.ask_for_usage(body, row, written)
    choices = caps.choices(body, row, policy)
    caps.cap_output(body, row, policy.default_max_tokens, written)
    return Prepared(body, stream, include_usage, choices, tuple(dropped))


def _check_served(model: Model, route: str) -> None:
    if model.routes is not None and route not in model.routes:
        raise InvalidRequest(
            f"The model '{model.id}' does not serve {route}; it serves {', '.join(model.routes)}.",
            param="model",
        )


def _layers(of_key: dict[str, Any], source: str, of_target: Sequence[Layer], route: Route) -> Sequence[Layer]:
    """The key's layer, if it has one, before the target's; of each the part that the route takes."""
    layers = (Layer.of(of_key, source), *of_target) if of_key else of_target
    return [layer.on(route) for layer in layers]


def _fill(body: dict[str, Any], layer: Layer, written: Written) -> None:
    values = layer.values
    if layer.spoken:
        silenced = spellings.silenced(layer.spoken, body)
        if silenced:
            values = spellings.without(values, silenced)
    fill(body, values, layer.source, written)


def _give_way(body: dict[str, Any], force: Layer) -> list[str]:
    """Take out of `body` what it says in other spellings on a matter that `force` decides."""
    others = [
        path
        for matter in force.matters
        for path in matter.spellings
        if spellings.said(body, path) and not spellings.said(force.values, path)
    ]
    return spellings.remove(body, others)


def _name_model(body: dict[str, Any], model: Model, written: Written) -> None:
    name = model.engine_model or model.id
    if body.get("model") != name:
        body["model"] = name
        if written is not None:
            written["model"] = "gateway"
