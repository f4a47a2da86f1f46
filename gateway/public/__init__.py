"""The public port: a plain ASGI application that serves live calls and hands the rest to FastAPI.

A framework's route would cost more than all else that a relayed request needs; so the framework stands
behind, where clarity counts more.
"""

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.errors import ClientClosed, GatewayError
from gateway.public import cors, routes
from gateway.public.live import Live, Rules, shutting_down
from gateway.public.respond import body_of, has_body, internal_error, refuse, respond
from gateway.relay import CALLER
from gateway.routes import Route
from gateway.usage import RECORD, Record

__all__ = ["Live", "Public", "Rules", "shutting_down"]

_log = structlog.get_logger("gateway.public")


class Public:
    """Routes by the allow-list; every error leaves through here, exactly once."""

    def __init__(self, live: Live, api: ASGIApp) -> None:
        self._live = live
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record: Record = scope[RECORD]
        origins = self._live.rules.settings.server.cors_origins
        asked = ""
        if origins:
            send, asked = cors.marking(scope, send, origins), cors.preflight_method(scope)
        try:
            route, path = routes.find(asked or scope["method"], scope["path"])
            record.route = route.template
            if asked:
                await cors.grant(scope, send, route)
            elif route.served == "engine":
                await self._live(scope, receive, send, record)
            else:
                await self._hand_on(scope, receive, send, record, route, path)
        except ClientClosed as error:
            record.fail(error.code, error.cause)
        except GatewayError as error:
            await self._answer(scope, receive, send, record, error)
        except TimeoutError:
            record.fail("client_closed", "did not read the end of its stream")
            scope["extensions"][CALLER].abort()
        except Exception as error:  # noqa: BLE001  the last place: the caller gets an id, the log the trace
            _log.exception("internal_error", request_id=record.request_id, error=repr(error))
            await self._answer(scope, receive, send, record, internal_error(record))

    async def _hand_on(
        self, scope: Scope, receive: Receive, send: Send, record: Record, route: Route, path: str
    ) -> None:
        if route.served == "api":
            scope["state"]["key"] = self._live.authenticate(scope, record)
        if path != scope["path"] or scope["method"] == "HEAD":
            scope = {**scope, "path": path, "raw_path": path.encode(), "method": "GET"}
        await self._api(scope, receive, send)

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, record: Record, error: GatewayError
    ) -> None:
        record.fail(error.code, error.cause)
        if record.status:  # too late to say it: what was begun must not look complete
            scope["extensions"][CALLER].abort()
            return
        body = body_of(error, scope["path"], record)
        if not record.read and has_body(scope["headers"]):
            await refuse(receive, send, error, body, known=record.key_id is not None)
        else:
            await respond(send, error, body, close=self._live.calls.draining)
