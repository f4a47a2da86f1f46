"""Whether an engine that says it is well still works: one that hangs goes on answering its `/health`.

Nothing is asked while bytes come from it, nor while nobody waits for any. Only when callers have waited
and the engine has been silent to all of them for a minute is it asked for one token of its own: long
plain answers are silent too, and one token tells them from an engine that hangs. vLLM works on all it
has in turns, so one token does not wait for them to end; other engines may have a queue, and are not asked.
"""

from collections.abc import Callable, Sequence

import httpx

from gateway.engines.client import Client
from gateway.engines.unwell import Unwell
from gateway.errors import reason_of
from gateway.settings import Model

SILENT_SECONDS = 60.0
ANSWER_SECONDS = 30.0


class Pulse:
    """What is known of one engine's work; `check` belongs after a probe that said it is well."""

    __slots__ = ("_answer_seconds", "_clock", "_hangs", "_heard_at", "_reads")

    def __init__(self, clock: Callable[[], float], answer_seconds: float = ANSWER_SECONDS) -> None:
        self._clock = clock
        self._answer_seconds = answer_seconds
        self._reads = 0
        self._heard_at = clock()
        self._hangs = False

    async def check(self, http: httpx.AsyncClient, url: str, client: Client, models: Sequence[Model]) -> None:
        """Return if the engine works, as far as can be told. Raises Unwell if it does not."""
        now = self._clock()
        reads = client.pool.reads
        if reads != self._reads or not (client.in_flight or self._hangs):
            self._reads, self._heard_at, self._hangs = reads, now, False
        elif self._hangs or now - self._heard_at >= SILENT_SECONDS:
            await self._ask(http, url, models)
            self._heard_at = self._clock()

    async def _ask(self, http: httpx.AsyncClient, url: str, models: Sequence[Model]) -> None:
        model = next((model for model in models if url in model.engines and model.kind == "vllm"), None)
        if model is None:
            return
        body = {"model": model.engine_model or model.id, "prompt": "1", "max_tokens": 1}
        self._hangs = True
        try:
            # Any answer is one: an engine for embeddings says 404 here, and is alive.
            await http.post(url + "/v1/completions", json=body, timeout=self._answer_seconds)
        except httpx.TimeoutException:
            raise Unwell(
                f"it says it is well and has sent nothing for {SILENT_SECONDS:g} s; one token, asked for by "
                f"the gateway, did not come within {self._answer_seconds:g} s: restart it"
            ) from None
        except httpx.HTTPError as error:
            raise Unwell(reason_of(error), starting=True) from error
        self._hangs = False
