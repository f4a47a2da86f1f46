"""Asks addresses that only the stack's own networks reach, from within the gateway's container."""

import json
from collections.abc import Sequence

from deploy.box import docker
from deploy.box.places import Places
from deploy.local.probe import Answer

# Run by the Python of the gateway's image; an address that answers an error has answered.
_PROGRAM = """
import json, sys, urllib.error, urllib.request
def ask(url):
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except OSError as error:
        return 0, str(error)
print(json.dumps([ask(url) for url in sys.argv[1:]]))
"""


def get(places: Places, urls: Sequence[str]) -> list[Answer]:
    """What each address answers; status 0 and the reason where nobody does."""
    done = docker.tried(places, "compose", "exec", "-T", "gateway", "python3", "-c", _PROGRAM, *urls)
    if done.code:
        return [Answer(0, done.last_line.encode()) for _ in urls]
    return [Answer(status, body.encode()) for status, body in json.loads(done.out)]
