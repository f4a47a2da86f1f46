"""`make clean` in both modes: says what it would delete, asks, deletes. Needs the standard library alone.

Run as `python3 -m deploy.box.clean [--yes] [--cache]`: the virtual environment may be gone already.
"""

import argparse
import shutil
import sys
from pathlib import Path

from deploy.box import containers, docker, variables
from deploy.box.places import Places
from deploy.local import clean as local
from deploy.local import session
from deploy.local.places import Places as LocalPlaces
from deploy.local.problem import Problem

# What is lost with each volume; of those that an extra file brings, what its name says.
LOST = {
    "gateway-data": "API keys and usage",
    "caddy-data": "certificates, and the authority that clients were told to trust",
    "weights": "the downloaded model",
    "vllm-cache": "compiled kernels",
    "prometheus-data": "the history of the dashboards",
    "alertmanager-data": "silences",
    "grafana-data": "Grafana's users and dashboards of your own",
    "open-webui-data": "Open WebUI's users and chats",
}
DOWNLOADED = frozenset({"weights", "vllm-cache"})


def volumes(places: Places, project: str, *, with_cache: bool) -> dict[str, str]:
    """The volumes that would be deleted, and what is lost with each. Raises Problem without Docker."""
    label = f"label={containers.LABEL}.project={project}"
    names = docker.answer(places, "volume", "ls", "-q", "--filter", label).split()
    own = {name: name.removeprefix(f"{project}_") for name in names}
    return {
        name: LOST.get(short, short) for name, short in own.items() if with_cache or short not in DOWNLOADED
    }


def main(arguments: list[str]) -> int:
    """The exit code: 0 if it deleted or had nothing to, 1 if it was refused."""
    parser = argparse.ArgumentParser(prog="make clean", description=__doc__)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--cache", action="store_true", help="the downloaded model, images and user's cache too"
    )
    options = parser.parse_args(arguments)
    try:
        return _clean(Places(), yes=options.yes, cache=options.cache)
    except Problem as problem:
        print(f"make clean: {problem}", file=sys.stderr)
        return 1


def _clean(places: Places, *, yes: bool, cache: bool) -> int:
    found = variables.load(places)
    boxed = bool(found.get("PROFILE"))
    project = variables.project(found)
    if _running(places, project, boxed=boxed):
        print("The stack is running: make down first.", file=sys.stderr)
        return 1
    doomed = volumes(places, project, with_cache=cache) if boxed else {}
    images = _images(places, cache=cache) if boxed else {}
    folders = _folders(places, cache=cache)
    for thing, loss in [*doomed.items(), *images.items(), *((str(at), why) for at, why in folders.items())]:
        print(f"{thing}  ({loss})")
    if not (doomed or images or folders):
        print("Nothing to delete.")
        return 0
    if places.backups.exists():
        print(f"{places.backups} stays.")
    if not yes and not _agreed():
        print("Nothing was deleted. YES=1 deletes without asking.", file=sys.stderr)
        return 1
    _delete(places, project, list(doomed), list(images), list(folders), boxed=boxed)
    return 0


def _running(places: Places, project: str, *, boxed: bool) -> bool:
    if session.running(LocalPlaces(places.checkout).pid_file, places.checkout):
        return True
    return boxed and any(one.running for one in containers.of_project(places, project).values())


def _images(places: Places, *, cache: bool) -> dict[str, str]:
    """The images that were built here; with `cache` those that were pulled, too."""
    built = docker.answer(
        places, "image", "ls", "--filter", "reference=vllm-gateway*", "--format", "{{.Repository}}:{{.Tag}}"
    )
    found = dict.fromkeys(built.split(), "image, built again by make up")
    if cache:
        pulled = docker.tried(places, *docker.with_setup(places), "config", "--images").out.split()
        found |= {name: "image, downloaded again by make up" for name in pulled if name not in found}
    return found


def _folders(places: Places, *, cache: bool) -> dict[Path, str]:
    wanted = {
        places.secrets: "secrets, the first API key, the certificate of the authority",
        places.env_file: "what make up was told and found out",
        places.own_profiles: "profiles that make model has planned",
    }
    there = {path: loss for path, loss in wanted.items() if path.exists()}
    return {**there, **local.doomed(LocalPlaces(places.checkout), cache)}


def _delete(
    places: Places, project: str, doomed: list[str], images: list[str], folders: list[Path], *, boxed: bool
) -> None:
    if boxed:
        stopped = [one.id for one in containers.of_project(places, project).values()]
        if stopped:
            docker.answer(places, "rm", "-f", *stopped)
        label = f"label={containers.LABEL}.project={project}"
        for network in docker.answer(places, "network", "ls", "-q", "--filter", label).split():
            docker.answer(places, "network", "rm", network)
        if doomed:
            docker.answer(places, "volume", "rm", *doomed)
        for image in images:
            # One that another stack uses stays: that is no failure of ours.
            docker.tried(places, "image", "rm", image)
    # .env last: with it gone, nothing here would know of the volumes any more.
    for path in sorted(folders, key=lambda one: one == places.env_file):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _agreed() -> bool:
    return sys.stdin.isatty() and input("Delete all of this? [y/N] ").strip().lower() in {"y", "yes"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
