"""A hub on this machine, and safetensors files with tensors of given sizes."""

import json
import struct
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TENSORS = {
    "model.embed_tokens.weight": 2_000,
    "model.layers.0.self_attn.q_proj.weight": 300,
    "model.layers.0.mlp.gate.weight": 10,
    "model.layers.0.mlp.experts.0.up_proj.weight": 4_000,
    "model.layers.0.mlp.experts.gate_up_proj": 4_000,
    "model.norm.weight": 5,
    "lm_head.weight": 2_000,
    "model.visual.blocks.0.weight": 700,
    "mtp.layers.0.weight": 900,
}


def header(tensors: dict[str, int]) -> bytes:
    """A safetensors file that holds these."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, size in tensors.items():
        entries[name] = {"dtype": "U8", "shape": [size], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + bytes(at)


class Hub(ThreadingHTTPServer):
    """A hub that serves files, ranges of them, and keeps what it was asked."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.sent = 0
        self.tokens: set[str | None] = set()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        """A file, a part of it, or 404."""
        self.server.tokens.add(self.headers["authorization"])
        body = self.server.files.get(self.path)
        if body is None:
            self.send_error(404)
            return
        status = 200
        if asked := self.headers["range"]:
            first, last = asked.removeprefix("bytes=").split("-")
            body, status = body[int(first) : int(last) + 1], 206
        self.server.sent += len(body)
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # named so by the base class
        """Says nothing."""
