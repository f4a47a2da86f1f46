"""An OpenAPI description of the public port, for tests alone: bodies are the engine's to judge.

Bodies are typed as loosely as the valid ones in `bodies` show; answers as strictly as the design says.
"""

from collections.abc import Sequence
from typing import Any

import schemathesis
from schemathesis import checks
from schemathesis.specs.openapi import checks as of_openapi

from gateway.routes import ROUTES, Route
from tests.fuzz.bodies import SEEDS
from tests.running import PATIENCE_SECONDS

Schema = dict[str, Any]

CHECKS: list[Any] = [
    checks.not_a_server_error, of_openapi.status_code_conformance, of_openapi.content_type_conformance,
    of_openapi.response_schema_conformance, of_openapi.response_headers_conformance,
    of_openapi.unsupported_method, of_openapi.allow_header_conformance,
]  # fmt: skip
REFUSALS = (400, 401, 404, 405, 413, 415, 431)
TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
FORM: Schema = {
    "type": "object",
    "properties": {
        "file": {"type": "string", "format": "binary"}, "language": TEXT, "prompt": TEXT,
        "response_format": {"enum": ["json", "text", "srt"]}, "temperature": {"type": "number"},
        "stream": {"type": "boolean"},
    },
    "required": ["file", "model"],
}  # fmt: skip


def call(case: schemathesis.Case[Any], url: str, key: str) -> None:
    """Call with this key, past any proxy of the machine's, and judge the answer by the description."""
    headers = {"authorization": f"Bearer {key}"}
    case.call_and_validate(
        base_url=url, headers=headers, checks=CHECKS, timeout=PATIENCE_SECONDS, proxies={"http": ""}
    )


def closed(**properties: Schema) -> Schema:
    """An object that has all of these properties and no others."""
    return {
        "type": "object", "properties": properties, "required": [*properties], "additionalProperties": False,
    }  # fmt: skip


OPENAI_ERROR = closed(error=closed(message=TEXT, type=TEXT, param=TEXT_OR_NULL, code=TEXT))
ANTHROPIC_ERROR = closed(type={"const": "error"}, error=closed(type=TEXT, message=TEXT), request_id=TEXT)


def document(*models: str) -> Schema:
    """The whole description: every row of the table of routes. `models` are those that a body may name."""
    paths: dict[str, Schema] = {}
    for route in ROUTES:
        for method in route.methods:
            paths.setdefault(route.template, {})[method.lower()] = _operation(route, method, models)
    return {
        "openapi": "3.1.0",
        "info": {"title": "The public port", "version": "1"},
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(route: Route, method: str, models: Sequence[str]) -> Schema:
    operation: Schema = {"responses": _responses(route, method)}
    if route.served != "open":
        operation["security"] = [{"key": []}]
    if "{id}" in route.template:
        operation["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": TEXT}]
    if method == "POST":
        body = FORM if route.body == "form" else _like(SEEDS[route.template])
        body = {**body, "properties": {**body["properties"], "model": {"enum": [*models]}}}
        kind = "multipart/form-data" if route.body == "form" else "application/json"
        operation["requestBody"] = {"required": True, "content": {kind: {"schema": body}}}
    return operation


def _responses(route: Route, method: str) -> Schema:
    error = ANTHROPIC_ERROR if route.dialect == "messages" else OPENAI_ERROR
    content = {} if method == "HEAD" else _json(error)
    headers = {"x-request-id": {"required": True, "schema": TEXT}}
    refused = {"description": "refused", "content": content, "headers": headers}
    refusals = {str(status): refused for status in REFUSALS}
    good: Schema = {"description": "answered", "headers": headers}
    if method != "HEAD":
        good["content"] = _json({"type": "object"}) | ({"text/event-stream": {}} if route.streams else {})
    return {"200": good, **refusals}


def _like(value: Any) -> Schema:
    """A type that this value has, and others like it."""
    if isinstance(value, dict):
        properties = {name: _like(item) for name, item in value.items()}
        required = [name for name in ("messages", "prompt", "input", "max_tokens") if name in value]
        return {"type": "object", "properties": properties, "required": required}
    if isinstance(value, list):
        return {"type": "array", "items": {"anyOf": [_like(item) for item in value]} if value else {}}
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string")):
        if isinstance(value, kind):
            return {"type": name}
    return {}


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
