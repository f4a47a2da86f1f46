"""Connections that are tried from within a container, and the address outside that they are tried on."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

from tests.stack.stack import Stack, own_address

# Answers which of the addresses take a connection, in JSON: as usual, or past the routing table, for which no
# rights are needed. Runs in containers that have Python.
PROGRAM = """
import concurrent.futures, json, os, socket, sys
def connects(host, port, device):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(SECONDS)
        try:
            if device:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
                client.setsockopt(socket.SOL_SOCKET, socket.SO_DONTROUTE, 1)
            client.connect((host, port))
        except OSError:
            return False
    return True
def reaches(address):
    host, _, port = address.rpartition(":")
    return any(connects(host, int(port), device) for device in DEVICES)
SECONDS = 5
DEVICES = ["", *os.listdir("/sys/class/net")] if sys.argv[1] == "past routes" else [""]
with concurrent.futures.ThreadPoolExecutor(32) as pool:
    found = zip(sys.argv[2:], pool.map(reaches, sys.argv[2:]))
    print(json.dumps([address for address, reached in found if reached]))
"""


async def reached(stack: Stack, service: str, *addresses: str, past_routes: bool = False) -> set[str]:
    """Those of the addresses that a service's container can connect to."""
    ways = "past routes" if past_routes else "routes"
    told: list[str] = json.loads(await stack.inside(service, PROGRAM, ways, *addresses))
    return set(told)


@contextlib.asynccontextmanager
async def outside() -> AsyncIterator[str]:
    """A listener on this machine's own address, which is on none of the stack's networks; as `host:port`."""

    def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(close, own_address(), 0) as server:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"{host}:{port}"
