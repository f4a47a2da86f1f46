"""Whether the weights lie here: in a folder, the user's cache, or the stack's volume; nothing is guessed."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.doctor.evidence import Compose, Container, Disk, Evidence, Service
from gateway.doctor.finding import NOT_ASKED, Unseen
from gateway.doctor.look import hub, stack, weights
from gateway.doctor.look.programs import SILENT, Done
from gateway.doctor.look.site import Site
from tests.doctor.answers import docker
from tests.doctor.evidence import WELL, profile

MODEL = "Qwen/Qwen3-8B"
CACHED = "hub/models--Qwen--Qwen3-8B/snapshots"
STACK = Compose("box", {"vllm": Service("vllm", image="vllm")})
RUNS = (Container("vllm", "running"),)


def looked(
    folder: Path,
    *,
    model: str = MODEL,
    own: str = "",
    answers: Mapping[str, str] | None = None,
    containers: tuple[Container, ...] = (),
) -> Disk:
    """What is seen of a box's weights."""
    at = Site("box", folder, {}, {"WEIGHTS_DIR": own} if own else {})
    known = Evidence(
        machine=replace(WELL, data_root=folder),
        compose=STACK,
        containers=containers,
        profile=profile(model=model),
    )
    found = weights.disk(known, at, docker(answers or {}), lambda _: None)
    assert isinstance(found, Disk)
    return found


def volume(folder: Path) -> dict[str, str]:
    """A volume that lies there."""
    return {"volume inspect box_weights": json.dumps([{"Mountpoint": str(folder)}])}


def test_a_volume_is_no_model(tmp_path: Path) -> None:
    """It is there as soon as it was made: what counts is what lies in it."""
    assert looked(tmp_path).there is False
    assert looked(tmp_path, answers=volume(tmp_path)).there is False
    (tmp_path / "hub" / "models--Qwen--Other" / "snapshots").mkdir(parents=True)
    assert looked(tmp_path, answers=volume(tmp_path)).there is False
    (tmp_path / CACHED).mkdir(parents=True)
    assert looked(tmp_path, answers=volume(tmp_path)).there is True


@pytest.mark.parametrize("told", ["[{}]", "", "nonsense", "hidden"])
def test_a_volume_that_cannot_be_seen(tmp_path: Path, told: str) -> None:
    """It is said, unless the engine that runs has looked into it."""
    answers = {"volume inspect box_weights": told}
    if told == "hidden":
        answers = volume(tmp_path / "not" / "of this host")
    unseen = looked(tmp_path, answers=answers).there
    assert isinstance(unseen, Unseen)
    assert MODEL in unseen.why
    asked = {**answers, f"compose exec -T vllm test -d /weights/{CACHED}": ""}
    assert looked(tmp_path, answers=asked, containers=RUNS).there is True
    assert looked(tmp_path, answers=answers, containers=RUNS).there is False
    assert isinstance(looked(tmp_path, answers=asked).there, Unseen)


def test_a_box_whose_docker_does_not_answer(tmp_path: Path) -> None:
    """The user's own cache is not the engine's, and the image is not counted as lacking."""
    at = Site("box", tmp_path, {})
    found = weights.disk(Evidence(profile=profile(model=MODEL)), at, docker({}), lambda _: None)
    assert isinstance(found, Disk)
    assert (found.there, found.image_there) == (NOT_ASKED, True)


def test_a_docker_that_hangs_has_said_nothing(tmp_path: Path) -> None:
    """A volume that is not told of may be there."""
    found = stack.volume(lambda *_, **__: Done(SILENT, "", "docker did not answer"), "w")
    assert isinstance(found, Unseen)
    assert stack.volume(docker({}), "w") is None
    assert stack.volume(docker(volume(tmp_path)), "box_weights") == tmp_path


def test_a_folder_of_weights_of_ones_own(tmp_path: Path) -> None:
    """What is /weights for the engine is WEIGHTS_DIR here; others it does not see."""
    own = tmp_path / "w"
    assert looked(tmp_path, own=str(own)).there is False
    (own / CACHED).mkdir(parents=True)
    assert looked(tmp_path, own=str(own)).there is True
    (own / "My-Model").mkdir()
    there = looked(tmp_path, own=str(own), model="/weights/My-Model")
    assert (there.there, there.local, there.missing) == (True, True, "")
    missing = looked(tmp_path, own=str(own), model="/weights/My-Mode")
    assert (missing.there, missing.missing) == (False, f"there is no folder {own}/My-Mode")
    closed = looked(tmp_path, own=str(own), model=str(own / "My-Model"))
    assert (closed.there, "sees no folder but /weights" in closed.missing) == (False, True)


def test_a_folder_is_nobody_elses_business(tmp_path: Path) -> None:
    """The hub is not asked, there or not."""
    for model in ("/weights/My-Model", "/elsewhere"):
        found, ahead = hub.look(looked(tmp_path, model=model), Site("box", tmp_path, {}))
        assert not isinstance(found, Unseen)
        assert (found.local, found.status, ahead) == (True, 0, None)


def test_outside_of_the_stack(tmp_path: Path) -> None:
    """The user's own cache, or a folder, which may be written in short."""
    at = Site("alone", tmp_path, {"HF_HOME": str(tmp_path / "cache")})

    def there(model: str) -> bool | Unseen:
        known = Evidence(profile=profile(model=model))
        found = weights.disk(known, at, docker({}), lambda _: 7)
        assert isinstance(found, Disk)
        assert found.known_bytes == 7
        return found.there

    assert (there(MODEL), there(str(tmp_path / "mine"))) == (False, False)
    (tmp_path / "cache" / CACHED).mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    assert (there(MODEL), there(str(tmp_path / "mine"))) == (True, True)
