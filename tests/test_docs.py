"""What the documentation says can be typed, read or received is so."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from gateway.cli import app
from gateway.errors import CallerError, ClientClosed, GatewayError
from gateway.settings.environment import CONFIG, variables
from gateway.settings.secret_files import TWINS

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
FAMILIES = (GatewayError, CallerError)  # parents that nobody raises as they are
INLINE = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def errors(parent: type[GatewayError] = GatewayError) -> Iterator[type[GatewayError]]:
    """All errors of the tree that live in it and can be raised."""
    for error in parent.__subclasses__():
        if error.__module__ == GatewayError.__module__:
            yield from () if error in FAMILIES else (error,)
            yield from errors(error)


def test_every_error_is_documented_with_its_status() -> None:
    """All codes of the tree and no other."""
    table = re.findall(
        r"^\| `(\w+)` \| \(?(\d{3})\)? \|", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE
    )
    assert sorted(table) == sorted((error.code, str(error.status)) for error in errors())


def test_no_two_errors_share_a_code_and_every_one_has_its_docstring() -> None:
    """A code is what callers and dashboards tell them apart by."""
    codes = [error.code for error in errors()]
    assert len(codes) == len(set(codes))
    assert ClientClosed in errors()
    assert all(error.__doc__ for error in errors())


def commands(page: Path) -> Iterator[list[str]]:
    """The command lines that a page shows, in blocks and in the text, word by word and without comments."""
    text = page.read_text()
    blocks = "\n".join(FENCED.findall(text)).replace("\\\n", " ").splitlines()
    for line in [*blocks, *INLINE.findall(FENCED.sub("", text))]:
        words = shlex.split(line, comments=True) if line.count('"') % 2 == line.count("'") % 2 == 0 else []
        while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
            words = words[1:]
        if words:
            yield words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_that_is_shown_exists(page: Path) -> None:
    """Pasted, it does something."""
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = {word for words in commands(page) if words[0] == "make" for word in words[1:] if word.islower()}
    assert shown <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_gateway_command_that_is_shown_exists(page: Path) -> None:
    """Its name, its subcommand and its options."""
    for words in commands(page):
        if words[0].rpartition("/")[2] == "gateway":
            assert_exists(words[1:])


def assert_exists(words: list[str]) -> None:
    """Whether the command line knows these words."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        name, *words = words
        assert name in command.commands, name
        command = command.commands[name]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    assert {word for word in words if word.startswith("--")} <= known, (command.name, words)


def test_the_first_commands_of_the_readme_are_the_ones_that_start_and_test_it() -> None:
    """A reader of two lines has a running system."""
    first = FENCED.findall((ROOT / "README.md").read_text())[0]
    assert [line.split()[:2] for line in first.splitlines()] == [["make", "up"], ["make", "test"]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_variable_that_is_shown_exists(page: Path) -> None:
    """A slip of the pen would be ignored with a warning."""
    known = {CONFIG, *variables(), *TWINS} | {"GATEWAY_<SECTION>__<NAME>"}
    text = page.read_text()
    shown = {name for name in re.findall(r"GATEWAY_[A-Z_<>]+", text) if not name.endswith("_")}
    assert shown <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    """In the repository as it is."""
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []
