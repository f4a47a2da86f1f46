"""Lines of settings, found in every way in which TOML can be written."""

import tomllib

import pytest

from gateway.settings.document import lines

TEXT = '''\
# [not.a.table]
a.b = 1
a."c.d" = """
[x]
y = 1
"""

list = [
  1,  # [comment]
  { k = 2 },
]
[s]  # a table
t = {u = 1, "v" = {w = 2}}
[[m]]
id = 'x'
[m.d]
z = 1
[m.v."p q"]
[[m]]

[[m.n]]
o = 1
[[m.n]]
o = 2
[m.n.deep.er]
q = 3
[s.late]
'''
EXPECTED = {
    ("a", "b"): 2,
    ("a", "c.d"): 3,
    ("list",): 8,
    ("list", 1, "k"): 8,
    ("s",): 12,
    ("s", "t", "u"): 13,
    ("s", "t", "v", "w"): 13,
    ("m", 0): 14,
    ("m", 0, "id"): 15,
    ("m", 0, "d", "z"): 17,
    ("m", 0, "v", "p q"): 18,
    ("m", 1): 19,
    ("m", 1, "n", 0, "o"): 22,
    ("m", 1, "n", 1): 23,
    ("m", 1, "n", 1, "o"): 24,
    ("m", 1, "n", 1, "deep", "er", "q"): 26,
    ("s", "late"): 27,
}


@pytest.mark.parametrize(("where", "line"), EXPECTED.items())
def test_each_name_has_the_line_it_is_written_on(where: tuple[str | int, ...], line: int) -> None:
    """Dotted and quoted keys, long texts, lists over lines, inline tables, tables in arrays of tables."""
    assert lines(TEXT)[where] == line


def test_every_value_of_a_document_has_a_line() -> None:
    """No path that the parser finds is missing, and none is invented."""

    def paths(value: object, here: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        found = {here} if here else set()
        return found.union(*(paths(item, (*here, name)) for name, item in items))

    assert lines(TEXT).keys() == paths(tomllib.loads(TEXT))


def test_an_empty_document_has_no_lines() -> None:
    """Comments and blank lines hold no setting."""
    assert lines("\n# a = 1\n\n") == {}
