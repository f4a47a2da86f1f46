"""The FastAPI application of the ops port."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi import Depends, FastAPI, Response
from pydantic import SecretStr

from gateway.engines import Registry
from gateway.errors import InvalidRequest, handlers
from gateway.keys import Keyring
from gateway.metrics import Metrics
from gateway.ops import explain, keys, usage
from gateway.ops.admin import administrator
from gateway.relay import Calls
from gateway.settings import SettingsError
from gateway.store import UsageStore

EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"  # as `Metrics.render` writes it


@dataclass(frozen=True, slots=True)
class Parts:
    """What the ops port looks at and acts on. `reload` answers the settings that need a restart."""

    metrics: Metrics
    registry: Registry
    keyring: Keyring
    calls: Calls
    reload: Callable[[], Awaitable[list[str]]]
    explainer: explain.Explainer
    usage: UsageStore
    admin_token: SecretStr | None


def build(parts: Parts) -> FastAPI:
    """The application: `/metrics`, `/healthz`, `/readyz`, `/admin/*`."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    handlers.install(app)
    _add_health(app, parts)
    admin = administrator(parts.admin_token)
    app.include_router(keys.router(parts.keyring, admin))
    app.include_router(explain.router(parts.explainer, admin))
    app.include_router(usage.router(parts.usage, admin))

    @app.post("/admin/reload", dependencies=[Depends(admin)])
    async def reload() -> dict[str, Any]:
        try:
            later = await parts.reload()
        except SettingsError as error:
            raise InvalidRequest("The configuration was kept: " + "; ".join(error.problems)) from error
        return {"reloaded": True, "needs_restart": later}

    return app


def _add_health(app: FastAPI, parts: Parts) -> None:
    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(parts.metrics.render(), media_type=EXPOSITION)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz")
    async def readyz(response: Response) -> dict[str, Any]:
        ready, reasons = parts.registry.ready()
        if parts.calls.draining:
            ready, reasons = False, ["the gateway is shutting down"]
        if not ready:
            response.status_code = 503
        return {"ready": ready, "reasons": reasons}
