"""`python -m deploy.box COMMAND`: what the Makefile calls; every failure is one message with its mend.

Libraries of databases and HTTP are imported by the command that needs them: the others answer at once.
"""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from deploy.box import choice, variables
from deploy.box.places import Places
from deploy.local import __main__ as local
from deploy.local.places import Places as LocalPlaces
from deploy.local.problem import Problem
from deploy.local.progress import console

INTERRUPTED = 130

app = typer.Typer(
    help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False
)
Service = Annotated[str, typer.Option(envvar="SERVICE", help="One service instead of all.")]
File = Annotated[Path | None, typer.Option(envvar="FILE", help="The backup.")]
Yes = Annotated[str, typer.Option(envvar="YES", help="1: do not ask.")]
Profile = Annotated[
    str, typer.Option(envvar="PROFILE", help="A profile of deploy/profiles/ instead of the card's.")
]
Model = Annotated[str, typer.Option(envvar="MODEL", help="A catalogue name, a hub id or a folder.")]
Back = Annotated[str, typer.Option(envvar="BACK", help="1: the model before.")]


@app.command()
def up(profile: Profile = "") -> None:
    """Start engine, gateway, Caddy and what watches them; print the base URL and a curl line that answers."""
    places = Places()
    chosen = choice.for_up(places)
    console().print(f"  {chosen.why}", markup=False)
    if chosen.mode == "local":
        raise typer.Exit(local.main(["up"]))
    from deploy.box import stack

    stack.up(places, profile)


@app.command()
def down() -> None:
    """Stop them."""
    from deploy.box import stack

    _either(lambda: stack.down(_box()), lambda: _local("down"))


@app.command("status")
def show_status() -> None:
    """Show what runs, whether it is well, and the addresses."""
    from deploy.box import status

    _either(lambda: _exit(0 if status.status(_box()) else 1), lambda: _local("status"))


@app.command()
def logs(service: Service = "") -> None:
    """Follow the logs."""
    from deploy.box import status

    _either(lambda: status.follow(_box(), service), lambda: _local("logs", service))


@app.command("backup")
def save(file: File = None) -> None:
    """Save keys, usage, secrets and certificates in one file."""
    from deploy.box import backup

    if choice.for_others(Places()).mode == "box":
        backup.of_box(_box(), file)
    else:
        backup.of_local(LocalPlaces(), file)


@app.command("restore")
def put_back(file: File = None, yes: Yes = "") -> None:
    """Put a backup back."""
    from deploy.box import archive, restore

    if file is None:
        raise Problem("name a backup with FILE=…")
    agreed = yes == "1"
    # On an empty machine nothing is set up yet: the backup itself says where it belongs.
    boxed = os.environ.get("MODE") != "local" and archive.mode_of(file) == "box"
    if boxed or choice.for_others(Places()).mode == "box":
        restore.of_box(Places(), file, agreed=agreed)
    else:
        restore.of_local(LocalPlaces(), file, agreed=agreed)


@app.command("upgrade")
def upgrade_all() -> None:
    """Bring the running stack to this checkout's version."""
    from deploy.box import upgrade

    _either(lambda: upgrade.upgrade(_box()), _no_upgrade)


@app.command("model")
def change_model(model: Model = "", back: Back = "") -> None:
    """Serve another model under the same alias; BACK=1: the one before."""
    from deploy.box import model as of_box
    from deploy.local import model as of_local

    _either(
        lambda: of_box.change(_box(), model, back=back == "1"),
        lambda: of_local.change(LocalPlaces(), model, back=back == "1"),
    )


@app.command("alert-test")
def alert_test() -> None:
    """Send a test alert to ALERT_URL."""
    from deploy.box import alerts

    _either(lambda: alerts.send(_box()), _no_alerts)


def _either(box: Callable[[], None], otherwise: Callable[[], None]) -> None:
    box() if choice.for_others(Places()).mode == "box" else otherwise()


def _box() -> Places:
    """The box's places, once it was set up: all targets but `up` and `restore` work on what is there."""
    from deploy.box import edited_env

    places = Places()
    found = variables.load(places)
    if not found.get("PROFILE"):
        raise Problem("the compose stack was not set up here: make up does that.")
    edited_env.check(places, found)
    return places


def _local(*arguments: str) -> None:
    _exit(local.main([argument for argument in arguments if argument]))


def _exit(code: int) -> None:
    raise typer.Exit(code)


def _no_upgrade() -> None:
    raise Problem("in the local mode make up is the upgrade: make backup, make down, git pull, make up.")


def _no_alerts() -> None:
    raise Problem("the local mode has no Alertmanager: alerts belong to the compose stack of a GPU box.")


def main(arguments: list[str]) -> int:
    """The exit code of a command."""
    command = arguments[0] if arguments else ""
    try:
        code = app(arguments, prog_name="python -m deploy.box", standalone_mode=False)
    except Problem as problem:
        print(f"make {command}: {problem}", file=sys.stderr)
        return 1
    except typer.Abort:
        return INTERRUPTED
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"make {command}: the disk is full ({error.filename}): free some space.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nmake {command}: interrupted. Running it again goes on from here.", file=sys.stderr)
        return INTERRUPTED
    return int(code or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
