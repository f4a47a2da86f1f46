"""Weights, memory, speed, hardware and catalogue: figures that hold together and say what they rest on."""

from dataclasses import replace

import pytest

from gateway.planner import catalogue, hardware, layers, memory, speed, weights
from gateway.planner.layers import Engine
from gateway.planner.plan import Options, make
from gateway.planner.shape import Attention, State
from gateway.planner.source import Model, find
from tests.planner import planning

GIB = 2**30
ENGINE = Engine(max_model_len=8192, max_num_batched_tokens=2048)


def test_the_catalogue_is_large_enough_and_small_enough() -> None:
    """12 models or more under 120B, each with a size and a source with its date."""
    entries = catalogue.every()
    assert len(entries) >= 12
    assert all(entry.parameters < 120 for entry in entries)
    assert all(entry.weights.source[-10:-6] == "2026" for entry in entries)


@pytest.mark.parametrize("entry", catalogue.every(), ids=lambda entry: entry.name)
def test_a_catalogue_entrys_fields_make_its_published_size(entry: catalogue.Entry) -> None:
    """Parameters counted from the fields are those its makers say, and bytes are near those published."""
    assert entry.shape.known
    assert entry.shape.parameters.total / 1e9 == pytest.approx(entry.parameters, rel=0.015)
    assert weights.estimate(entry.shape).bytes == pytest.approx(entry.weights.bytes, rel=0.22)
    assert entry.weights.active_bytes < entry.weights.bytes * 1.01


def test_a_size_that_nobody_published_is_an_estimate() -> None:
    """And says that it was counted."""
    for entry in catalogue.every():
        counted = entry.weights.source.startswith("counted")
        assert (entry.weights.basis == "estimated") is counted, entry.name


def test_embeddings_are_looked_up_and_heads_are_read() -> None:
    """A tied embedding is loaded once and read as the output layer."""
    shape = planning.shape("llama-gqa")
    found = weights.estimate(shape)
    assert found.bytes - found.fixed_bytes == shape.vocabulary * shape.hidden * 2
    tied = weights.estimate(planning.shape("gemma3"))
    assert tied.bytes == tied.fixed_bytes


def test_memory_adds_up() -> None:
    """What is left is the share less weights, activations, graphs and libraries; more tokens leave less."""
    model = find("qwen3-8b-awq")
    card = hardware.find("rtx3090")

    def divided(tokens: int, utilization: float = 0.9) -> memory.Memory:
        return memory.divide(
            card, model.shape, model.weights, utilization=utilization, batched_tokens=tokens, seqs=16
        )

    found = divided(2048)
    assert found.left_bytes == found.requested_bytes - (
        found.weights_bytes + found.activation_bytes + found.graphs_bytes + found.libraries_bytes
    )
    assert divided(16_384).left_bytes < found.left_bytes < divided(2048, 0.95).left_bytes


@pytest.mark.parametrize(
    ("model", "machine", "utilization", "batched", "seqs", "measured_gib"),
    [
        ("qwen3.6-35b-a3b-nvfp4", "rtx5090", 0.92, 8192, 1, 6.01),  # noonghunna/club-3090#652
    ],
)
def test_the_estimate_is_near_what_was_measured(
    model: str, machine: str, utilization: float, batched: int, seqs: int, measured_gib: float
) -> None:
    """Within 1.5 GiB, and not above: an estimate that promises too much would not start."""
    options = Options(
        gpu_memory_utilization=utilization,
        max_num_batched_tokens=batched,
        max_num_seqs=seqs,
        max_model_len=8192,
    )
    found = make(find(model), hardware.find(machine), options).cache.bytes / GIB
    assert measured_gib - 1.5 < found < measured_gib + 0.5


def test_experts_met_by_a_batch() -> None:
    """One token meets those that it is sent to; many meet all; a dense model has none."""
    assert speed.experts_met(256, 8, 1) == pytest.approx(8)
    assert 250 < speed.experts_met(256, 8, 128) < 256
    assert speed.experts_met(0, 0, 64) == 0


def test_batches_share_weights_and_not_caches() -> None:
    """All together are faster, each is slower; the first is under the ceiling by cache and 16-bit parts."""
    model = find("qwen3.5-35b-a3b-fp8")
    steps = speed.steps(273e9, model.shape, ENGINE, model.weights)
    totals = [one.tokens_per_second for one in steps]
    assert totals == sorted(totals)
    assert [one.each_tokens_per_second for one in steps] == sorted(
        (one.each_tokens_per_second for one in steps), reverse=True
    )
    assert steps[0].tokens_per_second < speed.ceiling(273e9, model.weights.active_bytes)


def test_a_window_bounds_what_a_step_reads() -> None:
    """Of a long request only the window, and the whole in full layers."""
    shape = planning.shape("gpt-oss-20b")
    token = 8 * (64 + 64) * 2
    assert speed.request_bytes(shape, ENGINE, 1000) == 12 * 1000 * token + 12 * 128 * token


def test_two_cards_share_a_cache() -> None:
    """Each reads half of the heads and of the states; with fewer heads than cards, each reads one."""
    for name in ("llama-gqa", "qwen3.5-16bit-state"):
        shape = planning.shape(name)
        one, two = (
            speed.request_bytes(shape, replace(ENGINE, tensor_parallel_size=ranks), 1000) for ranks in (1, 2)
        )
        assert one == 2 * two, name
    model = find("qwen3-8b-awq")
    alone, shared = (
        speed.steps(936e9, model.shape, replace(ENGINE, tensor_parallel_size=ranks), model.weights)[-1]
        for ranks in (1, 2)
    )
    assert shared.tokens_per_second == pytest.approx(2 * alone.tokens_per_second, rel=1e-6)


def test_a_dense_model_reads_what_was_published() -> None:
    """All but the embedding, which is looked up, and what sees images: layers in 16 bit are read as such."""
    for name, gigabytes in (("qwen3.6-27b-int4", 15.5), ("qwen3-8b-awq", 4.9)):
        entry = catalogue.find(name)
        assert entry is not None
        unread = entry.shape.parameters.embedding + (entry.shape.vision_parameters or 0)
        assert entry.weights.active_bytes == entry.weights.bytes - 2 * unread
        assert round(entry.weights.active_bytes / 1e9, 1) == gigabytes
        first = speed.steps(936e9, entry.shape, ENGINE, entry.weights)[0]
        assert first.tokens_per_second < speed.ceiling(936e9, entry.weights.active_bytes)


def test_comfortable_is_both() -> None:
    """Weights under a third of memory and a ceiling above 40 tokens/s."""
    model = find("qwen3-8b-awq")  # 6.1 GB, 4.9 GB a token
    verdicts = {
        (24, 936e9): True,
        (16, 936e9): False,  # over a third
        (24, 100e9): False,  # 20 tokens/s
    }
    for (gib, rate), expected in verdicts.items():
        assert make(model, hardware.described(gib * GIB, rate), Options()).comfortable is expected


@pytest.mark.parametrize("name", [name for name in hardware.NAMES if name != "this"])
def test_every_machine_can_be_planned_for(name: str) -> None:
    """With its source; a small model fits all of them."""
    found = hardware.find(name)
    assert found.source
    assert make(find("smollm2-135m"), found, Options()).fits


def test_states_are_float32_on_some_cpus() -> None:
    """vLLM widens a recurrent state whose type the config leaves open, and none that it names."""
    wide = replace(ENGINE, float32_states=True)
    for name, widened in (
        ("qwen3-next-80b", True),
        ("qwen3.5-16bit-state", False),
        ("nemotron-h-16bit", False),
        ("nemotron-h-auto", True),
    ):
        shape = planning.shape(name)
        [state] = {layer for layer in shape.layers if isinstance(layer, State)}
        grown = layers.state_bytes(state, shape, wide) - layers.state_bytes(state, shape, ENGINE)
        assert grown == (2 * state.heads * state.head_elements if widened else 0), name


def test_a_checkpoint_may_ask_for_an_fp8_cache() -> None:
    """modelopt's do; half the bytes a token, unless another type is given."""
    entry = catalogue.find("nemotron-3-nano-30b-a3b-fp8")
    assert entry is not None
    attention = next(layer for layer in entry.shape.layers if isinstance(layer, Attention))
    given = replace(ENGINE, kv_cache_dtype="bfloat16")
    assert layers.token_bytes(attention, entry.shape, ENGINE) * 2 == layers.token_bytes(
        attention, entry.shape, given
    )


def test_a_draft_head_joins_the_full_layers() -> None:
    """vLLM's figures with one and with three drafted tokens are in the recording; without, they differ."""
    shape = planning.shape("qwen3.5-mtp")
    model = Model("m", "m", shape, weights.estimate(shape))
    plain, drafted = (
        make(model, None, Options(kv_cache_bytes=GIB * 8, max_model_len=8192, speculative_tokens=n)).cache
        for n in (0, 1)
    )
    assert drafted.blocks_per_request > plain.blocks_per_request


def test_embeddings_of_layers_are_loaded_and_not_read() -> None:
    """Gemma 3n's and 4's: a row of them is looked up for each token."""
    tensors = {"model.embed_tokens.weight": 100, "model.layers.0.mlp.up_proj.weight": 1000}
    own = {"model.language_model.embed_tokens_per_layer.weight": 5000}
    shape = planning.shape("gemma3n")
    plain, more = weights.measured(shape, tensors, "x"), weights.measured(shape, tensors | own, "x")
    assert more.bytes - plain.bytes == 5000
    assert more.active_bytes == plain.active_bytes
    counted = weights.estimate(shape)
    assert counted.bytes - counted.fixed_bytes == shape.parameters.looked_up * 2


@pytest.mark.parametrize(("factor", "said"), [(1.0, False), (1.3, False), (2.0, True), (0.5, True)])
def test_files_of_another_size_than_the_config(factor: float, said: bool) -> None:
    """Are told of; float32 weights are one cause. A size that was not measured says nothing."""
    shape = planning.shape("llama-gqa")
    counted = weights.estimate(shape)
    measured = weights.measured(shape, {"model.layers.0.x.weight": int(counted.bytes * factor)}, "x")
    options = Options(kv_cache_bytes=2**34)
    found = make(Model("x", "x", shape, measured), None, options)
    assert any("the config describes" in risk for risk in found.risks) is said
    told = weights.published(shape, int(counted.bytes * factor), None, "x")
    assert not any("describes" in risk for risk in make(Model("x", "x", shape, told), None, options).risks)
