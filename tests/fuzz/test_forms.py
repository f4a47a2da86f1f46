"""Uploaded forms, sound and odd: refused in shape, or at the engine with every byte of their file."""

import base64
from collections import defaultdict
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.callers import MODEL
from tests.fuzz import forms, reference, verdicts
from tests.fuzz.forms import Form, Part
from tests.fuzz.gateways import Fuzzed

FORMS, MANY_FORMS = 150, 3000
ECHO = [{"reply": "echo"}]


def drawn(count: int) -> list[Form]:
    """So many forms, the same in each run."""
    found: list[Form] = []

    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(forms.form())
    def draw(form: Form) -> None:
        found.append(form)

    draw()
    return found


async def verdict(fuzzed: Fuzzed, http: httpx.AsyncClient, form: Form) -> str:
    """Which promise the gateway breaks on this form; empty if none."""
    key = f"Bearer {fuzzed.key}".encode()
    headers = {b"authorization": key, b"content-type": form.content_type, b"connection": b"close"}
    answer = await http.post(fuzzed.gateway.url + form.route, content=form.body, headers=headers)
    if answer.status_code == 200:
        return differences(form, answer.json())
    if form.sound or not 400 <= answer.status_code < 500:
        return f"{answer.status_code}: {answer.text[:300]}"
    return verdicts.malformed(answer.json())


def differences(form: Form, echoed: dict[str, Any]) -> str:
    """How the form at the engine differs from what a sound one said."""
    content_type = next(value for name, value in echoed["headers"] if name.lower() == "content-type")
    got = forms.parts_of(content_type, base64.b64decode(echoed["body_b64"]))
    if not form.sound:
        return ""
    said, told = _by_name(form.parts), _by_name(got)
    wrong = [name for name in said.keys() | told.keys() if said.get(name) != told.get(name)]
    return f"{wrong}: {said}, {told}" if wrong else ""


def _by_name(parts: list[Part] | tuple[Part, ...]) -> dict[bytes, list[tuple[bytes, bytes | None]]]:
    found = defaultdict(list)
    for part in parts:
        if part.name.decode() not in reference.OURS - {"model"}:
            found[part.name].append((part.value, part.filename))
    return found


async def checked(fuzzed: Fuzzed, http: httpx.AsyncClient, count: int) -> None:
    """Send so many forms; fails with those on which a promise is broken."""
    for route in forms.ROUTES:
        await fuzzed.engine.script(ECHO, path=route)
    found = drawn(count)
    assert sum(form.sound for form in found) > count // 4
    wrong = [f"{why}: {form}" for form in found if (why := await verdict(fuzzed, http, form))]
    assert not wrong, "\n\n".join([f"{len(wrong)} in all", *wrong[:8]])
    await fuzzed.check()


async def test_odd_forms_are_refused_and_sound_ones_arrive_whole(
    fuzzed: Fuzzed, http: httpx.AsyncClient
) -> None:
    """200 or a 4xx in shape; a sound form's fields, file and file name are those that were sent."""
    await checked(fuzzed, http, FORMS)


@pytest.mark.long
async def test_many_more_odd_and_sound_forms(fuzzed: Fuzzed, http: httpx.AsyncClient) -> None:
    """The same, for longer."""
    await checked(fuzzed, http, MANY_FORMS)


async def test_a_plain_form_passes(fuzzed: Fuzzed, http: httpx.AsyncClient) -> None:
    """By the hand of another library."""
    for route in forms.ROUTES:
        await fuzzed.engine.script(ECHO, path=route)
        headers = {"authorization": f"Bearer {fuzzed.key}", "connection": "close"}
        data, files = {"model": MODEL}, {"file": ("a.wav", b"RIFF")}
        answer = await http.post(fuzzed.gateway.url + route, headers=headers, data=data, files=files)
        assert answer.status_code == 200, answer.text
