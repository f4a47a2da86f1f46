"""`python -m tests.openai_engine.record [NAME …]`: asks a real llama.cpp all calls, writes what it answers.

Sizes and ids change with each run, and so do times: look at the difference before committing it.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from deploy.local import llamacpp, models, preflight
from deploy.local.llamacpp import source
from tests.openai_engine import llama, recordings
from tests.openai_engine.calls import CALLS, Call
from tests.openai_engine.recordings import Recording
from tests.running import free_port

LOADING = "loading"
CUT_BYTES = 3_000


async def main(names: list[str]) -> None:
    """Records these calls, or all."""
    folder = llama.installed()
    server = f"llama.cpp in {_pinned(llamacpp.WHEEL)}, {preflight.look().processor}"
    with tempfile.TemporaryDirectory() as scratch:
        for name in names or [*CALLS, LOADING]:
            if name == LOADING:
                recordings.save(name, await loading(), f"llama-server compiled from {_pinned(source.SOURCE)}")
                continue
            # One process a call: what one call leaves in the prompt cache does not change another's counts.
            async with llama.running(folder, Path(scratch) / "log") as engine:
                answer = await ask(engine, CALLS[name])
            recordings.save(name, answer, server)
            print(f"{name}: {answer.status}, {len(answer.response)} bytes", flush=True)  # noqa: T201


async def loading() -> Recording:
    """What a compiled `llama-server` says of itself while it loads: the wheel's listens only afterwards.

    Needs one, which `make test-long` compiles. Raises ConnectionError if it was too quick.
    """
    target, port = source.folder(preflight.look()), free_port()
    argv, environ = llamacpp.command(target, models.smollm2_gguf(), port)
    process = await asyncio.create_subprocess_exec(*argv, env=environ)
    try:
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                await asyncio.sleep(0)
            else:
                break
        writer.write(_request("/health", None))
        response = await reader.read()
        writer.close()
    finally:
        process.kill()
        await process.wait()
    if b"503" not in response:
        raise ConnectionError("it had loaded already: try again")
    return Recording("/health", None, response)


def _pinned(requirements: Path) -> str:
    (line,) = (line for line in requirements.read_text().splitlines() if "==" in line)
    return line.split()[0]


async def ask(engine: llama.Llama, call: Call) -> Recording:
    """What the engine answers to a call, as bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", engine.port)
    body = call.raw if call.raw is not None else json.dumps(call.body).encode() if call.body else None
    writer.write(_request(call.path, body))
    response = await reader.readuntil(b"\r\n\r\n")
    if call.cut:
        while len(response) < CUT_BYTES:
            response += await reader.readuntil(b"\n")
        engine.process.kill()
    elif b"chunked" in response:
        response += await reader.readuntil(b"\r\n0\r\n\r\n")
    else:
        fields = response.decode().lower().split("\r\n")
        (length,) = (field for field in fields if field.startswith("content-length:"))
        response += await reader.readexactly(int(length.partition(":")[2]))
    writer.close()
    return Recording(call.path, call.body, response, call.cut)


def _request(path: str, body: bytes | None) -> bytes:
    if body is None:
        return f"GET {path} HTTP/1.1\r\nhost: engine.test\r\n\r\n".encode()
    head = f"POST {path} HTTP/1.1\r\nhost: engine.test\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
