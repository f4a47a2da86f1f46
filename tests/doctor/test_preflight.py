"""`make up` and `gateway doctor` judge a machine alike: what stops the one is an error of the other."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from deploy.box import first_run, machine, preflight
from deploy.box.places import CHECKOUT
from deploy.local.problem import Problem
from gateway.doctor.checks import diagnose
from gateway.doctor.evidence import Evidence
from gateway.doctor.finding import NOT_ASKED
from gateway.doctor.look import files
from tests.box.boxes import GIVEN, Box
from tests.box.machines import MACHINES

SHARED = ("docker", "compose", "driver", "gpu-in-docker", "gpu-memory")
# Of these `make up` alone knows: which profile a card gets, and which card of several.
OF_PROFILES = {"another card", "a smaller card", "not the first card"}


def lines(
    box: Box, monkeypatch: pytest.MonkeyPatch, change: Callable[[Box], None]
) -> tuple[list[str], list[str]]:
    """What the preflight says is in the way, and the doctor's errors on the same look."""
    change(box)
    for name, value in box.environ().items():
        monkeypatch.setenv(name, value)
    seen = machine.look(box.places)
    profile = box.places.profiles / "rtx5090.yaml"
    planned = first_run.plan("rtx5090", [], GIVEN)
    try:
        preflight.check(preflight.look(box.places, seen, planned))
        said = []
    except Problem as problem:
        said = str(problem).split("\n  - ")[1:]
    evidence = Evidence(
        needs_docker=True, needs_gpu=True, machine=seen, profile=files.profile(profile), memory=NOT_ASKED
    )
    found = diagnose(evidence, frozenset({"before"}))
    return said, [one.title for one in found if one.severity == "error" and one.check in SHARED]


@pytest.mark.parametrize("name", sorted(MACHINES.keys() - OF_PROFILES))
def test_the_same_is_in_the_way(box: Box, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Line by line, in the same words."""
    said, titles = lines(box, monkeypatch, MACHINES[name][0])
    assert said
    assert len(said) == len(titles)
    for title in titles:
        assert any(line.startswith(title) for line in said), (title, said)


def test_nothing_is_in_the_way(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of either."""
    assert lines(
        box, monkeypatch, lambda box: box.has_gpus("NVIDIA GeForce RTX 5090, 32607, 10, 580.95.05")
    ) == (
        [],
        [],
    )


def test_make_up_loads_nothing_that_it_does_not_use() -> None:
    """Its targets answer at once: settings and counters are the doctor's alone."""
    code = "import sys, deploy.box.preflight; print({'pydantic', 'httpx', 'yaml'} & sys.modules.keys())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
