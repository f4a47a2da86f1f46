"""A small Hugging Face hub on loopback: models with large files to resume, gates, cuts and pauses."""

import hashlib
import json
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
GATE_TOKEN = "hf_has_accepted_the_terms"
OTHER_TOKEN = "hf_of_somebody_else"
LARGE = (".safetensors", ".bin", ".gguf")


@dataclass
class Model:
    """One repository. Files that end as weights do are large: stored by hash, and listed so."""

    files: dict[str, bytes]
    commit: str = COMMIT
    gated: bool = False
    listed_sizes: dict[str, int] = field(default_factory=dict)
    listed_digests: dict[str, str] = field(default_factory=dict)
    answer: Any = None
    etag: str = ""

    def listing(self) -> dict[str, Any]:
        """What the API says of it: the truth, unless the test has another `answer`."""
        if self.answer is not None:
            return self.answer  # type: ignore[no-any-return]  # it may be anything
        siblings = [self._sibling(path, content) for path, content in self.files.items()]
        return {"id": "model", "sha": self.commit, "siblings": siblings}

    def _sibling(self, path: str, content: bytes) -> dict[str, Any]:
        size = self.listed_sizes.get(path, len(content))
        listed = self.listed_digests.get(path, digest(content))
        lfs = {"sha256": listed, "size": size, "pointerSize": 134}
        return {"rfilename": path, "size": size, **({"lfs": lfs} if path.endswith(LARGE) else {})}


def digest(content: bytes) -> str:
    """The hash that names a large file's content."""
    return hashlib.sha256(content).hexdigest()


class Hub:
    """`with Hub({"owner/name": Model(...)}) as hub`: answers at `url`; `asked` holds what it was asked.

    `cut[path]` closes the connection once after so many bytes of a file, `paused[path]` stops there until
    `go_on` is set, those in `broken` answer 503. Tokens other than the two are refused.
    """

    def __init__(self, models: dict[str, Model], tls: ssl.SSLContext | None = None) -> None:
        self.models = models
        self.asked: list[tuple[str, str, str]] = []
        self.cut: dict[str, int] = {}
        self.paused: dict[str, int] = {}
        self.broken: set[str] = set()
        self.waiting = threading.Event()
        self.go_on = threading.Event()
        hub = self

        class Handler(_Answers):
            of = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        if tls:
            # The handshake in the handler's thread: a caller who breaks it off must not end the server's.
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
            self.url = f"https://localhost:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nobody answers any more."""
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def ranges(self, path: str) -> list[str]:
        """The ranges of a file that were asked for, in order; empty where all of it was."""
        return [asked_range for method, asked, asked_range in self.asked if method == "GET" and asked == path]


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    of: Hub

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, *_: Any) -> None:
        """Nothing: what was asked is in `asked`."""

    def handle(self) -> None:
        try:
            super().handle()
        except ssl.SSLError:
            self.close_connection = True  # whoever asks does not trust the certificate

    def _answer(self) -> None:
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        token = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        api = parts[:2] == ["api", "models"]
        name, _, *rest = ["/".join(parts[2:4]), *parts[4:]] if api else ["/".join(parts[:2]), *parts[2:]]
        revision, path = rest[0], "/".join(rest[1:])
        self.of.asked.append((self.command, path if not api else "", self.headers.get("range") or ""))
        model = self.of.models.get(name)
        if token and token not in {GATE_TOKEN, OTHER_TOKEN}:
            self._refuse(401, "", "Invalid credentials in Authorization header")
        elif model is None:
            self._refuse(404 if token else 401, "RepoNotFound", "Repository not found")
        elif revision not in {"main", model.commit}:
            self._refuse(404, "RevisionNotFound", "Invalid rev id")
        elif api:
            self._send(json.dumps(model.listing()).encode(), {"content-type": "application/json"})
        elif model.gated and token != GATE_TOKEN:
            self._refuse(403 if token else 401, "GatedRepo", "Access to this model is restricted")
        elif path in self.of.broken:
            self._refuse(503, "", "Try again later")
        elif self.command == "HEAD":
            self._send(model.files[path], _named(model, path))
        else:
            self._send_file(model, path)

    def _refuse(self, status: int, code: str, message: str) -> None:
        headers = {"x-error-message": message} | ({"x-error-code": code} if code else {})
        self._send(b"{}", headers, status)

    def _send(self, body: bytes, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in (headers | {"content-length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _send_file(self, model: Model, path: str) -> None:
        content, headers = model.files[path], _named(model, path)
        start = int((self.headers.get("range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if start:
            headers["content-range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self.send_response(206 if start else 200)
        for name, value in (headers | {"content-length": str(len(content) - start)}).items():
            self.send_header(name, value)
        self.end_headers()
        self._pour(path, content, start)

    def _pour(self, path: str, content: bytes, start: int) -> None:
        if (stop := self.of.cut.pop(path, None)) is not None:
            self.wfile.write(content[start:stop])
            self.close_connection = True
            return
        if (stop := self.of.paused.get(path)) is not None and not self.of.go_on.is_set():
            self.wfile.write(content[start:stop])
            start = max(start, stop)
            self.of.waiting.set()
            self.of.go_on.wait()
        self._send_rest(content[start:])

    def _send_rest(self, content: bytes) -> None:
        try:
            self.wfile.write(content)
        except OSError:
            self.close_connection = True  # the test ended the one who asked


def _named(model: Model, path: str) -> dict[str, str]:
    etag = model.etag or digest(model.files[path])
    return {"x-repo-commit": model.commit, "etag": f'"{etag}"', "accept-ranges": "bytes"}
