"""What is named on the command line as files: folders and patterns unfolded, contents read."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from desktop_app.telemetry.logs.kinds import UnknownKindError, refuse_binary
from desktop_app.telemetry.logs.log_lines import MOST_BYTES
from desktop_app.telemetry.logs.tfevents import looks_like_events

STDIN: Final = Path("-")
_PATTERN: Final = "*?["
_FIRST_BYTES: Final = 65_536
_MOST_FILES: Final = 10_000


def unfolded(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Files in their order, and whether a folder brought them. A pattern that no shell has unfolded is unfolded here.

    What does not exist is a file that cannot be read. Hidden files of a folder are passed over.
    """
    for path in paths:
        if not path.exists() and any(mark in str(path) for mark in _PATTERN):
            found = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207 - any root
            for inner in found or [path]:
                yield from _inside(inner) if inner.is_dir() else [(inner, False)]
        elif path.is_dir():
            inside = list(_inside(path))
            yield from inside or [(path, False)]
        else:
            yield path, False


def _inside(folder: Path) -> Iterator[tuple[Path, bool]]:
    count = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if name.startswith(".") or not path.is_file():
                continue
            yield path, True
            count += 1
            if count >= _MOST_FILES:
                return


def content(path: Path) -> bytes:
    """The bytes of a log; ``-`` is the standard input. Raises ``OSError``, ``ValueError`` or ``UnknownKindError``."""
    if path == STDIN and not path.exists():
        return _limited(sys.stdin.buffer.read(MOST_BYTES + 1))
    if any(mark in str(path) for mark in _PATTERN) and not path.exists():
        raise FileNotFoundError(2, "no file has such a name")
    if path.is_dir():
        raise UnknownKindError("is a folder without files", suggests=False)
    with path.open("rb") as file:
        start = file.read(_FIRST_BYTES)
        if not looks_like_events(start):
            refuse_binary(start)  # before a checkpoint of many GB is read
        return _limited(start + file.read(MOST_BYTES + 1 - len(start)))


def _limited(data: bytes) -> bytes:
    if len(data) > MOST_BYTES:
        raise ValueError(f"has more than {MOST_BYTES >> 30} GiB; import it in parts")
    return data
