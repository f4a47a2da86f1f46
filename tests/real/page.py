"""The blocks of docs/clients.md, run as they stand: only the environment leads them to the tests' gateway."""

import os
import re
import shutil
import sys
from pathlib import Path

from tests.real import printed
from tests.running import Gateway

PAGE = Path(__file__).parent.parent.parent / "docs" / "clients.md"


def sections() -> dict[str, str]:
    """The text under each heading, by its name."""
    parts = re.split(r"^## (.+)\n", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def blocks(section: str, language: str) -> list[str]:
    """The blocks of one language under a heading."""
    return re.findall(rf"^```{language}\n(.*?)^```", sections()[section], re.MULTILINE | re.DOTALL)


async def python(code: str, gateway: Gateway) -> str:
    """What a block of Python prints."""
    return await run([sys.executable, "-W", "ignore", "-c", code], gateway)


async def shell(code: str, gateway: Gateway) -> str:
    """What a block of a shell prints."""
    return await run([shutil.which("bash") or "sh", "-ec", code], gateway)


async def run(command: list[str], gateway: Gateway) -> str:
    """What a command prints in the environment that the page asks for. Fails the test if it fails."""
    own = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environ = own | {
        "OPENAI_BASE_URL": f"{gateway.url}/v1",
        "OPENAI_API_KEY": gateway.key,
        "ANTHROPIC_BASE_URL": gateway.url,
        "ANTHROPIC_AUTH_TOKEN": gateway.key,
    }
    return await printed.by(command, environ)
