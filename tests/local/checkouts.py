"""A fresh checkout, in which `make` is called as a person does it."""

import os
import shutil
import subprocess
from pathlib import Path

from deploy.local import session
from deploy.local.places import CHECKOUT, Places
from deploy.local.table import Process

UP_SECONDS = 1_800
AGAIN_SECONDS = 600


class Checkout:
    """A copy of this checkout as git would give it: nothing that was made here before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.progress = ""
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"],
            cwd=CHECKOUT,
            capture_output=True,
            check=True,
        ).stdout
        for name in os.fsdecode(listed).strip("\0").split("\0"):
            if (CHECKOUT / name).exists():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(CHECKOUT / name, folder / name)

    def make(self, target: str, seconds: float = AGAIN_SECONDS, **variables: str) -> str:
        """What a target prints, once it has succeeded."""
        done = self.tried(target, seconds, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        self.progress = done.stderr
        return done.stdout

    def tried(
        self, target: str, seconds: float = AGAIN_SECONDS, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """What became of a target, given these variables of make."""
        given = [f"{name}={value}" for name, value in variables.items()]
        return subprocess.run(
            ["make", "--no-print-directory", target, *given],
            cwd=self.folder, capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip

    def paste(self, printed: str) -> str:
        """What the printed curl line prints when it is pasted into a shell."""
        (line,) = [line for line in printed.splitlines() if line.startswith("curl ")]
        return subprocess.run(
            ["sh", "-c", line],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=AGAIN_SECONDS,
            check=True,
        ).stdout

    def processes(self) -> list[Process]:
        """The processes of the stack in it."""
        leader = session.recorded(Places(self.folder).pid_file)
        return session.members(leader, self.folder) if leader else []
