"""What the model hub says of a model, which is asked for no folder."""

from collections.abc import Mapping
from dataclasses import replace

from gateway.doctor.evidence import Disk, Hub
from gateway.doctor.finding import Unseen
from gateway.doctor.look import files, web
from gateway.doctor.look.programs import document
from gateway.doctor.look.site import Site
from gateway.doctor.look.web import Answer, Fetch

HUB = "https://huggingface.co"
SECONDS = 4.0


def look(disk: Disk | Unseen, at: Site) -> tuple[Hub | Unseen, float | None]:
    """What it says, if the model may have to be fetched, and how far this clock is ahead of the hub's."""
    if isinstance(disk, Unseen):
        return disk, None
    token = at.environ.get("HF_TOKEN") or files.line(at.folder / files.FOLDER_OF_SECRETS / "hf-token")
    if disk.local or disk.there is True:
        return Hub(disk.model, None, bool(token), 0, there=disk.there, local=disk.local), None
    return ask(
        endpoint(at.environ).rstrip("/"),
        disk.model,
        token,
        web.direct(seconds=SECONDS, by_proxy=True),
        web.direct({"authorization": f"Bearer {token}"}, seconds=SECONDS, by_proxy=True),
        there=disk.there,
    )


def endpoint(environ: Mapping[str, str]) -> str:
    """The hub that is asked."""
    return environ.get("HF_ENDPOINT") or HUB


def ask(
    address: str,
    model: str,
    token: str,
    fetch: Fetch,
    with_token: Fetch,
    *,
    there: bool | Unseen = False,
) -> tuple[Hub, float | None]:
    """What the hub says of a model, and how far this clock is ahead of the hub's."""
    nothing = Hub(model, None, bool(token), 0, there=there)
    if is_folder(model):
        return replace(nothing, local=True), None
    answer = fetch(f"{address}/api/models/{model}")
    if isinstance(answer, Unseen):
        return nothing, None
    gated = bool(document(answer.text).get("gated")) if answer.status == 200 else None
    access = with_token(f"{address}/{model}/resolve/main/config.json") if token else None
    return (
        replace(
            nothing,
            gated=True if answer.status in {401, 403} else gated,
            access=access.status if isinstance(access, Answer) else 0,
            status=answer.status,
        ),
        answer.ahead_seconds,
    )


def is_folder(model: str) -> bool:
    """Whether it is a folder by how it is written: on the hub are names, or names below an owner's."""
    return model.startswith(("/", "./", "../", "~")) or model.count("/") > 1
