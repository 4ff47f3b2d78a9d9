"""Pickles that hold only numbers, texts, lists, dictionaries and tuples of numbers: read fast, whoever wrote them.

A pickle is a program. Before the interpreter's own unpickler runs it, one regular expression goes over all of its
instructions and admits only those that build plain things, so nothing can be imported or called. It also refuses what
makes that unpickler take memory or time out of proportion: indices into the memo beyond the size of the file, integers
of more than 64 bits (as dictionary keys they can be made to collide), tuples in tuples (their hash is recursive).
"""

from __future__ import annotations

import gzip
import io
import os
import pickle
import re
import stat
import zlib
from functools import cache
from pathlib import Path
from typing import Final, NoReturn

from desktop_app.core.errors import ExitCode, FloodmarkError
from desktop_app.core.units import GIB, format_bytes

# A million events with their stacks are about 70 MB, and ten times as much once they are unpickled.
MAX_BYTES: Final = 1 * GIB

# An empty list takes one byte in the file and 64 in memory. In real snapshots one in ten or more bytes builds one.
_EMPTY_SHARE: Final = 4

_GZIP: Final = b"\x1f\x8b"
_KNOWN_STARTS: Final = {
    b"PK": "a zip archive, as torch.save writes; save the snapshot with torch.cuda.memory._dump_snapshot",
    b"<!": "a web page; give the pickle that it was made from",
    b"{": "JSON; give the pickle",
}


class SnapshotError(FloodmarkError):
    """A recording that cannot be read: exit code 2."""

    def __init__(self, code: str, message: str, *, params: dict[str, object] | None = None) -> None:
        super().__init__(code, message, exit_code=ExitCode.USAGE, params=params)


def read_plain_pickle(path: Path, *, max_bytes: int = MAX_BYTES) -> object:
    """What the file holds, gzipped or not. Nothing in it is executed. Raises ``SnapshotError`` in one line."""
    data = _read(path, max_bytes)
    for start, what in _KNOWN_STARTS.items():
        if data.startswith(start):
            raise SnapshotError("snapshot.not_pickle", f"{path} is no pickle but {what}.", params={"path": str(path)})
    problem = find_problem(data)
    if problem is not None:
        line = f"{path} is no memory snapshot: {problem}."
        raise SnapshotError("snapshot.not_plain", line, params={"path": str(path)})
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    # Whatever it says, it is about the bytes of the file: the unpickler raises errors of a dozen types.
    except Exception as error:
        raise _damaged(path, error) from error


def find_problem(data: bytes) -> str | None:
    """Why this pickle is not plain, or ``None``. One pass over the bytes, about a second for 15 MB."""
    if data and not data.startswith(b"\x80"):  # PROTO, with which every protocol from 2 on begins
        return "it does not begin like a pickle"
    if len(data) > 1_000_000 and sum(map(data.count, (b"}", b"]", b")"))) * _EMPTY_SHARE > len(data):
        return "it is made of empty lists and dictionaries"
    known = _instructions(len(data) >> 16)
    position = 0
    while True:
        match = known.match(data, position)
        position = match.end() if match else position
        code = data[position : position + 1]
        if code == b".":  # STOP; what follows is not read
            return None
        if code == b"X":
            position += 5 + int.from_bytes(data[position + 1 : position + 5], "little")
        elif code == b"\x8c":
            position += 2 + int.from_bytes(data[position + 1 : position + 2], "little")
        elif not code or position + 1 >= len(data):
            return "it ends in the middle" if position else "it is empty"
        else:
            return _explain(code, position)


def _explain(code: bytes, position: int) -> str:
    if code in b"cioRb\x81\x92\x93\x82\x83\x84PQ":
        return f"at byte {position} it wants to load or call Python code, which a snapshot never does"
    return f"at byte {position} it holds something other than numbers, texts, lists and dictionaries"


@cache
def _instructions(pages: int) -> re.Pattern[bytes]:
    """Runs of admitted instructions in a file of so many times 64 KiB; long texts are skipped one by one."""
    long_integer = b"|".join(b"%b.{%d}" % (_hex(length), length) for length in range(10))
    integer = b"(?:K.|M..|J....|\\x8a(?:" + long_integer + b"))"
    short_text = b"\\x8c(?:" + b"|".join(b"%b.{%d}" % (_hex(length), length) for length in range(24)) + b")"
    # LONG_BINPUT takes any index of 32 bits, and makes the memo that long: none beyond the size of the file.
    high = min(pages >> 8, 0xFF)
    memo_index = b"...[\\x00-" + _hex(high) + b"]" if high else b"..[\\x00-" + _hex(pages) + b"]\\x00"
    patterns = [
        rb"[(}\])Nuesa\x88\x89\x94]",
        rb"h.",
        rb"j....",
        integer + rb"{2}\x86",
        integer,
        short_text,
        rb"q.",
        rb"r" + memo_index,
        rb"\x95.{8}",
        rb"\x80.",
        rb"G.{8}",
    ]
    return re.compile(b"(?:" + b"|".join(patterns) + b")*+", re.DOTALL)


def _hex(byte: int) -> bytes:
    return b"\\x%02x" % byte


def _read(path: Path, max_bytes: int) -> bytes:
    too_large = SnapshotError(
        "snapshot.too_large",
        f"{path} holds more than {format_bytes(max_bytes)}; record with a smaller max_entries.",
        params={"path": str(path), "bytes": max_bytes},
    )
    try:
        # Not blocking: a pipe that nobody writes to would never open.
        with open(path, "rb", opener=_open_at_once) as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):  # a pipe may never end, a device never does
                raise SnapshotError("snapshot.unreadable", f"{path} is no file.", params={"path": str(path)})
            if facts.st_size > max_bytes:
                raise too_large
            data = file.read()
        if data.startswith(_GZIP):
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
                data = unpacked.read(max_bytes + 1)
            if len(data) > max_bytes:
                raise too_large
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(path, error) from error
    except OSError as error:
        raise SnapshotError(
            "snapshot.unreadable",
            f"Cannot read {path}: {error.strerror or error}.",
            params={"path": str(path), "reason": str(error.strerror or error)},
        ) from error
    return data


def _open_at_once(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def _damaged(path: Path, error: Exception) -> SnapshotError:
    reason = " ".join(str(error).split())[:120]
    return SnapshotError(
        "snapshot.damaged", f"{path} is damaged: {reason or type(error).__name__}.", params={"path": str(path)}
    )


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it refers to {module_name}.{global_name}")

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError(f"it refers to something outside the file ({pid})")
