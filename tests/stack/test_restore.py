"""A backup is all that is needed: on an empty machine it brings keys, certificates and settings back."""

import asyncio
import shutil
from pathlib import Path

from tests.prompts import HELLO
from tests.stack import checkout
from tests.stack.stack import PROJECT, Stack

# The engine's own cache: with the notes of starts that failed, which must not make it wait now.
KEPT = f"{PROJECT}_vllm-cache"


async def test_keys_work_again_after_all_was_lost(stack: Stack, tmp_path: Path) -> None:
    """Containers, volumes, .env and secrets/ are gone; the same keys and the same CA file work afterwards."""
    made = await stack.create_key("saved")
    trusted = stack.places.ca_certificate.read_text()
    saved = tmp_path / "saved.tar.gz"
    await stack.make("backup", FILE=str(saved))
    await stack.keep_logs()
    await _destroy(stack)
    assert not stack.places.secrets.exists()
    await stack.make("restore", FILE=str(saved), YES="1")
    assert stack.places.ca_certificate.read_text() == trusted
    for key in (stack.key, made):
        async with stack.sdk(key) as sdk:
            await sdk.chat.completions.create(model="default", messages=HELLO, max_tokens=2)


async def _destroy(stack: Stack) -> None:
    await stack.compose("--profile", "*", "down", "--timeout", "1")
    volumes = set((await stack.engine.docker("volume", "ls", "--quiet")).split())
    assert len(volumes) > 5
    await stack.engine.docker("volume", "rm", *sorted(volumes - {KEPT}))
    await asyncio.to_thread(_as_cloned, stack.folder)


def _as_cloned(folder: Path) -> None:
    """Remove what is not of the checkout, and undo what `test_bad_flag` has edited."""
    for found in folder.iterdir():
        if found.name not in checkout.PARTS:
            shutil.rmtree(found) if found.is_dir() else found.unlink()
    shutil.copy(checkout.CHECKOUT / checkout.PROFILE_FILE, folder / checkout.PROFILE_FILE)
