"""The command line: what can be typed after `gateway`. What a command does is in the room it calls."""

import errno
import os
import sys
from typing import Annotated

import typer

from gateway import __version__
from gateway.cli import check, doctor, keys, usage
from gateway.cli import plan as planning

app = typer.Typer(
    help="API keys, limits and default parameters in front of a vLLM engine.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # a local may be a secret
)
app.add_typer(keys.app, name="keys")
app.command()(check.check)
app.command()(usage.usage)
app.command()(doctor.doctor)
app.command()(planning.plan)


def main() -> None:
    """The command as a shell runs it. Raises SystemExit; output that finds no room is told in one line."""
    try:
        app(prog_name="gateway")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        typer.echo(f"gateway: the output cannot be written: {error.strerror}.", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is not tried again
        raise SystemExit(1) from error


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vllm-gateway {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """API keys, limits and default parameters in front of a vLLM engine."""


@app.command()
def serve() -> None:
    """Serve until told to stop. Settings come from GATEWAY_* variables and gateway.toml (GATEWAY_CONFIG)."""
    from gateway.cli.configuration import loaded

    found = loaded()
    from gateway.app import run  # the server's libraries load for this command alone

    raise typer.Exit(run(found))
