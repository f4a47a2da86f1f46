"""What containers write can be shown to anybody."""

import pytest

from tests.prompts import CAPITAL, COUNT
from tests.stack.stack import Stack


@pytest.fixture(scope="module")
async def logs(stack: Stack) -> str:
    """All that any container of this run wrote."""
    await stack.keep_logs()
    text = stack.log.read_text()
    for service in await stack.containers():
        assert f"{service}-1 " in text or service == "node-exporter", f"{service} wrote nothing"
    return text


async def test_no_secret_is_in_any_log(stack: Stack, logs: str) -> None:
    """Keys, the admin token, passwords, the address for alerts."""
    files = [
        file
        for file in stack.places.secrets.iterdir()
        if file.is_file() and file.suffix not in {".crt", ".pem", ".yml"}
    ]
    secrets = {file.name: file.read_text().strip() for file in files} | {
        f"key {i}": key for i, key in enumerate(stack.keys)
    }
    assert len(secrets) > 5
    assert [name for name, secret in secrets.items() if secret and secret in logs] == []


async def test_no_prompt_is_in_any_log(logs: str) -> None:
    """Nor what the model said to it."""
    for words in (CAPITAL, COUNT):
        assert str(words[0]["content"]) not in logs
    assert "capital of France" not in logs
