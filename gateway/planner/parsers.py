"""What vLLM reads a model's answers with: the form of its calls of tools, and how it thinks.

One table for all who ask: by the config's model_type and the model's name, or by the name alone. The names of
parsers are those of vLLM 0.32's registries (`tool_parsers/__init__.py`, `reasoning/__init__.py`).
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parsers:
    """The names of vLLM's parsers; `thinks` is whether a caller may switch thinking by `enable_thinking`."""

    tools: str
    reasoning: str | None = None
    thinks: bool = False


@dataclass(frozen=True, slots=True)
class _Family:
    """Models that write alike: beginnings of their model_type, and what their names hold.

    `by_name` are those that differ from others of the same type, so that the type alone does not tell.
    """

    kinds: tuple[str, ...]
    name: str
    parsers: Parsers
    by_name: bool = False


def _apart(kind: str, name: str, tools: str, reasoning: str | None = None) -> _Family:
    return _Family((kind,), name, Parsers(tools, reasoning), by_name=True)


# The first that fits. An instruct model with the parser of a thinking one says nothing: all is taken for
# thoughts until they end, and they never do.
_FAMILIES = (
    _apart("", r"(^|-)hermes-\d", "hermes"),
    _apart("llama", r"^smollm", "hermes"),
    _apart("", r"deepseek-r1.*qwen", "hermes", "deepseek_r1"),
    _apart("", r"deepseek-r1.*llama", "llama3_json", "deepseek_r1"),
    _apart("", r"deepseek-r1", "deepseek_v3", "deepseek_r1"),
    _apart("qwen2", r"^qwq", "hermes", "deepseek_r1"),
    _apart("qwen3", r"embedding|reranker", "hermes"),
    _apart("qwen3", r"qwen3-coder", "qwen3_coder"),
    _Family(("qwen3_5",), r"qwen3\.\d", Parsers("qwen3_xml", "qwen3", thinks=True)),
    _apart("qwen3_next", r"qwen3-next.*thinking", "hermes", "qwen3"),
    _Family(("qwen3_next",), r"qwen3-next", Parsers("hermes")),
    _apart("qwen3", r"qwen3.*instruct", "hermes"),
    _apart("qwen3", r"qwen3.*thinking", "hermes", "qwen3"),
    _Family(("qwen3",), r"qwen3", Parsers("hermes", "qwen3", thinks=True)),
    _Family(("qwen2",), r"qwen2", Parsers("hermes")),
    _Family(("gemma4",), r"gemma-4", Parsers("gemma4", "gemma4", thinks=True)),
    _Family(("gpt_oss",), r"gpt-oss", Parsers("openai")),
    _Family(("nemotron_h",), r"nemotron-3", Parsers("qwen3_coder", "nemotron_v3", thinks=True)),
    _Family(("glm4_moe",), r"glm-4\.[56]", Parsers("glm45", "glm45", thinks=True), by_name=True),
    _Family(("glm4_moe",), r"glm-4\.[7-9]", Parsers("glm47", "glm45", thinks=True)),
    _apart("mistral", r"magistral", "mistral", "mistral"),
    _Family(("mistral", "ministral"), r"mistral|ministral|devstral", Parsers("mistral")),
    _Family(("granitemoehybrid",), r"granite-4", Parsers("granite4")),
    _Family(("llama4",), r"llama-4", Parsers("llama4_pythonic")),
    _Family(("llama",), r"llama-3", Parsers("llama3_json")),
)
_SNAPSHOT = re.compile(r"models--[^/]+--([^/]+)/snapshots/")


def of(model_type: str, name: str) -> Parsers | None:
    """What reads the answers of a model of that type; `name` is its hub id, its folder or its own name."""
    said = _plain(name)
    for family in _FAMILIES:
        if model_type.startswith(family.kinds) and (not family.by_name or re.search(family.name, said)):
            return family.parsers
    return None


def of_name(name: str) -> Parsers | None:
    """The same where only the name is known; None for one that says nothing."""
    said = _plain(name)
    return next((one.parsers for one in _FAMILIES if re.search(one.name, said)), None)


def _plain(name: str) -> str:
    """The model's own part of a hub id, a folder or one of the hub's cache, as the table has it."""
    cached = _SNAPSHOT.search(f"{name}/")
    own = cached[1] if cached else name.rstrip("/").rsplit("/", 1)[-1]
    return own.lower().replace("_", "-")
