"""`gateway keys` as an operator types it: real processes on a real data directory."""

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import InvalidApiKey
from gateway.keys import Directory
from gateway.metrics import Metrics
from gateway.store import Store
from tests.keys.waiting import until

UNKNOWN = "abcdefghijkl"


@dataclass(frozen=True)
class Shell:
    """A working directory with its data directory, and nothing of ours in the environment but that."""

    folder: Path

    @property
    def data_dir(self) -> Path:
        """Where the keys are kept."""
        return self.folder / "data"

    def run(self, *words: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        """`gateway keys …`, whatever its exit code."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
        return subprocess.run(
            [sys.executable, "-m", "gateway", "keys", *words],
            env={**inherited, "PYTHONPATH": os.pathsep.join(sys.path), **environ},
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def count(self) -> int:
        """How many keys the database holds."""
        with closing(sqlite3.connect(self.data_dir / "gateway.db")) as connection:
            found: tuple[int] = connection.execute("SELECT count(*) FROM keys").fetchone()
            return found[0]

    def json(self, *words: str) -> Any:
        """What `gateway keys … --json` prints."""
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A machine on which no key was ever made."""
    return Shell(tmp_path)


def test_the_first_key_of_a_folder_says_which_database_it_is_in(shell: Shell) -> None:
    """Whoever stands in a wrong folder would else wonder why the gateway answers 401."""
    first, second = shell.run("create", "--name", "first"), shell.run("create", "--name", "second")
    assert f"{shell.data_dir / 'gateway.db'} was made for it" in first.stderr
    assert "was made for it" not in second.stderr
    assert len(first.stdout.split()) == len(second.stdout.split()) == 1


def test_a_key_lives_from_creation_to_revocation(shell: Shell) -> None:
    """Every verb, with the id in both spellings and all fields under their names."""
    options = (
        ("--name", "alice", "--rpm", "30", "--tpm", "unlimited", "--max-parallel", "4"),
        ("--tokens-per-day", "none", "--tokens-per-month", "1000000", "--models", "a, b:thinking"),
        ("--expires", "2099-01-31T00:00:00Z", "--priority", "batch", "--weight", "2.5"),
        ("--cache-group", "team", "--defaults", '{"top_p": 0.9}', "--force", '{"n": 1}'),
        ("--metadata", '{"team": "ü"}'),
    )
    made = shell.json("create", *(word for group in options for word in group))
    assert made["key"].startswith(f"sk-gw-{made['id']}-")
    assert {name: value for name, value in made.items() if name not in ("id", "key", "created_at")} == {
        "name": "alice",
        "rpm": 30,
        "tpm": "unlimited",
        "max_parallel": 4,
        "tokens_per_day": None,
        "tokens_per_month": 1000000,
        "models": ["a", "b:thinking"],
        "priority": "batch",
        "weight": 2.5,
        "cache_group": "team",
        "expires_at": "2099-01-31T00:00:00Z",
        "defaults": {"top_p": 0.9},
        "force": {"n": 1},
        "metadata": {"team": "ü"},
        "last_used_at": None,
        "revoked_at": None,
    }
    shown = shell.json("show", f"sk-gw-{made['id']}")
    assert {"key": made["key"], **shown} == made
    unset = ("--rpm", "none", "--models", "none", "--expires", "none", "--force", "none", "--weight", "none")
    changed = shell.json("update", made["id"], *unset, "--max-parallel", "unlimited")
    expected: dict[str, Any] = {"rpm": None, "models": None, "expires_at": None, "force": {}, "weight": 1.0}
    assert changed == {**shown, **expected, "max_parallel": "unlimited"}
    rotated = shell.json("rotate", made["id"], "--overlap", "24h")
    assert rotated["id"] == made["id"]
    assert rotated["key"] != made["key"]
    assert shell.json("revoke", made["id"])["revoked_at"] is not None
    assert [key["id"] for key in shell.json("list")] == [made["id"]]


def test_people_read_the_key_on_stdout_and_the_rest_beside_it(shell: Shell) -> None:
    """`KEY=$(gateway keys create …)` holds the key alone; no later command prints it."""
    made = shell.run("create", "--name", "[bold]alice")
    token = made.stdout.strip()
    found = re.fullmatch(r"sk-gw-([a-z0-9]{12})-[A-Za-z0-9]{43}", token)
    assert found is not None
    assert "cannot be shown again" in made.stderr
    listed = shell.run("list").stdout
    shown = shell.run("show", token).stdout
    assert "[bold]alice" in listed
    assert re.search(rf"^id +{found[1]}$", shown, re.MULTILINE)
    for printed in (listed, shown, shell.run("revoke", found[1]).stdout):
        assert found[1] in printed
        assert token[-43:] not in printed
    assert "revoked" in shell.run("list").stdout


def test_a_rotation_tells_what_becomes_of_the_old_key(shell: Shell) -> None:
    """Beside the new key, which is alone on stdout; the end is no later than the key's own."""
    made = shell.json("create", "--name", "alice")
    at_once = shell.run("rotate", made["id"])
    assert re.fullmatch(r"sk-gw-\S+\n", at_once.stdout)
    assert "The old key no longer works." in at_once.stderr
    before = datetime.now(UTC).replace(microsecond=0)
    later = shell.run("rotate", made["id"], "--overlap", "24h")
    found = re.search(r"The old key works until (\S+Z)\.", later.stderr)
    assert found is not None
    ends = datetime.fromisoformat(found[1])
    assert before <= ends - timedelta(hours=24) <= datetime.now(UTC)
    shell.json("update", made["id"], "--expires", "2099-01-31T00:00:00Z")
    assert "until 2099-01-31T00:00:00Z." in shell.run("rotate", made["id"], "--overlap", "5200w").stderr


def test_what_is_kept_and_not_yet_enforced_is_told(shell: Shell) -> None:
    """In a line of its own beside the key; what is enforced, or unset, is not among it."""
    made = shell.run("create", "--name", "a", "--rpm", "3", "--weight", "2", "--priority", "batch", "--json")
    assert made.stderr.endswith("\nkept, and not yet enforced by this version: priority, weight\n")
    key_id = json.loads(made.stdout)["id"]
    changed = shell.run("update", key_id, "--weight", "none", "--priority", "batch")
    assert changed.stderr == "kept, and not yet enforced by this version: priority\n"
    assert shell.run("update", key_id, "--max-parallel", "2").stderr == ""


def test_a_key_that_clients_have_is_taken_over_once(shell: Shell) -> None:
    """From the command line or, unseen by other processes, from stdin."""
    old = "an old key: 0123456789"
    made = shell.run("create", "--name", "old", "--key", "-", "--json", stdin=f"{old}\n")
    assert json.loads(made.stdout)["key"] == old
    again = shell.run("create", "--name", "again", "--key", old)
    assert (again.returncode, again.stdout) == (1, "")
    assert json.loads(made.stdout)["id"] in again.stderr
    assert old not in again.stderr


async def test_a_running_server_follows_within_a_second(shell: Shell) -> None:
    """Created, the key works; revoked, it is refused: counted from the end of the command."""
    async with Store(shell.data_dir) as store, Directory(store, Metrics()) as directory:

        def opens(token: str) -> bool:
            try:
                directory.find(token.encode())
            except InvalidApiKey:
                return False
            return True

        made = await asyncio.to_thread(shell.json, "create", "--name", "a")
        await until(lambda: opens(made["key"]), 1)
        await asyncio.to_thread(shell.json, "revoke", made["id"])
        await until(lambda: not opens(made["key"]), 1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("create", "--name", "a", "--rpm", "0"), "rpm must be a whole number of 1 or more"),
        (("create", "--name", "a", "--tpm", "1e5"), "tpm must be a whole number of 1 or more"),
        (("create", "--name", "a", "--defaults", "{"), "defaults: Not valid JSON"),
        (("create", "--name", "a", "--force", "[]"), "force must be a JSON object"),
        (("create", "--name", "a", "--expires", "soon"), "expires_at must be a duration such as '30d'"),
        (("create", "--name", "a", "--models", ""), "models must list model ids"),
        (("create", "--name", "a", "--key", "short"), "key must be 20 or more printable ASCII"),
    ],
)
async def test_a_bad_option_is_refused_and_nothing_created(
    shell: Shell, words: tuple[str, ...], told: str
) -> None:
    """One line on stderr that names the field and the mend; exit code 1; no key."""
    async with Store(shell.data_dir):
        assert shell.count() == 0
    refused = shell.run(*words)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"gateway: {told}")
    assert refused.stderr.count("\n") == 1
    assert shell.count() == 0


def test_an_unknown_key_is_told(shell: Shell) -> None:
    """Exit code 1 and one line, on a verb that reads and on one that writes."""
    shell.run("create", "--name", "a")
    for words in (("show", UNKNOWN), ("update", UNKNOWN, "--rpm", "1")):
        refused = shell.run(*words)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr == f"gateway: There is no key {UNKNOWN}. List the keys to see their ids.\n"


def test_the_data_directory_comes_from_the_option_the_environment_or_the_file(shell: Shell) -> None:
    """In this order; the default is ./data. A broken file stops nobody who names the directory."""
    shell.folder.joinpath("gateway.toml").write_text('data_dir = "from-file"\n')
    shell.run("create", "--name", "a")
    shell.run("create", "--name", "a", GATEWAY_DATA_DIR="from-env")
    shell.run("create", "--name", "a", "--data-dir", "from-option", GATEWAY_DATA_DIR="from-env-2")
    shell.folder.joinpath("gateway.toml").write_text("broken")
    refused = shell.run("create", "--name", "a")
    shell.run("create", "--name", "a", "--data-dir", "despite-file")
    assert refused.returncode == 1
    assert "--data-dir" in refused.stderr
    made = {path.parent.name for path in shell.folder.glob("*/gateway.db")}
    assert made == {"from-file", "from-env", "from-option", "despite-file"}


def test_a_wrong_directory_is_told(shell: Shell) -> None:
    """Not an empty list."""
    refused = shell.run("list")
    assert refused.returncode == 1
    assert f"There is no key database at {shell.data_dir}/gateway.db" in refused.stderr


def test_help_needs_none_of_the_databases_libraries() -> None:
    """`gateway --help` and completion answer at once."""
    check = "import sys, gateway.cli; assert not {'sqlalchemy', 'aiosqlite', 'alembic'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", check], check=True, timeout=120)
