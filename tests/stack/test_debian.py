"""Another release's packages come from where the machine gets its own, however its sources are written."""

from pathlib import Path

from tests.stack import debian

ONE_LINE = """
# deb http://commented.example/debian bookworm main
deb http://mirror.example/debian bookworm main contrib
deb [signed-by=/key.gpg arch=amd64] http://mirror.example/debian-security bookworm-security main
deb http://mirror.example/debian bookworm-backports main
deb-src http://mirror.example/debian bookworm main
deb https://others.example/linux/debian bookworm stable
"""
DEB822 = """
Types: deb
# a snapshot, say
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main
Signed-By: /key.gpg

Types: deb
URIs: https://others.example/apt
Suites: bookworm
Components: main
"""


def test_sources_in_one_line_each(tmp_path: Path) -> None:
    """Options and components stay; backports, sources and other people's archives are left out."""
    (tmp_path / "sources.list").write_text(ONE_LINE)
    found = debian.sources_of("trixie", etc=tmp_path, own="bookworm")
    assert found["suite.list"].splitlines() == [
        "deb http://mirror.example/debian trixie main contrib",
        "deb [signed-by=/key.gpg arch=amd64] http://mirror.example/debian-security trixie-security main",
    ]
    assert found["suite.sources"] == ""


def test_sources_in_stanzas(tmp_path: Path) -> None:
    """The same, as newer installations have it."""
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "debian.sources").write_text(DEB822)
    found = debian.sources_of("trixie", etc=tmp_path, own="bookworm")
    assert found["suite.list"] == ""
    assert found["suite.sources"].splitlines() == [
        "Types: deb",
        "URIs: http://mirror.example/debian",
        "Suites: trixie trixie-updates",
        "Components: main",
        "Signed-By: /key.gpg",
    ]
