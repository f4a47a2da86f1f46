"""Readings of NVIDIA's cards by their management library (NVML). Its calls block: they are for a thread."""

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from gateway.usage.energy import Reading, Unreadable

LIBRARY = "libnvidia-ml.so.1"  # part of the driver


def bindings() -> Any:
    """The module `pynvml`, initialised. Raises Unreadable where there is no driver, or none that answers."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise Unreadable(f"no NVIDIA driver here: {error}") from None
    import pynvml  # 4 MB, for boxes with a driver alone

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise Unreadable(str(error)) from None
    return pynvml


class Nvml:
    """A `Reader`. It keeps the library open while a card can be read, and opens it anew after none could."""

    def __init__(self, load: Callable[[], Any] = bindings) -> None:
        self._load = load
        self._nvml: Any = None

    def __call__(self) -> dict[str, Reading]:
        """What each card tells, by its UUID; a card that tells nothing is left out. Raises Unreadable."""
        if self._nvml is None:
            self._nvml = self._load()
        causes: list[str] = []
        readings = dict(self._cards(causes))
        if not readings:
            self._close(causes)
            raise Unreadable("; ".join(causes) or "the driver knows no GPU")
        return readings

    def _cards(self, causes: list[str]) -> Iterator[tuple[str, Reading]]:
        nvml = self._nvml
        for index in range(self._count(causes)):
            try:
                card = nvml.nvmlDeviceGetHandleByIndex(index)
                yield nvml.nvmlDeviceGetUUID(card), self._reading(index, card)
            except nvml.NVMLError as error:  # lost, or not permitted
                causes.append(f"GPU {index}: {error}")

    def _count(self, causes: list[str]) -> int:
        try:
            return int(self._nvml.nvmlDeviceGetCount())
        except self._nvml.NVMLError as error:
            causes.append(str(error))
            return 0

    def _reading(self, index: int, card: Any) -> Reading:
        try:
            millijoules = self._nvml.nvmlDeviceGetTotalEnergyConsumption(card)
        except self._nvml.NVMLError:  # a card older than Volta, or one that does not count
            millijoules = 0
        if millijoules:
            return Reading(str(index), joules=millijoules / 1000)
        return Reading(str(index), watts=self._nvml.nvmlDeviceGetPowerUsage(card) / 1000)

    def _close(self, causes: list[str]) -> None:
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError as error:
            causes.append(str(error))
        self._nvml = None
