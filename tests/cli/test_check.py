"""`gateway check`, `gateway serve` and `gateway --version`, as processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TIMEOUT_SECONDS = 120
VALID = """\
[[models]]
id = "qwen"
aliases = ["default"]
engines = ["http://127.0.0.1:8000/v1"]
[models.variants.thinking]
defaults = { chat_template_kwargs = { enable_thinking = true } }
"""
INVALID = """\
[limits.default]
rmp = 60

[[models]]
id = "qwen"
engines = ["http://user:geheim@127.0.0.1:8000"]
"""


def gateway(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder, with no settings but these."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    return subprocess.run(
        [sys.executable, "-m", "gateway", *arguments],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(Path(__file__).parents[2])} | environ,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def test_a_valid_file_is_summarised(tmp_path: Path) -> None:
    """Models with all their names, engines, listeners; code 0; no secret."""
    (tmp_path / "some.toml").write_text(VALID)

    done = gateway(tmp_path, "check", "some.toml", GATEWAY_ADMIN_TOKEN="geheim", GATEWAY_PROT="1")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "some.toml is valid.",
        "model qwen (also default, qwen:thinking) on http://127.0.0.1:8000",
        "public listener 127.0.0.1:8080",
        "ops listener 127.0.0.1:8081",
        "warning: GATEWAY_PROT is not a setting, ignored; did you mean GATEWAY_PORT?",
    ]


def test_problems_have_lines_and_mends(tmp_path: Path) -> None:
    """All of them; code 1; no traceback and no secret."""
    (tmp_path / "some.toml").write_text(INVALID)

    done = gateway(tmp_path, "check", "some.toml")

    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "some.toml, line 2: limits.default.rmp is no setting; did you mean limits.default.rpm?",
        "some.toml, line 6: models[0].engines[0] must not hold a user or password; "
        "set GATEWAY_UPSTREAM_API_KEY instead",
    ]


def test_defaults_that_no_engine_would_take_have_their_lines(tmp_path: Path) -> None:
    """Found here, and not by every caller."""
    (tmp_path / "some.toml").write_text(
        VALID + '[models.defaults]\ntemperature = "hot"\nchat_template_kwargs = []\n'
        "[models.force.chat_template_kwargs]\ntools = []\n"
    )

    done = gateway(tmp_path, "check", "some.toml")

    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        'some.toml, line 8: models[0].defaults.temperature must be a number; it is "hot"',
        "some.toml, line 9: models[0].defaults.chat_template_kwargs must be a table, "
        "as in { enable_thinking = false }",
        "some.toml, line 11: models[0].force.chat_template_kwargs.tools is used by the engine's own renderer "
        "and cannot be set: take it out",
    ]


def test_without_an_argument_it_checks_what_would_be_served(tmp_path: Path) -> None:
    """GATEWAY_CONFIG, or gateway.toml, or the environment alone."""
    (tmp_path / "gateway.toml").write_text(VALID)
    (tmp_path / "other.toml").write_text(INVALID)

    assert gateway(tmp_path, "check").stdout.startswith("gateway.toml is valid.")
    assert gateway(tmp_path, "check", GATEWAY_CONFIG="other.toml").returncode == 1
    elsewhere = tmp_path / "empty"
    elsewhere.mkdir()
    alone = gateway(elsewhere, "check", GATEWAY_UPSTREAM_URL="http://127.0.0.1:8000", GATEWAY_HOST="::1")
    assert alone.stdout.splitlines()[:3] == [
        "The environment is valid.",
        "models as http://127.0.0.1:8000 lists them",
        "public listener [::1]:8080",
    ]


@pytest.mark.parametrize("name", ["missing.toml", "."])
def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path, name: str) -> None:
    """One line that names it."""
    done = gateway(tmp_path, "check", name)

    assert done.returncode == 1
    [line] = done.stdout.splitlines()
    assert name in line
    assert "cannot be read" in line


def test_serve_refuses_the_same_configuration(tmp_path: Path) -> None:
    """On standard error, before anything listens."""
    (tmp_path / "gateway.toml").write_text(INVALID)

    done = gateway(tmp_path, "serve")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[0].startswith("gateway: gateway.toml, line 2: limits.default.rmp")
    assert "geheim" not in done.stderr


def test_the_version_is_printed(tmp_path: Path) -> None:
    """And nothing else is done."""
    done = gateway(tmp_path, "--version")

    assert done.returncode == 0
    assert done.stdout.startswith("vllm-gateway ")
