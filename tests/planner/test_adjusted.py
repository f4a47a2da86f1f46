"""A shipped profile with options beside it: what was said is in the files, and what follows from it too."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from gateway.cli import app
from tests.profiles import files


@dataclass
class Written:
    """Both files of a profile: the engine's as text and as flags, the gateway's as text and its model."""

    text: str
    flags: dict[str, Any]
    gateway: str
    model: dict[str, Any]


def write(folder: Path, name: str, *argv: str) -> Written:
    """`gateway plan … --write NAME.yaml`."""
    result = CliRunner().invoke(app, ["plan", *argv, "--write", str(folder / f"{name}.yaml")])
    assert result.exit_code == 0, result.output
    text = (folder / f"{name}.yaml").read_text(encoding="utf-8")
    gateway = (folder / "gateway" / f"{name}.toml").read_text(encoding="utf-8")
    return Written(text, yaml.safe_load(text), gateway, tomllib.loads(gateway)["models"][0])


@pytest.mark.parametrize(
    ("argv", "flag", "value"),
    [
        (("--tensor-parallel-size", "2"), "tensor-parallel-size", 2),
        (("--block-size", "64"), "block-size", 64),
        (("--kv-cache-bytes", "20GiB"), "kv-cache-memory-bytes", 20 * 2**30),
        (("--gpu-memory-utilization", "0.555"), "gpu-memory-utilization", 0.555),
        (("--max-num-batched-tokens", "4096"), "max-num-batched-tokens", 4096),
        (("--no-prefix-caching",), "enable-prefix-caching", False),
        (
            ("--speculative-tokens", "1"),
            "speculative-config",
            '{"method": "mtp", "num_speculative_tokens": 1}',
        ),
    ],
)
def test_what_was_said_is_written(tmp_path: Path, argv: tuple[str, ...], flag: str, value: object) -> None:
    """Each flag, whether the shipped profile has it or not, and all others as they were."""
    was = yaml.safe_load(files.serve_file("spark").read_text(encoding="utf-8"))
    assert write(tmp_path, "spark", *argv).flags == {**was, flag: value}


def test_fewer_at_once_close_the_valve_behind(tmp_path: Path) -> None:
    """max-num-queued-reqs is made of max_inflight, in its value and in its reason."""
    found = write(tmp_path, "spark", "--max-num-seqs", "16")
    assert (found.model["max_inflight"], found.flags["max-num-queued-reqs"]) == (16, 64)
    assert "gateway's max_inflight (16)" in found.text
    assert "max_inflight (64)" not in found.text


def test_a_smaller_cache_lets_fewer_in(tmp_path: Path) -> None:
    """The gateway admits what the blocks hold, not what the shipped profile's did."""
    found = write(tmp_path, "spark", "--kv-cache-bytes", "5GiB")
    assert found.model["max_inflight"] < 64
    assert found.flags["max-num-queued-reqs"] == 4 * found.model["max_inflight"]
    assert "5.0 GiB -> 248 blocks" in " ".join(found.text.replace("\n#", "").split())
    assert "The 5.0 GiB are given." in " ".join(found.text.replace("\n#", "").split())


def test_another_share_is_another_cache(tmp_path: Path) -> None:
    """0.10 less of 121.7 GiB are 12.1 GiB less; two cards have the room of half the weights each."""
    less = write(tmp_path, "spark", "--gpu-memory-utilization", "0.50")
    assert "28.7 GiB" in less.text
    more = write(tmp_path / "two", "spark", "--tensor-parallel-size", "2")
    assert "57.6 GiB" in more.text


def test_another_type_of_cache_takes_its_kernels_along(tmp_path: Path) -> None:
    """What decodes an fp8 cache comes and goes with it, and hits end where its blocks do."""
    plain = write(tmp_path, "rtx5090", "--kv-cache-dtype", "auto")
    assert "attention-backend" not in plain.flags
    assert "multiples of 1,056 tokens" in plain.text
    assert "2,096" not in plain.text
    assert write(tmp_path, "rtx3090", "--kv-cache-dtype", "fp8").flags["attention-backend"] == "flashinfer"


def test_a_shorter_context_has_shorter_answers(tmp_path: Path) -> None:
    """Half of it at most, and the reason says so, not what it was of the shipped length."""
    found = write(tmp_path, "rtx3090", "--max-model-len", "4096")
    assert "default_max_tokens = 2048 " in found.gateway
    assert "half of the context" in found.gateway
    assert "an eighth" not in found.gateway
    longer = write(tmp_path, "rtx3090", "--max-model-len", "16384")
    assert "default_max_tokens = 4096 " in longer.gateway
    assert "an eighth" not in longer.gateway


def test_another_card_is_another_profile(tmp_path: Path) -> None:
    """A shipped profile's values are of its own card: on another, the planner's rules choose."""
    found = write(tmp_path, "spark", "--hardware", "h100")
    assert "moe-backend" not in found.flags
    assert "H100" in found.text.splitlines()[0]


@pytest.mark.parametrize("card", ["rtx5090", "rtx3090", "spark", "h100"])
def test_a_given_cache_has_a_share_too(tmp_path: Path, card: str) -> None:
    """Without one, the check at start asks for 0.92 of the memory whatever the cache's size is."""
    found = write(tmp_path, "mine", "qwen3-8b-awq", "--hardware", card, "--kv-cache-bytes", "6GiB")
    assert found.flags["kv-cache-memory-bytes"] == 6 * 2**30
    assert 0 < found.flags["gpu-memory-utilization"] <= 0.92


@pytest.mark.parametrize("share", ["0.925", "0.999", "0.9"])
def test_a_share_is_not_rounded(tmp_path: Path, share: str) -> None:
    """0.999 as 1.00 would ask for more than there is."""
    argv = ("qwen3-8b-awq", "--hardware", "rtx3090", "--gpu-memory-utilization", share)
    assert write(tmp_path, "mine", *argv).flags["gpu-memory-utilization"] == float(share)


@pytest.mark.parametrize(
    ("model", "card", "dtype", "expected"),
    [
        ("qwen3-8b-awq", "rtx3090", "fp8", "flashinfer"),
        ("qwen3-8b-awq", "rtx3090", "auto", None),
        ("qwen3-8b-awq", "rtx3090", "int8_per_token_head", None),
        ("qwen3-8b-awq", "rtx4090", "fp8", None),
        ("qwen3-8b-awq", "rtx5090", "fp8", "flashinfer"),
        ("qwen3-8b-awq", "rtx5090", "fp8_per_token_head", None),  # FlashInfer does not take it
        ("gpt-oss-20b", "rtx3090", "int8_per_token_head", None),  # nor attention sinks before sm_90
        ("glm-4.7-flash", "rtx-pro-6000", "fp8", None),  # nor MLA
    ],
)
def test_an_fp8_cache_has_a_backend_that_reads_it(
    tmp_path: Path, model: str, card: str, dtype: str, expected: str | None
) -> None:
    """As the plan's own risk says, and only where vLLM would start with it."""
    found = write(tmp_path, "mine", model, "--hardware", card, "--kv-cache-dtype", dtype)
    assert found.flags.get("attention-backend") == expected
