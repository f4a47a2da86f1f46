"""Bodies that are nearly right: each is refused in shape, or reaches the engine as the design says."""

import asyncio
import base64
import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz import bodies, reference, verdicts
from tests.fuzz.bodies import Case
from tests.fuzz.gateways import Fuzzed
from tests.running import ADMIN_TOKEN

CASES, MANY_CASES = 400, 6000
AT_ONCE = 16
# Each call on a connection of its own: the gateway is told to close idle ones soon.
ALONE = {"content-type": "application/json", "connection": "close"}
ECHO = [{"reply": "echo"}]


def drawn(count: int) -> list[Case]:
    """All valid bodies, and so many mutated ones: the same in each run."""
    found = [Case(route, bodies.write(body).encode()) for route, body in bodies.SEEDS.items()]

    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(bodies.case())
    def draw(case: Case) -> None:
        found.append(case)

    draw()
    return found


async def verdict(fuzzed: Fuzzed, http: httpx.AsyncClient, case: Case) -> str:
    """Which promise the gateway breaks on this body; empty if none."""
    headers = {"authorization": f"Bearer {fuzzed.key}", "content-encoding": case.coding, **ALONE}
    packed = bodies.PACKED[case.coding](case.text)
    answer = await http.post(fuzzed.gateway.url + case.route, content=packed, headers=headers)
    said = reference.parse(case.text)
    if answer.status_code == 200:
        if said is None:
            return "taken, though it is no JSON that is taken"
        got = _strictly(base64.b64decode(answer.json()["body_b64"]))
        wrong = reference.differences(case.route, said, got)
        return "; ".join(wrong) or await unexplained(fuzzed, http, case, got)
    if not 400 <= answer.status_code < 500:
        return f"status {answer.status_code}: {answer.text[:300]}"
    if (said is None) != _told_of_json(answer.json()) and (said is None or not reference.hides(case.text)):
        return f"{'' if said is None else 'no '}broken JSON, but {answer.text[:300]}"
    return verdicts.malformed(answer.json(), anthropic=case.route.startswith("/v1/messages"))


def _told_of_json(document: Any) -> bool:
    """Anthropic's shape has no code; there the words must do."""
    error: dict[str, str] = document["error"]
    return error["code"] == "invalid_json" if "code" in error else error["message"].startswith("The body ")


async def unexplained(fuzzed: Fuzzed, http: httpx.AsyncClient, case: Case, got: dict[str, Any]) -> str:
    """Where the engine got another body than the operator is told it would."""
    asked = b'{"key":"%b","route":"%b","body":%b}' % (fuzzed.key_id.encode(), case.route.encode(), case.text)
    headers = {"authorization": f"Bearer {ADMIN_TOKEN}", **ALONE}
    answer = await http.post(f"{fuzzed.gateway.ops}/admin/explain", content=asked, headers=headers)
    if answer.status_code != 200:
        return f"not explained: {answer.status_code} {answer.text[:300]}"
    told = answer.json()["body"]
    return "" if reference.text(told) == reference.text(got) else f"{got} is explained as {told}"


def _strictly(text: bytes) -> dict[str, Any]:
    parsed = reference.parse(text)
    assert parsed is not None, text
    return parsed


async def judged(fuzzed: Fuzzed, http: httpx.AsyncClient, cases: Sequence[Case]) -> list[str]:
    """What is wrong, with the body it is wrong on."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(case: Case) -> str:
        async with slots:
            why = await verdict(fuzzed, http, case)
        return f"{why}: {case}" if why else ""

    return [found for found in await asyncio.gather(*map(one, cases)) if found]


async def checked(fuzzed: Fuzzed, http: httpx.AsyncClient, count: int) -> None:
    """Send so many bodies; fails with those on which a promise is broken."""
    for route in bodies.SEEDS:
        await fuzzed.engine.script(ECHO, path=route)
    wrong = await judged(fuzzed, http, drawn(count))
    assert not wrong, "\n\n".join([f"{len(wrong)} in all", *wrong[:8]])
    await fuzzed.check()


async def test_mutated_bodies_are_refused_or_arrive_as_the_design_says(
    fuzzed: Fuzzed, http: httpx.AsyncClient
) -> None:
    """200 or a 4xx in shape; at the engine just what was said, less what is dropped, plus what is ours."""
    await checked(fuzzed, http, CASES)


@pytest.mark.long
async def test_many_more_mutated_bodies(fuzzed: Fuzzed, http: httpx.AsyncClient) -> None:
    """The same, for longer."""
    await checked(fuzzed, http, MANY_CASES)


async def test_the_valid_bodies_pass(fuzzed: Fuzzed, http: httpx.AsyncClient) -> None:
    """Without this the other test might show nothing: each route takes its own body."""
    for route, body in bodies.SEEDS.items():
        await fuzzed.engine.script(ECHO, path=route)
        headers = {"authorization": f"Bearer {fuzzed.key}", **ALONE}
        answer = await http.post(fuzzed.gateway.url + route, content=json.dumps(body), headers=headers)
        assert answer.status_code == 200, (route, answer.text)
