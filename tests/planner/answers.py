"""What vLLM answers to cases: asked now, in one process of the engine's Python, or recorded before."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from deploy.local import engine
from deploy.local.problem import Problem
from gateway.planner import defaults
from tests.planner.cases import Case

SCRIPT = Path(__file__).with_name("ask_vllm.py")
DEFAULTS = Path(defaults.__file__).with_suffix(".toml")
RECORDING = Path(__file__).with_name("recordings") / "vllm.json"

Answers = dict[str, dict[str, Any]]


def recorded() -> Answers:
    """The answers to all cases, as `python -m tests.planner.record` wrote them down."""
    found: Answers = json.loads(RECORDING.read_text(encoding="utf-8"))
    return found


def ask(cases: Sequence[Case], folder: Path) -> Answers:
    """The answers of the vLLM that is installed. Skips the test where there is none and none can be."""
    questions = folder / "questions.json"
    questions.write_text(json.dumps([case.question() for case in cases]), encoding="utf-8")
    return _run(SCRIPT, folder, questions)


def ask_defaults(folder: Path) -> Answers:
    """What its configuration classes hold where a config says nothing, as `ask`."""
    return _run(SCRIPT.with_name("ask_defaults.py"), folder)


def _run(script: Path, folder: Path, *arguments: Path) -> Answers:
    try:
        engine.install()
    except Problem as problem:
        pytest.skip(f"no real engine here: {problem}")
    written = folder / "answers.json"
    done = subprocess.run(
        [engine.python(), "-W", "ignore", script, *arguments, written],
        env={**os.environ, **engine.settings(), "VLLM_CACHE_ROOT": str(folder / "vllm")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: Answers = json.loads(written.read_text(encoding="utf-8"))
    return found
