"""Tests side by side, and tests that measure time alone: turns between the workers of pytest-xdist.

Workers hold a lock together while a test runs; a test marked ``alone`` holds it by itself. A second lock at the door
makes it fair: who waits to be alone lets nobody else begin.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows: no such locks; there the tests run one after the other
    fcntl = None  # type: ignore[assignment]


@contextmanager
def turn(*, alone: bool) -> Iterator[None]:
    """Wait for this test's turn among the workers of one run; nothing to wait for without workers."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None or fcntl is None:
        yield
        return
    folder = Path(tempfile.gettempdir())
    with _open(folder / f"pytest-{run}.door") as door, _open(folder / f"pytest-{run}.room") as room:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield


def _open(path: Path) -> IO[str]:
    return path.open("a", encoding="utf-8")
