"""Secrets and the hub's token: weak, known and open ones are found, and no finding holds one."""

import pytest

from gateway.doctor.before import hub, secrets
from gateway.doctor.evidence import Hub, SecretFile
from gateway.doctor.finding import NotLookedError, Unseen
from tests.doctor.evidence import only, severities

GOOD = SecretFile("secrets/admin-token", 0o640, 43, usual=False, reachable=False)


@pytest.mark.parametrize(
    ("secret", "found"),
    [
        (GOOD, ["ok"]),
        (SecretFile("secrets/admin-token", 0o644, 43, False, reachable=True), ["error"]),
        (SecretFile("secrets/admin-token", 0o644, 43, False, reachable=False), ["ok"]),
        (SecretFile("secrets/ca.crt", 0o644, 900, False, reachable=True), ["ok"]),
        (SecretFile("secrets/alertmanager.yml", 0o644, 900, False, reachable=True), ["error"]),
        (SecretFile("secrets/alert-url", 0o640, 9, False, reachable=False), ["ok"]),
        (SecretFile("secrets/admin-token", 0o600, 8, True, False), ["error"]),
        (SecretFile("GATEWAY_ADMIN_TOKEN", 0, 8, False, False), ["warning"]),
        (SecretFile("secrets/hf-token", 0o600, 0, False, False), ["ok"]),
        (SecretFile("secrets/grafana-password", 0o666, 5, True, True), ["error", "error"]),
    ],
)
def test_files(secret: SecretFile, found: list[str]) -> None:
    """By mode, by length, by what everybody writes."""
    assert severities(secrets.files((secret,))) == found


def test_mends_can_be_pasted() -> None:
    """A file is written anew, a variable exported."""
    weak = secrets.files((SecretFile("secrets/admin-token", 0o600, 5, True, False),))
    assert only(weak).mend.startswith("openssl rand -base64 32")
    exported = only(secrets.files((SecretFile("GATEWAY_ADMIN_TOKEN", 0, 5, True, False),)))
    assert exported.mend.startswith('export GATEWAY_ADMIN_TOKEN="$(openssl')
    spaced = only(secrets.files((SecretFile("secrets/my token", 0o600, 5, True, False),)))
    assert "> 'secrets/my token', then" in spaced.mend
    open_one = only(secrets.files((SecretFile("secrets/admin-token", 0o644, 43, False, True),)))
    assert open_one.mend == "chmod o-rwx secrets/admin-token"


MODEL = "meta-llama/Llama-3.3-70B-Instruct"


@pytest.mark.parametrize(
    ("found", "severity"),
    [
        (Hub(MODEL, True, token=False, access=0, there=True), "ok"),
        (Hub(MODEL, True, token=False, access=0, there=False), "error"),
        (Hub(MODEL, True, token=True, access=200, there=False), "ok"),
        (Hub(MODEL, True, token=True, access=403, there=False), "error"),
        (Hub(MODEL, True, token=True, access=401, there=False), "error"),
        (Hub(MODEL, None, token=False, access=0, there=False), "warning"),
        (Hub("Qwen/Qwen3-8B", False, token=False, access=0, there=False), "ok"),
        (Hub("Qwen/Qwen3-8B", False, token=True, access=404, there=False, status=200), "ok"),
        (Hub(MODEL, True, token=True, access=307, there=False, status=401), "ok"),
        (Hub(MODEL, None, token=False, access=0, there=False, status=404), "error"),
        (Hub(MODEL, None, token=True, access=404, there=False, status=404), "error"),
        (Hub("/weights/mine", None, token=False, access=0, there=True, local=True), "ok"),
    ],
)
def test_token(found: Hub, severity: str) -> None:
    """By the hub's own word, else by the owner's name."""
    finding = only(hub.token(found))
    assert finding.severity == severity
    assert ("accept the licence" in finding.mend or "token" in finding.mend) == (severity != "ok")


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (Hub(MODEL, True, token=True, access=404, there=False, status=401), "answers 404 with the token"),
        (Hub(MODEL, True, token=True, access=0, there=False, status=200), "did not answer with the token"),
        (Hub("Qwen/Qwen3-8B", None, token=False, access=0, there=False, status=503), "answers 503"),
        (Hub(MODEL, True, token=False, access=0, there=Unseen("it cannot be seen"), status=401), "be seen"),
        (Hub("/weights/mine", None, token=False, access=0, there=False, local=True), "is a folder"),
    ],
)
def test_tokens_that_were_not_tried(found: Hub, why: str) -> None:
    """Only a file that the hub hands out was opened; what may lie there already needs no token."""
    with pytest.raises(NotLookedError, match=why):
        list(hub.token(found))


def test_a_model_that_the_hub_does_not_know() -> None:
    """It answered: the name is wrong, or it hides a private one."""
    found = Hub("Qwen/Typo", None, token=False, access=0, there=False, status=404)
    assert only(hub.token(found)).title == "The hub has no model Qwen/Typo"
    hidden = Hub("Qwen/Typo", True, token=False, access=0, there=False, status=401)
    assert "misspelt" in only(hub.token(hidden)).title


@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", MODEL])
def test_hub_that_does_not_answer(model: str) -> None:
    """A token that could not be tried is not judged."""
    with pytest.raises(NotLookedError):
        list(hub.token(Hub(model, None, token=True, access=0, there=False)))
