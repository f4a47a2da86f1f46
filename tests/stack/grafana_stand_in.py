"""Stands in Grafana's place in the stack of the tests. It is no Grafana, which no package registry holds.

It asks of its container what Grafana would (password, provisioning, dashboards and a folder to write in, as
the same user), and answers on Grafana's addresses as far as health checks and the way through Caddy need it.
"""

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

NAME = "stand-in for Grafana (not Grafana)"


def main() -> None:
    """Serve until SIGTERM. Ends at once, with the reason, if Grafana could not have started either."""
    password = Path(os.environ["GF_SECURITY_ADMIN_PASSWORD__FILE"]).read_text().strip()
    if not password:
        sys.exit("the password file is empty")
    Path("/var/lib/grafana/writable").touch()
    for folder in ("/etc/grafana/provisioning", "/etc/grafana/dashboards"):
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        print(NAME, folder, sorted(len(file.read_bytes()) for file in files), flush=True)  # noqa: T201
    Answers.prefix = urlsplit(os.environ["GF_SERVER_ROOT_URL"]).path.rstrip("/")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ThreadingHTTPServer(("", 3000), Answers).serve_forever()


class Answers(BaseHTTPRequestHandler):
    """Health, login and metrics, with and without the prefix; all else leads to the login."""

    prefix = ""

    def do_GET(self) -> None:
        """Answer as Grafana does to somebody who has not logged in."""
        path = urlsplit(self.path).path.removeprefix(self.prefix)
        if path == "/api/health":
            self._answer(200, json.dumps({"database": "ok", "name": NAME}))
        elif path in {"/login", "/metrics"}:
            self._answer(200, NAME)
        else:
            self._answer(302, "", Location=f"{self.prefix}/login")

    def _answer(self, status: int, body: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *values: object) -> None:  # noqa: A002  the name is the base class's
        """Nothing: the addresses are the tests' own."""


if __name__ == "__main__":
    main()
