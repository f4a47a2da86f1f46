"""docs/profiles.md says what the profiles hold."""

import re

from tests.profiles import files

ROW = re.compile(
    r"^\| `(?P<name>[\w-]+)` \| [^|]+ \| (?P<model>[^|]+) \| (?P<context>[\d,]+) \| (?P<at_once>\d+) \| "
    r"`(?P<id>[^`]+)`(?P<thinking>, `…:thinking`)? \|$",
    re.MULTILINE,
)
PAGE = files.ROOT / "docs" / "profiles.md"


def test_the_table_of_profiles() -> None:
    """A row each, in order: context, sequences, the name that callers write, and whether it can think."""
    rows = list(ROW.finditer(PAGE.read_text(encoding="utf-8")))
    assert [row["name"] for row in rows] == list(files.NAMES)
    for row in rows:
        flags = files.serve(row["name"])
        [model] = files.gateway(row["name"])["models"]
        said = (int(row["context"].replace(",", "")), int(row["at_once"]), row["id"])
        assert said == (flags["max-model-len"], flags["max-num-seqs"], model["id"])
        assert bool(row["thinking"]) is ("variants" in model)


def test_the_table_names_the_models() -> None:
    """By the name on the hub, or the same model as in the row above."""
    for row in ROW.finditer(PAGE.read_text(encoding="utf-8")):
        if row["model"] != "the same":
            named, repository = row["model"].split()[0], files.serve(row["name"])["model"].split("/")[1]
            assert repository.startswith(named)
