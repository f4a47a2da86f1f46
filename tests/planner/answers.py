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
from tests.planner.cases import Case

SCRIPT = Path(__file__).with_name("ask_vllm.py")
RECORDING = Path(__file__).with_name("recordings") / "vllm.json"

Answers = dict[str, dict[str, Any]]


def recorded() -> Answers:
    """The answers to all cases, as `python -m tests.planner.record` wrote them down."""
    found: Answers = json.loads(RECORDING.read_text(encoding="utf-8"))
    return found


def ask(cases: Sequence[Case], folder: Path) -> Answers:
    """The answers of the vLLM that is installed. Skips the test where there is none and none can be."""
    try:
        engine.install()
    except Problem as problem:
        pytest.skip(f"no real engine here: {problem}")
    questions, answers = folder / "questions.json", folder / "answers.json"
    questions.write_text(json.dumps([case.question() for case in cases]), encoding="utf-8")
    done = subprocess.run(
        [engine.python(), "-W", "ignore", SCRIPT, questions, answers],
        env={**os.environ, **engine.settings(), "VLLM_CACHE_ROOT": str(folder / "vllm")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: Answers = json.loads(answers.read_text(encoding="utf-8"))
    return found
