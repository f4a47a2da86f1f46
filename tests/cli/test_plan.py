"""`gateway plan`: what it prints, its JSON, and how it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gateway.cli import app
from gateway.planner import catalogue
from tests.planner.configs import CONFIGS

ARTICLE = ("qwen3.5-35b-a3b-fp8", "--kv-cache-bytes", "28.8GiB", "--max-model-len", "4096")


def run(*argv: str, **environ: str) -> Result:
    """`gateway plan` with these arguments."""
    return CliRunner().invoke(app, ["plan", *argv], env={"COLUMNS": "200", **environ})


def answer(*argv: str) -> dict[str, Any]:
    """What it prints with --json."""
    result = run(*argv, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_article_without_hardware() -> None:
    """The cache's size is given: blocks, concurrency and tokens as its author's log had them."""
    found = answer(*ARTICLE, "--max-num-batched-tokens", "8192")
    said = found["kv_cache"]
    assert (said["num_blocks"], said["block_size"], said["blocks_per_request"]) == (1429, 1056, 10)
    assert (said["max_concurrency"], said["tokens"]) == (142.9, 585_318)
    assert said["bytes"] == int(28.8 * 2**30)
    assert found["fits"] is True
    assert (found["hardware"], found["comfortable"]) == (None, None)


@pytest.mark.parametrize(
    ("argv", "block", "per_request", "concurrency"),
    [
        (["--kv-cache-dtype", "fp8"], 2096, 8, 180.0),
        (["--no-prefix-caching"], 1056, 7, 204.1),
        (["--max-model-len", "32768"], 1056, 38, 37.6),
        (["--block-size", "64"], 1088, 10, 138.7),
    ],
)
def test_options_reach_the_cache(argv: list[str], block: int, per_request: int, concurrency: float) -> None:
    """Each changes what vLLM would log."""
    said = answer(*ARTICLE, *argv)["kv_cache"]
    assert (said["block_size"], said["blocks_per_request"]) == (block, per_request)
    assert round(said["max_concurrency"], 1) == concurrency


def test_the_shape_of_the_json() -> None:
    """What scripts rely on is there, and each figure says what it rests on."""
    found = answer("qwen3.5-35b-a3b-fp8", "--hardware", "spark")
    assert found["model"] == "qwen3.5-35b-a3b-fp8"
    assert found["hardware"] == "spark"
    assert found["weights"].keys() >= {"bytes", "active_bytes", "source"}
    assert found["kv_cache"].keys() >= {
        "bytes", "block_size", "num_blocks", "blocks_per_request", "tokens", "max_concurrency",
    }  # fmt: skip
    assert round(found["speed"]["single_stream_tokens_per_second"]) == 91
    assert [one["batch"] for one in found["speed"]["batches"]] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert found["comfortable"] is True
    assert all(one.keys() == {"flag", "value", "reason"} for one in found["flags"])
    assert all(isinstance(risk, str) for risk in found["risks"])
    assert found["basis"]["kv_cache.bytes"] == "estimated"
    assert found["basis"]["weights.bytes"] == "published"


def test_alternatives_say_what_a_change_would_do() -> None:
    """Twice the context, an fp8 cache, prefix caching off: each as its own plan would say."""
    found = {one["change"]: one["kv_cache"] for one in answer(*ARTICLE)["alternatives"]}
    doubled = answer(*ARTICLE[:3], "--max-model-len", "8192")["kv_cache"]
    assert found["max-model-len doubled"] == doubled
    assert found["kv-cache-dtype fp8"]["block_size"] == 2096
    assert round(found["prefix caching off"]["max_concurrency"]) == 204


def test_max_inflight_is_the_smaller() -> None:
    """Of max-num-seqs and what the blocks hold of 1,500-token requests (2 + 6 blocks each here)."""
    assert answer(*ARTICLE, "--max-num-seqs", "64")["max_inflight"] == 64
    assert answer(*ARTICLE, "--max-num-seqs", "256")["max_inflight"] == 1428 // 8


def test_for_people() -> None:
    """Figures, what each is, flags with reasons, and a verdict first."""
    result = run(*ARTICLE)
    assert result.exit_code == 0
    first = result.stdout.splitlines()[0]
    assert first == "qwen3.5-35b-a3b-fp8 fits on the given KV cache."
    for word in ("585,318 tokens", "142.90x", "published", "--max-num-seqs", "What a change would do"):
        assert word in result.stdout


def test_the_table_has_every_model() -> None:
    """With size, whether it fits, ceiling, comfort and tokens; also as JSON."""
    result = run("--table", "--hardware", "spark")
    assert result.exit_code == 0
    rows = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert set(catalogue.names()) <= rows.keys()
    assert "91 tok/s" in rows["qwen3.5-35b-a3b-fp8"]
    plans = json.loads(run("--table", "--hardware", "spark", "--json").stdout)
    assert [one["model"] for one in plans] == list(catalogue.names())


def test_the_table_says_of_which_there_is_no_plan() -> None:
    """One model that an option does not go with is a row and a reason, and no end of all others."""
    argv = ("--table", "--hardware", "spark", "--tensor-parallel-size", "2")
    result = run(*argv)
    assert result.exit_code == 0
    rows = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert "refused" in rows["smollm2-135m"]
    assert "smollm2-135m: --tensor-parallel-size 2 does not divide" in " ".join(result.stdout.split())
    assert "yes" in rows["qwen3-8b-awq"]
    last = json.loads(run(*argv, "--json").stdout)[-1]
    assert (last["model"], last["fits"]) == ("smollm2-135m", False)
    assert "does not divide" in last["refused"]


def test_a_context_that_nobody_wants_is_no_fit() -> None:
    """160 tokens are planned where they are asked for, and never chosen."""
    argv = ("gemma-4-31b-qat-int4", "--hardware", "rtx3090", "--gpu-memory-utilization", "0.92")
    found = answer(*argv)
    assert (found["fits"], found["kv_cache"]["max_model_len"]) == (False, 2048)
    longest = found["kv_cache"]["longest_max_model_len"]
    assert f"the longest --max-model-len is {longest:,}." in " ".join(run(*argv).stdout.split())
    assert answer(*argv, "--max-model-len", str(longest))["fits"] is True


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["qwen3-8b-awq"], "--hardware is missing: name the machine, as in --hardware spark"),
        (["--hardware", "spark"], "MODEL is missing"),
        (
            ["qwen3-8b-awq", "--hardware", "rtx1"],
            "--hardware 'rtx1' is not known: choose one of spark, rtx3090",
        ),
        (["qwen3-8b-awq", "--memory", "24GiB"], "--bandwidth is missing beside --memory: as in"),
        (["qwen3-8b-awq", "--bandwidth", "936GB/s"], "--memory is missing beside --bandwidth: as in"),
        (
            ["qwen3-8b-awq", "--memory", "much", "--bandwidth", "1GB/s"],
            "--memory 'much' is no size: write it as",
        ),
        (["qwen3-8b-awq", "--memory", "0", "--bandwidth", "1GB/s"], "--memory '0' is no size"),
        (
            ["qwen3-8b-awq", "--memory", "1GiB", "--bandwidth", "9 furlongs"],
            "--bandwidth '9 furlongs' is no rate",
        ),
        (["qwen3-8b-awq", "--memory", "1GiB", "--bandwidth", "9GB/h"], "--bandwidth '9GB/h' is no rate"),
        (["qwen3-8b-awq", "--hardware", "spark", "--memory", "1GiB"], "exclude each other"),
        (["qwen3-8b-awq", "--kv-cache-bytes", "x"], "--kv-cache-bytes 'x' is no size"),
        (
            ["qwen3-8b-awq", "--hardware", "spark", "--gpu-memory-utilization", "90"],
            "as in --gpu-memory-util",
        ),
        (["qwen3-8b-awq", "--hardware", "spark", "--kv-cache-dtype", "int1"], "--kv-cache-dtype int1"),
        (["nobody-knows-it", "--hardware", "spark"], "is no folder, no hub id"),
    ],
)
def test_refusals_name_the_option_and_a_right_one(argv: list[str], said: str) -> None:
    """On stderr, with exit code 1, and without a traceback."""
    result = run(*argv)
    assert result.exit_code == 1
    assert said in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_a_described_card_is_as_good_as_a_named_one() -> None:
    """Memory and bandwidth by hand."""
    named = answer("qwen3-8b-awq", "--hardware", "rtx3090", "--max-model-len", "16384")
    by_hand = answer(
        "qwen3-8b-awq", "--memory", "23.6GiB", "--bandwidth", "936GB/s", "--max-model-len", "16384",
        "--max-num-seqs", str(named["max_num_seqs"]),
    )  # fmt: skip
    assert by_hand["speed"] == named["speed"]
    assert by_hand["memory"]["total_bytes"] == named["memory"]["total_bytes"]


def test_what_does_not_fit_says_so() -> None:
    """70B at 4 bit on 32 GB: no, and the reason is the weights."""
    result = run("llama-3.3-70b-int4", "--hardware", "rtx5090")
    assert result.exit_code == 0
    assert "does not fit on RTX 5090" in result.stdout
    assert answer("llama-3.3-70b-int4", "--hardware", "rtx5090")["fits"] is False


def test_too_long_a_context_names_the_longest() -> None:
    """As vLLM's refusal does."""
    found = answer("qwen3-8b-awq", "--kv-cache-bytes", "1GiB", "--max-model-len", "40960")
    assert found["fits"] is False
    longest = found["kv_cache"]["longest_max_model_len"]
    assert f"lower --max-model-len to {longest:,}" in found["risks"][0]
    assert answer("qwen3-8b-awq", "--kv-cache-bytes", "1GiB", "--max-model-len", str(longest))["fits"] is True
    more = answer("qwen3-8b-awq", "--kv-cache-bytes", "1GiB", "--max-model-len", str(longest + 1))
    assert more["fits"] is False


def test_a_given_cache_must_fit_beside_the_weights() -> None:
    """Whatever the utilisation says; and a length beyond the model's own is told of."""
    argv = ("qwen3-8b-awq", "--hardware", "rtx3090", "--max-model-len")
    assert answer(*argv, "16384", "--kv-cache-bytes", "12GiB")["fits"] is True
    assert answer(*argv, "16384", "--kv-cache-bytes", "20GiB")["fits"] is False
    assert "are more than its memory has" in run(*argv, "16384", "--kv-cache-bytes", "20GiB").stdout
    risks = answer(*argv, "65536", "--kv-cache-bytes", "12GiB")["risks"]
    assert any("is more than the model's 40,960" in risk for risk in risks)


def test_a_hybrid_needs_a_block_for_each_sequence() -> None:
    """With CUDA graphs vLLM would not start: said, and mended by the plan's own choice."""
    argv = ("qwen3.6-27b-int4", "--kv-cache-bytes", "1GiB", "--max-model-len", "2048")
    blocks = answer(*argv)["kv_cache"]["num_blocks"]
    assert answer(*argv)["fits"] is True
    many = answer(*argv, "--max-num-seqs", str(blocks + 1))
    assert many["fits"] is False
    assert any("vLLM does not start with CUDA graphs" in risk for risk in many["risks"])
    assert "is more than its" in run(*argv, "--max-num-seqs", str(blocks + 1)).stdout


def test_a_folder(tmp_path: Path) -> None:
    """A config alone: the weights are counted, and the figure says that it is an estimate."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama-gqa"]))
    found = answer(str(tmp_path), "--kv-cache-bytes", "6.01GiB", "--max-model-len", "4096")
    assert found["basis"]["weights.bytes"] == "estimated"
    assert found["kv_cache"]["tokens"] == 49_232


def test_a_broken_config_names_file_and_field(tmp_path: Path) -> None:
    """What is missing, and where."""
    broken = {key: value for key, value in CONFIGS["llama-gqa"].items() if key != "num_attention_heads"}
    (tmp_path / "config.json").write_text(json.dumps(broken))
    result = run(str(tmp_path), "--hardware", "spark")
    assert result.exit_code == 1
    assert f"{tmp_path}/config.json: num_attention_heads is missing" in result.stderr


def test_writing_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    """No file is left."""
    result = run("llama-3.3-70b-int4", "--hardware", "rtx5090", "--write", str(tmp_path / "mine.yaml"))
    assert result.exit_code == 1
    assert "does not fit" in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_profile_that_stood_there_before_is_kept(tmp_path: Path) -> None:
    """What an operator has written into it is not lost; the same plan again changes nothing."""
    plan = "gpt-oss-20b", "--hardware", "rtx5090", "--write", str(tmp_path / "mine.yaml")
    assert "stood there before" not in run(*plan).stderr
    assert "stood there before" not in run(*plan).stderr
    (tmp_path / "mine.yaml").write_text("mine: true\n")
    result = run(*plan)
    assert f"What stood there before is {tmp_path / 'mine.yaml.before'}." in result.stderr
    assert (tmp_path / "mine.yaml.before").read_text() == "mine: true\n"
    assert "mine: true" not in (tmp_path / "mine.yaml").read_text()
    assert sorted(file.name for file in tmp_path.rglob("*.*")) == [
        "mine.toml",
        "mine.yaml",
        "mine.yaml.before",
    ]


def test_help_has_every_option() -> None:
    """Those that scripts know."""
    text = run("--help").stdout
    for option in (
        "--hardware", "--memory", "--bandwidth", "--max-model-len", "--max-num-seqs",
        "--max-num-batched-tokens", "--gpu-memory-utilization", "--kv-cache-bytes", "--kv-cache-dtype",
        "--block-size", "--no-prefix-caching", "--speculative-tokens", "--tensor-parallel-size", "--table",
        "--write", "--json",
    ):  # fmt: skip
        assert option in text


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["qwen3-8b-awq", "--table", "--hardware", "spark"], "--table is of all models"),
        (["--table", "--hardware", "spark", "--write", "x.yaml"], "--table is of all models"),
        (["qwen3-8b-awq", "--memory", "24", "--bandwidth", "936GB/s"], "--memory '24' is too little"),
        (["qwen3-8b-awq", "--memory", "24GiB", "--bandwidth", "936"], "--bandwidth '936' is too little"),
        (["qwen3-8b-awq", "--memory", "24GiB", "--kv-cache-bytes", "6GiB"], "--bandwidth is missing"),
    ],
)
def test_nothing_that_was_said_is_passed_over(argv: list[str], said: str) -> None:
    """An option that would change nothing, or a size without its unit, is a slip."""
    result = run(*argv)
    assert (result.exit_code, said in result.stderr) == (1, True), result.output


def test_a_narrow_terminal_cuts_no_figure() -> None:
    """Eighty columns: the table has all columns and whole numbers, a plan all words."""
    wide = run("--table", "--hardware", "spark").stdout.split()
    narrow = run("--table", "--hardware", "spark", COLUMNS="80", FORCE_COLOR="1", TERM="dumb").stdout.split()
    assert {"fits", "context", "1,941,921", "262,144"} <= set(narrow) & set(wide)
