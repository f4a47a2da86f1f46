"""A service that does nothing but be there: `fake_service.py NAME FOLDER`, with a child of its own.

`FOLDER/NAME.json` holds its process id, its child's, and the environment it was given; `FOLDER/stops` gets
its name when it is told to stop.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType


def main(name: str, folder: Path) -> None:
    """Runs until it is told to stop."""

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        with (folder / "stops").open("a") as file:
            file.write(f"{name}\n")
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    # As vLLM's workers: it does not notice that its parent is gone, and /proc shows no environment of it.
    child = subprocess.Popen(["/usr/bin/env", "-i", "/bin/sleep", "600"])
    written = folder / f".{name}.new"
    written.write_text(json.dumps({"id": os.getpid(), "child": child.pid, "environ": dict(os.environ)}))
    written.rename(folder / f"{name}.json")
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
