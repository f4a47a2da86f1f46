"""Secrets as they lie there: their mode, their length, whether everybody knows them; never their text."""

from collections.abc import Iterator, Sequence
from shlex import quote

from gateway.doctor.evidence import SecretFile
from gateway.doctor.finding import Finding

SHORTEST = 16
MAY_BE_EMPTY = frozenset({"hf-token", "alert-url", "smtp-password", "open-webui-key"})
PUBLIC = frozenset({"ca.crt", "ca-bundle.pem"})
NOT_CHOSEN = PUBLIC | {"alert-url", "alertmanager.yml"}  # others made them: their length says nothing


def files(found: Sequence[SecretFile]) -> Iterator[Finding]:
    """Whether secrets are good ones, and read by those alone who should."""
    check = "secrets"
    troubles = [finding for one in found for finding in _of(one, check)]
    yield from troubles
    if not troubles:
        told = f"{len(found)} looked at" if found else "none are set"
        yield Finding(check, "ok", "Secrets", told)


def _of(one: SecretFile, check: str) -> Iterator[Finding]:
    name = one.name.rpartition("/")[2]
    if one.reachable and one.mode & 0o004 and name not in PUBLIC:
        title, mend = f"{one.name} is read by every user of this host", f"chmod o-rwx {quote(one.name)}"
        yield Finding(check, "error", title, f"mode {one.mode:04o}", mend)
    if name in NOT_CHOSEN or (not one.length and name in MAY_BE_EMPTY):
        return
    fresh = f"openssl rand -base64 32 | tr -d '\\n' > {quote(one.name)}" if "/" in one.name else ""
    fresh = fresh or f'export {one.name}="$(openssl rand -base64 32)"'
    if one.usual:
        title = f"{one.name} is a word that everybody knows"
        yield Finding(check, "error", title, f"{one.length} characters", f"{fresh}, then restart")
    elif one.length < SHORTEST and name not in MAY_BE_EMPTY:
        title = f"{one.name} is short enough to be guessed"
        evidence = f"{one.length} characters, {SHORTEST} or more are asked for"
        yield Finding(check, "warning", title, evidence, f"{fresh}, then restart")
