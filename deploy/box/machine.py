"""What this machine has, looked at and never changed: Docker, Compose, NVIDIA GPUs, memory.

How it is looked at is `gateway doctor`'s, so that both see the same; here it is asked in the checkout.
"""

from functools import partial

from deploy.box import docker
from deploy.box.places import Places
from gateway.doctor.look import machine
from gateway.doctor.machine import Gpu, Machine

__all__ = ["Gpu", "Machine", "look"]


def look(places: Places) -> Machine:
    """What is here now; takes a second or two."""
    return machine.look(partial(docker.tried, places))
