"""The NVIDIA driver and its CUDA against the engine's image. `make up` asks about the driver too."""

from collections.abc import Iterator

from gateway.doctor.finding import Finding, NotLookedError, Unseen, seen
from gateway.doctor.machine import Machine, spoken

OLDEST_DRIVER = (580,)  # CUDA 13, which the engine's image is built for
# The driver that each CUDA needs as a toolkit's release notes say; within one major version older ones do for
# programs that bring no PTX, which vLLM's kernels for the newest cards do.
DRIVER_OF_CUDA: dict[tuple[int, ...], int] = {(12, 8): 570, (12, 9): 575, (13, 0): 580, (13, 1): 590}


def driver(machine: Machine) -> Iterator[Finding]:
    """Whether there is a driver, it works, and is new enough."""
    check = "driver"
    if machine.gpu_trouble:
        title = f"The NVIDIA driver does not work ({machine.gpu_trouble})"
        mend = "reinstall it and reboot: sudo apt-get install --reinstall nvidia-driver-580-open; sudo reboot"
        yield Finding(check, "error", title, "nvidia-smi fails", mend)
    elif not machine.gpus:
        title = "There is no NVIDIA GPU, or no driver (nvidia-smi)"
        yield Finding(check, "error", title, "nvidia-smi lists none", "install driver 580 or newer")
    for old in sorted({gpu.driver for gpu in machine.gpus if gpu.driver < OLDEST_DRIVER}):
        title = f"The NVIDIA driver is {spoken(old)} and 580 or newer is needed"
        mend = "upgrade it and reboot: sudo apt-get install nvidia-driver-580-open; sudo reboot"
        yield Finding(check, "error", title, f"driver {spoken(old)}", mend)
    if machine.gpus and all(gpu.driver >= OLDEST_DRIVER for gpu in machine.gpus):
        named = ", ".join(f"{gpu.name} (driver {spoken(gpu.driver)})" for gpu in machine.gpus)
        yield Finding(check, "ok", "The NVIDIA driver works", named)


def cuda(machine: Machine, image: tuple[int, ...] | Unseen) -> Iterator[Finding]:
    """Whether the driver knows the CUDA that the engine's image is built for."""
    check, title = "cuda", "CUDA of the engine's image"
    if not machine.gpus:
        raise NotLookedError(Unseen("there is no NVIDIA GPU"))
    if not machine.cuda:
        raise NotLookedError(Unseen("nvidia-smi names no CUDA version"))
    built_for = seen(image)
    evidence = f"the image has CUDA {spoken(built_for)}, the driver knows {spoken(machine.cuda)}"
    needed = DRIVER_OF_CUDA.get(built_for[:2], 580)
    if built_for[:1] > machine.cuda[:1]:
        mend = (
            f"upgrade the driver to {needed} or newer and reboot, or write VLLM_IMAGE=vllm/vllm-openai:"
            "v0.32.0-cu129 into .env, then make up"
        )
        yield Finding(check, "error", "The engine's image needs a newer driver", evidence, mend)
    elif built_for[:2] > machine.cuda[:2]:
        mend = f"if the log says `unsupported PTX`, upgrade the driver to {needed} or newer and reboot"
        yield Finding(check, "hint", "The image's CUDA is newer than the driver's", evidence, mend)
    else:
        yield Finding(check, "ok", title, evidence)
