"""A plan as files: `vllm serve --config` and the gateway's part, as they stand in deploy/profiles."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from gateway.planner import parsers, shipped
from gateway.planner.flags import Flag, Value
from gateway.planner.plan import Plan
from gateway.planner.shipped import Shipped
from gateway.planner.texts import printable, quoted
from gateway.planner.units import GIB, share

WIDTH = 113
# As compose.yaml names the engine.
ENGINE_URL = "http://vllm:8000"
_TITLES = {"capacity": "Capacity", "special": "Model and hardware", "everywhere": "The same in every profile"}
_PLAIN = re.compile(r"[A-Za-z/][\w./-]*|[0-9]+(?:\.[0-9]+){3}", re.ASCII)
_FIGURES = (
    "KV cache (computed): {gib} GiB -> {blocks} blocks of {block} tokens, {per_request} for a full-length "
    "request, {at_once} of those at once; vLLM's log says {tokens} tokens."
)
_ORIGINS = (
    "Each flag has its reason above it, and where its value comes from: "
    "(computed …), (published by …) or (guess)."
)


def serve_file(plan: Plan, of: Shipped | None = None) -> str:
    """The text of a file for `vllm serve --config`; `of` is the shipped profile that it is, if it is one."""
    head = of.head if of else _head(plan)
    as_shipped = of is not None and not plan.options.said
    figures = (of.figures if of and as_shipped else _figures(plan, of)).format(**_numbers(plan, of))
    named, *others = _parts([*plan.flags, *shipped.everywhere()])
    text = [_comment(head), "", *named[1]]
    for title, lines in others:
        text += ["", f"# --- {title} ---", ""]
        if title == "Capacity":
            text += [_comment(figures), ""]
        text += lines
    return "\n".join(text) + "\n"


def gateway_file(plan: Plan, name: str, of: Shipped | None = None) -> str:
    """The text of the gateway's settings for the same profile."""
    said = of.gateway if of else _gateway(plan)
    cap, reason = _cap(plan, said)
    served = str(next(flag.value for flag in plan.flags if flag.name == "served-model-name"))
    lines = [
        f"# The gateway's settings with the profile {printable(name)}. examples/gateway.toml shows all the "
        "others, and",
        "# `gateway check FILE` finds what is wrong. Listeners, trusted proxies and secrets come from "
        "compose.yaml.",
        "",
        "[engine]",
        _beside(
            "keep_alive_seconds = 60", "under the 120 s for which the profiles' engine keeps idle connections"
        ),
        "",
        "[policy]",
        _beside(f"default_max_tokens = {cap}", reason),
        _beside(
            'media = "data"',
            "as allowed-media-domains in the engine's profile: nothing is fetched from anywhere",
        ),
        "",
        "[[models]]",
        f"id = {quoted(served)}",
        'aliases = ["default"]',
        f'engines = ["{ENGINE_URL}"]',
        _beside(f"max_inflight = {plan.max_inflight}", _inflight_reason(plan)),
    ]
    if said["defaults"]:
        lines += ["", _beside("[models.defaults]", said["defaults_reason"]), *_assignments(said["defaults"])]
    if "thinking" in said:
        callers = f'callers write "{printable(served)}:thinking"'
        lines += ["", _beside("[models.variants.thinking]", callers), "[models.variants.thinking.defaults]"]
        lines += _assignments(said["thinking"])
    return "\n".join(lines) + "\n"


def _cap(plan: Plan, said: Mapping[str, Any]) -> tuple[int, str]:
    """The gateway's `default_max_tokens`, half of the context at most, and its reason."""
    cap, reason = said["default_max_tokens"], str(said["default_max_tokens_reason"])
    half = most_tokens(plan)
    if cap > half:
        return half, "for a caller who sets no limit: half of the context"
    if "max-model-len" in plan.options.said:
        reason = reason.split(":")[0]  # what part of the context it is was said of another length
    return cap, reason


def most_tokens(plan: Plan) -> int:
    """The largest `default_max_tokens` that leaves half of the context to the prompt."""
    return max(1, plan.cache.engine.max_model_len // 2)


def _parts(all_flags: list[Flag]) -> Iterator[tuple[str, list[str]]]:
    for part in ("named", "capacity", "special", "everywhere"):
        lines = []
        for flag in all_flags:
            if flag.part == part:
                lines += [_comment(flag.reason), f"{flag.name}: {_yaml(flag.value)}"]
        yield _TITLES.get(part, ""), lines


def _head(plan: Plan) -> str:
    where = plan.hardware.title if plan.hardware else "a given size of the KV cache"
    name = printable(plan.model.name)
    return f"`vllm serve --config` for {name} on {printable(where)}, written by gateway plan.\n{_ORIGINS}"


def _figures(plan: Plan, of: Shipped | None) -> str:
    how = "an estimate: the log of a start says what it is"
    if of and "kv-cache-memory-bytes" not in plan.options.said:
        how = f"made of the shipped profile's {of.kv_cache.removesuffix('GiB')}"
    elif plan.options.kv_cache_bytes is not None:
        how = "given"
    return f"{_FIGURES} The {{gib}} GiB are {how}."


def _numbers(plan: Plan, of: Shipped | None) -> dict[str, str]:
    cache = plan.cache
    # A byte less than a tenth of a GiB is that tenth: what was given is cut to whole bytes.
    size = f"{int((cache.bytes + 1) / GIB * 10) / 10:.1f}"
    if of and not plan.options.said:
        size = of.kv_cache.removesuffix("GiB")
    return {
        "gib": size,
        "blocks": f"{cache.num_blocks:,}",
        "block": f"{cache.block_size:,}",
        "per_request": f"{cache.blocks_per_request:,}",
        "at_once": f"{cache.max_concurrency:.1f}",
        "tokens": f"{cache.tokens:,}",
    }


def _comment(text: str) -> str:
    """Each line a comment; a line that is too long is broken."""
    lines = [
        part for line in text.split("\n") for part in textwrap.wrap(line, WIDTH + 4, break_on_hyphens=False)
    ]
    return "\n".join(f"# {line}" for line in lines)


def _yaml(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return share(value)
    if isinstance(value, list):
        return f"[{', '.join(_yaml(one) for one in value)}]"
    if isinstance(value, int):
        return str(value)
    # A name that YAML would read as something else (null, on, a number) is quoted.
    plain = _PLAIN.fullmatch(value) or re.fullmatch(r"[0-9a-f]{40}", value)
    return value if plain and yaml.safe_load(value) == value else quoted(value)


def _beside(left: str, comment: str) -> str:
    return f"{left:<30} # {comment}"


def _assignments(values: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {_toml(value)}" for name, value in values.items()]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(_assignments(value))} }}"
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def _inflight_reason(plan: Plan) -> str:
    if plan.max_inflight == plan.max_num_seqs:
        return "max-num-seqs of the engine's profile: a longer queue belongs here, not there"
    return f"what the blocks hold of 1,500-token requests; max-num-seqs is {plan.max_num_seqs}"


def _gateway(plan: Plan) -> dict[str, Any]:
    """What the gateway is told of a model that no shipped profile serves."""
    cap = max(1, min(8192, plan.cache.engine.max_model_len // 4))
    found: dict[str, Any] = {
        "default_max_tokens": cap,
        "default_max_tokens_reason": "for a caller who sets no limit: a quarter of the context, or 8,192",
        "defaults": {},
    }
    known = parsers.of(plan.model.shape.model_type, plan.model.repository)
    if known and known.thinks:
        found["defaults"] = {"chat_template_kwargs": {"enable_thinking": False}}
        found["defaults_reason"] = "used where the caller is silent"
        found["thinking"] = {"chat_template_kwargs": {"enable_thinking": True}}
    return found
