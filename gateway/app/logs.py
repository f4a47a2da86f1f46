"""Logs: an event name and fields; one JSON object a line off a terminal, text on one."""

import logging
import sys
from typing import Literal

import orjson
import structlog
import structlog.tracebacks


def configure(log_format: Literal["json", "text"] | None) -> None:
    """Set up structlog and the standard library's loggers. None: text on a terminal, else JSON."""
    as_text = sys.stderr.isatty() if log_format is None else log_format == "text"
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    final: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if as_text
        else [_tracebacks(), structlog.processors.JSONRenderer(serializer=_serialise)]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *final],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for chatty in ("uvicorn", "uvicorn.error", "httpx", "httpcore", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # Its warnings say what callers wrote wrong, and the callers are told.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)


def _tracebacks() -> structlog.typing.Processor:
    """Where it happened, without the values of local variables: they may be a prompt or a key."""
    return structlog.processors.ExceptionRenderer(
        structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    )


def _serialise(event: object, **_: object) -> str:
    return orjson.dumps(event, default=str).decode()
