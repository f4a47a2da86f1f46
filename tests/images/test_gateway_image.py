"""The gateway's image as far as its files tell; that it builds and runs is shown by the stack's tests."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.images.dockerfile import Instruction, instructions, last_stage, sent

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "deploy" / "gateway.Dockerfile").read_text()
IGNORE = (ROOT / ".dockerignore").read_text()
ALL = instructions(TEXT)
IMAGE = last_stage(ALL)


def of_image(name: str) -> Instruction:
    """The one instruction of that name in the last stage."""
    [found] = [each for each in IMAGE if each.name == name]
    return found


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """What pyproject.toml says of the project."""
    read: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return read


def test_no_frontend_has_to_be_pulled() -> None:
    """A syntax line would ask a registry even where all images are at hand."""
    assert not re.search(r"^#\s*(syntax|check)\s*=", TEXT, re.MULTILINE | re.IGNORECASE)


def test_the_base_is_one_patch_release() -> None:
    """Named once, so that both stages have the same Python."""
    [base] = [each.text for each in ALL if each.name == "ARG" and each.text.startswith("PYTHON=")]
    assert re.fullmatch(r"PYTHON=python:3\.\d+\.\d+-slim-[a-z]+(@sha256:[0-9a-f]{64})?", base)
    assert {each.words[0] for each in ALL if each.name == "FROM"} == {"${PYTHON}"}


def test_the_server_is_process_one_and_has_no_rights() -> None:
    """SIGTERM reaches it without a shell between, and the user is a number that is not 0."""
    assert of_image("ENTRYPOINT").listed + of_image("CMD").listed == ["gateway", "serve"]
    user, group = of_image("USER").text.split(":")
    assert int(user) > 0
    assert int(group) > 0
    [made] = [each.text for each in IMAGE if each.name == "RUN" and "/data" in each.text]
    assert f"install -d -o {user} -g {group} -m 0700 /data" in made


def test_the_health_check_is_a_program_that_is_there() -> None:
    """Without a shell and without curl; its own time-out is the shorter one."""
    check = of_image("HEALTHCHECK")
    assert check.text.startswith("CMD [")
    assert '["gateway-health"]' in check.text
    copied = [each.words for each in ALL if each.name == "COPY" and "--chmod=755" in each.flags]
    assert copied == [["deploy/gateway_health.py", "/opt/gateway/bin/gateway-health"]]
    script = (ROOT / "deploy" / "gateway_health.py").read_text()
    assert script.startswith("#!/opt/gateway/bin/python -IS\n")
    [patience] = re.findall(r"^TIMEOUT_SECONDS = (\d+)", script, re.MULTILINE)
    assert f"--timeout={int(patience) + 1}s" in check.flags


def test_labels_say_what_the_project_says(project: dict[str, Any]) -> None:
    """A registry and `docker inspect` show them; the version is raised in both places or in none."""
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', of_image("LABEL").text))
    assert labels == {
        "title": project["name"],
        "description": project["description"],
        "version": "${VERSION}",
        "licenses": project["license"],
        "source": project["urls"]["Documentation"].partition("/tree/")[0],
        "documentation": project["urls"]["Documentation"],
    }
    assert of_image("ARG").text == f"VERSION={project['version']}"
    assert (
        f"image: vllm-gateway:${{GATEWAY_VERSION:-{project['version']}}}"
        in (ROOT / "compose.yaml").read_text()
    )


def test_what_is_copied_exists_and_reaches_the_builder() -> None:
    """.dockerignore names what is sent, so that a new file must be named there too."""
    copied = [
        path
        for each in ALL
        if each.name == "COPY" and not has_flag(each, "--from=")
        for path in each.words[:-1]
    ]
    assert {"gateway", "pyproject.toml", "requirements.lock"} <= set(copied)
    for path in copied:
        assert (ROOT / path).exists(), path
        assert sent(IGNORE, path), path
    assert sent(IGNORE, "gateway/keys/store.py")


def has_flag(each: Instruction, begin: str) -> bool:
    return any(flag.startswith(begin) for flag in each.flags)


@pytest.mark.parametrize(
    "path",
    ["secrets/admin-token", ".env", "data/gateway.db", ".git/config",
     "gateway/__pycache__/app.cpython-313.pyc", "deploy/no-ca.pem", "tests/conftest.py", "something.new"],
)  # fmt: skip
def test_nothing_else_reaches_the_builder(path: str) -> None:
    """Secrets least of all; bytecode of another Python neither."""
    assert not sent(IGNORE, path)


def test_packages_are_those_of_the_lock() -> None:
    """One step looks at an index, and checks each file's hash; the others are cut off from it."""
    calls = re.findall(r"bin/pip (.*?)(?:&&|$)", " && ".join(each.text for each in ALL if each.name == "RUN"))
    fetching = [call for call in calls if call.startswith("download")]
    assert len(fetching) == 1
    assert "--require-hashes -r requirements.lock" in fetching[0]
    assert all("$offline" in call for call in calls if call not in fetching)
    assert len(calls) > len(fetching)
    assert "--no-index" in TEXT


def test_an_operators_roots_are_a_secret_of_the_build() -> None:
    """In no layer: mounted for one step of the first stage, and what is made of them lies in memory."""
    steps = [each for each in ALL if "ca-bundle" in each.text or has_flag(each, "--mount=type=secret")]
    assert [each.name for each in steps] == ["RUN"]
    assert steps[0] not in IMAGE
    assert "--mount=type=secret,id=ca-bundle" in steps[0].flags
    assert "--mount=type=tmpfs,target=/ca" in steps[0].flags
    assert set(re.findall(r"> *(\S+)", steps[0].text)) == {"/ca/bundle.pem;"}


def test_the_stand_in_for_no_roots_holds_none() -> None:
    """compose.yaml needs a file to exist; this one changes nothing."""
    assert "BEGIN" not in (ROOT / "deploy" / "no-ca.pem").read_text()
