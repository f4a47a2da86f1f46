"""Connections that are tried from within a container, and the address outside that they are tried on."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

from tests.stack.stack import Stack, own_address

# Answers which of the addresses take a connection, in JSON. Runs in containers that have Python.
PROGRAM = """
import json, socket, sys
def reaches(address):
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except OSError:
        return False
    return True
print(json.dumps([address for address in sys.argv[1:] if reaches(address)]))
"""


async def reached(stack: Stack, service: str, *addresses: str) -> set[str]:
    """Those of the addresses that a service's container can connect to."""
    told: list[str] = json.loads(await stack.inside(service, PROGRAM, *addresses))
    return set(told)


@contextlib.asynccontextmanager
async def outside() -> AsyncIterator[str]:
    """A listener on this machine's own address, which is on none of the stack's networks; as `host:port`."""

    def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(close, own_address(), 0) as server:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"{host}:{port}"
