"""An engine behind TLS: verified always, and in all else as without."""

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from gateway.engines import Client, ConnectFailed, ConnectionLost
from tests.engines.calls import call, client_of, post, rest
from tests.engines.loops import on_each_loop
from tests.fake_engine import answers, scripts
from tests.fake_engine.fixtures import fresh
from tests.fake_engine.handle import FakeEngine, Process
from tests.fake_engine.scripts import send


@dataclass(frozen=True)
class Secured:
    """An engine whose certificate is for 127.0.0.1 alone, and the CA that signed it."""

    process: Process
    ca_file: Path

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[FakeEngine]:
        """The engine, reset."""
        async with fresh(self.process) as engine:
            yield engine

    def trusted(self) -> ssl.SSLContext:
        """A context that trusts the CA and nobody else."""
        return ssl.create_default_context(cafile=str(self.ca_file))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One TLS engine for this module."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(folder / "engine.pem"))
    process = Process(certificate=folder / "engine.pem")
    process.start()
    yield Secured(process, folder / "ca.pem")
    process.kill()


@on_each_loop
async def test_an_engine_with_a_trusted_certificate_is_used(secured: Secured) -> None:
    """Requests, streams and kept connections work as without TLS."""
    async with secured.engine() as engine, client_of(engine, ssl_context=secured.trusted()) as client:
        for _ in range(2):
            assert (await call(client, b'{"stream":true}'))[1].endswith(b"data: [DONE]\n\n")
        assert (await engine.stats())["connections"] == 1


@on_each_loop
async def test_an_engine_that_nobody_vouches_for_is_not_used(secured: Secured) -> None:
    """Without its CA there is no connection, and the cause says what is wrong."""
    async with secured.engine() as engine, client_of(engine) as client:
        with pytest.raises(ConnectFailed, match="certificate verify failed"):
            await call(client)
        assert client.pool.open_connections == 0
        assert await engine.requests() == []


@on_each_loop
async def test_an_engine_with_another_name_is_not_used(secured: Secured) -> None:
    """The certificate must be for the host of the URL."""
    client = Client(
        f"https://localhost:{secured.process.port}",
        connect_timeout_seconds=60,
        keep_alive_seconds=600,
        ssl_context=secured.trusted(),
    )
    with pytest.raises(ConnectFailed, match=r"[Hh]ostname mismatch"):
        await call(client)


@on_each_loop
async def test_an_engine_without_tls_fails_behind_https(engine: FakeEngine, secured: Secured) -> None:
    """A wrong scheme in the configuration is a failure to connect, not a hang."""
    client = Client(
        engine.url.replace("http:", "https:"),
        connect_timeout_seconds=0.5,
        keep_alive_seconds=4,
        ssl_context=secured.trusted(),
    )
    with pytest.raises(ConnectFailed):
        await call(client)
    assert (client.in_flight, client.pool.open_connections) == (0, 0)


@on_each_loop
async def test_closing_ends_the_engines_work_behind_tls_too(secured: Secured) -> None:
    """No polite goodbye is waited for."""
    async with secured.engine() as engine, client_of(engine, ssl_context=secured.trusted()) as client:
        await engine.script(scripts.stream(events=1, end="hang"))
        exchange = await post(client)
        await exchange.chunk()
        exchange.close()
        await engine.wait(aborted=1, open=0)


@on_each_loop
async def test_a_large_body_goes_through_tls(secured: Secured) -> None:
    """Written in pieces, each encrypted when the one before is on its way."""
    async with secured.engine() as engine, client_of(engine, ssl_context=secured.trusted()) as client:
        await engine.script([{"reply": "digest"}])
        assert b'"bytes": 8388608' in (await call(client, b"x" * (8 << 20)))[1]


@on_each_loop
async def test_a_body_until_the_end_is_whole_only_if_the_engine_says_goodbye(
    secured: Secured,
) -> None:
    """With TLS an end can be told from a cut: only a close_notify completes the body."""
    async with secured.engine() as engine, client_of(engine, ssl_context=secured.trusted()) as client:
        await engine.script(scripts.until_close(b"hello"), times=1)
        assert await call(client) == (200, b"hello")
        await engine.script([send(answers.head(200, []) + b"hello"), {"gate": "cut"}, {"reset": True}])
        exchange = await post(client)
        assert await exchange.chunk() == b"hello"
        await engine.open_gate("cut")
        with pytest.raises(ConnectionLost):
            await rest(exchange)
        exchange.close()
