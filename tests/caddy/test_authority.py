"""The own authority: its root can be fetched and verifies the site, and verification is real."""

import hashlib
import ssl
from pathlib import Path

import certifi
import httpx
import pytest

from tests.caddy.sites import Site
from tests.running import http_client


def roots(file: Path) -> set[str]:
    """The fingerprints of all certificates in a file, each of which must be whole."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(file)
    return {hashlib.sha256(found).hexdigest() for found in context.get_ca_certs(binary_form=True)}


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
async def test_the_root_that_is_fetched_over_http_verifies_the_site(
    site: Site, tmp_path: Path, name: str
) -> None:
    """By name and by address, for a client that has nothing else."""
    fetched = tmp_path / "ca.crt"
    async with http_client() as http:
        response = await http.get(f"http://{name}:{site.http}/ca.crt")
    assert response.headers["content-type"] == "application/x-x509-ca-cert"
    fetched.write_bytes(response.content)
    trust = ssl.create_default_context(cafile=str(fetched))
    async with httpx.AsyncClient(verify=trust, trust_env=False, timeout=60) as https:
        again = await https.get(f"https://{name}:{site.https}/ca.crt")
    assert again.content == response.content == site.root.read_bytes()


async def test_the_bundle_has_the_systems_roots_and_ours(site: Site, tmp_path: Path) -> None:
    """So that a client which trusts one file alone keeps the rest of the world."""
    fetched = tmp_path / "ca-bundle.pem"
    async with site.client() as client, http_client() as http:
        fetched.write_bytes((await http.get(f"{site.plain_url}/ca-bundle.pem")).content)
        assert (await client.get("/ca-bundle.pem")).content == fetched.read_bytes()
    assert roots(fetched) == roots(Path(certifi.where())) | roots(site.root)


@pytest.mark.usefixtures("upstream")
async def test_no_key_can_be_fetched(site: Site) -> None:
    """The root's key lies beside it in the storage, and the storage is not served."""
    async with site.client() as client, http_client() as http:
        for path in ("/root.key", "/ca.key", "/ca.crt/root.key", "/ca.crt/../root.key"):
            for url in (site.url, site.plain_url):
                caller = client if url == site.url else http
                response = await caller.get(httpx.URL(url).copy_with(raw_path=path.encode()))
                assert "PRIVATE KEY" not in response.text


async def test_verification_is_real(site: Site) -> None:
    """Without our root a client refuses the certificate."""
    async with httpx.AsyncClient(verify=ssl.create_default_context(), trust_env=False, timeout=60) as client:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(site.url)


async def test_browsers_are_not_bound_to_https_on_a_lan(site: Site) -> None:
    """It would hold for every port of the host, and bar everyone from a box whose authority was made anew."""
    async with site.client() as client:
        response = await client.get("/ca.crt")
    assert "strict-transport-security" not in response.headers
    assert "alt-svc" not in response.headers
