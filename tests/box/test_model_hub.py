"""`make model` and the hub: one that does not let in, one that is out of reach."""

from tests.box.boxes import Box
from tests.box.planned import OWN
from tests.hubs import hub


def test_gated(running: Box) -> None:
    """A model that the token may not read is refused before anything is written, with where a token goes."""
    (running.places.secrets / "hf-token").write_text("hf_mine\n")
    with hub(401) as (url, tokens):
        done = running.command("model", MODEL="acme/secret", HF_ENDPOINT=url)
    assert "acme/secret is gated or does not exist" in done.stderr
    assert "secrets/hf-token" in done.stderr
    assert tokens == ["Bearer hf_mine"]
    assert not (running.folder / OWN).exists()


def test_hub_out_of_reach(running: Box) -> None:
    """Without a network the message names what needs none, and nothing has changed."""
    done = running.command("model", MODEL="acme/some", HF_ENDPOINT="http://127.0.0.1:9")
    assert "does not answer (ConnectError)" in done.stderr
    assert "Nothing was changed." in done.stderr
