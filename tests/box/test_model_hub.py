"""`make model` and the hub: one that does not let in, one that is out of reach."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.box.boxes import Box

OWN = "deploy/profiles/own"


@contextmanager
def hub(status: int) -> Iterator[tuple[str, list[str]]]:
    """A hub that answers all with a status, and what tokens it was shown."""
    tokens: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens.append(self.headers.get("authorization", ""))
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", tokens
    server.shutdown()
    thread.join()
    server.server_close()


def test_gated(running: Box) -> None:
    """A model that the token may not read is refused before anything is written, with where a token goes."""
    (running.places.secrets / "hf-token").write_text("hf_mine\n")
    with hub(401) as (url, tokens):
        done = running.command("model", MODEL="acme/secret", HF_ENDPOINT=url)
    assert "acme/secret is gated or does not exist" in done.stderr
    assert "secrets/hf-token" in done.stderr
    assert tokens == ["Bearer hf_mine"]
    assert not (running.folder / OWN).exists()


def test_hub_out_of_reach(running: Box) -> None:
    """Without a network the message names what needs none, and nothing has changed."""
    done = running.command("model", MODEL="acme/some", HF_ENDPOINT="http://127.0.0.1:9")
    assert "does not answer (ConnectError)" in done.stderr
    assert "Nothing was changed." in done.stderr
