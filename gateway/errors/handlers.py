"""How FastAPI applications of ours render errors, the framework's own 404, 405 and 422 included."""

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from gateway.errors.tree import GatewayError, InvalidJson, InvalidRequest, MethodNotAllowed, NotFound, quote


def render(error: GatewayError) -> Response:
    """The whole response of an error."""
    response = Response(error.body(), error.status)
    response.raw_headers.extend(error.headers())
    return response


def install(app: FastAPI) -> None:
    """Every error of this application answers in OpenAI's shape."""
    app.add_exception_handler(GatewayError, _gateway_error)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(RequestValidationError, _validation_error)


async def _gateway_error(_request: Request, error: Exception) -> Response:
    if not isinstance(error, GatewayError):
        raise error
    return render(error)


async def _http_exception(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == 404:
        return render(NotFound(f"There is nothing at {quote(request.url.path)}."))
    if error.status_code == 405:
        allowed = sorted((error.headers or {}).get("Allow", "").split(", "))
        return render(MethodNotAllowed(request.method, request.url.path, allowed))
    return render(InvalidRequest(str(error.detail)))


async def _validation_error(_request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return render(InvalidJson("The body is not valid JSON."))
    where = ".".join(str(part) for part in first["loc"][1:])
    return render(InvalidRequest(f"{where or 'body'}: {first['msg']}", param=where or None))
