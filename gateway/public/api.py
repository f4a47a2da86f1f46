"""The public routes that are no live calls: a FastAPI application behind the plain one."""

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI, Request, Response

from gateway.errors import GatewayError, ModelNotFound, handlers
from gateway.keys import Key
from gateway.public.live import Live
from gateway.public.respond import internal_error
from gateway.settings import Model
from gateway.usage import RECORD, Record


def build(live: Live, created: int) -> FastAPI:
    """The application. `created` is the Unix time that models are said to be made at: the start."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    handlers.install(app)
    app.add_exception_handler(GatewayError, _refused)
    app.add_exception_handler(Exception, _failed)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/models")
    async def models(request: Request) -> dict[str, Any]:
        key: Key = request.state.key
        _check_discovered(live)
        return {
            "object": "list",
            "data": [
                _entry(live, model, name, created)
                for model in live.rules.catalogue.visible(key)
                for name in _names(model)
                if _allowed(live, key, name)
            ],
        }

    @app.get("/v1/models/{name:path}")
    async def model(name: str, request: Request) -> dict[str, Any]:
        _check_discovered(live)
        target = live.rules.catalogue.find(name, request.state.key)
        return _entry(live, target.model, name, created)

    return app


async def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, GatewayError):
        raise error
    record: Record = request.scope[RECORD]
    record.fail(error.code, error.cause)
    return handlers.render(error)


async def _failed(request: Request, _error: Exception) -> Response:
    """The answer alone: the framework raises the error once more, and `Public` logs it."""
    record: Record = request.scope[RECORD]
    return handlers.render(internal_error(record))


def _check_discovered(live: Live) -> None:
    """An empty list would be believed; callers are told to come back instead."""
    if not live.registry.discovered:
        raise live.registry.undiscovered()


def _names(model: Model) -> Iterable[str]:
    """What callers can write for a model: its id, its exact aliases, its variants."""
    yield model.id
    yield from (alias for alias in model.aliases if not alias.endswith("*"))
    yield from (f"{model.id}:{variant}" for variant in model.variants)


def _allowed(live: Live, key: Key, name: str) -> bool:
    try:
        live.rules.catalogue.find(name, key)
    except ModelNotFound:
        return False
    return True


def _entry(live: Live, model: Model, name: str, created: int) -> dict[str, Any]:
    """A model under one of its names. How long its prompts may be is told if its engines have told it."""
    entry: dict[str, Any] = {"id": name, "object": "model", "created": created, "owned_by": "vllm-gateway"}
    longest = live.registry.max_model_len(model)
    return entry if longest is None else {**entry, "max_model_len": longest}
