"""What the model hub is asked, and what becomes of its answers."""

import pytest

from gateway.doctor.look import hub
from gateway.doctor.look.web import Answer
from tests.doctor.answers import web


def test_hub() -> None:
    """Gated or not by the hub's own word; a hub that does not answer says neither."""
    told = web(
        {"http://h/api/models/a/b": {"gated": "manual"}, "http://h/a/b/resolve/main/config.json": "{}"}
    )
    found, _ = hub.ask("http://h", "a/b", "hf_x", told, told)
    assert (found.gated, found.access) == (True, 200)
    found, _ = hub.ask("http://h", "a/b", "", web({"http://h/api/models/a/b": {"gated": False}}), told)
    assert (found.gated, found.access) == (False, 0)
    assert hub.ask("http://h", "a/b", "", web({}), told)[0].gated is None


@pytest.mark.parametrize("model", ["/weights/My-Model", "./mine", "~/mine", "a/b/c"])
def test_the_hub_is_asked_for_no_folder(model: str) -> None:
    """What lies on this machine is nobody else's business."""

    def fetch(url: str) -> Answer:
        raise AssertionError(url)

    found, _ = hub.ask("http://h", model, "hf_x", fetch, fetch)
    assert (found.local, found.gated) == (True, None)


def test_what_the_hub_answered_is_kept() -> None:
    """A model that it does not know is no hub that is silent."""
    found, _ = hub.ask("http://h", "a/b", "", lambda _: Answer(404, "{}"), lambda _: Answer(404, ""))
    assert (found.status, found.gated) == (404, None)
