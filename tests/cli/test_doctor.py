"""`gateway doctor` as a process: before a running gateway and engine, and before nothing at all."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main

from gateway.cli import app
from gateway.doctor.checks import CHECKS
from tests.box.boxes import Box
from tests.doctor.evidence import RECORDED, VLLM
from tests.doctor.logs import ALONE, died
from tests.fake_engine.answers import whole
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway, free_port

ROOT = Path(__file__).parents[2]
# Nobody listens on port 1: the hub is never asked in earnest.
OFFLINE = {"HF_ENDPOINT": "http://127.0.0.1:1", "PYTHONPATH": str(ROOT)}
# What the machine that runs the tests may lack.
OF_HOST = {"disk", "swap", "pids", "open-files", "clock"}
CONFIG = """\
[[models]]
id = "fake-model"
engines = ["{}"]
max_inflight = 8
"""


@dataclass(frozen=True)
class Told:
    """Exit code and output of one run; as JSON, the findings by check."""

    code: int
    out: str
    err: str

    @property
    def findings(self) -> dict[str, list[dict[str, Any]]]:
        """Of a run with --json."""
        found: dict[str, list[dict[str, Any]]] = {}
        for finding in json.loads(self.out):
            assert finding.keys() == {"check", "severity", "title", "evidence", "mend"}
            found.setdefault(finding["check"], []).append(finding)
        return found

    def errors(self, *, of_host: bool = False) -> set[str]:
        """The checks that found an error; of this machine itself only if that is asked for."""
        found = {check for check, told in self.findings.items() if told[0]["severity"] == "error"}
        return found if of_host else found - OF_HOST

    def severity(self, check: str) -> str:
        """Of its first finding."""
        worst: str = self.findings[check][0]["severity"]
        return worst


def doctor(folder: Path, environ: Mapping[str, str], *arguments: str) -> Told:
    """Runs it in a folder with this environment alone; whoever listens on our usual ports is not met."""
    listeners = () if "--ops" in arguments else ("GATEWAY_PORT", "GATEWAY_OPS_PORT")
    ports = {name: str(free_port()) for name in listeners}
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "doctor", *arguments],
        cwd=folder, env={**ports, **environ, **OFFLINE}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return Told(done.returncode, done.stdout, done.stderr)


async def test_before_a_gateway_and_an_engine_that_run(tmp_path: Path, fake_engine: FakeEngine) -> None:
    """Their counters are read twice, and nothing is found that is not so; code 0."""
    exposed = whole(VLLM.read_bytes(), content_type="text/plain")
    await fake_engine.script([{"send": exposed.decode()}], path="/metrics")
    profile = tmp_path / "cpu.yaml"
    profile.write_text(
        "model: HuggingFaceTB/SmolLM2-135M-Instruct\nserved-model-name: fake-model\nmax-num-seqs: 8\n"
        "enable-auto-tool-choice: true\ntool-call-parser: hermes\n"
    )
    async with Gateway(tmp_path / "gateway", config=CONFIG.format(fake_engine.url)) as gateway:
        told = await asyncio.to_thread(
            doctor, tmp_path, gateway.environ, "--json", "--seconds", "0", "--profile", str(profile)
        )
    assert told.findings.keys() == {check.name for check in CHECKS}
    running = (
        "ready",
        "key-store",
        "engine",
        "engine-models",
        "engine-hung",
        "errors",
        "limits",
        "prefix-cache",
    )
    assert {check: told.severity(check) for check in running} == dict.fromkeys(running, "ok")
    static = ("data-dir", "profile", "parsers", "served-model-name", "max-inflight", "ports", "keep-alive")
    assert {check: told.severity(check) for check in static} == dict.fromkeys(static, "ok")
    assert told.errors() == set()
    assert told.code == (1 if told.errors(of_host=True) else 0)


async def test_a_gateway_whose_settings_are_elsewhere(tmp_path: Path, fake_engine: FakeEngine) -> None:
    """One that is named and answers needs none in this shell."""
    async with Gateway(tmp_path / "gateway", config=CONFIG.format(fake_engine.url)) as gateway:
        named = ("--json", "--ops", gateway.ops, "--seconds", "0")
        told = await asyncio.to_thread(doctor, tmp_path, {"PATH": str(tmp_path)}, *named)
    assert (told.severity("ready"), told.severity("key-store")) == ("ok", "ok")
    assert (told.severity("settings"), "other settings" in told.findings["settings"][0]["evidence"]) == (
        "skipped",
        True,
    )


async def test_in_the_local_mode(tmp_path: Path, fake_engine: FakeEngine) -> None:
    """In a checkout where `make up` runs without Docker: its settings, its ports, its engine's log."""
    async with Gateway(tmp_path / "gateway", config=CONFIG.format(fake_engine.url)) as gateway:
        for part in ("run", "log"):
            (tmp_path / "data" / part).mkdir(parents=True)
        ports = {"gateway": gateway.url, "ops": gateway.ops}
        numbers = {name: int(url.rpartition(":")[2]) for name, url in ports.items()}
        (tmp_path / "data" / "run" / "ports.json").write_text(json.dumps(numbers))
        shutil.copy(gateway.config_file, tmp_path / "data")
        shutil.copy(RECORDED / "engine-well.log", tmp_path / "data" / "log" / "engine.log")
        told = await asyncio.to_thread(doctor, tmp_path, {"PATH": str(tmp_path)}, "--json", "--seconds", "0")
    well = ("ready", "engine", "ports", "engine-log", "profile", "data-dir")
    assert {check: told.severity(check) for check in well} == dict.fromkeys(well, "ok")
    # The log's engine serves another model than the settings ask for.
    assert told.severity("served-model-name") == "error"


async def test_an_engine_that_is_gone(tmp_path: Path, fake_engine: FakeEngine) -> None:
    """Where the gateway runs, an engine that does not answer is an error; code 1, in words too."""
    async with Gateway(tmp_path / "gateway", config=CONFIG.format(fake_engine.url)) as gateway:
        await fake_engine.listen(False)
        told = await asyncio.to_thread(doctor, tmp_path, gateway.environ, "--running", "--seconds", "0")
    assert told.code == 1
    assert f"error    engine: The engine {fake_engine.url} does not answer" in told.out
    assert "connection refused" in told.out


def test_before_nothing_at_all(tmp_path: Path) -> None:
    """No docker, no GPU, no gateway, no engine: all checks say something, one error says what to do first."""
    told = doctor(tmp_path, {"PATH": str(tmp_path)}, "--json")
    assert told.findings.keys() == {check.name for check in CHECKS}
    assert (told.code, told.severity("settings")) == (1, "error")
    assert "set GATEWAY_UPSTREAM_URL" in told.findings["settings"][0]["mend"]
    assert [told.severity(check) for check in ("docker", "driver")] == ["hint", "hint"]
    for check in ("ready", "engine", "concurrency", "gpu-memory", "profile", "alerts"):
        [finding] = told.findings[check]
        assert finding["severity"] == "skipped"
        assert finding["evidence"].startswith("not looked at, because ")
    assert told.err == ""


def test_what_is_expected_to_run_and_does_not(tmp_path: Path) -> None:
    """With --running its absence is an error, and only what runs is looked at."""
    ports = {name: str(free_port()) for name in ("GATEWAY_PORT", "GATEWAY_OPS_PORT")}
    engine = {"PATH": str(tmp_path), "GATEWAY_UPSTREAM_URL": "http://127.0.0.1:1", **ports}
    told = doctor(tmp_path, engine, "--json", "--running", "--ops", "http://127.0.0.1:1")
    assert told.findings.keys() == {check.name for check in CHECKS if check.stage == "running"}
    assert (told.code, told.severity("ready"), told.severity("engine")) == (1, "error", "error")
    before = doctor(tmp_path, engine, "--json", "--before")
    assert before.findings.keys() == {check.name for check in CHECKS if check.stage == "before"}
    assert (before.errors(), before.severity("settings"), before.severity("ports")) == (set(), "ok", "ok")


async def test_an_engine_without_a_gateway(tmp_path: Path, fake_engine: FakeEngine) -> None:
    """One that is named is looked at alone: there need be no gateway."""
    named = ("--running", "--engine", f"{fake_engine.url}/v1", "--seconds", "0")
    told = await asyncio.to_thread(doctor, tmp_path, {"PATH": str(tmp_path)}, "--json", *named)
    assert (told.errors(), told.severity("engine"), told.severity("ready")) == (set(), "ok", "skipped")


def test_a_log_is_read(tmp_path: Path) -> None:
    """What killed the engine, with its mend in a line of its own."""
    (tmp_path / "vllm.log").write_text(died(ALONE))
    told = doctor(tmp_path, {"PATH": str(tmp_path)}, "--running", "--engine-log", "vllm.log")
    lines = told.out.splitlines()
    at = next(number for number, line in enumerate(lines) if "engine-log: Out of memory on a request" in line)
    assert lines[at + 2].startswith("         mend: max-num-batched-tokens: 1024; if it comes again")


BAD: dict[str, str] = {
    "model": "model: meta-llama/Llama-3.1-8B-Instruct\nswap-space: 4\n",
    "no YAML": "model: [",
    "no file": "",
}


@pytest.mark.parametrize("name", BAD)
def test_profiles_that_will_not_do(tmp_path: Path, name: str) -> None:
    """A refused flag is an error, and a GPU is asked for; a file that cannot be read is said to be none."""
    file = tmp_path / "mine.yaml"
    if BAD[name]:
        file.write_text(BAD[name])
    told = doctor(
        tmp_path, {"PATH": str(tmp_path), "HOME": str(tmp_path)}, "--json", "--before", "--profile", str(file)
    )
    assert told.code == 1
    if name == "model":
        assert [told.severity(check) for check in ("profile", "driver", "hf-token")] == [
            "error",
            "error",
            "warning",
        ]
    else:
        assert told.severity("profile") == "skipped"


def test_on_a_box(tmp_path: Path) -> None:
    """In a checkout that was set up: .env, Docker and the card are looked at, and what lacks is an error."""
    box = Box(tmp_path)
    box.has_gpus("NVIDIA GeForce RTX 5090, 32607, 500, 570.124.06")
    box.set_up()
    box.runs("gateway", "caddy")
    asked = {"resources": {"reservations": {"devices": [{"capabilities": ["gpu"], "count": 1}]}}}
    box.say("stack.json", {"name": "box", "services": {"vllm": {"image": "vllm", "deploy": asked}}})
    told = doctor(box.folder, {**box.environ(), "HOME": str(tmp_path)}, "--json", "--seconds", "0")
    assert told.severity("docker") == told.severity("compose") == told.severity("gpu-in-docker") == "ok"
    assert told.severity("driver") == "error"
    assert told.severity("profile") == told.severity("served-model-name") == told.severity("parsers") == "ok"
    assert told.severity("secrets") == told.severity("containers") == told.severity("published-ports") == "ok"
    assert told.findings["data-dir"][0]["mend"] == "docker compose exec gateway gateway doctor --before"
    assert told.code == 1


def test_a_box_whose_engine_is_open_to_all(tmp_path: Path) -> None:
    """By what Compose makes of the files."""
    box = Box(tmp_path)
    box.set_up()
    published = [{"target": 8000, "published": "8000", "host_ip": "192.168.1.5"}]
    box.say("stack.json", {"name": "box", "services": {"vllm": {"image": "vllm", "ports": published}}})
    told = doctor(box.folder, {**box.environ(), "HOME": str(tmp_path)}, "--json", "--before")
    [finding] = told.findings["published-ports"]
    assert (finding["severity"], "127.0.0.1:8000:8000" in finding["mend"]) == ("error", True)


def test_what_the_planner_knows(tmp_path: Path) -> None:
    """Sizes and parsers are those of `gateway plan`."""
    file = tmp_path / "mine.yaml"
    file.write_text("model: openai/gpt-oss-120b\n")
    named = ("--json", "--before", "--profile", str(file))
    told = doctor(tmp_path, {"PATH": str(tmp_path), "HOME": str(tmp_path)}, *named)
    assert "65 GB of weights (by the catalogue)" in told.findings["disk"][0]["evidence"]
    assert "tool-call-parser: openai" in told.findings["parsers"][0]["mend"]


def test_every_option_is_documented() -> None:
    """In docs/doctor.md."""
    command: Any = typer.main.get_command(app)
    options = {name for parameter in command.commands["doctor"].params for name in parameter.opts}
    page = (ROOT / "docs" / "doctor.md").read_text()
    assert [option for option in options if f"`{option}" not in page] == []
