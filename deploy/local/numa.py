"""A stand-in for libnuma where a machine has none: vLLM's CPU kernels are linked with it.

It says "no NUMA here" to the one question that vLLM asks first, which is true of nearly every machine that
lacks the library. Written byte by byte because a machine without libnuma1 seldom has a linker either.
The format: System V ABI, chapters 4 and 5 (ELF-64, x86-64), and the LSB on symbol versions.
"""

import ctypes
import struct
from collections.abc import Mapping
from pathlib import Path

NAME = "libnuma.so.1"
VERSIONS = ("libnuma_1.1", "libnuma_1.2")
# Which version of the interface each function that vLLM is linked with belongs to.
FUNCTIONS = {
    "numa_available": 0,
    "numa_migrate_pages": 0,
    "numa_set_strict": 0,
    "numa_bitmask_free": 1,
    "numa_get_mems_allowed": 1,
    "numa_parse_nodestring": 1,
    "numa_set_interleave_mask": 1,
    "numa_set_membind": 1,
}
# mov eax, -1; ret: numa_available() < 0 means that no other function may be called.
CODE = b"\xb8\xff\xff\xff\xff\xc3"

PAGE = 0x1000
HEADER_BYTES = 64
PROGRAM_HEADER_BYTES = 56
PT_LOAD, PT_DYNAMIC, PT_GNU_STACK = 1, 2, 0x6474E551
READ, WRITE, EXECUTE = 4, 2, 1
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_SONAME = 4, 5, 6, 10, 11, 14
DT_VERSYM, DT_VERDEF, DT_VERDEFNUM = 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD


def system_has_it() -> bool:
    """Whether the dynamic linker finds a libnuma by itself."""
    try:
        ctypes.CDLL(NAME)
    except OSError:
        return False
    return True


def provide(folder: Path) -> None:
    """Writes the stand-in into a folder, which is made if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_bytes(shared_object())


def environment(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """What lets the dynamic linker find the stand-in; empty where the system has the real one."""
    if system_has_it():
        return {}
    paths = [str(folder), environ.get("LD_LIBRARY_PATH", "")]
    return {"LD_LIBRARY_PATH": ":".join(path for path in paths if path)}


def shared_object() -> bytes:
    """An ELF-64 shared library for x86-64 whose functions all return -1."""
    strings, offsets = _strings([NAME, *VERSIONS, *FUNCTIONS])
    at = HEADER_BYTES + 4 * PROGRAM_HEADER_BYTES
    # The symbols' addresses are known once the tables before the code have their sizes.
    sizes = [len(part) for part in _tables(offsets, strings, code_at=0)]
    places = [at + sum(sizes[:i]) for i in range(len(sizes) + 1)]
    body = b"".join(_tables(offsets, strings, code_at=places[-1])) + CODE
    dynamic = _dynamic(places, offsets, strings)
    return _headers(at + len(body), len(dynamic)) + body.ljust(PAGE - at, b"\0") + dynamic


def _strings(names: list[str]) -> tuple[bytes, dict[str, int]]:
    table, offsets = b"\0", {}
    for name in names:
        offsets[name] = len(table)
        table += name.encode() + b"\0"
    return table.ljust(-(-len(table) // 8) * 8, b"\0"), offsets


def _tables(offsets: dict[str, int], strings: bytes, code_at: int) -> list[bytes]:
    """Symbols, strings, hash, version of each symbol, versions defined; each a multiple of 8 bytes."""
    symbols = bytes(24) + b"".join(
        struct.pack("<IBBHQQ", offsets[name], 0x12, 0, 1, code_at, len(CODE)) for name in FUNCTIONS
    )
    count = len(FUNCTIONS) + 1
    # One bucket that starts at symbol 1; each symbol names the next, the last one 0.
    hashes = struct.pack(f"<III{count}I", 1, count, 1, 0, *range(2, count), 0)
    versions = struct.pack(f"<{count}H", 0, *(index + 2 for index in FUNCTIONS.values()))
    return [symbols, strings, _padded(hashes), _padded(versions), _padded(_definitions(offsets))]


def _padded(table: bytes) -> bytes:
    return table.ljust(-(-len(table) // 8) * 8, b"\0")


def _definitions(offsets: dict[str, int]) -> bytes:
    names = [NAME, *VERSIONS]
    out = b""
    for index, name in enumerate(names, start=1):
        base = 1 if index == 1 else 0
        following = 28 if index < len(names) else 0
        out += struct.pack("<HHHHIII", 1, base, index, 1, _elf_hash(name), 20, following)
        out += struct.pack("<II", offsets[name], 0)
    return out


def _elf_hash(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high
    return value


def _dynamic(places: list[int], offsets: dict[str, int], strings: bytes) -> bytes:
    symbols_at, strings_at, hash_at, versions_at, definitions_at, _ = places
    entries = [
        *((DT_SONAME, offsets[NAME]), (DT_HASH, hash_at), (DT_STRTAB, strings_at), (DT_SYMTAB, symbols_at)),
        *((DT_STRSZ, len(strings)), (DT_SYMENT, 24), (DT_VERSYM, versions_at)),
        *((DT_VERDEF, definitions_at), (DT_VERDEFNUM, 1 + len(VERSIONS)), (0, 0)),
    ]
    return b"".join(struct.pack("<qQ", tag, value) for tag, value in entries)


def _headers(text_bytes: int, dynamic_bytes: int) -> bytes:
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    sizes = (HEADER_BYTES, PROGRAM_HEADER_BYTES, 4, 0, 0, 0)
    header = identity + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, HEADER_BYTES, 0, 0, *sizes)
    # The dynamic linker of older glibc writes into the dynamic table, so that lies on a writable page.
    segments = [
        (PT_LOAD, READ | EXECUTE, 0, text_bytes, PAGE),
        (PT_LOAD, READ | WRITE, PAGE, dynamic_bytes, PAGE),
        (PT_DYNAMIC, READ | WRITE, PAGE, dynamic_bytes, 8),
        # Without this entry the whole process gets an executable stack.
        (PT_GNU_STACK, READ | WRITE, 0, 0, 16),
    ]
    return header + b"".join(
        struct.pack("<IIQQQQQQ", kind, flags, offset, offset, offset, size, size, align)
        for kind, flags, offset, size, align in segments
    )
