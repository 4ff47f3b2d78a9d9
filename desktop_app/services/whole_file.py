"""Text files that are written whole or not at all: a full disk or Ctrl+C leaves the old one as it was."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: Path) -> Iterator[IO[str]]:
    """A file, UTF-8 with line ends as written, that takes the place of ``path`` when all of it is on the disk.

    What is no plain file (a pipe, ``/dev/stdout``) and what lies in a folder that takes no new file is written as it
    is. Raises ``OSError``.
    """
    path = path.resolve() if path.is_symlink() else path
    beside = path.with_name(f".floodmark-{secrets.token_hex(8)}.part")
    stream = None if path.exists() and not path.is_file() else _opened(beside)
    if stream is None:
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def _opened(path: Path) -> IO[str] | None:
    """``None`` where a folder takes no new file."""
    try:
        return path.open("x", encoding="utf-8", newline="")
    except PermissionError:
        return None
