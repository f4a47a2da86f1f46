"""The longest request by a config, and the length that vLLM takes where nobody says one."""

from dataclasses import replace

import pytest

from gateway.planner import config, hardware
from gateway.planner.plan import Options, Plan, make
from gateway.planner.source import Model
from gateway.planner.weights import estimate
from tests.planner.config_forms import Config
from tests.planner.configs import CONFIGS

# Its own 8,192, and 131,072 with longer rotary factors.
LONGROPE = "phi3-longrope"


def plan(options: Options) -> Plan:
    """Of that model on a card with room for far more."""
    shape = config.read(CONFIGS[LONGROPE], "x")
    return make(Model("x", "x", shape, estimate(shape)), hardware.find("rtx5090"), options)


@pytest.mark.parametrize(
    ("name", "longest", "unasked"),
    [
        (LONGROPE, 131_072, 8192),
        ("phi3-longrope-own", 131_072, 4096),  # the class's
        ("phi3-longrope-inside", 131_072, 4096),  # vLLM looks beside the rotary fields alone
        ("llama-longrope-inside", 131_072, 131_072),
        ("llama-default-factor", 32_768, 32_768),
        ("llama-two-ropes", 16_384, 16_384),  # the older name is heard
        ("olmo3-rope-by-layer", 32_768, 32_768),
        ("gemma3-scaled", 8192, 8192),
    ],
)
def test_lengths_by_the_config(name: str, longest: int, unasked: int) -> None:
    """Both as vLLM has them: the recorded answers to these configs were given at the second."""
    shape = config.read(CONFIGS[name], name)
    assert (shape.max_model_len, shape.unasked_model_len) == (longest, unasked)


def test_a_null_factor_scales_nothing() -> None:
    """As in vLLM, which blames the config and goes on."""
    plain: Config = {**CONFIGS["llama-gqa"], "max_position_embeddings": 8192}
    scaled = {**plain, "rope_scaling": {"rope_type": "linear", "factor": None}}
    assert config.read(scaled, "x").max_model_len == 8192


def test_a_plan_takes_the_short_one_by_itself() -> None:
    """And says what it costs to ask for more, which it serves up to the longest."""
    by_itself = plan(Options())
    assert by_itself.cache.engine.max_model_len == 8192
    assert not any("rotary factors" in risk for risk in by_itself.risks)
    asked = plan(Options(max_model_len=65_536))
    assert asked.fits
    assert any("65,536 is more than the 8,192" in risk for risk in asked.risks)
    assert not plan(Options(max_model_len=131_073)).fits


def test_a_given_cache_is_planned_at_the_short_one() -> None:
    """Where neither length nor machine is said, vLLM's own is."""
    shape = config.read(CONFIGS[LONGROPE], "x")
    options = Options(kv_cache_bytes=2**34)
    model = Model("x", "x", shape, estimate(shape))
    assert make(model, None, options).cache.engine.max_model_len == 8192
    longer = replace(options, max_model_len=100_000)
    assert make(model, None, longer).cache.engine.max_model_len == 100_000
