"""Who may administer: the bearer of GATEWAY_ADMIN_TOKEN, on the operator's listener alone."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable

from fastapi import Request
from pydantic import SecretStr

from gateway.errors import CallerError, NotFound


class InvalidAdminToken(CallerError):
    """No admin token or a wrong one; unlike a caller, an operator is told which one is meant."""

    status = 401
    code = "invalid_api_key"

    def __init__(self, cause: str) -> None:
        super().__init__(
            "Incorrect admin token. Send 'Authorization: Bearer' with the value of GATEWAY_ADMIN_TOKEN.",
            headers=[(b"www-authenticate", b"Bearer")],
            cause=cause,
        )


def administrator(token: SecretStr | None) -> Callable[[Request], Awaitable[None]]:
    """A FastAPI dependency that lets only the bearer of `token` pass; without one, nothing is there.

    It raises InvalidAdminToken 401, or NotFound 404 while no token is configured.
    """
    expected = None if token is None else _digest(token.get_secret_value().encode())

    async def check(request: Request) -> None:
        if expected is None:
            raise NotFound("The admin API is off. Set GATEWAY_ADMIN_TOKEN and restart the gateway to use it.")
        given = _bearer(request)
        if not hmac.compare_digest(expected, _digest(given)):
            raise InvalidAdminToken("wrong admin token" if given else "no admin token")

    return check


def _bearer(request: Request) -> bytes:
    # Raw bytes: a token may hold any, and must end in 401.
    values = [value for name, value in request.scope["headers"] if name == b"authorization"]
    scheme, _, token = (values[0] if len(values) == 1 else b"").strip().partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


def _digest(token: bytes) -> bytes:
    """Of one length for all tokens, so that the comparison's time tells nothing, not even that."""
    return hashlib.sha256(token).digest()
