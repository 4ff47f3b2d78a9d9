"""Reads a user's memory recording for the window, without the window waiting for it."""

from __future__ import annotations

import contextlib
import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from desktop_app.core.errors import FloodmarkError
from desktop_app.core.store import Cell
from desktop_app.services.facade import SnapshotState, SnapshotStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from desktop_app.core.estimates import Timeline

_log = logging.getLogger(__name__)


class SnapshotReader:
    """Answers the newest request; what an older one finds is dropped. Runs in: a thread of its own per file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest = 0
        self._thread: threading.Thread | None = None
        self.status: Cell[SnapshotStatus] = Cell(SnapshotStatus(SnapshotState.NONE))

    def open(self, path: Path) -> None:
        """Returns at once; the recording appears in ``status``."""
        with self._lock:
            self._newest += 1
            number = self._newest
            self.status.set(SnapshotStatus(SnapshotState.READING, name=path.name))
            self._thread = threading.Thread(target=self._read, args=(path, number), name="snapshot", daemon=True)
            self._thread.start()

    def wait(self, timeout_s: float | None = None) -> SnapshotStatus:
        """Block until the newest file is read. For programs without a window, and tests."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout_s)
        return self.status.get()

    def _read(self, path: Path, number: int) -> None:
        try:
            status = SnapshotStatus(SnapshotState.READY, name=path.name, timeline=_timeline(path))
        except FloodmarkError as error:
            status = SnapshotStatus(SnapshotState.FAILED, name=path.name, error_code=error.code, error=error.message)
        except Exception as error:  # thread main: a file may hold anything
            _log.warning("The snapshot cannot be read", exc_info=error)
            line = f"{path} cannot be read as a memory snapshot: {type(error).__name__}."
            status = SnapshotStatus(SnapshotState.FAILED, name=path.name, error_code="snapshot.malformed", error=line)
        with self._lock:
            if number == self._newest:
                self.status.set(status)


def _timeline(path: Path) -> Timeline:
    """About two seconds for a hundred thousand events."""
    from desktop_app.memory.snapshot import read_snapshot
    from desktop_app.memory.snapshot_analysis import make_timeline
    from desktop_app.memory.snapshot_history import find_beginning
    from desktop_app.memory.snapshot_replay import replay_recording

    snapshot = read_snapshot(path)
    beginning = find_beginning(snapshot)
    blocks: Mapping[int, int] = {}
    if snapshot.events and not beginning.contradictions:
        with contextlib.suppress(ValueError):  # settings of the allocator that are not known: sizes are rounded only
            blocks = replay_recording(snapshot, beginning).block_bytes
    return make_timeline(snapshot, beginning, blocks)
