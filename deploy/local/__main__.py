"""`python -m deploy.local up|down|status|logs`: what the Makefile calls; every failure is one line."""

import argparse
import errno
import sys

from deploy.local import stack, status
from deploy.local.places import Places
from deploy.local.problem import Problem

INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """The exit code of a command."""
    parser = argparse.ArgumentParser(prog="python -m deploy.local", description=__doc__)
    parser.add_argument("command", choices=["up", "down", "status", "logs"])
    parser.add_argument("service", nargs="?", help="for logs: one service instead of all")
    options = parser.parse_args(arguments)
    try:
        return _run(options.command, options.service or None, Places())
    except Problem as problem:
        print(f"make {options.command}: {problem}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(
            f"make {options.command}: the disk is full ({error.filename}): free some space.", file=sys.stderr
        )
        return 1
    except KeyboardInterrupt:
        print(f"\nmake {options.command}: interrupted. Running it again goes on from here.", file=sys.stderr)
        return INTERRUPTED


def _run(command: str, service: str | None, places: Places) -> int:
    match command:
        case "up":
            stack.up(places)
        case "down":
            stack.down(places)
        case "status":
            return 0 if status.status(places) else 1
        case _:
            status.follow(places, service)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
