"""The engine's entrypoint: starts at once, but not for ever, and leaves vLLM in its place."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
START = ROOT / "deploy" / "vllm" / "start.sh"
SECONDS = 60.0

# Notes what it is and was given, then waits for SIGTERM as vLLM does.
VLLM = """#!{python}
import os, pathlib, signal, sys
out = pathlib.Path(os.environ["RAN"])
def stop(*_):
    out.with_suffix(".stopped").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
out.with_suffix(".new").write_text("\\n".join([str(os.getpid()), *sys.argv[1:]]))
out.with_suffix(".new").rename(out)
if "--fails" in sys.argv:
    sys.exit(1)
signal.pause()
"""


class Engine:
    """One container's worth: a cache, and a command `vllm` that only notes that it ran."""

    def __init__(self, folder: Path, shell: str) -> None:
        self.notes = folder / "starts"
        self.ran = folder / "ran"
        self._shell = shell
        programs = folder / "bin"
        programs.mkdir()
        (programs / "vllm").write_text(VLLM.format(python=sys.executable))
        (programs / "vllm").chmod(0o755)
        self.environ = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "START_NOTES": str(self.notes),
            "RAN": str(self.ran),
        }

    @contextmanager
    def start(self, *arguments: str, **settings: str) -> Iterator["subprocess.Popen[str]"]:
        """As Docker starts it; standard error is a pipe. Ended with all that it started."""
        with subprocess.Popen(
            [self._shell, str(START), *arguments],
            env=self.environ | settings,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # A shell cannot trap what was ignored before it, as SIGINT is for what runs in the background.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process:
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def fail(self, **settings: str) -> str:
        """A start whose vLLM ends with 1; what was said on the way."""
        with self.start("--fails", **settings) as process:
            _, said = process.communicate(timeout=SECONDS)
            assert process.returncode == 1
        return said

    def noted(self) -> list[int]:
        """The notes, as times."""
        return [int(line) for line in self.notes.read_text().splitlines()]

    def note(self, *ages: int) -> None:
        """Starts of so many seconds ago."""
        now = int(time.time())
        self.notes.write_text("".join(f"{now - age}\n" for age in ages))


@pytest.fixture(params=["sh", "bash"])
def engine(tmp_path: Path, request: pytest.FixtureRequest) -> Engine:
    """Under both shells that an image may have as /bin/sh."""
    if (shell := shutil.which(request.param)) is None:
        pytest.skip(f"no {request.param} here")
    return Engine(tmp_path, shell)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_vllm_takes_the_place_of_the_shell(engine: Engine) -> None:
    """The same process, the arguments as they came: signals reach the server, its end is the container's."""
    with engine.start("--config", "/a folder/serve.yaml", "--x", "") as process:
        until(engine.ran.exists)
        assert engine.ran.read_text().split("\n") == [
            str(process.pid), "serve", "--config", "/a folder/serve.yaml", "--x", "",
        ]  # fmt: skip
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
        assert process.communicate()[1] == ""
    assert engine.ran.with_suffix(".stopped").exists()


def test_each_start_is_noted_before_it(engine: Engine) -> None:
    """A machine that wedges in it writes nothing afterwards."""
    before = int(time.time())
    assert engine.fail() == ""
    assert engine.fail() == ""
    first, second = engine.noted()
    assert before <= first <= second <= int(time.time())


def test_the_third_start_without_health_waits_and_says_so(engine: Engine) -> None:
    """What was seen and what to do; vLLM does not run meanwhile, and the notes stay."""
    engine.note(600, 300)
    with engine.start() as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert not engine.ran.exists()
        assert len(engine.noted()) == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    assert said == (
        "vllm: this is start 3 within 30 minutes, and none of those before became healthy. A loop of failed "
        "starts can wedge the machine, so this one waits 30 minutes first. What failed is in the lines "
        "above: `make logs` shows them. Mend it, then `make up`: that clears these notes and starts at "
        "once.\n"
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_wait_ends_at_once_when_told_to(engine: Engine, number: signal.Signals) -> None:
    """`docker compose stop` takes no grace period; the next start waits again, for nothing was mended."""
    engine.note(600, 300)
    with engine.start() as process:
        assert process.stderr is not None
        assert process.stderr.readline()
        process.send_signal(number)
        assert process.wait(SECONDS) == 0  # and not after the half hour
    assert not engine.ran.exists()
    assert len(engine.noted()) == 2


def test_after_the_wait_it_starts_and_counts_anew(engine: Engine) -> None:
    """One more attempt, which is the first of the next three; signals are vLLM's again."""
    engine.note(600, 300)
    with engine.start(START_PAUSE_SECONDS="1") as process:
        until(engine.ran.exists)
        assert len(engine.noted()) == 1
        assert engine.ran.read_text().startswith(f"{process.pid}\n")
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    assert engine.ran.with_suffix(".stopped").exists()


def test_a_loop_of_failures_is_two_starts_and_a_wait(engine: Engine) -> None:
    """With restarts at once, as Docker makes them: never three within the pause."""
    said = [engine.fail(START_PAUSE_SECONDS="0") for _ in range(5)]
    assert [bool(line) for line in said] == [False, False, True, False, True]


def test_old_starts_do_not_count(engine: Engine) -> None:
    """A box that is switched on each morning never waits; nor do notes of a clock that was wrong."""
    engine.note(5000, 1900, 1801, -4000)
    with engine.notes.open("a") as notes:
        notes.write("no number\n\n")
    assert engine.fail() == ""
    assert engine.ran.exists()


@pytest.mark.parametrize("damage", ["08\n", "0\n", "9" * 30 + "\n", "\n\n", "x\n", "1 2\n", "0x10\n", "\0\n"])
def test_a_damaged_note_does_not_end_the_count(engine: Engine, damage: str) -> None:
    """Whatever stands before and behind the notes that are none, those two count."""
    engine.note(600, 300)
    older, newer = engine.notes.read_text().splitlines()
    engine.notes.write_text(f"{damage}{older}\n{damage}{newer}\n{damage}")
    assert "this is start 3" in engine.fail(START_PAUSE_SECONDS="0")


def test_notes_with_leading_zeros_are_times(engine: Engine) -> None:
    """They are not octal."""
    engine.note(600, 300)
    engine.notes.write_text("".join(f"0{line}\n" for line in engine.notes.read_text().splitlines()))
    assert "this is start 3" in engine.fail(START_PAUSE_SECONDS="0")


def test_a_last_note_without_its_end_does_not_swallow_the_next(engine: Engine) -> None:
    """It counts itself, and so does the one that is written after it."""
    engine.note(600)
    engine.notes.write_text(engine.notes.read_text().rstrip())
    assert engine.fail() == ""
    assert len(engine.noted()) == 2
    engine.notes.write_text(engine.notes.read_text().rstrip())
    assert "this is start 3" in engine.fail(START_PAUSE_SECONDS="0")


@pytest.mark.parametrize("filling", [b"1\n", b"\0"])
def test_only_the_end_of_the_notes_is_read(engine: Engine, filling: bytes) -> None:
    """A file of terabytes, which vLLM could write there, takes no longer and no memory."""
    engine.note(600, 300)
    recent = engine.notes.read_bytes()
    with engine.notes.open("wb") as notes:
        if filling == b"\0":
            notes.truncate(
                2_000_000_000_000
            )  # a hole, which takes no room, and to read it a quarter of an hour
            notes.seek(0, os.SEEK_END)
        else:
            notes.write(filling * 5_000_000)
        notes.write(b"\n" + recent)
    assert "this is start 3" in engine.fail(START_PAUSE_SECONDS="0")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_notes_that_are_no_file_are_refused(engine: Engine, make: Callable[[Path], None]) -> None:
    """At once: to open a FIFO would wait for ever, and /dev/zero has no end."""
    make(engine.notes)
    with engine.start() as process:
        _, said = process.communicate(timeout=SECONDS)
        assert process.returncode == 1
    assert f"vllm: {engine.notes} cannot be written as user " in said
    assert not engine.ran.exists()


def test_without_notes_it_does_not_start(engine: Engine) -> None:
    """Nothing would stop a loop then; who may not write where is said."""
    with engine.start(START_NOTES="/nowhere/starts") as process:
        _, said = process.communicate(timeout=SECONDS)
        assert process.returncode == 1
    assert f"vllm: /nowhere/starts cannot be written as user {os.getuid()}:{os.getgid()}" in said
    assert not engine.ran.exists()
