"""vLLM's own argument parser takes every profile, and would have refused what it must refuse."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploy.local import engine
from deploy.local.problem import Problem
from tests.profiles import files

ASK = Path(__file__).with_name("ask_parser.py")
MODEL = f"model: {files.serve('cpu')['model']}\nrevision: {files.serve('cpu')['revision']}\n"
EMPTY_LIST = f"{MODEL}allowed-media-domains: []"
# What is wrong, and a word of vLLM's that shows that it was this.
BROKEN = {
    "swap-space": (f"{MODEL}swap-space: 4", "unrecognized arguments: --swap-space"),
    "log-requests": (f"{MODEL}disable-log-requests: true", "unrecognized arguments: --disable-log-requests"),
    "misspelt": (f"{MODEL}gpu-memory-utilisation: 0.6", "unrecognized arguments: --gpu-memory-utilisation"),
    "value": (f"{MODEL}fingerprint-mode: nothing", "argument --fingerprint-mode: invalid choice: 'nothing'"),
    "type": (f"{MODEL}max-num-seqs: many", "argument --max-num-seqs: invalid"),
    "tool-parser": (f"{MODEL}enable-auto-tool-choice: true\ntool-call-parser: qwen99", "qwen99"),
    "reasoning-parser": (f"{MODEL}reasoning-parser: qwen99", "qwen99"),
    "no-model": ("host: 0.0.0.0", "No model specified"),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the parser says of all profiles and of broken ones, by their names."""
    try:
        engine.install()
    except Problem as problem:
        pytest.skip(f"no real engine here: {problem}")
    folder = tmp_path_factory.mktemp("parser")
    asked = {name: files.serve_file(name) for name in files.NAMES}
    for name, (text, _) in {**BROKEN, "empty-list": (EMPTY_LIST, "")}.items():
        asked[name] = folder / f"{name}.yaml"
        asked[name].write_text(text)
    for name in files.NAMES:
        snapshot(folder, name).mkdir(parents=True, exist_ok=True)
    said = ask(folder, list(asked.values()))
    return {name: {**said[str(file)], "cache": folder} for name, file in asked.items()}


def snapshot(cache: Path, name: str) -> Path:
    """Where a Hugging Face cache keeps the profile's model at its revision."""
    flags = files.serve(name)
    return Path(cache, "hub", f"models--{flags['model'].replace('/', '--')}", "snapshots", flags["revision"])


def ask(folder: Path, configs: list[Path]) -> dict[str, Any]:
    """One process for all: importing vLLM takes most of the time. It is offline, as in its container."""
    answers = folder / "answers.json"
    subprocess.run(
        [engine.python(), "-W", "ignore", ASK, answers, *configs],
        env={**os.environ, **engine.settings(), "HF_HOME": str(folder), "HF_HUB_OFFLINE": "1"},
        cwd=folder,
        check=True,
        timeout=240,
    )
    found: dict[str, Any] = json.loads(answers.read_text())
    return found


@pytest.mark.parametrize("name", files.NAMES)
def test_every_profile_is_accepted(answers: dict[str, Any], name: str) -> None:
    """No error, and no word of a flag that is deprecated or given twice."""
    assert "error" not in answers[name], answers[name]["error"]
    assert answers[name]["said"] == ""


@pytest.mark.parametrize("name", files.NAMES)
def test_every_flag_arrives_as_written(answers: dict[str, Any], name: str) -> None:
    """The engine is given each value of the file: none lost, none read as something else."""
    values = answers[name]["values"]
    for flag, written in files.serve(name).items():
        given = values[flag.replace("-", "_")]
        if isinstance(given, str) and isinstance(written, str):
            assert given.lower() == written.lower(), flag
        else:
            assert given in (written, [written]), flag


@pytest.mark.parametrize("name", files.NAMES)
def test_the_weights_are_found_offline(answers: dict[str, Any], name: str) -> None:
    """Model and revision name the folder of a Hugging Face cache that a download has left there."""
    assert answers[name]["folder"] == str(snapshot(answers[name]["cache"], name))


@pytest.mark.parametrize("name", BROKEN)
def test_broken_profiles_are_refused(answers: dict[str, Any], name: str) -> None:
    """Removed flags, misspelt ones, wrong values and parsers that do not exist: the judge does judge."""
    assert "values" not in answers[name]
    assert BROKEN[name][1] in answers[name]["error"]


def test_an_empty_list_of_media_domains_is_no_list(answers: dict[str, Any]) -> None:
    """The trap that the profiles avoid: vLLM drops an empty list, and then it fetches from every host."""
    assert answers["empty-list"]["values"]["allowed_media_domains"] is None
    for name in files.NAMES:
        assert answers[name]["values"]["allowed_media_domains"] == ["media.invalid"]
