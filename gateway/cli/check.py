"""`gateway check`: whether a configuration can be served, before anything is."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gateway.settings import Model, Settings


def check(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Default: GATEWAY_CONFIG, or gateway.toml if present."),
    ] = None,
) -> None:
    """Check the configuration: exit code 1 with each problem, its line and its mend, or a short summary."""
    from gateway.settings import SettingsError, load

    try:
        loaded = load(file, os.environ)
    except SettingsError as error:
        for problem in error.problems:
            typer.echo(problem)
        raise typer.Exit(1) from error
    for line in _summary(loaded.settings):
        typer.echo(line)
    for warning in loaded.warnings:
        typer.echo(f"warning: {warning}")


def _summary(settings: "Settings") -> Iterator[str]:
    yield f"{settings.file or 'The environment'} is valid."
    for model in settings.models:
        yield f"model {model.id}{_names(model)} on {', '.join(model.engines)}"
    if not settings.models:
        yield f"models as {settings.upstream_url} lists them"
    yield f"public listener {_address(settings.host, settings.port)}"
    yield f"ops listener {_address(settings.ops_host, settings.ops_port)}"


def _names(model: "Model") -> str:
    """What else callers can write for a model."""
    names = (*model.aliases, *(f"{model.id}:{variant}" for variant in model.variants))
    return f" (also {', '.join(names)})" if names else ""


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
