"""Whether the model may be downloaded: gated ones need a token whose owner was let in."""

from collections.abc import Iterator
from urllib.parse import quote

from gateway.doctor.evidence import Hub
from gateway.doctor.finding import Finding, NotLookedError, Unseen

# Owners and families that ask for a licence to be accepted; for a hub that cannot be asked.
GATED = ("meta-llama/", "google/gemma-2", "google/gemma-3", "mistralai/", "CohereLabs/", "bigcode/")
TOKENS = "https://huggingface.co/settings/tokens"
PUT = f"put a token ({TOKENS}) into secrets/hf-token, or export HF_TOKEN=hf_…"
CHECK = "hf-token"


def token(hub: Hub) -> Iterator[Finding]:
    """Whether a gated model has a token that opens it."""
    if hub.local:
        if hub.there is True:
            yield Finding(CHECK, "ok", "The model is a folder: no token is needed", hub.model)
            return
        raise NotLookedError(Unseen("the model is a folder, and none of the hub"))
    if hub.there is True:
        yield Finding(CHECK, "ok", "The model is in the cache: no token is needed", hub.model)
        return
    found = _asked(hub)
    if found.severity != "ok" and isinstance(hub.there, Unseen):
        raise NotLookedError(hub.there)  # what lies there already needs no token
    yield found


def _asked(hub: Hub) -> Finding:
    """By what the hub said. Only a file that it hands out, or sends on to, was opened by the token."""
    page = f"https://huggingface.co/{hub.model}"
    if hub.token and 200 <= hub.access < 400:
        told = "not gated" if hub.gated is False else "the token opens it"
        return Finding(CHECK, "ok", f"{hub.model} may be downloaded", told)
    if hub.token and hub.access in (401, 403):
        title = f"The token does not open {hub.model}"
        mend = f"accept the licence at {page} with the token's account" if hub.access == 403 else PUT
        return Finding(CHECK, "error", title, f"the hub answers {hub.access}", mend)
    if hub.status == 404:
        mend = (
            "write its name as its page has it, model: owner/name, and if it is private put a token into "
            f"secrets/hf-token: https://huggingface.co/models?search={quote(hub.model.rpartition('/')[2])}"
        )
        return Finding(CHECK, "error", f"The hub has no model {hub.model}", "the hub answers 404", mend)
    if hub.gated is False:
        return Finding(CHECK, "ok", f"{hub.model} may be downloaded", "not gated")
    if hub.token or not (hub.gated or hub.model.startswith(GATED)):
        raise NotLookedError(Unseen(_silence(hub), f"curl -sI {page}"))
    return _without_token(hub, page)


def _silence(hub: Hub) -> str:
    status, how = (hub.access, " with the token") if hub.gated else (hub.status, "")
    return f"the hub answers {status}{how}" if status else f"the hub did not answer{how}"


def _without_token(hub: Hub, page: str) -> Finding:
    mend = f"accept the licence at {page}, then {PUT}"
    if hub.gated:
        # The hub tells nobody without a token whether a private one is there.
        told = f"the hub answers {hub.status}" if hub.status in (401, 403) else "the hub says gated"
        kind = "gated, private or misspelt," if hub.status == 401 else "gated"
        return Finding(CHECK, "error", f"{hub.model} is {kind} and there is no token", told, mend)
    title = f"{hub.model} is probably gated, and there is no token"
    return Finding(CHECK, "warning", title, f"by its owner's name; {_silence(hub)}", mend)
