"""The operator's configuration as a command needs it, or its problems on stderr and exit code 1."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from gateway.settings import Loaded


def loaded(file: Path | None = None, *, to_serve: bool = True, advice: tuple[str, ...] = ()) -> "Loaded":
    """Settings from this file, or as `gateway serve` finds them, with what the operator should hear of them.

    `to_serve` False is for commands that need no engine. `advice` follows the problems, if there are any.
    """
    from gateway.settings import SettingsError, load

    try:
        return load(file, os.environ, to_serve=to_serve)
    except SettingsError as error:
        for problem in (*error.problems, *advice):
            typer.echo(f"gateway: {problem}", err=True)
        raise typer.Exit(1) from error
