"""Sizes and rates as operators type them and as they read them."""

import re

from gateway.planner.problem import PlanProblem

GIB = 2**30
_UNITS = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40,
}  # fmt: skip
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")


def size_bytes(text: str, option: str) -> int:
    """Bytes of 24GiB, 36GB or a plain number. Raises PlanProblem, naming the option and a right example."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2].upper() not in _UNITS or float(match[1]) <= 0:
        raise PlanProblem(f"{option} {text!r} is no size: write it as in {option} 24GiB.")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def rate_bytes(text: str, option: str) -> float:
    """Bytes a second of 273GB/s. Raises PlanProblem, naming the option and a right example."""
    number, slash, second = text.strip().partition("/")
    if slash and second.strip().lower() not in ("s", "sec", "second"):
        raise PlanProblem(f"{option} {text!r} is no rate: write it as in {option} 273GB/s.")
    try:
        return float(size_bytes(number, option))
    except PlanProblem:
        raise PlanProblem(f"{option} {text!r} is no rate: write it as in {option} 273GB/s.") from None


def gib(count: float) -> str:
    """Bytes for people, in GiB."""
    return f"{count / GIB:,.1f} GiB" if abs(count) >= GIB / 10 else f"{count / 2**20:,.1f} MiB"


def gb(count: float) -> str:
    """Bytes for people in decimal GB, as hubs show files."""
    return f"{count / 1e9:,.1f} GB"
