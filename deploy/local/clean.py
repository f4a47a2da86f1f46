"""`make clean`: says what it would delete, asks, deletes. Needs nothing but Python's standard library.

Run as `python3 -m deploy.local.clean [--yes] [--cache]`: the virtual environment may be gone already.
"""

import argparse
import shutil
import sys
from pathlib import Path

from deploy.local import session
from deploy.local.places import Places, cache_folder

BUILT = (
    ".venv",
    "build",
    "dist",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".import_linter_cache",
    ".hypothesis",
)


def doomed(places: Places, with_cache: bool) -> dict[Path, str]:
    """What would be deleted, as far as it is there, and what is lost with it."""
    wanted = {places.data: "API keys, usage, certificate authority, settings, logs"}
    wanted |= {places.checkout / name: "made again by make install" for name in BUILT}
    if with_cache:
        wanted[cache_folder()] = "engine and weights of all checkouts, downloaded again by make up"
    return {path: loss for path, loss in wanted.items() if path.exists()}


def main(arguments: list[str]) -> int:
    """The exit code: 0 if it deleted or had nothing to, 1 if it was refused."""
    parser = argparse.ArgumentParser(prog="make clean", description=__doc__)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--cache", action="store_true", help="the user's cache folder too")
    options = parser.parse_args(arguments)
    places = Places()
    if session.running(places.pid_file, places.checkout):
        print("The stack is running: make down first.", file=sys.stderr)
        return 1
    found = doomed(places, options.cache)
    for path, loss in found.items():
        print(f"{path}  ({loss})")
    if not found:
        print("Nothing to delete.")
        return 0
    if not options.yes and not _agreed():
        print("Nothing was deleted. YES=1 deletes without asking.", file=sys.stderr)
        return 1
    for path in found:
        shutil.rmtree(path)
    return 0


def _agreed() -> bool:
    return sys.stdin.isatty() and input("Delete all of this? [y/N] ").strip().lower() in {"y", "yes"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
