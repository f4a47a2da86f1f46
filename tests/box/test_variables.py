"""How values in .env are changed."""

from pathlib import Path

from deploy.box import variables
from tests.box.boxes import Box


def test_env_line_by_line(box: Box) -> None:
    """Values change where they stand, however they are written; a new one comes with its meaning."""
    box.set_up()
    file: Path = box.places.env_file
    file.write_text("# a comment\n export PROFILE_FILE = ./old.yaml # why\nSITE=box.lan\n")
    variables.change(box.places, {"PROFILE_FILE": "./new file.yaml", "BACK_PROFILE_FILE": "./old.yaml"})
    assert file.read_text() == (
        "# a comment\nPROFILE_FILE='./new file.yaml'\nSITE=box.lan\n\n"
        f"# {variables.MEANING['BACK_PROFILE_FILE']}\nBACK_PROFILE_FILE=./old.yaml\n"
    )
