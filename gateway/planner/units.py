"""Sizes and rates as operators type them and as they read them."""

import re
from decimal import Decimal

from gateway.planner.problem import PlanProblem

GIB = 2**30
_MOST = 2**60
_UNITS = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40,
}  # fmt: skip
# More digits than this are no machine's, and of too many Python makes no number.
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([A-Za-z]*)")
# In gb people mean bytes; Gb is written by who means bits.
_BITS = re.compile(r"[KMGT]i?b\s*(/|$)")


def size_bytes(text: str, option: str) -> int:
    """Bytes of 24GiB, 36GB or a plain number. Raises PlanProblem, naming the option and a right example."""
    size = _bytes(text)
    if not size:
        raise PlanProblem(f"{option} {text[:40]!r} is no size{_bits(text)}: write it as in {option} 24GiB.")
    return size


def rate_bytes(text: str, option: str) -> float:
    """Bytes a second of 273GB/s. Raises PlanProblem, naming the option and a right example."""
    number, slash, second = text.strip().partition("/")
    rate = _bytes(number)
    if not rate or (slash and second.strip().lower() not in ("s", "sec", "second")):
        raise PlanProblem(f"{option} {text[:40]!r} is no rate{_bits(text)}: write it as in {option} 273GB/s.")
    return float(rate)


def _bytes(text: str) -> int:
    """How many bytes were written; 0 for what is no number of them, or no machine's."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2].upper() not in _UNITS or _BITS.search(text):
        return 0
    size = int(float(match[1]) * _UNITS[match[2].upper()])
    return size if size <= _MOST else 0


def _bits(text: str) -> str:
    return " in bytes (a b is a bit, of which a byte has eight)" if _BITS.search(text) else ""


def share(value: float) -> str:
    """A share as it was given, with two places at least."""
    digits = format(Decimal(repr(value)), "f")
    return digits if len(digits.partition(".")[2]) >= 2 else f"{value:.2f}"


def gib(count: float) -> str:
    """Bytes for people, in GiB."""
    return f"{count / GIB:,.1f} GiB" if abs(count) >= GIB / 10 else f"{count / 2**20:,.1f} MiB"


def gb(count: float) -> str:
    """Bytes for people in decimal GB, as hubs show files."""
    return f"{count / 1e9:,.1f} GB"
