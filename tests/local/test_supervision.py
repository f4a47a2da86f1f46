"""Supervision: services come back after a crash, stop in order, and leave no process behind."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.local import session, supervision
from deploy.local.places import CHECKOUT, Places
from deploy.local.problem import Problem
from deploy.local.progress import step
from deploy.local.services import Service
from tests.local.stacks import EARLIER, NAMES, Stack
from tests.local.waiting import DEADLINE_SECONDS, wait_until


@contextmanager
def running_stack(folder: Path, others: list[Service] | None = None) -> Iterator[Stack]:
    """A stack in a checkout with an odd name, deeper than the path of a socket may be."""
    checkout = folder / ("deep " * 20 + "100%")
    checkout.mkdir()
    running = Stack(checkout, others)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", str(CHECKOUT))
        environment.setenv("GATEWAY_ADMIN_TOKEN", "a-secret")
        running.start()
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A running stack for the tests that leave it running."""
    with running_stack(tmp_path_factory.mktemp("stack")) as running:
        yield running


def test_all_run(stack: Stack) -> None:
    """All services run, and each gets its settings; the operator's secrets reach the gateway alone."""
    wait_until(lambda: {state.state for state in supervision.states(stack.places).values()} == {"RUNNING"})
    assert set(supervision.states(stack.places)) == set(NAMES)
    for name in NAMES:
        environ = stack.what_is(name)["environ"]
        assert environ["SETTING"] == 'a "quoted" 100% value'
        assert ("GATEWAY_ADMIN_TOKEN" in environ) == (name == "gateway")


def test_crash(stack: Stack) -> None:
    """A service that dies is started again, once what it left behind is gone."""
    before = stack.what_is("engine")
    os.kill(before["id"], signal.SIGKILL)
    wait_until(lambda: stack.what_is("engine")["id"] != before["id"])
    left = {process.id for process in stack.left()}
    assert before["child"] not in left
    assert {stack.what_is("engine")["child"], stack.what_is("caddy")["id"]} <= left


def test_foreign_process_id(stack: Stack, tmp_path: Path) -> None:
    """A process id that is somebody else's by now is left alone."""
    other = Places(tmp_path / "other")
    other.run.mkdir(parents=True)
    other.pid_file.write_text(str(stack.leader))
    assert not supervision.running(other)
    assert session.members(stack.leader, other.checkout) == []


def test_stop(tmp_path: Path) -> None:
    """Stopped, nothing is left, and to stop again is no mistake.

    The gateway goes first, so that Caddy can pass on what it still says.
    """
    with running_stack(tmp_path) as stack:
        assert {stack.what_is(name)["id"] for name in NAMES}
        stack.stop()
        assert stack.left() == []
        assert (stack.places.data / "stops").read_text().split() == ["gateway", "caddy", "engine"]
        assert not supervision.running(stack.places)


def test_stop_without_supervision(tmp_path: Path) -> None:
    """With supervisord killed, its services are found and ended all the same."""
    with running_stack(tmp_path) as stack:
        services = {stack.what_is(name)["id"] for name in NAMES}
        os.kill(stack.leader, signal.SIGKILL)
        wait_until(lambda: not supervision.running(stack.places))
        assert services <= {process.id for process in stack.left()}
        assert f"sleep ({stack.what_is('engine')['child']})" in supervision.left_behind(stack.places)
        stack.stop()
        assert stack.left() == []
        assert supervision.left_behind(stack.places) == []


def test_service_that_dies_at_start(tmp_path: Path) -> None:
    """Waiting for a service that cannot start ends at once, with its last words, of this run alone."""
    fails = Service("engine", (sys.executable, "-c", "raise SystemExit('no such model')"), {}, 5, order=1)
    with running_stack(tmp_path, [fails]) as stack, step("Starting") as progress:
        with pytest.raises(
            Problem, match=r"engine died while starting\. The last lines of .*engine\.log"
        ) as found:
            stack.watch.until(lambda: False, progress, DEADLINE_SECONDS)
        assert str(found.value).splitlines()[-1] == "    no such model"
        assert EARLIER.strip() not in str(found.value)
