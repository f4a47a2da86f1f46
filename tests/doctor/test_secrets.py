"""Secrets and the hub's token: weak, known and open ones are found, and no finding holds one."""

import pytest

from gateway.doctor.before import hub, secrets
from gateway.doctor.evidence import Hub, SecretFile
from gateway.doctor.finding import NotLookedError
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
    ],
)
def test_token(found: Hub, severity: str) -> None:
    """By the hub's own word, else by the owner's name."""
    finding = only(hub.token(found))
    assert finding.severity == severity
    assert ("accept the licence" in finding.mend or "token" in finding.mend) == (severity != "ok")


@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", MODEL])
def test_hub_that_does_not_answer(model: str) -> None:
    """A token that could not be tried is not judged."""
    with pytest.raises(NotLookedError):
        list(hub.token(Hub(model, None, token=True, access=0, there=False)))
