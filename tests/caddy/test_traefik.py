"""The Traefik sample is YAML whose parts refer to each other; no Traefik runs here."""

from typing import Any

import yaml

from tests.caddy.sites import ROOT

FOLDER = ROOT / "examples" / "proxies"


def load(name: str) -> dict[str, Any]:
    """One of its two files."""
    document: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text())
    return document


def test_what_is_referred_to_exists() -> None:
    """Entry points, resolvers, services, middlewares and transports."""
    static, http = load("traefik.yml"), load("traefik-dynamic.yml")["http"]
    for router in http["routers"].values():
        assert set(router["entryPoints"]) <= set(static["entryPoints"])
        assert router["service"] in {*http["services"], "noop@internal"}
        assert set(router.get("middlewares", [])) <= set(http["middlewares"])
        assert router.get("tls", {}).get("certResolver", "letsencrypt") in static["certificatesResolvers"]
    for service in http["services"].values():
        transport = service["loadBalancer"].get("serversTransport", "gateway")
        assert transport in http["serversTransports"]


def test_nothing_holds_streams_back_or_cuts_them() -> None:
    """No packing, no buffering, no time limit on an answer; connections kept shorter than the gateway."""
    static, http = load("traefik.yml"), load("traefik-dynamic.yml")["http"]
    assert all(
        not {"compress", "buffering"} & middleware.keys() for middleware in http["middlewares"].values()
    )
    timeouts = static["entryPoints"]["websecure"]["transport"]["respondingTimeouts"]
    assert (timeouts["readTimeout"], timeouts["writeTimeout"]) == ("0s", "0s")
    transport = http["serversTransports"]["gateway"]["forwardingTimeouts"]
    assert transport["responseHeaderTimeout"] == "0s"
    assert int(transport["idleConnTimeout"].removesuffix("s")) < 180
