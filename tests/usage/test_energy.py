"""What the box's GPUs consume is counted and booked by the hour, and holds up nothing where it cannot be."""

import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from gateway.errors import StorageFull
from gateway.metrics import Metrics
from gateway.settings import Settings
from gateway.usage.energy import MAX_GAP_SECONDS, GpuEnergy, Meter, Reading, Unreadable, is_energy_wanted
from tests.running import wait_for

NOON = datetime(2026, 11, 30, 12, 34, 56, tzinfo=UTC)
HOUR = datetime(2026, 11, 30, 12, tzinfo=UTC)
NEVER = 3600.0
Step = Mapping[str, Reading] | Exception


class Shelf:
    """Books that refuse as often as they are told to."""

    def __init__(self, refusals: int = 0) -> None:
        self.refusals = refusals
        self.joules: dict[datetime, float] = {}

    async def add_energy(self, hour: datetime, joules: float) -> None:
        if self.refusals:
            self.refusals -= 1
            raise StorageFull("usage.db: no space left")
        self.joules[hour] = self.joules.get(hour, 0.0) + joules


class Script:
    """A reader that tells these, one after the other, and the last one again and again."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = list(steps)
        self.reads = 0

    def __call__(self) -> Mapping[str, Reading]:
        step = self._steps[min(self.reads, len(self._steps) - 1)]
        self.reads += 1
        if isinstance(step, Exception):
            raise step
        return step

    async def is_read(self) -> bool:
        """To the end, and once again."""
        return self.reads > len(self._steps)


def counts(first: float, second: float) -> dict[str, Reading]:
    """Two cards that count joules."""
    return {"GPU-a": Reading("0", joules=first), "GPU-b": Reading("1", joules=second)}


def energy(
    script: Script, shelf: Shelf | None = None, metrics: Metrics | None = None, book_seconds: float = NEVER
) -> GpuEnergy:
    """One that reads as fast as it can, at noon."""
    return GpuEnergy(
        shelf or Shelf(), metrics or Metrics(), script,
        sample_seconds=0.001, retry_seconds=0.001, book_seconds=book_seconds, clock=lambda: NOON,
    )  # fmt: skip


def consumed(metrics: Metrics, gpu: str) -> float | None:
    """What a scrape would show; None: nothing."""
    return metrics.registry.get_sample_value("gateway_gpu_energy_joules_total", {"gpu": gpu})


async def test_what_cards_count_is_shown_and_booked_by_the_hour() -> None:
    """From the first reading on, each card by its index, the box's sum in the books."""
    script = Script([counts(1000, 5000), counts(1040, 5002), counts(1100, 5002)])
    shelf, metrics = Shelf(), Metrics()
    async with energy(script, shelf, metrics):
        await wait_for(script.is_read)
    assert (consumed(metrics, "0"), consumed(metrics, "1")) == (100, 2)
    assert shelf.joules == {HOUR: 102}


async def test_it_is_booked_while_it_runs() -> None:
    """A process that is killed loses the last minute, not the day."""
    shelf = Shelf()
    async with energy(Script([counts(0.5, 0.5), counts(10.5, 0.5)]), shelf, book_seconds=0.001):

        async def booked() -> bool:
            return shelf.joules == {HOUR: 10}

        await wait_for(booked)


async def test_what_the_books_refuse_is_kept() -> None:
    """It is said once for as long as it lasts, and then nothing is missing."""
    script = Script([counts(1, 1), counts(7, 1)])
    shelf = Shelf(refusals=5)
    with capture_logs() as lines:
        async with energy(script, shelf, book_seconds=0.001):

            async def booked() -> bool:
                return shelf.joules.get(HOUR) == 6

            await wait_for(booked)
    said = [line for line in lines if line["event"] == "gpu_energy_not_booked"]
    assert [line["log_level"] for line in said] == ["warning"]


@pytest.mark.parametrize("fault", [KeyError("a field that no driver had"), RuntimeError("no loop of ours")])
async def test_a_fault_of_the_reader_ends_nothing(fault: Exception) -> None:
    """It is in the log with its trace, measuring goes on, and the stop waits for no thread that is dead."""
    script = Script([counts(1, 1), fault, counts(3, 1)])
    metrics = Metrics()
    with capture_logs() as lines:
        async with energy(script, metrics=metrics):
            await wait_for(script.is_read)
    [failed] = [line for line in lines if line["log_level"] == "error"]
    assert (failed["event"], failed["exc_info"]) == ("gpu_energy_failed", True)
    assert consumed(metrics, "0") == 2


async def test_where_nothing_can_be_read_one_line_says_so() -> None:
    """At info, and no series is shown; once something can be read it is measured from there on."""
    gone = Unreadable("GPU 0: GPU is lost")
    script = Script([gone, gone, gone, counts(3, 3), counts(4, 3), gone, gone])
    metrics = Metrics()
    with capture_logs() as lines:
        async with energy(script, metrics=metrics):
            await wait_for(script.is_read)
    said = [(line["event"], line["log_level"]) for line in lines]
    missed, measured = ("gpu_energy_not_measured", "info"), ("gpu_energy_measured", "info")
    assert said == [missed, measured, missed]
    assert lines[0]["cause"] == "GPU 0: GPU is lost"
    assert consumed(metrics, "0") == 1


async def test_without_a_reading_there_is_no_series() -> None:
    """Neither zero watts nor zero joules are claimed of a box without such cards."""
    script, shelf, metrics = Script([Unreadable("no driver")]), Shelf(), Metrics()
    async with energy(script, shelf, metrics):
        await wait_for(script.is_read)
    assert consumed(metrics, "0") is None
    assert shelf.joules == {}


async def test_a_driver_that_hangs_holds_up_neither_the_loop_nor_the_end() -> None:
    """What was measured before is booked all the same."""
    script, shelf = Script([counts(1, 1), counts(9, 1)]), Shelf()
    inside: list[threading.Thread] = []
    released = threading.Event()

    def read() -> Mapping[str, Reading]:
        if script.reads == 2:
            inside.append(threading.current_thread())
            released.wait()
        return script()

    async def hangs() -> bool:
        return bool(inside)

    async with GpuEnergy(shelf, Metrics(), read, sample_seconds=0.001, clock=lambda: NOON):
        await wait_for(hangs)
    [thread] = inside
    assert thread.is_alive()
    assert thread.daemon  # the interpreter would wait for any other at its end
    assert shelf.joules == {HOUR: 8}
    released.set()
    thread.join()


def watts(card: str, drawn: float, gpu: str = "0") -> dict[str, Reading]:
    """One card that tells its power alone."""
    return {card: Reading(gpu, watts=drawn)}


def joules(card: str, count: float, gpu: str = "0") -> dict[str, Reading]:
    """One card that counts."""
    return {card: Reading(gpu, joules=count)}


@pytest.mark.parametrize(
    ("before", "now", "seconds", "expected"),
    [
        (joules("a", 100), joules("a", 130), 5, {"0": 30}),
        (joules("a", 100), joules("a", 130), 3600, {"0": 30}),
        (joules("a", 100), joules("a", 12), 5, {"0": 12}),
        (watts("a", 100), watts("a", 300), 5, {"0": 1000}),
        (watts("a", 100), watts("a", 300), MAX_GAP_SECONDS + 1, {"0": 0}),
        (joules("a", 100), watts("a", 300), 5, {"0": 0}),
        (joules("a", 100, "1"), joules("a", 130, "0"), 5, {"0": 30}),
        (joules("a", 100), joules("b", 9e6), 5, {}),
        ({}, joules("a", 130), 5, {}),
    ],
    ids=[
        "counted", "counted over a gap", "the driver was loaded anew", "the mean of two powers",
        "powers too far apart", "another kind of figure", "the card has another index",
        "another card at this index", "the first reading",
    ],
)  # fmt: skip
def test_joules_between_two_readings(
    before: dict[str, Reading], now: dict[str, Reading], seconds: float, expected: dict[str, float]
) -> None:
    """Never more than is known to have been consumed."""
    meter = Meter()
    meter.consumed(before, 1000.0)
    assert meter.consumed(now, 1000.0 + seconds) == expected


def test_a_card_that_was_away_goes_on_where_it_was() -> None:
    """What it counted meanwhile was consumed."""
    meter = Meter()
    meter.consumed(joules("a", 100), 0.0)
    meter.consumed({}, 5.0)
    assert meter.consumed(joules("a", 160), 10.0) == {"0": 60}


def settings(choice: str, **values: object) -> Settings:
    """With this word on whether to measure."""
    return Settings.model_validate({"usage": {"gpu_energy": choice}, **values})


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://localhost:8000", True),
        ("http://[::1]:8000", True),
        ("http://192.168.1.20:8000", False),
        ("https://spark.lan", False),
        ("http://vllm:8000", False),
    ],
)
def test_by_itself_only_an_engine_on_this_host_is_measured(url: str, expected: bool) -> None:
    """The cards of this box do not work for an engine elsewhere; the operator's word stands above."""
    model = {"models": ({"id": "m", "engines": [url]},)}
    assert is_energy_wanted(settings("auto", **model)) is expected
    assert is_energy_wanted(settings("auto", upstream_url=url)) is expected
    assert is_energy_wanted(settings("on", **model)) is True
    assert is_energy_wanted(settings("off", **model)) is False
