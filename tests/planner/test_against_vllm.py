"""The planner's KV cache is vLLM's own, to the block and the token."""

import re
from pathlib import Path

import pytest

from tests.planner import answers, cases, planning
from tests.planner.cases import Case
from tests.planner.configs import CONFIGS

EVERY = cases.every()
MAXIMUM = re.compile(r"estimated maximum model length is (\d+)\.")


def differs(case: Case, said: dict[str, object]) -> str | None:
    """In what the planner's answer is not vLLM's; None if they are equal."""
    found = planning.cache(case)
    if "refusal" in said:
        longest = MAXIMUM.search(str(said["refusal"]))
        expected = int(longest[1]) if longest else 0
        equal = not found.starts and found.longest == expected
        return None if equal else f"vLLM refuses ({said['refusal']}), planned {found.longest}"
    equal = found.starts and planning.figures(found) == said
    return None if equal else f"vLLM {said}, planned {planning.figures(found)}"


def test_there_are_enough_of_each_kind() -> None:
    """12 configs and more, three lengths, two sizes: at least 72, each recorded, a refusal among them."""
    plain = [case for case in EVERY if case.name.count("=") == 0]
    assert len({case.config for case in plain}) >= 12
    assert len({case.max_model_len for case in plain}) >= 3
    assert len({case.name for case in plain}) >= 72
    said = answers.recorded()
    assert said.keys() == {case.name for case in EVERY}
    assert any("refusal" in answer for answer in said.values())


@pytest.mark.parametrize("config", CONFIGS)
def test_equals_what_vllm_said(config: str) -> None:
    """Blocks, block size, groups, tokens, concurrency; and where vLLM refuses, the length that it names."""
    said = answers.recorded()
    wrong = [
        f"{case.name}: {how}"
        for case in EVERY
        if case.config == config and (how := differs(case, said[case.name]))
    ]
    assert not wrong, "\n".join(wrong)


def test_equals_what_vllm_says(tmp_path: Path) -> None:
    """The vLLM that is installed answers as recorded, one case of each kind of cache."""
    few = cases.few()
    said = answers.ask(few, tmp_path)
    recording = answers.recorded()
    for case in few:
        assert said[case.name] == recording[case.name]
        assert differs(case, said[case.name]) is None


@pytest.mark.long
def test_the_recording_is_what_vllm_says(tmp_path: Path) -> None:
    """All cases; after an upgrade of vLLM `python -m tests.planner.record` writes them anew."""
    said = answers.ask(EVERY, tmp_path)
    assert said == answers.recorded()
    for case in EVERY:
        assert differs(case, said[case.name]) is None, case.name
