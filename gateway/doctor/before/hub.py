"""Whether the model may be downloaded: gated ones need a token whose owner was let in."""

from collections.abc import Iterator

from gateway.doctor.evidence import Hub
from gateway.doctor.finding import Finding, NotLookedError, Unseen

# Owners and families that ask for a licence to be accepted; for a hub that cannot be asked.
GATED = ("meta-llama/", "google/gemma-2", "google/gemma-3", "mistralai/", "CohereLabs/", "bigcode/")
TOKENS = "https://huggingface.co/settings/tokens"


def token(hub: Hub) -> Iterator[Finding]:
    """Whether a gated model has a token that opens it."""
    check, page = "hf-token", f"https://huggingface.co/{hub.model}"
    known = hub.gated if hub.gated is not None else None
    likely = hub.model.startswith(GATED)
    put = f"put a token ({TOKENS}) into secrets/hf-token, or export HF_TOKEN=hf_…"
    if hub.there:
        yield Finding(check, "ok", "The model is in the cache: no token is needed", hub.model)
    elif not hub.token and known:
        title = f"{hub.model} is gated and there is no token"
        yield Finding(
            check, "error", title, "the hub says gated", f"accept the licence at {page}, then {put}"
        )
    elif hub.token and hub.access in (401, 403):
        title = f"The token does not open {hub.model}"
        mend = f"accept the licence at {page} with the token's account" if hub.access == 403 else put
        yield Finding(check, "error", title, f"the hub answers {hub.access}", mend)
    elif not hub.token and likely and known is None:
        title = f"{hub.model} is probably gated, and there is no token"
        evidence = "by its owner's name; the hub did not answer"
        yield Finding(check, "warning", title, evidence, f"accept the licence at {page}, then {put}")
    elif known is None:
        raise NotLookedError(Unseen("the hub did not answer", f"curl -sI {page}"))
    else:
        told = "the token opens it" if known else "not gated"
        yield Finding(check, "ok", f"{hub.model} may be downloaded", told)
