"""What programs, files and addresses of others write may be anything: a look ends, and raises nothing."""

import json
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gateway.doctor.checks import CHECKS, Check, diagnose
from gateway.doctor.evidence import Evidence
from gateway.doctor.exposition import parsed
from gateway.doctor.finding import Finding, Unseen, seen
from gateway.doctor.look import counters, files, host, machine, site, stack, web
from gateway.doctor.look.programs import SILENT, docker_in
from gateway.doctor.look.tried import tried
from gateway.doctor.look.web import Answer
from gateway.doctor.machine import Gpu
from tests.doctor.answers import docker

NONSENSE = ("", "null", "[1]", '"x"', "{{{", "[" * 100_000, '{"SecurityOptions": 5, "CDISpecDirs": 5}')


@pytest.mark.parametrize("said", NONSENSE)
def test_a_docker_that_answers_nonsense(said: str) -> None:
    """Whatever it writes with exit code 0, a look is had and nothing raises."""
    seen = machine.look(docker({"version": "27.0.1", "info": said, "compose version": "2.30"}))
    assert (seen.docker_trouble, seen.rootless, seen.data_root) == ("", False, None)
    assert isinstance(stack.compose(docker({"compose config": said})), Unseen)
    assert isinstance(web.through(docker({"compose exec": said}))("http://a"), Unseen)


def test_a_docker_that_hangs_is_asked_once(tmp_path: Path) -> None:
    """Eight questions of twenty seconds each would be no diagnosis."""
    asked = tmp_path / "asked"
    (tmp_path / "docker").write_text(f"#!/bin/sh\necho x >> {asked}\nexec sleep 600\n")
    (tmp_path / "docker").chmod(0o755)
    ask = docker_in(tmp_path, {"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert [ask("version", seconds=0.5).code, ask("info").code, ask("ps").code] == [SILENT] * 3
    assert asked.read_text() == "x\n"


def test_numbers_that_are_none() -> None:
    """A card whose memory is told as no number has none that can be compared."""
    assert machine.gpus("x, 1.2.3, .., 580.1") == (Gpu("x", None, None, (580, 1)),)


@pytest.mark.parametrize("told", ["", "MemTotal: x kB", "\x00\xff"])
def test_a_meminfo_that_says_nothing(tmp_path: Path, told: str) -> None:
    """It is said; no memory of zero is compared."""
    (tmp_path / "meminfo").write_text(told)
    assert isinstance(host.memory(tmp_path / "meminfo"), Unseen)


def test_files_that_do_not_end(tmp_path: Path) -> None:
    """A pipe, a folder: named and not read."""
    os.mkfifo(tmp_path / "pipe")
    assert isinstance(files.profile(tmp_path / "pipe"), Unseen)
    assert isinstance(files.log(tmp_path / "pipe"), Unseen)
    assert isinstance(files.profile(tmp_path), Unseen)
    assert files.secrets(tmp_path, {"GATEWAY_SECRET_FILE": str(tmp_path / "pipe")}) == ()
    assert files.line(tmp_path / "pipe") == ""
    os.mkfifo(tmp_path / ".env")
    assert site.find(tmp_path, {}).variables == {}
    piped = files.configuration(None, {"GATEWAY_SECRET_FILE": str(tmp_path / "pipe")})
    assert isinstance(piped, Unseen)
    assert isinstance(web.direct(ca_file=str(tmp_path / "pipe"))("https://127.0.0.1:1"), Unseen)


@pytest.mark.parametrize("kind", ["pipe", "device", "large"])
def test_settings_that_do_not_end(tmp_path: Path, kind: str) -> None:
    """They are not read: what is in the way is said."""
    file = {"device": Path("/dev/zero")}.get(kind, tmp_path / "gateway.toml")
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "large":
        file.write_bytes(b"#" * (2 << 20))
    read = seen(files.configuration(None, {"GATEWAY_CONFIG": str(file)}))
    assert read.settings is None
    assert str(file) in read.problems[0]


def test_a_look_that_breaks() -> None:
    """What nobody foresaw is one thing that was not looked at."""
    assert tried("it", lambda: 1) == 1
    broken = tried("it", lambda: json.loads("x"))
    assert isinstance(broken, Unseen)
    said = (
        r"it could not be read \(JSONDecodeError: Expecting value: [^,]+, "
        r"at gateway/doctor/look/tried\.py:\d+, at json/decoder\.py:\d+\)"
    )
    assert re.fullmatch(said, broken.why)


@pytest.mark.parametrize(
    "said",
    [
        *NONSENSE,
        '{"data": [1, "a", {"x": 1}], "reasons": {"a": 1}}',
        '{"data": {"alerts": [1, {"state": "firing"}], "result": [5]}}',
        '{"data": {"alerts": [], "result": [{"value": [0, "NaN"]}]}}',
    ],
)
def test_addresses_that_answer_nonsense(said: str) -> None:
    """No list of models, no alerts: said, and nothing raises."""

    def fetch(_: str) -> Answer:
        return Answer(200, said)

    read = counters.read("http://o", ["http://e"], fetch, fetch, 0, lambda _: None)
    assert isinstance(read.engines[0].models, Unseen)
    seen = counters.watched("http://p", fetch)
    assert isinstance(seen, Unseen) or (seen.firing, seen.most_running) == ((), None)


@pytest.mark.parametrize("key", ["sk-hidden\n", "sk-hidden\x00", "sk-hidden ", "sk-hidden-é"])
def test_a_key_that_no_header_may_have(key: str) -> None:
    """It is said, and never shown, neither whole nor in part."""
    found = web.direct({"authorization": f"Bearer {key}"})("http://127.0.0.1:1")
    assert isinstance(found, Unseen)
    assert "cannot be asked: the key for it" in found.why
    assert not re.search("hidden|é|xe9", found.why)


def test_an_address_that_is_none() -> None:
    """It does not answer: that is all."""
    read = counters.read("nonsense", ["http://[x"], web.direct(), web.direct(), 0, lambda _: None)
    assert isinstance(read.engines[0].models, Unseen)


def test_counters_that_are_no_numbers() -> None:
    """They are as if they were not there: a figure made of them would be none."""
    assert not parsed("a NaN\nb +Inf\n").has("a")
    assert parsed("a NaN\na 2\n").sum("a") == 2


def test_counters_of_one_endless_line() -> None:
    """Two hundred thousand labels would keep the parser busy for a minute."""
    line = "a{" + ",".join(f'l{number}="v"' for number in range(200_000)) + "} 1\n"
    with pytest.raises(ValueError, match="a line of more than"):
        parsed(f"b 2\n{line}")


@contextmanager
def address(*, pause: float) -> Iterator[str]:
    """One that never stops sending: much at once, or by drops."""

    class Sends(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"#" if pause else b"#" * (1 << 20))
                    time.sleep(pause)
            except OSError:
                return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Sends)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("pause", "seconds", "said"), [(0.0, 30.0, "more than 4 MiB"), (0.02, 1.0, "has not ended")]
)
def test_an_address_that_does_not_end(pause: float, seconds: float, said: str) -> None:
    """It is left."""
    with address(pause=pause) as url:
        found = web.direct(seconds=seconds)(url)
    assert isinstance(found, Unseen)
    assert said in found.why


def test_a_check_that_breaks_hides_no_other() -> None:
    """It says that it could not judge, and what whoever mends it needs: error, reason, line, no path."""

    def breaks(_: Evidence) -> Iterator[Finding]:
        raise ZeroDivisionError("by\nnothing")

    broken = Check("broken", "Broken", "before", breaks)
    told = diagnose(Evidence(), frozenset({"before"}), (broken, *CHECKS))
    found = {finding.check: finding for finding in told}
    assert found["broken"].severity == "skipped"
    said = r"not judged: .*\(ZeroDivisionError: by nothing, .*, at tests/doctor/test_nonsense\.py:\d+\)"
    assert re.fullmatch(said, found["broken"].evidence)
    assert str(Path(__file__).parents[2]) not in found["broken"].evidence
    assert len(found) > 20
