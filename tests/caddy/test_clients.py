"""Clients trust the authority in the ways that docs/tls.md shows: verification on, and in vain without."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.caddy.sites import ROOT, Site

PAGE = (ROOT / "docs" / "tls.md").read_text()
SDK = "print(OpenAI(base_url=os.environ['URL'], api_key='sk-gw', max_retries=0{}).models.list())"
PLAIN = f"import os; from openai import OpenAI; {SDK.format('')}"
IN_CODE = (
    "import os, ssl; from openai import DefaultHttpxClient, OpenAI; trust = ssl.create_default_context(); "
    "trust.load_verify_locations('ca.crt'); http_client = DefaultHttpxClient(verify=trust); "
    f"{SDK.format(', http_client=http_client')}"
)
NODE = (
    "fetch(process.env.URL + '/models').then(answer => answer.json()).then(console.log, "
    "error => { console.error(error.cause.code); process.exit(1) })"
)

pytestmark = pytest.mark.usefixtures("upstream")


@pytest.fixture
async def folder(site: Site, tmp_path: Path) -> Path:
    """Where a client has what it fetched: ca.crt and ca-bundle.pem."""
    async with site.client() as client:
        for name in ("ca.crt", "ca-bundle.pem"):
            (tmp_path / name).write_bytes((await client.get(f"/{name}")).content)
    return tmp_path


async def call(site: Site, folder: Path, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a client that calls the site, without what this machine trusts and which proxies it has."""
    own = {"PATH": os.environ["PATH"], "URL": f"{site.url}/v1", **environ}
    return await asyncio.to_thread(
        subprocess.run, command, env=own, cwd=folder, capture_output=True, text=True, check=False
    )


def program(name: str) -> str:
    """A program of this machine, or this test is skipped."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here")
    return found


async def test_python_by_a_variable(site: Site, folder: Path) -> None:
    """SSL_CERT_FILE names the bundle; without it the SDK says no more than "Connection error."."""
    assert "SSL_CERT_FILE=$PWD/ca-bundle.pem" in PAGE
    trusting = await call(
        site, folder, sys.executable, "-c", PLAIN, SSL_CERT_FILE=str(folder / "ca-bundle.pem")
    )
    assert trusting.returncode == 0, trusting.stderr
    refusing = await call(site, folder, sys.executable, "-c", PLAIN)
    assert refusing.stderr.rstrip().endswith("APIConnectionError: Connection error.")
    assert "CERTIFICATE_VERIFY_FAILED" in refusing.stderr


async def test_python_in_code(site: Site, folder: Path) -> None:
    """Roots of the system and ours in one context, nothing in the environment."""
    assert 'trust.load_verify_locations("ca.crt")' in PAGE
    done = await call(site, folder, sys.executable, "-c", IN_CODE)
    assert done.returncode == 0, done.stderr


async def test_node(site: Site, folder: Path) -> None:
    """NODE_EXTRA_CA_CERTS adds our root to those that Node has; the SDK uses Node's fetch."""
    assert "NODE_EXTRA_CA_CERTS=$PWD/ca.crt" in PAGE
    trusting = await call(
        site, folder, program("node"), "-e", NODE, NODE_EXTRA_CA_CERTS=str(folder / "ca.crt")
    )
    assert trusting.returncode == 0, trusting.stderr
    refusing = await call(site, folder, program("node"), "-e", NODE)
    assert (refusing.returncode, "CERT" in refusing.stderr or "LEAF" in refusing.stderr) == (1, True)


async def test_curl(site: Site, folder: Path) -> None:
    """--cacert for one call, CURL_CA_BUNDLE for all; exit code 60 without."""
    assert "curl --cacert ca.crt" in PAGE
    curl = [program("curl"), "-sS", "--fail", f"{site.url}/v1/models"]
    assert (await call(site, folder, *curl, "--cacert", "ca.crt")).returncode == 0
    assert (await call(site, folder, *curl, CURL_CA_BUNDLE="ca-bundle.pem")).returncode == 0
    assert (await call(site, folder, *curl)).returncode == 60


def test_verification_is_never_switched_off() -> None:
    """The page shows no way to do so."""
    for trap in (
        "curl -k",
        "--insecure",
        "verify=False",
        "NODE_TLS_REJECT_UNAUTHORIZED",
        "rejectUnauthorized",
    ):
        assert trap not in PAGE
