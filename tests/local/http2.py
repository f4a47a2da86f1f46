"""One HTTP/2 connection spoken frame by frame, for what client libraries do not do: reset one stream."""

import asyncio
import ssl
from typing import Self

import h2.config
import h2.connection
import h2.errors


class Http2:
    """`async with Http2(port, trust) as connection`: post, then reset, on one connection to localhost."""

    def __init__(self, port: int, trust: ssl.SSLContext) -> None:
        self._port = port
        self._trust = trust
        self._state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))

    async def __aenter__(self) -> Self:
        self._trust.set_alpn_protocols(["h2"])
        self._reader, self._writer = await asyncio.open_connection(
            "localhost", self._port, ssl=self._trust, server_hostname="localhost"
        )
        self._state.initiate_connection()
        self._flush()
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reading.cancel()
        self._writer.transport.abort()

    def post(self, path: str) -> int:
        """Sends a request without a body; the number of its stream."""
        stream = self._state.get_next_available_stream_id()
        names = {
            ":method": "POST",
            ":authority": f"localhost:{self._port}",
            ":scheme": "https",
            ":path": path,
        }
        self._state.send_headers(stream, list(names.items()), end_stream=True)
        self._flush()
        return stream

    def reset(self, stream: int) -> None:
        """Tells the server that nobody wants this stream any more."""
        self._state.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
        self._flush()

    def abort(self) -> None:
        """Drops the connection without a word."""
        self._writer.transport.abort()

    async def _read(self) -> None:
        while data := await self._reader.read(65_536):
            self._state.receive_data(data)
            self._flush()

    def _flush(self) -> None:
        self._writer.write(self._state.data_to_send())
