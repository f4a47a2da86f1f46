"""Profiles are written by the planner: the shipped ones to the byte, others so that all is right."""

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from deploy.local import engine
from deploy.local.problem import Problem
from gateway.cli import app
from gateway.planner import catalogue, hardware, shipped
from gateway.planner.plan import Options, make
from gateway.planner.source import Model
from gateway.settings import load
from tests.profiles import files
from tests.profiles.test_files import EVERYWHERE, ORIGIN

MINE = ("gpt-oss-20b", "qwen3-30b-a3b-fp8", "nemotron-3-nano-30b-a3b-fp8", "gemma-4-26b-a4b-fp8")


def write(file: Path, *argv: str) -> None:
    """`gateway plan … --write FILE`."""
    result = CliRunner().invoke(app, ["plan", *argv, "--write", str(file)])
    assert result.exit_code == 0, result.output


def test_every_shipped_profile_is_known() -> None:
    """None stands in the folder that the planner does not write."""
    assert shipped.names() == files.NAMES


@pytest.mark.parametrize("name", files.NAMES)
def test_a_shipped_profile_is_what_the_planner_writes(tmp_path: Path, name: str) -> None:
    """Byte for byte, both files, by the one command that docs/profiles.md names."""
    write(tmp_path / f"{name}.yaml")
    assert (tmp_path / f"{name}.yaml").read_bytes() == files.serve_file(name).read_bytes()
    assert (tmp_path / "gateway" / f"{name}.toml").read_bytes() == files.gateway_file(name).read_bytes()


def test_an_option_wins_over_a_shipped_value(tmp_path: Path) -> None:
    """The flag changes, and the figures with it."""
    write(tmp_path / "spark.yaml", "--max-model-len", "32768", "--max-num-seqs", "16")
    text = (tmp_path / "spark.yaml").read_text()
    flags = yaml.safe_load(text)
    assert (flags["max-model-len"], flags["max-num-seqs"]) == (32_768, 16)
    assert flags["moe-backend"] == "triton"
    assert "38 for a full-length request" in text
    [model] = tomllib.loads((tmp_path / "gateway" / "spark.toml").read_text())["models"]
    assert model["max_inflight"] == 16


def test_another_model_under_a_shipped_name_is_another_profile(tmp_path: Path) -> None:
    """A shipped profile's values are of its own model alone."""
    write(tmp_path / "spark.yaml", "gpt-oss-20b", "--hardware", "spark")
    assert yaml.safe_load((tmp_path / "spark.yaml").read_text())["model"] == "openai/gpt-oss-20b"


@pytest.mark.parametrize("model", MINE)
def test_a_profile_of_ones_own(tmp_path: Path, model: str) -> None:
    """Each flag has reason and origin, what holds everywhere holds, and the gateway takes its part."""
    write(tmp_path / "mine.yaml", model, "--hardware", "spark")
    text = (tmp_path / "mine.yaml").read_text(encoding="utf-8")
    flags = yaml.safe_load(text)
    assert {flag: flags.get(flag) for flag in EVERYWHERE} == EVERYWHERE
    comment = ""
    for line in text.splitlines():
        if line.startswith("#"):
            comment += f" {line}"
        elif line:
            assert ORIGIN.search(comment), line
            comment = ""
        assert len(line) <= 120
    loaded = load(tmp_path / "gateway" / "mine.toml", {})
    [served] = loaded.settings.models
    assert served.id == flags["served-model-name"]
    assert served.max_inflight is not None
    assert served.max_inflight <= flags["max-num-seqs"] <= flags["max-num-batched-tokens"]
    assert flags["max-num-queued-reqs"] >= 4 * served.max_inflight


def test_vllms_parser_takes_them(tmp_path: Path) -> None:
    """A profile for every model of the catalogue, on the machine that it fits: no flag that vLLM lacks."""
    try:
        engine.install()
    except Problem as problem:
        pytest.skip(f"no real engine here: {problem}")
    asked = []
    for entry in catalogue.every():
        model = Model(entry.name, entry.repository, entry.shape, entry.weights)
        machine = next(
            name
            for name in ("rtx5090", "rtx-pro-6000", "h200")
            if make(model, hardware.find(name), Options()).fits
        )
        asked.append(tmp_path / f"{entry.name}.yaml")
        write(asked[-1], entry.name, "--hardware", machine, "--kv-cache-dtype", "fp8")
        # A folder in the hub's place: what the parser makes of flags is asked, not what the hub has.
        text = asked[-1].read_text(encoding="utf-8").replace("revision: main", "")
        asked[-1].write_text(
            text.replace(f"model: {entry.repository}", f"model: {tmp_path}"), encoding="utf-8"
        )
    script = Path(files.__file__).with_name("ask_parser.py")
    answers = tmp_path / "answers.json"
    subprocess.run(
        [engine.python(), "-W", "ignore", script, answers, *asked],
        env={**os.environ, **engine.settings(), "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)},
        cwd=tmp_path,
        check=True,
        timeout=240,
    )
    said = json.loads(answers.read_text())
    assert len(said) == len(asked)
    assert {file: answer["error"] for file, answer in said.items() if "error" in answer} == {}
