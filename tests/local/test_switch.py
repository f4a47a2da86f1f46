"""A change of models under a real supervisord: whatever goes wrong, the model before serves again."""

import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from deploy.local import chosen_model, engine, model, ports, probe, supervision, switch
from deploy.local.chosen_model import Chosen
from deploy.local.places import CHECKOUT, Places
from deploy.local.ports import Ports
from deploy.local.problem import Problem
from deploy.local.services import Service
from gateway.settings import load
from tests.local import fake_pair
from tests.local.stacks import Stack
from tests.local.waiting import wait_until

KEY = "sk-first\n"


class Pair:
    """An engine and a gateway that run; the engine is whatever `deploy.local.engine` installs and starts."""

    def __init__(self, places: Places, models: Path, door: int) -> None:
        self.places = places
        self._models = models
        self._door = f"http://127.0.0.1:{door}/v1/models"
        self._first = dict(zip(self._changed, self.files, strict=True))

    def model(self, name: str) -> Chosen:
        """A model with a folder."""
        made = self._models / re.sub(r"\W", "-", name)
        made.mkdir(parents=True, exist_ok=True)
        (made / "config.json").write_text("{}")
        written = name.replace("\\", "\\\\").replace('"', '\\"')
        block = f'[[models]]\nid = "{written}"\naliases = ["default"]\nengines = ["http://vllm:8000"]\n'
        return Chosen(name, str(made), (), block, 0)

    @property
    def served(self) -> str:
        """The model that the engine's process was started with, if it runs."""
        process = supervision.states(self.places)["engine"].process
        argv = Path(f"/proc/{process}/cmdline").read_text().split("\0") if process else []
        return argv[argv.index("--served-model-name") + 1] if "--served-model-name" in argv else ""

    @property
    def files(self) -> list[str]:
        """What names the model."""
        assert not list(self.places.data.rglob(".*.kept"))
        return [file.read_text() if file.exists() else "" for file in self._changed]

    @property
    def _changed(self) -> tuple[Path, ...]:
        return self.places.config, self.places.model, self.places.checkout / supervision.SERVICES

    def put_back(self) -> None:
        """Serves `old` again, with the first files and key, whatever a test has left."""
        self.places.engine.unlink(missing_ok=True)
        self.places.first_key.write_text(KEY)
        for left in self.places.data.rglob(".*.kept"):
            left.unlink()
        for file, text in self._first.items():
            file.write_text(text) if text else file.unlink(missing_ok=True)
        if self.served != "old" or not self._known():
            for name in ("gateway", "engine"):
                supervision.stop_service(self.places, name)
                supervision.start_service(self.places, name)
            wait_until(self._known)

    def _known(self) -> bool:
        return b'"old"' in probe.get(self._door).body


@pytest.fixture
def pair(running: Pair) -> Iterator[Pair]:
    """A pair that serves the model `old`, before each test."""
    try:
        yield running
    finally:
        running.put_back()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """The processes that the tests share."""
    made = tmp_path_factory.mktemp("pair")
    places = Places(made / "checkout")
    places.checkout.mkdir()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(made / "cache"))
        environment.setenv("PYTHONPATH", str(CHECKOUT))
        python = engine.python()
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec {sys.executable} {fake_pair.__file__} "$@"\n')
        python.chmod(0o755)
        (engine.folder() / engine.STAMP).touch()
        door, behind = _free_ports()
        asked = (sys.executable, fake_pair.__file__, "gateway", str(door), str(places.config))
        first = (str(python), "--port", str(behind), "--served-model-name", "old")
        both = [
            Service("engine", first, {}, stop_seconds=10, order=1),
            Service("gateway", (*asked, str(os.getpid())), {}, stop_seconds=10, order=2),
        ]
        stack = Stack(places.checkout, both)
        places.config.write_text(f'# mine\n[[models]]\nid = "old"\nengines = ["http://127.0.0.1:{behind}"]\n')
        places.first_key.write_text(KEY)
        ports.save(Ports(gateway=door, ops=door, engine=behind), places.run / "ports.json")
        stack.start()
        try:
            yield Pair(places, made / "models", door)
        finally:
            stack.stop()


def _free_ports() -> list[int]:
    with ExitStack() as held:
        found = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        return [listener.getsockname()[1] for listener in found]


def change(pair: Pair, name: str) -> None:
    """From `old`, which runs and is well, to another model."""
    wait_until(lambda: supervision.states(pair.places)["gateway"].state == "RUNNING")
    switch.to(pair.places, "vllm", pair.model(name), pair.model("old"))


def test_another(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """The engine serves it, the gateway knows it, whatever its name holds; and the one before again.

    Of its answer one line is shown, and in it nothing that a terminal obeys.
    """
    name = 'na"me\\ 😀'
    change(pair, name)
    assert pair.served == name
    said = capsys.readouterr().out
    assert f"{name} serves now" in said
    assert "it says: Paris\\x1b]0;mine\\x07\n" in said
    assert load(pair.places.config, {}).settings.models[0].id == name
    assert chosen_model.now(pair.places.model).id == name
    switch.to(pair.places, "vllm", pair.model("old"), pair.model(name))
    assert pair.served == "old"
    assert pair.files[0].startswith("# mine\n")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dies", "dies did not come up, and old serves again. engine died while starting"),
        ("mute", "mute did not come up, and old serves again. It starts, and does not answer (Server disc"),
    ],
)
def test_one_that_fails(pair: Pair, name: str, said: str) -> None:
    """An engine that dies, and one that never answers: the files are as they were, the old one serves."""
    before = pair.files
    with pytest.raises(Problem) as raised:
        change(pair, name)
    assert str(raised.value).startswith(said)
    assert pair.files == before
    assert pair.served == "old"


def test_interrupted(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C while the new model is waited for: the old one is started again, and that is said."""
    before = pair.files
    with pytest.raises(KeyboardInterrupt):
        change(pair, "interrupts")
    assert pair.files == before
    assert pair.served == "old"
    said = capsys.readouterr().err
    assert "interrupts was not waited for (interrupted). Going back to old" in said
    assert "old serves again." in said


def test_file_that_cannot_be_written(pair: Pair) -> None:
    """What cannot be written is said while the engine still runs: it is not stopped, no file has changed."""
    before, process = pair.files, supervision.states(pair.places)["engine"].process
    in_the_way = pair.places.config.with_name(f".{pair.places.config.name}.new")
    in_the_way.mkdir()
    try:
        with pytest.raises(Problem, match=r"IsADirectoryError: .*Nothing was changed, and old serves on"):
            change(pair, "new")
    finally:
        in_the_way.rmdir()
    assert pair.files == before
    assert supervision.states(pair.places)["engine"].process == process


def test_no_first_key(pair: Pair) -> None:
    """A first key whose file was removed is no reason to stay with the old model."""
    pair.places.first_key.unlink()
    change(pair, "new")
    assert pair.served == "new"


def test_gateway_that_does_not_run(pair: Pair) -> None:
    """That is said before the engine is stopped."""
    supervision.stop_service(pair.places, "gateway")
    process = supervision.states(pair.places)["engine"].process
    with pytest.raises(Problem, match="the gateway does not run: make up starts it"):
        switch.gateway(pair.places)
    assert supervision.states(pair.places)["engine"].process == process


def test_llamacpp_runs(pair: Pair, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It goes on, with its own model: that one is served already, and no other is."""
    process = supervision.states(pair.places)["engine"].process
    pair.places.engine.write_text("llamacpp\n")
    model.change(pair.places, "smollm2-135m", back=False, environ={})
    assert "smollm2-135m is served already" in capsys.readouterr().out
    with pytest.raises(Problem, match=r"llama\.cpp runs here, and it serves its own model alone: make down"):
        model.change(pair.places, str(folder), back=False, environ={})
    with pytest.raises(Problem, match=r"The stack runs with llama\.cpp: make down first"):
        model.change(pair.places, "smollm2-135m", back=False, environ={"ENGINE": "vllm"})
    assert supervision.states(pair.places)["engine"].process == process
    assert not pair.places.model.exists() or chosen_model.now(pair.places.model).id == "old"
