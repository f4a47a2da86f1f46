"""Secrets that everybody knows. Who reads one asks this at once: its text goes no further."""

# What is left from an example, a tutorial or a test; compared without case.
_WORDS = frozenset(
    {
        "admin", "change-me", "change_me", "changeme", "default", "dummy", "example", "grafana", "none",
        "password", "passwd", "secret", "sk-1234", "sk-123456", "test", "token", "your-secret", "your-token",
    }
)  # fmt: skip


def is_well_known(secret: str) -> bool:
    """Whether it is such a word; an empty one is none, but lacks."""
    return secret.lower() in _WORDS
