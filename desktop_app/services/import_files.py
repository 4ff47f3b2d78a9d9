"""What is named on the command line as files: folders and patterns unfolded, contents read."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from desktop_app.telemetry.logs.kinds import UnknownKindError, refuse_binary
from desktop_app.telemetry.logs.log_lines import MOST_BYTES
from desktop_app.telemetry.logs.tfevents import looks_like_events

STDIN: Final = Path("-")
_PATTERN: Final = "*?["
_FIRST_BYTES: Final = 65_536
_MOST_FILES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Found:
    """A file, and whether a folder brought it. ``problem``: why it cannot be read, in words that follow its name."""

    path: Path
    in_folder: bool = False
    problem: str | None = None


def unfolded(paths: Sequence[Path]) -> Iterator[Found]:
    """Files in their order. A pattern that no shell has unfolded is unfolded here.

    What does not exist is a file that cannot be read; so is what may not be looked at. Hidden files of a folder are
    passed over.
    """
    for path in paths:
        try:
            yield from list(_named(path))
        except OSError as error:  # a name that is too long, a folder that may not be entered
            yield Found(path, problem=trouble_of(error))


def trouble_of(error: Exception) -> str:
    """Why a path cannot be read, in words that follow its name."""
    return f": {getattr(error, 'strerror', None) or error}; check the path and its permissions"


def _named(path: Path) -> Iterator[Found]:
    if not path.exists() and any(mark in str(path) for mark in _PATTERN):
        names = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - any root
        if names:
            for inner in map(Path, names):
                yield from _found(inner)
        else:
            yield Found(path)
    elif path.is_dir():
        yield from list(_inside(path)) or [Found(path)]
    else:
        yield Found(path)


def _found(path: Path) -> Iterator[Found]:
    """What a pattern has found: one that cannot be looked at is no reason to pass over the others."""
    try:
        yield from _inside(path) if path.is_dir() else [Found(path)]
    except OSError as error:
        yield Found(path, problem=trouble_of(error))


def _inside(folder: Path) -> Iterator[Found]:
    count = left_out = 0
    closed: list[OSError] = []
    for place, folders, names in os.walk(folder, onerror=closed.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.startswith("."):
                continue
            path = Path(place, name)
            if count >= _MOST_FILES:
                left_out += 1
                continue
            try:
                if not path.is_file():
                    continue
            except OSError as error:
                yield Found(path, problem=trouble_of(error))
            else:
                yield Found(path, in_folder=True)
            count += 1
    for refused in closed:
        yield Found(Path(refused.filename or folder), problem=trouble_of(refused))
    if left_out:
        many = f"its first {_MOST_FILES:,} files are read, {left_out:,} more are left out"
        yield Found(folder, problem=f": {many}; import its folders one by one")


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
