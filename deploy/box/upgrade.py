"""`make upgrade`: this checkout's images in the place of those that run, and the way back at need."""

import json
from collections.abc import Mapping
from pathlib import Path

from rich.markup import escape

from deploy.box import archive, backup, containers, contents, docker, images, restore, stack, variables
from deploy.box.containers import Container
from deploy.box.places import Places
from deploy.box.watch import Watch
from deploy.local.problem import Problem
from deploy.local.progress import console, step

WAY_BACK = "rollback.json"


def upgrade(places: Places) -> None:
    """Fetches the images, saves, starts the new ones (the gateway migrates its data) and asks a question.

    Raises Problem if that fails: then the old images run again, with the data from before.
    """
    found = stack.prepare(places)
    project = variables.project(found)
    running = {name: one for name, one in containers.of_project(places, project).items() if one.running}
    if images.GATEWAY not in running:
        raise Problem("The stack is not running: make up first, so that there is something to go back to.")
    # The old gateway's image loses its tag to the one that is built now.
    kept = images.keep(places, {name: one.image_id for name, one in running.items()})
    images.provide(places, rebuild=True)
    saved = backup.of_box(places, None)
    try:
        stack.start(places, found)
    except Problem as problem:
        _go_back(places, running, kept, saved, problem)
    images.let_go(places, kept)
    print(f"{_changed(running, containers.of_project(places, project))}\n{stack.invitation(places, found)}")


def _changed(before: Mapping[str, Container], after: Mapping[str, Container]) -> str:
    names = [name for name, one in after.items() if name in before and before[name].image_id != one.image_id]
    return f"Upgraded: {', '.join(names)}." if names else "All images were this checkout's already."


def _go_back(
    places: Places, running: Mapping[str, Container], kept: Mapping[str, str], saved: Path, problem: Problem
) -> None:
    found = variables.load(places)
    console().print(f"[red]✗[/red] {escape(str(problem))}")
    console().print("  Going back to the images and the data from before …")
    overlay = _overlay(places, kept)
    docker.answer(places, "compose", "stop", "gateway", seconds=None)
    with step("Putting the data from before back"), archive.opened(saved, "box", places.backups) as content:
        restore.put_volume(places, contents.DATA, content.folder / contents.DATA, image=kept[images.GATEWAY])
    again = ("compose", "up", "-d", "--no-build", "--force-recreate", *kept)
    docker.show(places, *again, instead={"COMPOSE_FILE": overlay})
    _forget_new(places, running[images.GATEWAY].image, kept[images.GATEWAY])
    with step("Starting the images from before") as progress:
        Watch(places, variables.project(found)).until_well(kept, progress, stack.START_SECONDS)
    stack.answers(places, found)
    why = str(problem).partition(". Its last lines")[0].splitlines()[0]
    raise Problem(
        f"the upgrade failed ({why}) and was taken back: the images from before run, with the data of "
        f"{saved}. The other files are this checkout's still: mend it and make upgrade again, or git "
        "checkout the version from before and make up."
    ) from problem


def _forget_new(places: Places, before: str, kept: str) -> None:
    """Sees to it that no later `make up` takes the image that has just failed for the one it wants."""
    new = images.of_stack(places)[images.GATEWAY]
    if new == before:
        docker.answer(places, "tag", kept, new)
    else:
        docker.tried(places, "image", "rm", new)


def _overlay(places: Places, kept: Mapping[str, str]) -> str:
    """A COMPOSE_FILE with one more file, in which each service has the image from before."""
    services = {name: {"image": image, "pull_policy": "never"} for name, image in kept.items()}
    file = places.backups / WAY_BACK
    # JSON is YAML.
    file.write_text(json.dumps({"services": services}, indent=1), encoding="utf-8")
    return f"{variables.load(places)['COMPOSE_FILE']}:{file.relative_to(places.checkout)}"
