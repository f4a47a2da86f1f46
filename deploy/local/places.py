"""Where things lie: what belongs to this checkout, and what checkouts share in the user's cache folder."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder that all checkouts of this user share: engine and weights, keyed by version."""
    base = environ.get("XDG_CACHE_HOME", "")
    # The XDG specification: a relative path in this variable is invalid and to be ignored.
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return root / "vllm-gateway"


@dataclass(frozen=True)
class Places:
    """The files of one local stack. Everything lies below `data`; nothing here creates anything."""

    checkout: Path = CHECKOUT

    @property
    def data(self) -> Path:
        """Databases, keys, CA and logs: what `make clean` removes."""
        return self.checkout / "data"

    @property
    def run(self) -> Path:
        """What is generated anew at each start."""
        return self.data / "run"

    @property
    def pid_file(self) -> Path:
        """Supervisord's process id."""
        return self.run / "supervisord.pid"

    @property
    def engine(self) -> Path:
        """The name of the engine that was started last."""
        return self.run / "engine"

    @property
    def logs(self) -> Path:
        """One file a service, rotated."""
        return self.data / "log"

    @property
    def config(self) -> Path:
        """The gateway's settings: written once, then the operator's."""
        return self.data / "gateway.toml"

    @property
    def model(self) -> Path:
        """Which model `make model` chose, and the one before; without it the engine serves its own."""
        return self.data / "model.json"

    @property
    def first_key(self) -> Path:
        """The first API key, mode 0600; the printed curl line reads it from here."""
        return self.data / "first-key"

    @property
    def base_url(self) -> Path:
        """What an SDK is pointed at, for scripts to read."""
        return self.data / "base-url"

    @property
    def ca_certificate(self) -> Path:
        """Caddy's own root certificate."""
        return self.data / "ca.crt"

    @property
    def ca_bundle(self) -> Path:
        """The system's roots and ours in one file, for tools that take one bundle alone."""
        return self.data / "ca-bundle.pem"

    @property
    def caddy_storage(self) -> Path:
        """Caddy's keys and certificates."""
        return self.data / "caddy"

    @property
    def caddyfile(self) -> Path:
        """The reverse proxy's configuration, as committed."""
        return Path(__file__).with_name("Caddyfile")

    @property
    def programs(self) -> Path:
        """The commands of the virtual environment that this runs in."""
        return Path(sys.executable).parent
