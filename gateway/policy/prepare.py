"""From the body that a caller sent to the body that the engine gets.

Precedence, lowest first: model defaults, variant defaults, key defaults, the caller, key force, model
force. Defaults are therefore filled in from the highest down, each into what is still silent.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from gateway.errors import InvalidRequest
from gateway.keys import Key
from gateway.policy import caps, foreign, media, refused, sizes, spellings, streaming, thinking
from gateway.policy.catalogue import Target
from gateway.policy.fields import drop
from gateway.policy.layers import Layer
from gateway.policy.merge import Written, fill, leaves, override
from gateway.policy.spellings import N_PREDICT, TEMPLATE_KWARGS, remove
from gateway.routes import BY_TEMPLATE, Route
from gateway.settings import Model, Policy


class Prepared(NamedTuple):
    """The body to send and what the relay must know about it.

    `include_usage`: the caller asked for usage on the stream. `choices`: n for each prompt. `dropped`: dotted
    names of the fields that were taken out. `sources`: who set each leaf of the body, by its
    dotted path; filled by `explain` alone.
    """

    body: dict[str, Any]
    stream: bool
    include_usage: bool
    choices: int
    dropped: tuple[str, ...]
    sources: Mapping[str, str] = MappingProxyType({})


def apply(
    body: dict[str, Any], *, route: str, target: Target, key: Key, policy: Policy, salt: str | None = None
) -> Prepared:
    """The body for the engine. `body` itself is changed; no object of defaults or force ever is.

    `salt` is that of the key's cache group (see `salts`); it is written where engine and route take one.
    Raises InvalidRequest for a field of a wrong type, for more than the policy allows, for what is not done
    here, and for a route that the model does not serve.
    """
    return _prepare(body, BY_TEMPLATE[route], _Rules(target, key, policy, salt), None)


def explain(
    body: dict[str, Any], *, route: str, target: Target, key: Key, policy: Policy, salt: str | None = None
) -> Prepared:
    """What `apply` would answer, with `sources`. It is the same code with the writers noted down."""
    written: dict[str, str] = {}
    prepared = _prepare(body, BY_TEMPLATE[route], _Rules(target, key, policy, salt), written)
    return prepared._replace(sources={path: written.get(path, "caller") for path in leaves(prepared.body)})


class _Rules(NamedTuple):
    target: Target
    key: Key
    policy: Policy
    salt: str | None


def _prepare(body: dict[str, Any], route: Route, rules: _Rules, written: Written) -> Prepared:
    target, key, policy, _ = rules
    model = target.model
    _check_served(model, route.template)
    media.check(body, policy.media)
    refused.check(body, route)
    sizes.check(body, route)
    dropped = drop(body, allow_chat_template=model.allow_chat_template)
    dropped += _merge(body, route, target, key, written)
    if model.template_kwargs:
        thinking.spell_out(body, route, written)
    else:
        dropped += remove(body, [(TEMPLATE_KWARGS,)])
    _name_model(body, model, written)
    if model.kind != "vllm":
        dropped += caps.own_names(body, route, policy, written)
    stream, include_usage = streaming.ask_for_usage(body, route, written)
    choices = caps.choices(body, route, policy)
    caps.cap_output(body, route, policy.default_max_tokens, written)
    dropped += _suit_engine(body, route, rules, written)
    return Prepared(body, stream, include_usage, choices, tuple(dict.fromkeys(dropped)))


def _merge(body: dict[str, Any], route: Route, target: Target, key: Key, written: Written) -> list[str]:
    """Lay the layers below and above what the caller said; answers what had to give way to a force."""
    dropped: list[str] = []
    forces = _layers(key.force, "key.force", target.force, route)
    for layer in forces:
        dropped += _give_way(body, layer, route)
    for layer in _layers(key.defaults, "key.defaults", target.defaults, route):
        _fill(body, layer, written)
    for layer in forces:
        _give_way(body, layer, route)
        override(body, layer.values, layer.source, written)
    return dropped


def _suit_engine(body: dict[str, Any], route: Route, rules: _Rules, written: Written) -> list[str]:
    """Write what the gateway itself tells this kind of engine; answers what this kind is not sent."""
    model, salt = rules.target.model, rules.salt
    if refused.store_nothing(body, route) and written is not None:
        written["store"] = "gateway"
    if model.kind != "vllm":
        return foreign.strip(body)
    reads_cache = route.body == "json" and (route.generates or route.embeds)
    if salt is not None and reads_cache and model.cache_isolation == "key":
        body["cache_salt"] = salt
        if written is not None:
            written["cache_salt"] = "gateway"
    return []


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


def _give_way(body: dict[str, Any], force: Layer, route: Route) -> list[str]:
    """Take out of `body` what it says in other spellings on a matter that `force` decides."""
    others = [
        path
        for matter in force.matters
        for path in (*matter.spellings, *matter.beside)
        if spellings.said(body, path) and not spellings.said(force.values, path)
    ]
    if N_PREDICT[0] in body and any(cap in force.values for cap in route.output_caps):
        others.append(N_PREDICT)
    return spellings.remove(body, others)


def _name_model(body: dict[str, Any], model: Model, written: Written) -> None:
    name = model.engine_model or model.id
    if body.get("model") != name:
        body["model"] = name
        if written is not None:
            written["model"] = "gateway"
