"""The engine's health check: what vLLM answers, and that a success clears the notes of failed starts."""

import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.running import free_port

HEALTHY = Path(__file__).parent.parent.parent / "deploy" / "vllm" / "healthy.sh"


@dataclass
class Vllm:
    """Something on a port that answers /health with `status`."""

    port: int
    status: int = 200


@pytest.fixture
def vllm() -> Iterator[Vllm]:
    """It answers in a thread; 404 for any other path, as vLLM does."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(running.status if self.path == "/health" else 404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    running = Vllm(server.server_port)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield running
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass
class Check:
    """Runs with these programs on PATH alone."""

    path: Path
    notes: Path

    def run(self, port: int) -> "subprocess.CompletedProcess[str]":
        """Once, with a proxy in the environment that nobody answers at."""
        nowhere = "http://127.0.0.1:9"
        environ = {
            "PATH": str(self.path),
            "START_NOTES": str(self.notes),
            "HEALTH_PORT": str(port),
            "http_proxy": nowhere,
            "HTTP_PROXY": nowhere,
            "ALL_PROXY": nowhere,
        }
        argv = [str(self.path / "sh"), str(HEALTHY)]
        return subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(params=["curl", "python3"])
def check(tmp_path: Path, request: pytest.FixtureRequest) -> Check:
    """With curl, and without: what an image of vLLM has differs."""
    for name in ("sh", "rm", request.param):
        # The interpreter itself: what is called python3 may be a wrapper that needs more programs.
        found = os.path.realpath(sys.executable) if name == "python3" else shutil.which(name)
        if found is None:
            pytest.skip(f"no {name} here")
        (tmp_path / name).symlink_to(found)
    notes = tmp_path / "starts"
    notes.write_text("1\n2\n")
    return Check(tmp_path, notes)


def test_a_model_that_answers_clears_the_notes(check: Check, vllm: Vllm) -> None:
    """It may fail twice again before a start waits. Nothing is said, and no notes are no error."""
    for _ in range(2):
        done = check.run(vllm.port)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert not check.notes.exists()


def test_a_dead_engine_is_unhealthy_and_keeps_the_notes(check: Check, vllm: Vllm) -> None:
    """vLLM answers 503 then. Docker takes 0 and 1 alone."""
    vllm.status = 503
    done = check.run(vllm.port)
    assert done.returncode == 1
    assert "503" in done.stderr
    assert check.notes.read_text() == "1\n2\n"


def test_a_model_that_still_loads_is_unhealthy_and_keeps_the_notes(check: Check) -> None:
    """Nobody listens yet; `docker inspect` shows one line of it, no traceback."""
    done = check.run(free_port())
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert check.notes.read_text() == "1\n2\n"
