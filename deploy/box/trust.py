"""Caddy's own certificate authority, brought out of its container for those who call it."""

from deploy.box import docker
from deploy.box.places import Places
from deploy.local import authority

ROOT = f"/data/caddy/{authority.ROOT}"
PUBLIC = 0o644


def export(places: Places) -> bool:
    """Writes secrets/ca.crt and the bundle with the system's roots, if Caddy has an authority of its own.

    Answers whether it has. A name with a public certificate needs neither.
    """
    done = docker.tried(places, "compose", "exec", "-T", "caddy", "cat", ROOT)
    if done.code or "BEGIN CERTIFICATE" not in done.out:
        return places.ca_certificate.exists()
    roots = authority.system_roots().read_text(encoding="utf-8", errors="replace").rstrip("\n")
    for file, text in ((places.ca_certificate, done.out), (places.ca_bundle, f"{roots}\n\n{done.out}")):
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            # In place: a container that has the file mounted would go on reading one that was replaced.
            file.write_text(text, encoding="utf-8")
            file.chmod(PUBLIC)
    return True
