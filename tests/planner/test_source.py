"""Where a model comes from: a folder, the catalogue, or a hub, of which headers alone are fetched."""

import json
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.planner import source
from gateway.planner.problem import PlanProblem
from tests.planner.configs import CONFIGS
from tests.planner.hub import TENSORS, Hub, header
from tests.planner.odd_configs import OLD_MODELOPT

# One token: all but embedding, vision and draft, and two of eight experts.
FIXED = 300 + 10 + 5 + 2_000
ACTIVE = FIXED + 8_000 // 8 * 2
LOADED = FIXED + 2_000 + 8_000


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A hub with one model in two files of weights, each of them 50 MB long."""
    folder = "/org/model/resolve/main/"
    names = list(TENSORS)
    parts = {f"part-{i}.safetensors": {name: TENSORS[name] for name in names[i::2]} for i in range(2)}
    index = {"weight_map": {name: part for part, tensors in parts.items() for name in tensors}}
    files = {
        f"{folder}config.json": json.dumps(CONFIGS["qwen3-moe"]).encode(),
        f"{folder}model.safetensors.index.json": json.dumps(index).encode(),
    }
    files |= {folder + part: header(tensors).ljust(50_000_000, b"x") for part, tensors in parts.items()}
    with Hub(files) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_hub_sends_headers_and_no_weights(hub: Hub) -> None:
    """Exact bytes of what is loaded and read for a token; under 100 KB pass, with the operator's token."""
    found = source.find("org/model", environ={"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_secret"})
    weights = found.weights
    assert (weights.bytes, weights.active_bytes, weights.basis) == (LOADED, ACTIVE, "computed")
    assert hub.sent < 100_000
    assert hub.tokens == {"Bearer hf_secret"}


def test_a_draft_head_counts_if_it_is_used(hub: Hub) -> None:
    """It is loaded then."""
    found = source.find("org/model", drafts=True, environ={"HF_ENDPOINT": hub.url})
    assert found.weights.bytes == LOADED + 900


def test_a_single_file_and_none(hub: Hub) -> None:
    """One file without an index; and a model without safetensors is counted from its config."""
    del hub.files["/org/model/resolve/main/model.safetensors.index.json"]
    hub.files["/org/model/resolve/main/model.safetensors"] = header(TENSORS)
    assert source.find("org/model", environ={"HF_ENDPOINT": hub.url}).weights.bytes == LOADED
    del hub.files["/org/model/resolve/main/model.safetensors"]
    assert source.find("org/model", environ={"HF_ENDPOINT": hub.url}).weights.basis == "estimated"


def test_what_a_hub_has_not(hub: Hub) -> None:
    """The id is named, and what to do."""
    with pytest.raises(PlanProblem, match=r"org/none has no config\.json on the hub: is the id right\?"):
        source.find("org/none", environ={"HF_ENDPOINT": hub.url})


def test_without_a_network() -> None:
    """A clear end with the mend: a folder, the catalogue, another hub."""
    with pytest.raises(
        PlanProblem, match=r"does not answer \(ConnectError\)\. Without a network name a folder"
    ):
        source.find("org/model", environ={"HF_ENDPOINT": "http://127.0.0.1:1"})


def test_a_folder_of_weights(tmp_path: Path) -> None:
    """Its headers are read: exact, and what is not loaded for text does not count."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["qwen3-moe"]))
    (tmp_path / "model.safetensors").write_bytes(header(TENSORS))
    found = source.find(str(tmp_path))
    assert (found.weights.bytes, found.weights.active_bytes) == (LOADED, ACTIVE)
    assert found.repository == str(tmp_path)


@pytest.mark.parametrize("body", [b"", b"short", b"\xff" * 100, struct.pack("<Q", 9) + b"not json."])
def test_a_broken_file_of_weights_is_named(tmp_path: Path, body: bytes) -> None:
    """And nothing large is read into memory for a length that a broken file says."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["qwen3-moe"]))
    (tmp_path / "model.safetensors").write_bytes(body)
    with pytest.raises(PlanProblem, match=r"model\.safetensors is no safetensors file"):
        source.find(str(tmp_path))


def test_a_file_that_broke_off_is_named(tmp_path: Path) -> None:
    """Its header alone would make a figure for weights that are not there; one byte too few is too few."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["qwen3-moe"]))
    whole = header(TENSORS)
    (tmp_path / "model.safetensors").write_bytes(whole[:-1])
    with pytest.raises(
        PlanProblem,
        match=rf"model\.safetensors is {len(whole) - 1:,} bytes long and its tensors end at {len(whole):,}",
    ):
        source.find(str(tmp_path))


QUANTISED = json.dumps(OLD_MODELOPT)


def test_modelopts_own_file_in_a_folder(tmp_path: Path) -> None:
    """Up to 0.29 it stands beside a config.json that says nothing; beside one that does it is not read."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama-gqa"]))
    (tmp_path / "hf_quant_config.json").write_text(QUANTISED)
    found = source.find(str(tmp_path)).shape.quantization
    assert (found.method, found.expert_bytes, found.kv_cache_dtype) == ("fp8", 1.0, "fp8")
    own = {**CONFIGS["llama-gqa"], "quantization_config": {"quant_method": "awq", "bits": 4}}
    (tmp_path / "config.json").write_text(json.dumps(own))
    (tmp_path / "hf_quant_config.json").write_text("{")
    assert source.find(str(tmp_path)).shape.quantization.method == "int4"


def test_modelopts_own_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """And not config.json, which is right."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama-gqa"]))
    wrong = {**OLD_MODELOPT, "quantization": {"quant_algo": "NF4"}}
    for text in (json.dumps(wrong), "[]", "{"):
        (tmp_path / "hf_quant_config.json").write_text(text)
        with pytest.raises(PlanProblem, match=r"hf_quant_config\.json"):
            source.find(str(tmp_path))


def test_modelopts_own_file_on_a_hub(hub: Hub) -> None:
    """It is asked for, and what it says counts."""
    hub.files["/org/model/resolve/main/hf_quant_config.json"] = QUANTISED.encode()
    found = source.find("org/model", environ={"HF_ENDPOINT": hub.url}).shape.quantization
    assert (found.method, found.kv_cache_dtype) == ("fp8", "fp8")


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 3000, "nul\0", "loop/loop"])
def test_a_name_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    """It is no folder, and said shortly."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(PlanProblem, match="is no folder") as told:
        source.find(str(tmp_path / name))
    assert str(told.value).index("is no folder") < 200


def test_a_folder_without_config(tmp_path: Path) -> None:
    """What is missing is named."""
    with pytest.raises(PlanProblem, match=r"config\.json is missing"):
        source.find(str(tmp_path))


def test_a_catalogue_name_or_its_hub_id() -> None:
    """In any case; no network is asked."""
    for name in ("Qwen3-8B-AWQ", "Qwen/Qwen3-8B-AWQ"):
        assert source.find(name, environ={"HF_ENDPOINT": "http://127.0.0.1:1"}).name == "qwen3-8b-awq"


ELSEWHERE = "http://127.0.0.1:9/steal.safetensors"


@pytest.mark.parametrize(
    "named", [None, [], {}, {"a": 1}, {"a": ELSEWHERE}, {"a": "../b.safetensors"}, {"a": "/etc/passwd"}]
)
def test_an_index_that_leads_elsewhere(tmp_path: Path, named: Any) -> None:
    """Neither a folder's nor a hub's index names files of others: the token would go with the request."""
    config = json.dumps(CONFIGS["qwen3-moe"])
    index = json.dumps({"weight_map": named})
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(PlanProblem, match="index"):
        source.find(str(tmp_path))
    hub = Hub(
        {
            "/a/b/resolve/main/config.json": config.encode(),
            "/a/b/resolve/main/model.safetensors.index.json": index.encode(),
        }
    )
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    try:
        with pytest.raises(PlanProblem, match="index"):
            source.find("a/b", environ={"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_x"})
    finally:
        hub.shutdown()
        hub.server_close()


def test_a_download_that_has_not_ended(tmp_path: Path) -> None:
    """Half of the weights would fit where the whole do not."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["qwen3-moe"]))
    named = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": named}))
    (tmp_path / "model-1.safetensors").write_bytes(header(TENSORS))
    with pytest.raises(PlanProblem, match=r"lacks 1 of the 2 files .*model-2\.safetensors"):
        source.find(str(tmp_path))


def test_the_same_weights_twice_count_once(tmp_path: Path) -> None:
    """Mistral ships both forms; an adapter beside them is no part of the model."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["qwen3-moe"]))
    for name in ("model.safetensors", "consolidated.safetensors", "adapter_model.safetensors"):
        (tmp_path / name).write_bytes(header(TENSORS))
    (tmp_path / "broken.safetensors").symlink_to(tmp_path / "nowhere")
    assert source.find(str(tmp_path)).weights.bytes == LOADED


def test_a_draft_layer_behind_the_last(tmp_path: Path) -> None:
    """DeepSeek and GLM number it as a layer: it is not loaded unless it drafts."""
    config = {**CONFIGS["glm-4.7-flash"], "num_nextn_predict_layers": 1}
    (tmp_path / "config.json").write_text(json.dumps(config))
    tensors = {"model.layers.46.mlp.up_proj.weight": 100, "model.layers.47.eh_proj.weight": 30}
    (tmp_path / "model.safetensors").write_bytes(header(tensors))
    assert source.find(str(tmp_path)).weights.bytes == 100
    assert source.find(str(tmp_path), drafts=True).weights.bytes == 130


@pytest.mark.parametrize("offsets", [[100, 0], [0, "9"], "12", [0], [0, 1e999], [0, 10**40]])
def test_tensors_of_no_size(tmp_path: Path, offsets: Any) -> None:
    """A header that lies is named, and makes no figure."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["qwen3-moe"]))
    text = json.dumps({"a.weight": {"data_offsets": offsets}}).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
    with pytest.raises(PlanProblem, match=r"model\.safetensors has no safetensors header"):
        source.find(str(tmp_path))


@pytest.mark.parametrize("text", [b"[" * 100_000, b"[]", b"\xff\xfe\x00", b""])
def test_a_config_that_is_no_object(tmp_path: Path, text: bytes) -> None:
    """Nested without end, too."""
    (tmp_path / "config.json").write_bytes(text)
    with pytest.raises(PlanProblem, match=r"config\.json"):
        source.find(str(tmp_path))


def test_a_token_and_a_password_are_not_told() -> None:
    """Of HF_ENDPOINT the host alone; a token that cannot be sent is not shown."""
    with pytest.raises(PlanProblem) as told:
        source.find("a/b", environ={"HF_ENDPOINT": "http://me:hidden@127.0.0.1:9"})
    assert "hidden" not in str(told.value)
    with pytest.raises(PlanProblem, match="HF_TOKEN") as told:
        source.find("a/b", environ={"HF_ENDPOINT": "http://127.0.0.1:9", "HF_TOKEN": "hf_hidden\u00e9"})
    assert "hidden" not in str(told.value)
