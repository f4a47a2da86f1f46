"""How long a request may be by the config, as vLLM's `_get_and_verify_max_len` (config/model.py) has it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.planner.fields import Fields
from gateway.planner.shape import Layer, State

_NAMES = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
    "max_target_positions", "max_sequence_length", "max_seq_length", "seq_len",
)  # fmt: skip
# Whose lengths are scaled already.
_SCALED = frozenset({"su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling"})
_LONG = frozenset({"su", "longrope"})


@dataclass(frozen=True, slots=True)
class Lengths:
    """The `longest` that vLLM serves, and the one that it takes where nobody says."""

    longest: int
    unasked: int


def read(config: Fields, layers: Sequence[Layer]) -> Lengths:
    """Both, or PlanProblem, naming the field that is missing."""
    kinds = list(_rotary(config))
    longest = max(1, int(_derived(config, layers) * _factor(config, kinds)))
    if any(_kind(one) in _LONG for one in kinds):
        # Longer requests are served with other rotary factors, at a loss for short ones.
        return Lengths(longest, config.integer("original_max_position_embeddings", default=longest, least=1))
    return Lengths(longest, longest)


def _factor(config: Fields, kinds: Sequence[Fields]) -> float:
    if "gemma3" in config.text("model_type", default=""):
        return 1.0
    said = [one.number("factor") for one in kinds if _kind(one) not in _SCALED and one.has("factor")]
    return said[-1] if said else 1.0


def _derived(config: Fields, layers: Sequence[Layer]) -> int:
    if config.has("model_max_length"):
        return config.integer("model_max_length", least=1)
    said = [config.integer(name, least=1) for name in _NAMES if config.has(name)]
    states_alone = all(isinstance(layer, State) for layer in layers)
    return min(said) if said else config.integer(*_NAMES, default=2048 if states_alone else None)


def _kind(rotary: Fields) -> str:
    return rotary.text("rope_type", "type", default="default")


def _rotary(config: Fields) -> Iterator[Fields]:
    """What is said of rotary positions: once, or once for each kind of layer."""
    # Where both names stand there, transformers takes the older.
    for name in ("rope_scaling", "rope_parameters"):
        if (said := config.part(name)) and said.values:
            parts = [key for key, value in said.values.items() if isinstance(value, dict)]
            yield from (part for key in parts if (part := said.part(key))) if parts else (said,)
            return
