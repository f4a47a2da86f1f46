"""Turns into one of the services: `python -m deploy.local.launch SERVICES-FILE NAME`, run by supervisord.

Its own configuration could carry arguments and environment, in a quoting that paths and values can break.
"""

import os
import sys
from pathlib import Path

from deploy.local import services, session


def main(file: Path, name: str) -> None:
    """Replaces this process by the service's program, once nothing is left of one that died before it."""
    service = services.load(file)[name]
    session.kill(session.orphans(session.members(os.getsid(0), Path.cwd())))
    os.execve(service.argv[0], service.argv, service.environ(os.environ))  # noqa: S606  # no shell wanted


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
