"""`make up` takes the compose stack where Docker and an NVIDIA GPU are there, says so, and can be told."""

from dataclasses import replace

import pytest

from deploy.box import choice, machine
from deploy.box.places import Places
from tests.box.boxes import Box

HERE = machine.Machine(
    docker_trouble="", engine=(28,), compose=(2, 38), data_root=None, rootless=False, gpu_in_docker=False,
    gpu_trouble="", gpus=(), memory=32_000, available=30_000,
)  # fmt: skip


def with_gpu(docker_trouble: str = "") -> machine.Machine:
    """That machine with a GPU."""
    gpu = machine.Gpu("NVIDIA GeForce RTX 3090", 24_576, 300, (580, 95))
    return replace(HERE, gpus=(gpu,), gpu_in_docker=True, docker_trouble=docker_trouble)


def test_docker_and_gpu() -> None:
    """Both there: the stack, with the card's profile, in one line that says how to choose otherwise."""
    chosen = choice.by_machine(with_gpu())
    assert chosen.mode == "box"
    assert chosen.why == (
        "Compose stack with the profile rtx3090: Docker and NVIDIA GeForce RTX 3090 are here. "
        "MODE=local or PROFILE=name chooses otherwise."
    )


def test_gpu_without_docker() -> None:
    """A GPU that Docker keeps from being used: the local mode, saying what is in the way and its mend."""
    chosen = choice.by_machine(with_gpu(docker_trouble="permission denied while trying to connect"))
    assert chosen.mode == "local"
    assert "usermod -aG docker" in chosen.why
    assert "MODE=box" in chosen.why


@pytest.mark.parametrize(("trouble", "named"), [("", "PROFILE=cpu"), ("docker is not installed", "MODE=box")])
def test_no_gpu(trouble: str, named: str) -> None:
    """No GPU: the local mode, and the way to the stack all the same."""
    chosen = choice.by_machine(replace(HERE, docker_trouble=trouble))
    assert chosen.mode == "local"
    assert named in chosen.why


@pytest.mark.parametrize(
    ("environ", "mode"),
    [
        ({"MODE": "box"}, "box"),
        ({"PROFILE": "cpu"}, "box"),
        ({"ENGINE": "llamacpp"}, "local"),
        ({"ENGINE": "llamacpp", "MODE": "box"}, "box"),
        ({"MODE": "local", "PROFILE": "cpu"}, "local"),
        ({}, None),
    ],
)
def test_told(box: Box, environ: dict[str, str], mode: str | None) -> None:
    """MODE decides, then PROFILE, then ENGINE; without them the machine is asked."""
    chosen = choice.settled(box.places, environ)
    assert (chosen.mode if chosen else None) == mode


def test_follows_what_was_set_up(box: Box) -> None:
    """With a PROFILE in .env all targets are the box's; MODE=local alone says otherwise."""
    box.places.env_file.write_text("PROFILE=spark\n")
    assert choice.for_others(box.places, {}).mode == "box"
    assert choice.for_up(box.places, {}).why.startswith("Compose stack with the profile spark, as .env says.")
    assert choice.for_others(box.places, {"MODE": "local"}).mode == "local"
    assert choice.for_others(Places(box.folder / "deploy"), {}).mode == "local"


def test_unknown_mode(box: Box) -> None:
    """Another MODE is refused with those that there are."""
    done = box.command("status", MODE="docker")
    assert done.returncode == 1
    assert done.stderr == (
        "make status: MODE=docker is none: it is box (the compose stack) or local (without Docker).\n"
    )


@pytest.mark.parametrize(
    ("card", "profile"),
    [
        ("NVIDIA GB10, [N/A], [N/A], 580.95.05", "spark"),
        ("NVIDIA GeForce RTX 5090, 32607, 500, 580.95.05", "rtx5090"),
        ("NVIDIA GeForce RTX 3090 Ti, 24564, 300, 580.95.05", "rtx3090"),
    ],
)
def test_profile_of_the_card(box: Box, card: str, profile: str) -> None:
    """Each card that has a profile gets it, as the first line says."""
    box.has(engine="20.10.24")  # so that nothing is started
    box.has_gpus(card)
    assert f"with the profile {profile}: Docker and NVIDIA" in box.up().stderr.splitlines()[0]
