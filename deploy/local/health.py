"""How well the services of a running stack are, asked of each of them; changes nothing."""

from deploy.local import probe, supervision
from deploy.local.places import Places
from deploy.local.ports import Ports

OK = "ok"


def of_stack(places: Places, at: Ports) -> dict[str, str]:
    """By service: `ok`, or what is wrong with it."""
    ready = probe.get(f"http://127.0.0.1:{at.ops}/readyz")
    caddy = probe.get(f"https://localhost:{at.https}/healthz", roots=places.ca_bundle)
    return {
        "engine": _word(probe.get(f"http://127.0.0.1:{at.engine}/health"), "loading, or not there"),
        "gateway": _word(ready, ready.body.decode(errors="replace")),
        "caddy": _word(caddy, caddy.body.decode(errors="replace")),
    }


def _word(answer: probe.Answer, otherwise: str) -> str:
    return OK if answer.status == 200 else otherwise


def all_well(places: Places, at: Ports) -> bool:
    """Whether every service runs and is well."""
    states = supervision.states(places).values()
    return all(state.state == "RUNNING" for state in states) and set(of_stack(places, at).values()) == {OK}
