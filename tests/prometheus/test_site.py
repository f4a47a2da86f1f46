"""The probe of the site: by its name, through TLS, with the certificate's end as what it shows."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import trustme

from tests.prometheus import exposed
from tests.prometheus.programs import CONFIGURATION, Programs, serving
from tests.running import free_port, sample

ENDS = datetime.now(UTC).replace(microsecond=0) + timedelta(days=20)


@contextlib.asynccontextmanager
async def site(names: list[str]) -> AsyncIterator[int]:
    """A site that answers 200 to its name alone, with a certificate that ends in 20 days."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("spark.lan", not_after=ENDS).configure_cert(context)

    def named(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> int | None:
        names.append(str(name))
        return None if name == "spark.lan" else ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

    context.sni_callback = named

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            status = b"200 OK" if b"\r\nHost: spark.lan\r\n" in head else b"421 Misdirected"
            writer.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(("name", "success"), [("spark.lan", 1), ("elsewhere.lan", 0)])
async def test_a_site_is_probed_by_its_name(
    programs: Programs, tmp_path: Path, name: str, success: int
) -> None:
    """As prometheus.yml asks it: with the name in SNI and Host, the end in Unix seconds."""
    port, names = free_port(), list[str]()
    url = f"http://127.0.0.1:{port}"
    command = [
        programs.path("prometheus-blackbox-exporter"),
        f"--config.file={CONFIGURATION / 'blackbox.yml'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    async with site(names) as https, serving(command, f"{url}/-/healthy", tmp_path / "blackbox.log"):
        asked = {"module": "site", "target": f"https://127.0.0.1:{https}/healthz", "hostname": name}
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            shown = (await client.get(f"{url}/probe", params=asked)).text
    assert names == [name]
    assert sample(shown, "probe_success") == success
    if success:
        assert sample(shown, "probe_ssl_earliest_cert_expiry") == ENDS.timestamp()
        assert exposed.of_text(shown) >= exposed.OF_PROBES
