"""Starting: quick and small, or one line for each thing that keeps it from starting."""

import os
import socket
from pathlib import Path

import pytest

from tests.callers import ask, chat
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway, free_port

START_CPU_SECONDS = 2.0
IDLE_BYTES = 100_000_000
LOOPBACK = "127.0.0.1"


def cpu_seconds(pid: int) -> float:
    """What a process has used of the CPU so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc, which only Linux has")
async def test_it_starts_quickly_and_idles_small(
    fake_engine: FakeEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CPU seconds up to the first answer, since a wall clock would measure the machine's other work, too."""
    gateway = Gateway(tmp_path, GATEWAY_UPSTREAM_URL=fake_engine.url)
    await gateway.start()
    try:
        used = cpu_seconds(gateway.process.pid)
        idle_bytes = await gateway.metric("process_resident_memory_bytes")
    finally:
        assert await gateway.stop() == 0
    with capsys.disabled():
        print(f"\n[start: {used:.2f} s of CPU, idle: {idle_bytes / 1e6:.0f} MB]", end=" ")  # noqa: T201
    assert used < START_CPU_SECONDS
    assert idle_bytes < IDLE_BYTES


@pytest.mark.parametrize("name", ["GATEWAY_PORT", "GATEWAY_OPS_PORT"])
async def test_a_port_that_is_taken_is_one_line_with_the_mend(tmp_path: Path, name: str) -> None:
    """Before anything is opened: no database is made, no trace is shown."""
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = str(taken.getsockname()[1])
        gateway = Gateway(tmp_path, GATEWAY_UPSTREAM_URL="http://127.0.0.1:9", **{name: port})
        assert await gateway.run_to_end() == 1
    [line] = gateway.log().splitlines()
    assert line.startswith(f"gateway: cannot listen on {LOOPBACK}:{port}: Address already in use")
    assert name in line
    assert not gateway.data_dir.exists()


async def test_a_bad_configuration_is_one_line_for_each_problem(tmp_path: Path) -> None:
    """All of them at once, each with its place."""
    config = '[server]\nmax_body_bites = 1\ndrain_seconds = "soon"\n\n[[models]]\nid = "m"\nengines = ["ftp://x"]\n'
    gateway = Gateway(tmp_path, config=config, GATEWAY_OPS_PORT="none")
    assert await gateway.run_to_end() == 1
    lines = gateway.log().splitlines()
    assert all(line.startswith("gateway: ") for line in lines)
    for place in ("max_body_bites", "drain_seconds", "engines", "GATEWAY_OPS_PORT"):
        assert sum(place in line for line in lines) == 1, (place, lines)
    assert len(lines) == 4


async def test_a_data_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    """It names the place."""
    (tmp_path / "data").write_text("a file")
    gateway = Gateway(tmp_path, GATEWAY_UPSTREAM_URL="http://127.0.0.1:9")
    assert await gateway.run_to_end() == 1
    [line] = gateway.log().splitlines()
    assert line.startswith("gateway: ")
    assert str(tmp_path / "data") in line


async def test_variables_that_are_none_are_named_and_the_start_goes_on(
    fake_engine: FakeEngine, tmp_path: Path
) -> None:
    """Container platforms set such. Off a terminal the log is JSON throughout and holds no key."""
    environ = {"GATEWAY_UPSTREAM_URL": fake_engine.url, "GATEWAY_NOPE": "secret-value", "GATEWAY_HOST": "::1"}
    gateway = Gateway(tmp_path, **environ)
    gateway.url = f"http://[::1]:{free_port()}"
    async with gateway:
        [warning] = gateway.events("setting_ignored")
        assert "GATEWAY_NOPE" in warning["warning"]
        assert "secret-value" not in gateway.log()
        assert "sk-gw-" not in gateway.log()
        [started] = gateway.events("started")
        assert started["public"] == gateway.url
        assert len(gateway.log().splitlines()) == len(
            [line for line in gateway.log().splitlines() if line[0] == "{"]
        )
        assert (await ask(gateway, chat(gateway.key))).status == 200
