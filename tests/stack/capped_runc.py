"""runc for a root who may not raise limits (no CAP_SYS_RESOURCE): who asks for more gets what there is.

The engine calls it instead of runc on such a machine, where `ulimits` of a compose file fail otherwise.
"""

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

UNLIMITED = 2**64 - 1


def main(arguments: list[str]) -> None:
    """Cap what a new container or a new process in one asks for, then become runc."""
    if "create" in arguments:
        file = Path(_after("--bundle", arguments)) / "config.json"
        told = json.loads(file.read_text())
        _cap(told["process"])
        file.write_text(json.dumps(told))
    elif "exec" in arguments:
        file = Path(_after("--process", arguments))
        told = json.loads(file.read_text())
        _cap(told)
        file.write_text(json.dumps(told))
    os.execvp("runc", ["runc", *arguments])  # noqa: S606  becoming runc is what this is for


def _after(option: str, arguments: list[str]) -> str:
    return arguments[arguments.index(option) + 1]


def _cap(process: dict[str, Any]) -> None:
    for limit in process.get("rlimits", ()):
        _, hard = resource.getrlimit(getattr(resource, limit["type"]))
        most = UNLIMITED if hard == resource.RLIM_INFINITY else hard
        limit["hard"], limit["soft"] = min(limit["hard"], most), min(limit["soft"], most)


if __name__ == "__main__":
    main(sys.argv[1:])
