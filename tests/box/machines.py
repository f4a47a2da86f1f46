"""Machines that no stack starts on: what is changed of a box, and what is said of it."""

from collections.abc import Callable

from tests.box.boxes import WELL, Box

Change = Callable[[Box], None]

MACHINES: dict[str, tuple[Change, str]] = {
    "no permission": (
        lambda box: box.has(trouble="permission denied while trying to connect to the Docker daemon socket"),
        "sudo usermod -aG docker $USER, then log in anew",
    ),
    "not running": (
        lambda box: box.has(trouble="Cannot connect to the Docker daemon at unix:///var/run/docker.sock."),
        "Docker does not run (cannot connect to the docker daemon",
    ),
    "not installed": (
        lambda box: (box.programs / "docker").unlink(),
        "Docker is not installed: https://docs.docker.com/engine/install/",
    ),
    "no Compose": (lambda box: box.has(compose=""), "Docker has no Compose plugin: install docker-comp"),
    "old Compose": (lambda box: box.has(compose="v2.17.3"), "Docker Compose is 2.17.3 and 2.20 or newer is"),
    "old engine": (lambda box: box.has(engine="24.0.7"), "Docker Engine is 24.0.7 and 25.0.5 or newer is"),
    "rootless": (
        lambda box: box.has(info={**WELL, "SecurityOptions": ["name=seccomp", "name=rootless"]}),
        "Docker runs rootless",
    ),
    "old driver": (
        lambda box: box.has_gpus("NVIDIA GeForce RTX 5090, 32607, 500, 570.124.06"),
        "The NVIDIA driver is 570.124.6 and 580 or newer is needed",
    ),
    "broken driver": (Box.has_broken_driver, "The NVIDIA driver does not work (NVIDIA-SMI has failed"),
    "no GPU": (
        lambda box: (box.programs / "nvidia-smi").unlink(),
        "There is no NVIDIA GPU, or no driver (nvidia-smi): install driver 580 or newer. PROFILE=cpu",
    ),
    "no toolkit": (
        lambda box: box.has(info={**WELL, "Runtimes": {"runc": {}}}),
        "could not select device driver nvidia): install NVIDIA's Container Toolkit (https://docs.nvidia.com/",
    ),
    "another card": (
        lambda box: box.has_gpus("NVIDIA RTX A6000, 49140, 300, 580.95.05"),
        "There is no profile for NVIDIA RTX A6000: choose that of the most similar card with PROFILE=name",
    ),
    "a smaller card": (
        lambda box: box.has_gpus("NVIDIA GeForce RTX 5090 Laptop GPU, 24463, 300, 580.95.05"),
        "The profile rtx5090 needs a card with 30 GiB, and NVIDIA GeForce RTX 5090 Laptop GPU has 24",
    ),
    "not the first card": (
        lambda box: box.has_gpus(
            "NVIDIA GeForce GT 1030, 2048, 10, 580.95.05", "NVIDIA GeForce RTX 3090, 24576, 10, 580.95.05"
        ),
        'RTX 3090 is card 1 here, and containers get the first, NVIDIA GeForce GT 1030: in deploy/',
    ),
    "a card in use": (
        lambda box: box.has_gpus("NVIDIA GeForce RTX 5090, 32607, 9000, 580.95.05"),
        "has 23.1 GiB free, and the profile rtx5090 takes 28.7: nvidia-smi shows who uses it",
    ),
}  # fmt: skip
