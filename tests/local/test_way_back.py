"""What is told of a change of models that went wrong, with Docker or without."""

import pytest

from deploy.local import way_back
from deploy.local.problem import Problem
from deploy.local.way_back import Change

CHANGE = Change("new", "old", "make up", "\n  More is said elsewhere.")
FAILED = Problem("vllm is unhealthy. Its last lines:\n    no GPU", "`make logs` shows all of it.")
LOG = "CUDA out of memory. Tried to allocate 2.00 GiB"


def test_old_one_serves() -> None:
    """Why the new one failed, with what is known of it: not how to mend what is mended already."""
    steps: list[str] = []
    with pytest.raises(Problem) as raised:
        way_back.take(CHANGE, FAILED, lambda: LOG, lambda: steps.append("restart"))
    assert steps == ["restart"]
    said = str(raised.value)
    assert said.startswith("new did not come up, and old serves again. vllm is unhealthy.")
    assert "no GPU\n  - Out of memory at start" in said
    assert said.endswith(CHANGE.more)
    assert "make logs" not in said


def test_neither_serves() -> None:
    """Both are told, and how to mend the old one, which nobody has mended."""

    def restart() -> None:
        raise FAILED

    with pytest.raises(Problem) as raised:
        way_back.take(CHANGE, OSError(28, "No space left on device"), lambda: "", restart)
    assert str(raised.value) == (
        "neither new nor, again, old came up. The new one: The disk is full: free some space.\n"
        f"The old one: {FAILED}"
    )
    assert "make logs" in str(raised.value)


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), KeyError("choices")])
def test_not_the_models_fault(trouble: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    """The old one is started again, which is said; what interrupted the change is the caller's to raise."""
    way_back.take(CHANGE, trouble, lambda: pytest.fail("its log was read"), lambda: None)
    said = " ".join(capsys.readouterr().err.split())
    assert f"new was not waited for ({way_back.said(trouble)}). Going back to old" in said
    assert "(Ctrl-C now would leave it half done: then make up.)" in said
    assert said.endswith("old serves again.")


def test_full_disk() -> None:
    """It is said as such, with the file where it is known."""
    assert way_back.said(OSError(28, "No space left on device")) == "The disk is full: free some space."
    assert "(/a/file)" in way_back.said(OSError(28, "No space left on device", "/a/file"))
