"""`gateway usage` as an operator types it: real processes on a real data directory."""

import asyncio
import csv
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

import pytest

from gateway.keys import Keyring
from gateway.store import Store, UsageStore
from tests.store.usage_rows import row

BEGIN = datetime(2026, 10, 24, 22, tzinfo=UTC)  # a Sunday's beginning in Berlin, with 25 hours
COUNTS = (
    "requests", "errors", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens",
    "estimated_tokens",
)  # fmt: skip
PERIOD = ("--since", "2026-10-25", "--until", "2026-10-27")
UNKNOWN = "zzzzzzzzzzzz"
PROMPTS = ("prompt", "60,493,783", " 10", "60,493,793")  # a column of the table, aligned on its right


class Shell:
    """A working directory with its data directory, and nothing of ours in the environment but a zone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.alice = self.bob = ""

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """`gateway usage …`, whatever its exit code. A variable without a value is not there at all."""
        return self._run(words, subprocess.PIPE, environ)

    def run_into(self, out: TextIO, *words: str) -> subprocess.CompletedProcess[str]:
        """The same, what it prints going there."""
        return self._run(words, out, {})

    def _run(
        self, words: tuple[str, ...], out: int | TextIO, environ: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
        own = {
            "GATEWAY_BUDGETS__TIMEZONE": "Europe/Berlin",
            "PYTHONPATH": os.pathsep.join(sys.path),
            **environ,
        }
        return subprocess.run(
            [sys.executable, "-m", "gateway", "usage", *words],
            env=inherited | {name: value for name, value in own.items() if value},
            cwd=self.folder,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )

    def json(self, *words: str) -> list[dict[str, Any]]:
        """What `gateway usage … --json` prints."""
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        return rows

    async def fill(self) -> None:
        """Two keys, of which one calls each hour of three days and the other once."""
        async with Store(self.data_dir) as keys:
            self.alice = (await Keyring(keys).create({"name": "[bold]alice"})).key.id
            self.bob = (await Keyring(keys).create({"name": "bob"})).key.id
        often = [
            row(BEGIN + timedelta(hours=hour), key=self.alice, prompt_tokens=1_234_567, cached_tokens=7)
            for hour in range(72)
        ]
        failed = {"reason": "engine_error", "status": 502, "model": "n", "estimated": True}
        async with UsageStore(self.data_dir) as usage:
            await usage.write([*often, row(BEGIN + timedelta(minutes=90), key=self.bob, **failed)])


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A machine on which something was used."""
    made = Shell(tmp_path_factory.mktemp("usage"))
    asyncio.run(made.fill())
    return made


def test_programs_read_it_as_json_and_csv(shell: Shell) -> None:
    """The same rows in both: the group's name and exactly these counts; a day has 25 hours where it has."""
    by_key = shell.json(*PERIOD)
    alice = {"key": shell.alice, "requests": 49, "errors": 0, "prompt_tokens": 49 * 1_234_567}
    assert by_key[0] == {
        **alice, "cached_tokens": 343, "completion_tokens": 245, "reasoning_tokens": 0, "estimated_tokens": 0
    }  # fmt: skip
    assert list(by_key[1].values()) == [shell.bob, 1, 1, 10, 0, 5, 0, 15]
    printed = shell.run(*PERIOD, "--by", "day", "--csv").stdout.splitlines()
    days = list(csv.DictReader(printed))
    assert printed[0] == ",".join(("day", *COUNTS))
    assert [(day["day"], day["requests"]) for day in days] == [("2026-10-25", "26"), ("2026-10-26", "24")]
    twice = shell.json("--by", "hour", "--since", "2026-10-25T00:00:00Z", "--until", "2026-10-25T02:00:00Z")
    assert [hour["hour"] for hour in twice] == ["2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00"]


def test_people_read_a_table(shell: Shell) -> None:
    """Names beside ids, numbers that can be read, totals, and which period it is about."""
    done = shell.run(*PERIOD)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == [
        "key", "name", "requests", "errors", "prompt", "cached", "completion", "reasoning", "estimated"
    ]  # fmt: skip
    assert lines[1].split() == [shell.alice, "[bold]alice", "49", "0", "60,493,783", "343", "245", "0", "0"]
    assert lines[3].split() == ["total", "50", "1", "60,493,793", "343", "250", "0", "15"]
    assert len({line.index(end) + len(end) for line, end in zip(lines[:4], PROMPTS, strict=True)}) == 1
    assert lines[4].startswith("From 2026-10-25 00:00 to 2026-10-27 00:00 (Europe/Berlin)")


def test_a_narrow_terminal_cuts_nothing(shell: Shell) -> None:
    """It breaks the lines: a figure with its end missing is worse."""
    narrow = {"COLUMNS": "40", "FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm"}
    done = shell.run(*PERIOD, **narrow)
    for whole in (shell.alice, "[bold]alice", "60,493,783", "estimated"):
        assert whole in done.stdout


def test_the_ends_of_the_calendar_are_told(shell: Shell) -> None:
    """There a time zone has no time."""
    done = shell.run("--since", "0001-01-02", "--until", "9999-12-31T23:59:59Z")
    assert done.returncode == 0, done.stderr
    assert "to 9999-12-31 23:59 (Europe/Berlin)" in done.stdout


def test_one_key_or_model_alone(shell: Shell) -> None:
    """The id in either spelling; what is unknown is an empty answer that says what to do."""
    assert [row["key"] for row in shell.json(*PERIOD, "--key", f"sk-gw-{shell.bob}")] == [shell.bob]
    assert [row["model"] for row in shell.json(*PERIOD, "--model", "n", "--by", "model")] == ["n"]
    unknown = shell.run(*PERIOD, "--key", UNKNOWN)
    assert unknown.returncode == 0
    assert unknown.stdout.startswith("Nothing was used.\nFrom 2026-10-25 00:00")
    assert f"There is no key {UNKNOWN}: gateway keys list" in unknown.stderr
    alias = shell.run(*PERIOD, "--model", "default", "--csv")
    assert alias.stdout.splitlines() == [",".join(("key", *COUNTS))]
    assert "gateway usage --by model" in alias.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--csv", "--json"), "choose one of --csv and --json"),
        (("--by", "week"), "--by must be one of key, model, route, day, hour, not 'week'."),
        (("--since", "yesterday"), "--since must be how long ago (7d, 24h, 30m), a date"),
        (("--model", "\udcff"), "--model must be a text in UTF-8."),
        (("--key", "sk-gw-secret-that-nobody-should-see"), "--key must be the id of a key"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(shell: Shell, words: tuple[str, ...], told: str) -> None:
    """It names the option and the mend; a secret in the wrong place is not repeated."""
    done = shell.run(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "nobody-should-see" not in done.stderr


def test_output_that_finds_no_room_is_told_in_a_line(shell: Shell) -> None:
    """No traceback, and an exit code for scripts."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = shell.run_into(full, "--json")
    assert (done.returncode, done.stderr) == (
        1, "gateway: the output cannot be written: No space left on device.\n",
    )  # fmt: skip


def test_it_needs_a_usage_database_and_no_other(shell: Shell, tmp_path: Path) -> None:
    """Without one it says what makes it; without the keys it shows their ids alone."""
    missing = shell.run("--data-dir", str(tmp_path / "wrong"))
    assert missing.returncode == 1
    assert f"There is no usage database at {tmp_path}/wrong/usage.db" in missing.stderr
    assert "gateway serve" in missing.stderr
    for file in shell.data_dir.glob("usage.db*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    alone = shell.run(*PERIOD, "--data-dir", str(tmp_path))
    assert alone.stdout.splitlines()[0].split()[:2] == ["key", "requests"]
    assert not (tmp_path / "gateway.db").exists()


def test_it_reads_while_somebody_writes(shell: Shell) -> None:
    """A transaction of the server that is open neither shows nor holds it up."""

    async def read_meanwhile() -> list[dict[str, Any]]:
        async with UsageStore(shell.data_dir) as store, store._database.writing() as (connection, _):
            await connection.exec_driver_sql("UPDATE usage_hours SET requests = requests + 1000")
            rows = await asyncio.to_thread(shell.json, *PERIOD)
            await connection.rollback()
        return rows

    assert [row["requests"] for row in asyncio.run(read_meanwhile())] == [49, 1]


def test_the_zone_is_read_where_the_local_mode_keeps_it(shell: Shell) -> None:
    """`data/gateway.toml`, if no other file is there: the server's days and the command's are one."""
    file = shell.data_dir / "gateway.toml"
    file.write_text('[budgets]\ntimezone = "Asia/Tehran"\n', encoding="utf-8")
    try:
        told = shell.run("--by", "day", GATEWAY_BUDGETS__TIMEZONE="")
    finally:
        file.unlink()
    assert "Asia/Tehran" in told.stdout
