"""A backup is all that is needed: on an empty machine it brings keys, certificates and settings back."""

import asyncio
import shutil
from pathlib import Path

from tests.prompts import HELLO
from tests.stack import checkout
from tests.stack.stack import Stack


async def test_keys_work_again_after_all_was_lost(stack: Stack, tmp_path: Path) -> None:
    """Containers, volumes, .env and secrets/ are gone; the same key and the same CA file work afterwards."""
    made = await stack.create_key("saved")
    trusted = stack.places.ca_certificate.read_text()
    saved = tmp_path / "saved.tar.gz"
    await stack.make("backup", FILE=str(saved))
    await stack.keep_logs()
    await stack.compose("--profile", "*", "down", "--volumes", "--timeout", "1")
    await asyncio.to_thread(_fresh, stack.folder)
    assert not stack.places.secrets.exists()
    await stack.make("restore", FILE=str(saved), YES="1")
    assert stack.places.ca_certificate.read_text() == trusted
    for key in (stack.key, made):
        async with stack.sdk(key) as sdk:
            await sdk.chat.completions.create(model="default", messages=HELLO, max_tokens=2)


def _fresh(folder: Path) -> None:
    """Remove what is not of the checkout: .env, secrets, backups."""
    for found in folder.iterdir():
        if found.name not in checkout.PARTS:
            shutil.rmtree(found) if found.is_dir() else found.unlink()
