"""Whether callers let the model think although its defaults say that it should not."""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.doctor.evidence import Configuration, Scrape
from gateway.doctor.exposition import Exposition
from gateway.doctor.finding import Finding
from gateway.settings import Model

MUCH = 0.3
FEW_TOKENS = 2_000
KWARGS = "chat_template_kwargs"


def thinking(gateway: Scrape, configuration: Configuration) -> Iterator[Finding]:
    """Reasoning tokens of models whose defaults switch thinking off, as a share of what they write."""
    check, last, found = "thinking", gateway.last, False
    models = configuration.settings.models if configuration.settings else ()
    for model in models:
        written = last.sum("gateway_tokens_total", model=model.id, kind="completion")
        thought = last.sum("gateway_tokens_total", model=model.id, kind="reasoning")
        if not _off(model.defaults) or written < FEW_TOKENS or thought < MUCH * written:
            continue
        found = True
        title = f"{model.id}: callers switch thinking on, {thought / written:.0%} of its tokens are thoughts"
        evidence = f"{thought:.0f} of {written:.0f} completion tokens{_by_key(last, model)}"
        mend = (
            "[models.force] chat_template_kwargs = { enable_thinking = false } in gateway.toml, then reload"
        )
        yield Finding(check, "warning", title, evidence, mend)
    if not found:
        thought = last.sum("gateway_tokens_total", kind="reasoning")
        written = last.sum("gateway_tokens_total", kind="completion")
        told = f"{thought:.0f} of {written:.0f} completion tokens are thoughts"
        yield Finding(check, "ok", "Thinking is as the defaults say", told)


def _off(defaults: Mapping[str, Any]) -> bool:
    kwargs = defaults.get(KWARGS)
    return isinstance(kwargs, Mapping) and (
        kwargs.get("enable_thinking") is False or kwargs.get("thinking") is False
    )


def _by_key(last: Exposition, model: Model) -> str:
    keys = last.by("gateway_tokens_total", "key", model=model.id, kind="reasoning")
    worst = max(keys, key=lambda key: keys[key], default="")
    return f", most by key {worst}" if worst else ""
