"""The stand-in for libnuma is a library that the dynamic linker takes for the real one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local import numa

ASK = """
import ctypes, sys
library = ctypes.CDLL("libnuma.so.1")
find = ctypes.CDLL(None).dlvsym
find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
name, version = sys.argv[1].encode(), sys.argv[2].encode()
found = find(library._handle, name, version)
print(ctypes.CFUNCTYPE(ctypes.c_int)(found)() if found else "not found")
"""


@pytest.mark.parametrize(("function", "version"), [(f, numa.VERSIONS[v]) for f, v in numa.FUNCTIONS.items()])
def test_functions(tmp_path: Path, function: str, version: str) -> None:
    """Each function that vLLM is linked with is there in its version, and says that there is no NUMA."""
    numa.provide(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", ASK, function, version],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("-1\n", "")


def test_only_where_it_is_missing(tmp_path: Path) -> None:
    """The linker is pointed at the stand-in only on a machine without a libnuma; other paths stay."""
    found = numa.environment(tmp_path, {"LD_LIBRARY_PATH": "/opt/lib"})
    assert found == ({} if numa.system_has_it() else {"LD_LIBRARY_PATH": f"{tmp_path}:/opt/lib"})
