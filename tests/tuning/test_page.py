"""docs/tuning.md says what `gateway plan` prints: each command is run, each figure compared."""

import pytest

from tests.tuning import page
from tests.tuning.page import PAGE, Part


@pytest.fixture(scope="module")
def parts() -> list[Part]:
    """The page's parts, their commands run."""
    return list(page.parts(PAGE.read_text(encoding="utf-8")))


def test_what_the_commands_print(parts: list[Part]) -> None:
    """Rows of tables, quotations, and figures in the text. `python -m tests.tuning.page` mends tables."""
    for part in parts:
        rows = page.expected(part)
        assert {number: page.cells(part.lines[number]) for number in rows} == rows
        assert page.unfounded(part, parts) == []
        assert rows or page.quotations(part)


def test_the_boxes(parts: list[Part]) -> None:
    """Each of the three is worked through, and what does not fit is computed."""
    told = " ".join(part.printed for part in parts)
    for box in ("DGX Spark", "RTX 5090", "RTX 3090"):
        assert f"fits on {box}" in told
    assert "llama-3.3-70b-int4 does not fit on RTX 5090" in told
    assert "mixtral-8x22b-int4 does not fit on RTX 5090" in told


def test_it_is_found(parts: list[Part]) -> None:
    """A row, a quotation and a figure that are wrong are each seen."""
    part = parts[0]
    number, row = next(iter(page.expected(part).items()))
    part = Part(
        part.section, part.printed, part.tables, {**part.lines, number: f"| {row[0]} | 9.9 GiB | x |"}
    )
    assert page.cells(part.lines[number]) != page.expected(part)[number]
    prose = Part(1, "weights 33.5 GiB", {}, {0: "It takes 3.5 GiB of 33.5 GiB.", 1: "> weights 33.4"})
    assert page.unfounded(prose, [prose]) == ["weights 33.4", "3.5"]
