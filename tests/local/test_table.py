"""The processes of this machine, as /proc tells of them and as `ps` does where there is no /proc."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local import session
from deploy.local.table import Proc, Process, Ps, Table
from tests.local.waiting import wait_until

MARK = b"MARK=/a folder/with spaces"

TABLES = [
    pytest.param(
        Proc(), id="proc", marks=pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
    ),
    pytest.param(Ps(), id="ps", marks=pytest.mark.skipif(not shutil.which("ps"), reason="no ps")),
]
pytestmark = pytest.mark.parametrize("table", TABLES)
MAIN = "import subprocess; it = subprocess.Popen(['sleep', '600']); print(it.pid, flush=True); it.wait()"


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The leader of a session, marked in both ways, with a child of its own."""
    name, _, value = MARK.decode().partition("=")
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "--identifier", MARK.decode()],
        cwd=tmp_path, env={**os.environ, name: value}, start_new_session=True,
        text=True, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        yield process
        # The child is there, if not the leader.
        os.killpg(process.pid, signal.SIGKILL)


def test_a_session(table: Table, leader: subprocess.Popen[str], tmp_path: Path) -> None:
    """The leader is known by its mark; it and its child are its session, and no one else is."""
    assert leader.stdout is not None
    child = int(leader.stdout.readline())
    assert MARK in table.words(leader.pid)
    assert MARK[:-1] not in table.words(leader.pid)
    assert MARK not in table.words(os.getpid())
    assert {process.id for process in table.of_session(leader.pid, tmp_path)} == {leader.pid, child}
    assert table.of_session(leader.pid, tmp_path)[0] == Process(leader.pid, leader.pid, leader.pid)
    assert table.name(child) == "sleep"
    assert table.lives(child)


def test_what_has_ended(table: Table, leader: subprocess.Popen[str], tmp_path: Path) -> None:
    """One that has ended and that nobody has asked for yet lives no more; then nothing is known of it."""
    assert leader.stdout is not None
    assert leader.stdout.readline()
    leader.kill()
    wait_until(lambda: not table.lives(leader.pid))
    leader.wait()
    assert not table.lives(leader.pid)
    assert not any(table.words(leader.pid))
    assert table.name(leader.pid) == "?"
    assert leader.pid not in {process.id for process in table.of_session(leader.pid, tmp_path)}


def test_mark_of_the_leader(table: Table, tmp_path: Path) -> None:
    """Supervisord's command line carries the mark only where its environment cannot be seen."""
    assert table
    on_linux = Path("/proc/self/stat").exists()
    assert bool(session.mark_as_arguments(tmp_path)) != on_linux
