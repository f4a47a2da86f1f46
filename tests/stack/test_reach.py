"""Who reaches what: callers Caddy alone, the engine nobody, Prometheus all that it watches."""

import asyncio
import json

import pytest

from tests.running import wait_for
from tests.stack import commands, probes
from tests.stack.stack import SITE, Stack, listening

SCRAPES_SECONDS = 240.0


async def test_only_caddy_listens_beyond_loopback(stack: Stack) -> None:
    """Of all that the stack opened on this machine, two ports can be called from elsewhere."""
    ports = {int(stack.variables[name]) for name in ("HTTP_PORT", "HTTPS_PORT")}
    assert await listening() == ports


async def test_the_engine_reaches_neither_the_operators_ports_nor_the_outside(stack: Stack) -> None:
    """Where the gateway, on the same network, reaches them: the addresses are right and somebody listens."""
    gateway_ops, prometheus, alertmanager = (
        f"{stack.ops}.2:8081",
        f"{stack.ops}.3:9090",
        f"{stack.ops}.4:9093",
    )
    ops = {gateway_ops, prometheus, alertmanager}
    async with probes.outside() as elsewhere:
        assert await probes.reached(stack, "gateway", *ops, elsewhere, "vllm:8000") == {
            *ops,
            elsewhere,
            "vllm:8000",
        }
        names = {"gateway:8081", "gateway:8080", "prometheus:9090", "caddy:9180", "grafana:3000"}
        reached = await probes.reached(stack, "vllm", *ops, *names, "vllm:8000", past_routes=True)
        # Not past the routes: the listener stands for the outside, and is on this very host, which answers
        # its neighbours for all its addresses.
        reached |= await probes.reached(stack, "vllm", elsewhere)
    # The public port asks for keys; it is there because both are on one network.
    assert reached - {"gateway:8080"} == {"vllm:8000"}


@pytest.mark.parametrize(
    "path",
    [
        *("/metrics", "/metrics/", "//metrics", "/METRICS", "/%6detrics"),
        *("/admin/keys", "/admin", "/readyz", "/v1/../metrics", "/grafana/metrics"),
    ],
)
async def test_nothing_of_the_operators_is_served_to_callers(stack: Stack, path: str) -> None:
    """Not even with a key: 404 in OpenAI's shape."""
    url = f"{stack.url}{path}"
    argv = ["curl", "-s", "--path-as-is", "--noproxy", "*", "--cacert", str(stack.places.ca_certificate), url]
    key = ["-H", f"Authorization: Bearer {stack.key}", "-w", "\n%{http_code}"]
    body, _, status = (await commands.run([*argv, *key])).rpartition("\n")
    assert (status, json.loads(body)["error"]["code"]) == ("404", "not_found")


async def test_prometheus_sees_every_target(stack: Stack) -> None:
    """All jobs of this box are up; a box without a GPU has no target for one."""

    async def jobs() -> dict[str, str]:
        targets = (await stack.prometheus("targets"))["activeTargets"]
        return {target["labels"]["job"]: target["health"] for target in targets}

    async def all_scraped() -> bool:
        return set((await jobs()).values()) == {"up"}

    await wait_for(all_scraped, SCRAPES_SECONDS)
    expected = {"vllm", "gateway", "caddy", "node", "prometheus", "alertmanager"}
    found = await jobs()
    assert expected <= set(found)
    assert "gpu" not in found


async def test_grafana_asks_for_a_login(stack: Stack) -> None:
    """Under its path, through Caddy (the tests' stand-in answers as Grafana does)."""
    async with stack.http() as http:
        bare, first = await asyncio.gather(http.get("/grafana"), http.get("/grafana/d/overview"))
        assert bare.headers["location"] == "/grafana/"
        assert first.headers["location"] == "/grafana/login"
        assert (await http.get("/grafana/login")).status_code == 200


async def test_plain_http_takes_no_call(stack: Stack) -> None:
    """A key sent in clear is refused with the right address, not led on."""
    port = stack.variables["HTTP_PORT"]
    url = f"http://{SITE}:{port}/v1/models"
    answer = await commands.run(
        ["curl", "-s", "--noproxy", "*", "-H", f"Authorization: Bearer {stack.key}", url]
    )
    assert f"{stack.url}/v1" in json.loads(answer)["error"]["message"]


async def test_containers_are_confined(stack: Stack) -> None:
    """Each file system read-only and without capabilities, but Caddy's one for ports below 1024."""
    ids = (await stack.compose("ps", "-q")).split()
    for told in json.loads(await stack.engine.docker("inspect", *ids)):
        host = told["HostConfig"]
        added = ["CAP_NET_BIND_SERVICE"] if told["Config"]["Image"].startswith("caddy") else []
        assert host["ReadonlyRootfs"], told["Name"]
        assert host["CapDrop"] == ["ALL"], told["Name"]
        assert [name if name.startswith("CAP_") else f"CAP_{name}" for name in host["CapAdd"] or []] == added
        assert not host["Privileged"]
