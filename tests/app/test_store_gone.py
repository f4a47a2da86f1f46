"""The key database goes away under a running gateway: known callers go on, others are told to wait."""

from pathlib import Path

import httpx

from tests.callers import ask, chat, request
from tests.fake_engine.handle import FakeEngine
from tests.running import Gateway, wait_for

UNKNOWN = "sk-gw-abcdefghijkl-" + "x" * 43


async def test_known_keys_go_on_and_unknown_ones_get_503(
    fake_engine: FakeEngine, tmp_path: Path, http: httpx.AsyncClient
) -> None:
    """Never 401 for what may be a good key; the metric says so; all heals by itself."""
    async with Gateway(tmp_path, GATEWAY_UPSTREAM_URL=fake_engine.url) as gateway:

        async def store_up(value: float) -> bool:
            return await gateway.metric("gateway_key_store_up") == value

        assert (await ask(gateway, chat(UNKNOWN))).status == 401
        away = gateway.data_dir.with_name("away")
        gateway.data_dir.rename(away)
        await wait_for(lambda: store_up(0), evidence=gateway.log)

        assert (await ask(gateway, chat(gateway.key))).status == 200
        for fields in (
            [("authorization", f"Bearer {UNKNOWN}")],
            [("x-api-key", UNKNOWN)],
            [("authorization", f"Bearer {UNKNOWN}"), ("x-api-key", "of-another-service")],
        ):
            answer = await ask(gateway, request("GET", "/v1/models", fields))
            assert answer.status == 503, fields
            assert answer.error["code"] == "key_store_unavailable"
            assert answer.headers["retry-after"] == "5"
        assert (await ask(gateway, chat("no key at all"))).status == 401
        created = await gateway.admin("POST", "/admin/keys", json={"name": "now"})
        assert created.status_code == 503
        assert created.json()["error"]["code"] == "key_store_unavailable"
        assert (await http.get(gateway.ops + "/readyz")).status_code == 200

        away.rename(gateway.data_dir)
        await wait_for(lambda: store_up(1), evidence=gateway.log)
        assert (await ask(gateway, chat(UNKNOWN))).status == 401
        assert (await ask(gateway, chat((await gateway.create_key(name="again"))["key"]))).status == 200
        assert gateway.events("key_store_unavailable")
        assert '"exception"' not in gateway.log()
