"""One look that must not end all others, whatever it meets."""

from collections.abc import Callable
from typing import TypeVar

from gateway.doctor import failure
from gateway.doctor.finding import Unseen

T = TypeVar("T")


def tried(what: str, look: Callable[[], T]) -> T | Unseen:
    """What was seen; of a look that breaks on what nobody foresaw, that it did: the others still count."""
    try:
        return look()
    except Exception as error:  # noqa: BLE001
        return Unseen(f"{what} could not be read ({failure.told(error)})")
