"""Where the files of a box lie in its checkout; nothing here creates anything."""

from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Places:
    """The files of one box."""

    checkout: Path = CHECKOUT

    @property
    def env_file(self) -> Path:
        """What Compose and `make up` read: written once, mode 0600, then the operator's."""
        return self.checkout / ".env"

    @property
    def secrets(self) -> Path:
        """Mode 0700; one file a secret."""
        return self.checkout / "secrets"

    @property
    def first_key(self) -> Path:
        """The first API key, mode 0600; the printed curl line reads it from here."""
        return self.secrets / "first-key"

    @property
    def ca_certificate(self) -> Path:
        """The root certificate of Caddy's own authority, where it has one."""
        return self.secrets / "ca.crt"

    @property
    def ca_bundle(self) -> Path:
        """The system's roots and ours in one file."""
        return self.secrets / "ca-bundle.pem"

    @property
    def backups(self) -> Path:
        """Mode 0700; where `make backup` writes if no FILE is named."""
        return self.checkout / "backups"

    @property
    def profiles(self) -> Path:
        """One `vllm serve --config` file a profile, and what belongs to it in `compose/` and `gateway/`."""
        return self.checkout / "deploy" / "profiles"

    @property
    def own_profiles(self) -> Path:
        """The same two kinds of files, of models that `make model` has planned."""
        return self.profiles / "own"
