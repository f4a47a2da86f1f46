"""What a real llama.cpp answered, byte for byte: one JSON file a call."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("recordings")


@dataclass(frozen=True, slots=True)
class Recording:
    """A request and the raw response to it, chunk lengths included; `cut` ends with the connection."""

    path: str
    body: dict[str, Any] | None
    response: bytes
    cut: bool = False

    @property
    def status(self) -> int:
        """The status of the response."""
        return int(self.response.split(b" ", 2)[1])

    @property
    def content(self) -> bytes:
        """The response's body, chunk lengths taken out."""
        head, _, body = self.response.partition(b"\r\n\r\n")
        return b"".join(chunks(body)) if b"chunked" in head else body

    @property
    def document(self) -> Any:
        """The body of a plain answer, parsed."""
        return json.loads(self.content)

    @property
    def events(self) -> list[Any]:
        """The documents of a stream, without `[DONE]`."""
        lines = self.content.decode().splitlines()
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        return [json.loads(one) for one in data if one != "[DONE]"]


def chunks(body: bytes) -> list[bytes]:
    """The chunks of a chunked body; the last one may be cut short."""
    found = []
    while body:
        length, _, body = body.partition(b"\r\n")
        size = int(length or b"0", 16)
        found.append(body[:size])
        body = body[size + 2 :]
    return found


def load(name: str) -> Recording:
    """The recording of a call."""
    document = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return Recording(
        document["path"], document["body"], document["response"].encode(), document.get("cut", False)
    )


def save(name: str, recording: Recording, server: str) -> None:
    """Writes a recording; `server` tells what it was made from."""
    document = {
        "server": server,
        "path": recording.path,
        "body": recording.body,
        "cut": recording.cut,
        "response": recording.response.decode(),
    }
    text = json.dumps(document, indent=1, ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")
