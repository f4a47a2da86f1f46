"""The gateway alone: its wheel in an empty environment, before an engine that already runs."""

import asyncio
import json
import os
import pty
import subprocess
import sys
import venv
from pathlib import Path

import httpx
import pytest

from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway, free_port, http_client, wait_for

ROOT = Path(__file__).parent.parent.parent
# Without this the checkout's own package would be found before the wheel's.
ALONE = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": ""}


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment that holds the built wheel and what it asks for, nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        ".",
    )
    [wheel] = folder.glob("vllm_gateway-*.whl")
    venv.create(folder / "venv")
    programs = folder / "venv" / "bin"
    run(sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "-q", str(wheel))
    where = [str(programs / "python"), "-P", "-c", "import gateway; print(gateway.__file__)"]
    found = subprocess.run(where, env=ALONE, capture_output=True, text=True, check=True)
    assert str(folder) in found.stdout
    return programs


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_plans_by_name(installed: Path) -> None:
    """The catalogue is in the wheel: no network, no folder."""
    command = [str(installed / "gateway"), "plan", "qwen3-8b-awq", "--kv-cache-bytes", "6GiB", "--json"]
    done = subprocess.run(command, env=ALONE, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["fits"] is True


async def test_it_serves_before_an_engine_that_already_runs(
    installed: Path, tmp_path: Path, fake_engine: FakeEngine
) -> None:
    """One variable, no file: the models are the engine's, and a call is answered."""
    environ = {"PYTHONSAFEPATH": "1", "PYTHONPATH": "", "GATEWAY_UPSTREAM_URL": f"{fake_engine.url}/v1/"}
    async with Gateway(tmp_path, python=str(installed / "python"), **environ) as gateway:
        async with httpx.AsyncClient(
            base_url=gateway.url, headers={"x-api-key": gateway.key}, timeout=60
        ) as http:
            models = (await http.get("/v1/models")).json()["data"]
            assert [model["id"] for model in models] == ["fake-model"]
            messages = [{"role": "user", "content": "hello"}]
            answer = await http.post("/v1/chat/completions", json={"messages": messages})
            assert answer.json()["choices"]
        assert await gateway.stop() == 0


async def test_on_a_terminal_it_makes_a_first_key_that_works(
    installed: Path, tmp_path: Path, fake_engine: FakeEngine
) -> None:
    """A newcomer sees a key and needs no second command; a second start makes no second one."""
    port = free_port()
    environ = ALONE | {
        "GATEWAY_UPSTREAM_URL": fake_engine.url,
        "GATEWAY_DATA_DIR": str(tmp_path / "data"),
        "GATEWAY_PORT": str(port),
        "GATEWAY_OPS_PORT": str(free_port()),
    }
    shown = await on_terminal(installed, environ, tmp_path, port)
    key = next(word for word in shown.split() if word.startswith("sk-gw-"))
    assert "first API key" in shown
    assert key not in await on_terminal(installed, environ, tmp_path, port)


async def on_terminal(programs: Path, environ: dict[str, str], folder: Path, port: int) -> str:
    """What `gateway serve` shows on a terminal until it answers; the key shown is tried."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        str(programs / "gateway"),
        "serve",
        env=environ,
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        await wait_for(lambda: answers(port))
        shown = os.read(ours, 65_536).decode(errors="replace")
        for word in shown.split():
            if word.startswith("sk-gw-"):
                async with http_client() as http:
                    url = f"http://127.0.0.1:{port}/v1/models"
                    assert (await http.get(url, headers={"x-api-key": word})).status_code == 200
        return shown
    finally:
        process.terminate()
        await process.wait()
        os.close(ours)


async def answers(port: int) -> bool:
    async with http_client() as http:
        try:
            return (await http.get(f"http://127.0.0.1:{port}/healthz")).status_code == 200
        except httpx.TransportError:
            return False


def test_the_command_tells_its_version(installed: Path) -> None:
    """`gateway --version` is the wheel's."""
    done = subprocess.run([installed / "gateway", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "vllm-gateway 0.1.0"
