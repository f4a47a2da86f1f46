"""NVML is read as its cards allow, by a library of the same names where there is no such card."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest

from gateway.usage.energy import Reading, Unreadable
from gateway.usage.nvml import Nvml, bindings
from tests.running import Gateway, http_client, wait_for

SOURCE = Path(__file__).parent / "fake_nvml.c"
READ_TWICE = """
import json
from gateway.usage.nvml import Nvml
read = Nvml()
print(json.dumps([read(), read()]))
"""


class Cards:
    """Stands for `pynvml`: what each card answers, in the order of `answers`, errors being raised."""

    NVMLError = pynvml.NVMLError

    def __init__(self, *cards: dict[str, Any]) -> None:
        self._cards = cards
        self.opened = 0

    def load(self) -> Any:
        self.opened += 1
        return self

    def nvmlShutdown(self) -> None:  # noqa: N802  NVML's name
        self.opened -= 1

    def __getattr__(self, name: str) -> Callable[..., Any]:
        answers: dict[str, Callable[..., Any]] = {
            "nvmlDeviceGetCount": lambda: len(self._cards),
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetUUID": lambda card: f"GPU-{card}",
            "nvmlDeviceGetTotalEnergyConsumption": lambda card: self._answer(card, "energy"),
            "nvmlDeviceGetPowerUsage": lambda card: self._answer(card, "power"),
        }
        return answers[name]

    def _answer(self, card: int, asked: str) -> int:
        answer: int | Exception = self._cards[card][asked]
        if isinstance(answer, Exception):
            raise answer
        return answer


def fails(code: int) -> Exception:
    """NVML's error of this number."""
    error: Exception = pynvml.NVMLError(code)
    return error


UNSUPPORTED = fails(pynvml.NVML_ERROR_NOT_SUPPORTED)
LOST = fails(pynvml.NVML_ERROR_GPU_IS_LOST)
FORBIDDEN = fails(pynvml.NVML_ERROR_NO_PERMISSION)


@pytest.mark.parametrize(
    ("energy", "power", "expected"),
    [
        (1_234_500, 70_000, Reading("0", joules=1234.5)),
        (UNSUPPORTED, 70_500, Reading("0", watts=70.5)),
        (0, 70_500, Reading("0", watts=70.5)),
        (fails(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND), 70_500, Reading("0", watts=70.5)),
    ],
    ids=["counts", "tells power alone", "has a count that stands still", "an older driver"],
)
def test_a_card_is_read_as_it_can(energy: Any, power: Any, expected: Reading) -> None:
    """Its count where it keeps one, else what it draws now."""
    assert Nvml(Cards({"energy": energy, "power": power}).load)() == {"GPU-0": expected}


@pytest.mark.parametrize("error", [UNSUPPORTED, LOST, FORBIDDEN], ids=str)
def test_a_card_that_tells_nothing_is_left_out(error: Exception) -> None:
    """The others are read."""
    mute = {"energy": error, "power": error}
    cards = Cards(mute, {"energy": 1000, "power": 1000})
    assert Nvml(cards.load)() == {"GPU-1": Reading("1", joules=1.0)}


def test_where_no_card_tells_anything_each_says_why_and_the_next_time_begins_anew() -> None:
    """A card that was reset is found by opening the library again."""
    cards = Cards({"energy": LOST, "power": LOST}, {"energy": UNSUPPORTED, "power": FORBIDDEN})
    read = Nvml(cards.load)
    for _ in range(2):
        with pytest.raises(Unreadable, match="GPU 0: GPU is lost; GPU 1: Insufficient Permissions"):
            read()
        assert cards.opened == 0


def test_a_driver_without_cards_is_no_error() -> None:
    """It is said, and tried again later."""
    with pytest.raises(Unreadable, match="knows no GPU"):
        Nvml(Cards().load)()


def without_driver() -> None:
    """Skips where there is one."""
    try:
        bindings()
    except Unreadable as error:
        if "libnvidia-ml.so.1" not in str(error):
            pytest.skip(f"a driver is here: {error}")
    else:
        pytest.skip("a driver is here")


async def test_a_gateway_on_a_box_without_a_driver_says_so_once(gateway: Gateway) -> None:
    """Its engine is on this host, so it looks; at info, and there is no series."""
    without_driver()

    async def said() -> bool:
        return bool(gateway.events("gpu_energy_not_measured"))

    await wait_for(said, evidence=gateway.log)
    [line] = gateway.events("gpu_energy_not_measured")
    assert line["level"] == "info"
    assert "libnvidia-ml.so.1" in line["cause"]
    async with http_client() as client:
        assert "\ngateway_gpu_energy_joules_total" not in (await client.get(gateway.ops + "/metrics")).text


def test_a_box_without_a_driver_is_told_by_its_missing_library() -> None:
    """And the bindings are not even loaded: they would take 4 MB of every gateway."""
    without_driver()
    script = (
        "import sys; from gateway.usage.nvml import *\n"
        "try: Nvml()()\nexcept Unreadable: print('pynvml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_bindings_read_a_library_of_nvml_s_names(tmp_path: Path) -> None:
    """The real `pynvml` beside a library in C: the functions, their arguments and units are NVML's."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    done = subprocess.run(
        [sys.executable, "-c", READ_TWICE],
        env={"LD_LIBRARY_PATH": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == [
        {"GPU-fake-0": ["0", 1001.0, None], "GPU-fake-1": ["1", None, 75.5]},
        {"GPU-fake-0": ["0", 1002.0, None], "GPU-fake-1": ["1", None, 75.5]},
    ]
