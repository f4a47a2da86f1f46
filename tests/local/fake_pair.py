"""An engine that answers its health check alone, and a gateway that answers by the model its settings name.

`fake_pair.py … --served-model-name ID --port PORT` is the engine: one that is called `dies` does so.
`fake_pair.py gateway PORT SETTINGS TESTER` is the gateway: of the model `mute` it hangs up on whoever asks,
and of `interrupts` it sends SIGINT to the process TESTER instead of an answer.
"""

import json
import os
import signal
import sys
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType


class Handler(BaseHTTPRequestHandler):
    """Both."""

    settings = Path()
    tester = 0
    model = ""

    @classmethod
    def load(cls, *_: int | FrameType | None) -> None:
        """As the gateway does on SIGHUP."""
        cls.model = tomllib.loads(cls.settings.read_text())["models"][0]["id"]

    def do_GET(self) -> None:
        """Whatever is asked for, and the model."""
        self._say({"data": [{"id": self.model}]})

    def do_POST(self) -> None:
        """One answer of a model, or what it does in its place."""
        self.rfile.read(int(self.headers["content-length"]))
        if self.model == "interrupts":
            os.kill(self.tester, signal.SIGINT)
            self.rfile.read(1)
        elif self.model != "mute":
            self._say({"choices": [{"message": {"content": "Paris\x1b]0;mine\x07\nand more"}}]})

    def _say(self, answer: object) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def main(arguments: list[str]) -> None:
    """Runs until it is stopped."""
    if arguments[0] == "gateway":
        port, Handler.settings, Handler.tester = int(arguments[1]), Path(arguments[2]), int(arguments[3])
        signal.signal(signal.SIGHUP, Handler.load)
        Handler.load()
    else:
        port = int(arguments[arguments.index("--port") + 1])
        if arguments[arguments.index("--served-model-name") + 1] == "dies":
            sys.exit("CUDA out of memory. Tried to allocate 2.00 GiB")
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
