"""An upgrade saves first, and goes back to images and data from before if the new ones do not answer."""

import json

import pytest

from gateway.store import Store
from tests.box.boxes import SERVICES, Box
from tests.running import Gateway


@pytest.fixture
async def running(box: Box, shared_gateway: Gateway) -> Box:
    """A box that runs, with data in its volume and a real gateway where its door is."""
    port = shared_gateway.url.rpartition(":")[2]
    box.set_up("cpu", SITE="off", GATEWAY_PORT=port, GRAFANA_PORT="39300")
    box.runs(*SERVICES, port=int(port))
    box.places.first_key.write_text(f"{shared_gateway.key}\n")
    async with Store(box.volume("gateway-data")) as store:
        await store.secret()
    return box


def order(box: Box, *wanted: str) -> list[str]:
    """Which of some commands were run, in their order."""
    lines = [" ".join(call) for call in box.calls()]
    return [word for line in lines for word in wanted if word in line]


async def test_upgrade(running: Box) -> None:
    """Old images get a name, the new one is built, all is saved, then it starts and answers."""
    done = running.command("upgrade")
    assert done.returncode == 0, done.stderr
    steps = ["tag sha256:gateway", "compose build", "--entrypoint python3", "up -d --no-build --remove"]
    assert order(running, *steps) == steps
    assert len(list(running.places.backups.glob("*.tar.gz"))) == 1
    assert "All images were this checkout's already." in done.stdout
    assert "Base URL: http://127.0.0.1:" in done.stdout


async def test_way_back(running: Box) -> None:
    """What does not start is taken back: the old images, the data from before, and a word on both."""
    database = running.volume("gateway-data") / "gateway.db"
    async with Store(database.parent) as store:
        before = await store.secret()
    running.has(fails={"up -d --no-build --remove-orphans": "the new Caddyfile is not valid"})
    done = running.command("upgrade")
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert "make upgrade: the upgrade failed (docker compose up failed" in said
    assert "was taken back: the images from before run, with the data of" in said
    assert "mend it and make upgrade again, or git checkout the version from before" in said
    overlay = json.loads((running.places.backups / "rollback.json").read_text())
    assert overlay["services"]["gateway"] == {"image": "vllm-gateway-before:gateway", "pull_policy": "never"}
    steps = ["stop gateway", "--force-recreate", "tag vllm-gateway-before:gateway vllm-gateway:0.1.0"]
    assert order(running, *steps) == steps
    async with Store(database.parent) as store:
        assert await store.secret() == before


async def test_nothing_is_stopped_when_images_cannot_be_had(running: Box) -> None:
    """A build that fails ends it with the old stack as it was."""
    running.has(fails={"compose build": "no route to the index"})
    done = running.command("upgrade")
    assert done.returncode == 1
    assert "docker compose build gateway failed" in done.stderr
    assert order(running, "stop", "up -d") == []


async def test_not_running(box: Box) -> None:
    """Without a stack that runs there is nothing to go back to: it says make up."""
    box.set_up("cpu")
    assert "The stack is not running: make up first" in box.command("upgrade").stderr


async def test_local_mode(box: Box) -> None:
    """The local mode says what an upgrade is there."""
    assert "in the local mode make up is the upgrade" in box.command("upgrade", MODE="local").stderr
