"""Secrets and their *_FILE twins: what is stripped, what is refused, and what is never shown."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from gateway.settings import SettingsError, load

ENGINE = {"GATEWAY_UPSTREAM_URL": "http://127.0.0.1:8000"}
VARIABLES = ["GATEWAY_UPSTREAM_API_KEY", "GATEWAY_ADMIN_TOKEN", "GATEWAY_SECRET"]
UNREADABLE = Path("/proc/self/mem")  # reading its start fails for every user, root too


def refusal(**environ: str) -> str:
    """The one problem of these variables."""
    with pytest.raises(SettingsError) as refused:
        load(None, {**ENGINE, **environ})
    [problem] = refused.value.problems
    return problem


@pytest.mark.parametrize("variable", VARIABLES)
def test_every_secret_can_come_from_a_file(tmp_path: Path, variable: str) -> None:
    """GATEWAY_X_FILE names the file that holds what GATEWAY_X would."""
    file = tmp_path / "secret"
    file.write_text("sk-a\n")

    loaded = load(None, {**ENGINE, f"{variable}_FILE": str(file)})

    secret = getattr(loaded.settings, variable.removeprefix("GATEWAY_").lower())
    assert isinstance(secret, SecretStr)
    assert secret.get_secret_value() == "sk-a"
    assert loaded.warnings == ()


@pytest.mark.parametrize(
    "content", [b" sk-a ", b"\n\nsk-a\t\n", b"\xef\xbb\xbfsk-a", b"\xef\xbb\xbf sk-a\r\n"]
)
def test_white_space_and_byte_order_mark_are_stripped_with_a_warning(tmp_path: Path, content: bytes) -> None:
    """They are how a secret that was pasted stops working; the warning names the file, not the content."""
    file = tmp_path / "secret"
    file.write_bytes(content)

    loaded = load(None, {**ENGINE, "GATEWAY_UPSTREAM_API_KEY_FILE": str(file)})

    assert loaded.settings.upstream_api_key == SecretStr("sk-a")
    [warning] = loaded.warnings
    assert str(file) in warning
    assert "sk-a" not in warning


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b""])
def test_the_newline_that_editors_add_is_no_warning(tmp_path: Path, ending: bytes) -> None:
    """A warning that cannot be avoided would be overlooked with the others."""
    file = tmp_path / "secret"
    file.write_bytes(b"sk-a" + ending)

    assert load(None, {**ENGINE, "GATEWAY_SECRET_FILE": str(file)}).warnings == ()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"sk-geheim\nsk-other", "holds several lines"),
        (b"sk-geheim\r\rsk-other", "holds several lines"),
        (b"sk-geheim\xff", "is not UTF-8"),
        ("sk-geheim-ü".encode(), "must be printable ASCII"),
        (b"sk-geheim\x00", "must be printable ASCII"),
        (b"geheim" * 20_000, "is larger than 65536 bytes"),
    ],
)
def test_a_file_that_is_no_secret_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    """The message names variable and file, never what is in it."""
    file = tmp_path / "secret"
    file.write_bytes(content)

    problem = refusal(GATEWAY_ADMIN_TOKEN_FILE=str(file))

    assert problem.startswith(f"GATEWAY_ADMIN_TOKEN_FILE: {file} {reason}")
    assert "geheim" not in problem


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Missing, or a directory, as Docker makes one for a mount without a source."""
    assert "cannot be read: No such file" in refusal(GATEWAY_SECRET_FILE=str(tmp_path / "missing"))
    assert "cannot be read: Is a directory" in refusal(GATEWAY_SECRET_FILE=str(tmp_path))
    assert "GATEWAY_SECRET_FILE is empty" in refusal(GATEWAY_SECRET_FILE="")


@pytest.mark.skipif(not UNREADABLE.exists(), reason="needs a file whose reading fails for root too (Linux)")
def test_a_file_whose_reading_fails_is_refused() -> None:
    """An error of the disk or of permissions is told with the file's name."""
    assert f"GATEWAY_SECRET_FILE: {UNREADABLE} cannot be read" in refusal(GATEWAY_SECRET_FILE=str(UNREADABLE))


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("value", ["geheim", ""])
def test_a_variable_beside_its_twin_is_refused(tmp_path: Path, variable: str, value: str) -> None:
    """Which one counts would be a guess, also where one of them is empty."""
    file = tmp_path / "secret"
    file.write_text("other")

    problem = refusal(**{variable: value, f"{variable}_FILE": str(file)})

    assert problem == f"{variable} and {variable}_FILE are both set: unset one of them"


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("value", ["", " ", "\n"])
def test_an_empty_secret_is_refused(variable: str, value: str) -> None:
    """An unset variable of a compose file arrives as an empty text; nothing may start with that."""
    assert refusal(**{variable: value}).startswith(f"{variable} is empty")


def test_a_variable_is_stripped_as_a_file_is() -> None:
    """A newline at its end would be an illegal header value."""
    settings = load(None, {**ENGINE, "GATEWAY_UPSTREAM_API_KEY": " sk-a\n"}).settings

    assert settings.upstream_api_key == SecretStr("sk-a")
