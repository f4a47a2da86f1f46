"""Starts a fake engine and prints `{"port": …, "control": …}` once both are open."""

import argparse
import asyncio
import json
import ssl
import sys

from tests.fake_engine.control import Control
from tests.fake_engine.journal import Journal
from tests.fake_engine.server import Server


async def run(options: argparse.Namespace) -> None:
    """Serve until killed, or until standard input ends."""
    tls = None
    if options.certificate:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(options.certificate)
    journal = Journal()
    server = Server(journal, options.model or ["fake-model"], tls)
    await server.listen(options.port)
    control = await Control(journal, server).listen()
    sys.stdout.write(json.dumps({"port": server.port, "control": control}) + "\n")
    sys.stdout.flush()
    if options.until_eof:
        await asyncio.to_thread(sys.stdin.read)
    else:
        await asyncio.Event().wait()


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.fake_engine", description="A fake engine.")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--model", action="append", help="a model it serves; may be repeated")
    parser.add_argument("--certificate", help="PEM file with key and certificate: speak TLS")
    parser.add_argument("--until-eof", action="store_true", help="end when standard input ends")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(run(options()))
