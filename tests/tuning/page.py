"""docs/tuning.md, read as what it is: commands, each with tables and quotations of what it prints.

`python -m tests.tuning.page` writes the tables anew from what the commands print now.
"""

import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

from typer.testing import CliRunner

from gateway.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "tuning.md"
FENCE = "```"
PROGRAM = ".venv/bin/gateway"
FILE = re.compile(r"cat > (\S+) <<'END'\n(.*?)\nEND\n", re.DOTALL)
CELL = re.compile(r"\S+(?: \S+)*")
# Figures that somebody could have computed: in prose, too, they have to be what a command prints.
FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?(?= (?:GiB|GB|MiB|tokens|blocks)\b)")
Rows = dict[str, list[str]]


@dataclass
class Part:
    """Some commands, what they print (and are), and the lines of the page that speak of it, by number."""

    section: int
    printed: str
    tables: dict[tuple[str, ...], Rows]
    lines: dict[int, str] = field(default_factory=dict)


def parts(text: str) -> Iterator[Part]:
    """The parts of the page that begin with a `gateway plan`; each ends where the next, or a heading, is."""
    part, block, inside, section = None, "", False, 0
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for number, line in enumerate(text.splitlines()):
            if line.startswith(FENCE):
                inside = not inside
                if not inside and f"{PROGRAM} plan" in block:
                    if part:
                        yield part
                    part = _run(block, section)
                block = ""
            elif inside:
                block += f"{line}\n"
            elif line.startswith("#"):
                if part:
                    yield part
                part, section = None, section + 1
            elif part:
                part.lines[number] = line
    if part:
        yield part


def _run(block: str, section: int) -> Part:
    for name, content in FILE.findall(block):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content)
    printed, asked = "", ""
    for line in FILE.sub("", block).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == [PROGRAM]:
            done = CliRunner().invoke(app, words[1:])
            assert not done.exit_code, done.output
            printed += done.stdout
            asked += f" {line}"
    return Part(section, " ".join(f"{printed} {asked}".split()), _tables(printed))


def _tables(printed: str) -> dict[tuple[str, ...], Rows]:
    """All tables by their header, their rows by the first cell; what was wrapped is one line again."""
    found: dict[tuple[str, ...], Rows] = {}
    rows: Rows | None = None
    before = ""
    for line in printed.splitlines():
        cells = CELL.findall(line)
        if set(line.strip()) == {"─"}:
            rows = found.setdefault(tuple(CELL.findall(before)), {})
        elif not cells:
            rows = None
        elif rows is not None and line.startswith("   "):
            rows[next(reversed(rows))][-1] += " " + " ".join(cells)
        elif rows is not None:
            rows[cells[0]] = cells
        before = line
    return found


def cells(line: str) -> list[str]:
    """The cells of a row of the page; none for a line that is none."""
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []


def expected(part: Part) -> Mapping[int, list[str]]:
    """What each row of the page's tables has to hold. Raises KeyError for one that no command prints."""
    found, rows = {}, None
    for number, line in part.lines.items():
        row = cells(line)
        if not row:
            rows = None
        elif rows is None:
            rows = part.tables[tuple(row)]
        elif set(line) != {"|", "-"} and set(line) != {"|", "-", ":"}:
            found[number] = rows[row[0]]
    return found


def quotations(part: Part) -> list[str]:
    """What the page quotes of the output, each as one line."""
    text = "\n".join(part.lines.values())
    quoted = re.findall(r"(?m)(?:^> .*\n?)+", text)
    return [" ".join(re.sub(r"(?m)^> ", "", one).split()) for one in quoted]


def figures(part: Part) -> list[str]:
    """The figures with a unit that the prose of a part tells."""
    prose = "\n".join(line for line in part.lines.values() if not line.startswith(("|", ">")))
    return FIGURE.findall(prose)


def unfounded(part: Part, all_parts: list[Part]) -> list[str]:
    """Quotations that the part's commands do not print, and figures that none of its section do."""
    section = " ".join(one.printed for one in all_parts if one.section == part.section).replace(",", "")
    wrong = [said for said in quotations(part) if said not in part.printed]
    for figure in figures(part):
        plain = re.escape(figure.replace(",", ""))
        if not re.search(rf"(?<![\d.]){plain}(?![\d.]*\d)", section):
            wrong.append(figure)
    return wrong


def main() -> None:
    """Writes the tables anew."""
    text = PAGE.read_text(encoding="utf-8")
    lines, found = text.splitlines(), list(parts(text))
    for part in found:
        for number, row in expected(part).items():
            lines[number] = f"| {' | '.join(row)} |"
        for said in unfounded(part, found):
            sys.stderr.write(f"no command prints {said!r} any more: write it anew\n")
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
