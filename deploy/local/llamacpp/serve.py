# mypy: disable-error-code="import-not-found"
# xllamacpp is installed beside the engine alone.
"""Serves a GGUF file with llama.cpp's own HTTP server until it is killed, on loopback alone.

Run by the Python that has xllamacpp: serve.py GGUF-FILE MODEL-ID PORT SLOTS CONTEXT-TOKENS-PER-SLOT.
It listens once the model is loaded. The flags are those of `llama-server` in `deploy.local.llamacpp`.
"""

import signal
import sys

import xllamacpp


def main(file: str, model_id: str, port: int, slots: int, context_tokens: int) -> None:
    """Never returns."""
    wanted = xllamacpp.CommonParams()
    wanted.model.path = file
    wanted.model_alias = {model_id}
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = port
    wanted.n_parallel = slots
    wanted.n_ctx = slots * context_tokens
    wanted.kv_unified = False
    wanted.endpoint_metrics = True
    wanted.endpoint_slots = False
    wanted.ui = False
    wanted.cors_origins = "http://127.0.0.1"
    wanted.offline = True
    server = xllamacpp.Server(wanted)
    print(f"listening on {server.listening_address}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
