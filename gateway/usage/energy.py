"""What the GPUs of this box consume: read every few seconds, counted, and booked by the hour.

It belongs to the box, not to a call: all its cards, idle time included. Reading is a thread's, which the
process does not wait for: a driver that hangs must hold up neither a call nor a stop.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from ipaddress import ip_address
from types import TracebackType
from typing import NamedTuple, Protocol, Self
from urllib.parse import urlsplit

import structlog

from gateway.errors import GatewayError
from gateway.metrics import Metrics
from gateway.settings import Settings

_log = structlog.get_logger("gateway.energy")

SAMPLE_SECONDS = 5.0
RETRY_SECONDS = 60.0  # where nothing can be read: a driver may be loaded, a card come back
BOOK_SECONDS = 60.0
MAX_GAP_SECONDS = 30.0  # what was drawn between two powers that lie further apart is not known
FAREWELL_SECONDS = 1.0  # for the thread to end


class Unreadable(Exception):
    """No card tells what it consumes now; the message says why."""


class Reading(NamedTuple):
    """What one card tells: its index in the box, and the joules that it has counted or the watts it draws."""

    gpu: str
    joules: float | None = None
    watts: float | None = None


Reader = Callable[[], Mapping[str, Reading]]  # by a name that stays the card's own; raises Unreadable


class EnergyBooks(Protocol):
    """Where energy is kept: `store.UsageStore`."""

    async def add_energy(self, hour: datetime, joules: float) -> None:
        """Add to what the box consumed in the hour that begins then (UTC). Raises GatewayError."""


def is_energy_wanted(settings: Settings) -> bool:
    """Whether to measure: where `usage.gpu_energy` leaves it open, only if an engine is on this host.

    The cards of another box cannot be read from here, and those of this one would be blamed for its tokens.
    """
    if settings.usage.gpu_energy != "auto":
        return settings.usage.gpu_energy == "on"
    urls = [url for model in settings.models for url in model.engines] or [settings.upstream_url or ""]
    return any(map(_is_local, urls))


class Meter:
    """Joules out of readings, card by card."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, Reading]] = {}

    def consumed(self, readings: Mapping[str, Reading], now: float) -> dict[str, float]:
        """Joules by index since the reading before; `now` in monotonic seconds. A card's first tells none.

        A count that is smaller than before began again with its driver. Of powers, the mean of two times the
        seconds between them.
        """
        joules: dict[str, float] = {}
        for card, reading in readings.items():
            if card in self._last:
                joules[reading.gpu] = _between(*self._last[card], reading, now)
            self._last[card] = now, reading
        return joules


class GpuEnergy:
    """`async with`: measures until the end. Where nothing can be read it says so once and tries again."""

    def __init__(
        self,
        books: EnergyBooks,
        metrics: Metrics,
        read: Reader,
        *,
        sample_seconds: float = SAMPLE_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        book_seconds: float = BOOK_SECONDS,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._books = books
        self._total = metrics.gpu_energy_joules
        self._read = read
        self._sample_seconds = sample_seconds
        self._retry_seconds = retry_seconds
        self._book_seconds = book_seconds
        self._clock = clock
        self._meter = Meter()
        self._unbooked: dict[datetime, float] = {}
        self._said: bool | None = None  # whether it was last said to be measured
        self._booking = True
        self._stop = threading.Event()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._closing = asyncio.Event()
        self._task = self._loop.create_task(self._book_until_closing())
        # A daemon: the interpreter would wait for any other thread, for as long as a driver hangs.
        threading.Thread(target=self._watch, name="gpu-energy", daemon=True).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), FAREWELL_SECONDS)
        self._closing.set()
        await self._task

    def _watch(self) -> None:
        """The thread: reads, and hands what it read to the loop."""
        while not self._stop.is_set():
            self._stop.wait(self._sample())
        self._tell(self._ended.set)

    def _sample(self) -> float:
        """Seconds until the next."""
        try:
            readings = self._read()
        except Unreadable as error:
            self._tell(self._missed, str(error))
            return self._retry_seconds
        except Exception:  # noqa: BLE001  a thread that died would hold up the stop
            _log.exception("gpu_energy_failed")
            return self._retry_seconds
        self._tell(self._take, readings, time.monotonic())
        return self._sample_seconds

    def _tell(self, callback: Callable[..., object], *values: object) -> None:
        """Call back in the loop. Once that is closed nobody can be told any more, and nobody asks."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *values)

    def _missed(self, cause: str) -> None:
        if self._said is not False:
            _log.info("gpu_energy_not_measured", cause=cause)
            self._said = False

    def _take(self, readings: Mapping[str, Reading], now: float) -> None:
        if self._said is not True:
            _log.info("gpu_energy_measured", gpus=sorted(reading.gpu for reading in readings.values()))
            self._said = True
        consumed = self._meter.consumed(readings, now)
        for gpu, joules in consumed.items():
            self._total.labels(gpu).inc(joules)
        hour = self._clock().replace(minute=0, second=0, microsecond=0)
        self._unbooked[hour] = self._unbooked.get(hour, 0.0) + sum(consumed.values())

    async def _book_until_closing(self) -> None:
        while not self._closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self._book_seconds)
            await self._book()

    async def _book(self) -> None:
        """Write down what was measured; what the store does not take is kept for the next time."""
        for hour in list(self._unbooked):
            joules = self._unbooked.pop(hour)
            try:
                await self._books.add_energy(hour, joules)
            except GatewayError as error:
                self._unbooked[hour] = self._unbooked.get(hour, 0.0) + joules
                if self._booking:
                    _log.warning("gpu_energy_not_booked", cause=error.message)
                self._booking = False
                return
            self._booking = True


def _between(then: float, before: Reading, reading: Reading, now: float) -> float:
    if before.joules is not None and reading.joules is not None:
        return reading.joules - (before.joules if before.joules <= reading.joules else 0.0)
    if before.watts is not None and reading.watts is not None and now - then <= MAX_GAP_SECONDS:
        return (before.watts + reading.watts) / 2 * (now - then)
    return 0.0


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
