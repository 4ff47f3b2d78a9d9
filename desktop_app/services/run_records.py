"""What a run leaves on disk: its folder, locked while it is written, and the recorder that fills it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import filelock

from desktop_app.core.clock import SessionClock
from desktop_app.core.errors import FloodmarkError
from desktop_app.core.events import EventQueue
from desktop_app.core.steps import RunStatus
from desktop_app.core.store import Store
from desktop_app.core.telemetry import Card
from desktop_app.services.locations import sessions_folder, writable_problem
from desktop_app.services.recorder import Recorder
from desktop_app.services.session_folder import SavedPoint, SessionFolder, create_session
from desktop_app.training.config import RunConfig, config_to_toml, field_spec

_log = logging.getLogger(__name__)


class RunRecords:
    """The record of the active or last run. ``open`` to ``end`` in the trainer thread; ``close`` from any."""

    def __init__(
        self,
        *,
        clock: SessionClock,
        store: Store,
        events: EventQueue,
        on_trouble: Callable[[str | None], None],
    ) -> None:
        self._clock = clock
        self._store = store
        self._events = events
        self._on_trouble = on_trouble
        self._lock = threading.Lock()
        self._recorder: Recorder | None = None
        self._folder_lock: filelock.BaseFileLock | None = None
        self.folder: SessionFolder | None = None

    def forget(self) -> None:
        """A new run begins; what it does is not the old folder's."""
        self.folder = None

    def open(
        self, config: RunConfig, *, card: Card | None, resumed_from: Path | None, scenario: str | None = None
    ) -> SessionFolder:
        """Make a folder and record into it. ``FloodmarkError`` in one line when nothing can be kept."""
        problem = writable_problem(sessions_folder())
        if problem is not None:
            raise problem
        self.close()
        try:
            folder = create_session(
                sessions_folder(),
                run_name=config.title,
                config_toml=config_to_toml(_rooted(config)),
                card={} if card is None else {"name": card.name, "uuid": card.uuid, "simulated": card.simulated},
                anchor_wall_s=self._clock.anchor_wall_s,
                resumed_from=resumed_from,
                scenario=scenario,
            )
            folder_lock = _locked(folder)
        except OSError as error:
            raise FloodmarkError(
                "data_folder.unwritable", f"Cannot make a session folder in {sessions_folder()}: {error}."
            ) from error
        recorder = Recorder(
            folder,
            store=self._store,
            events=self._events,
            start_at={name: self._store.history(name).version for name in self._store.names()},
            first_event=self._events.seq,
            on_trouble=self._on_trouble,
        )
        with self._lock:
            self._recorder, self._folder_lock, self.folder = recorder, folder_lock, folder
        recorder.start()
        return folder

    def note_checkpoint(self, path: Path, step: int, epoch: int) -> None:
        """A run that is cut off can be taken up here."""
        if self.folder is not None:
            point = SavedPoint(path.absolute(), step, epoch)
            self._write(lambda folder: folder.note_checkpoint(point))

    def mark_ended(self, status: RunStatus) -> None:
        """The run has ended and is not offered any more."""
        details = {"step": status.step, "epoch": status.epoch, "error": status.error_message}
        self._write(lambda folder: folder.mark_ended(state=status.state.value, details=details))

    def end(self) -> None:
        """Flush and let go, unless the disk is in trouble: then what is left is tried until ``close``."""
        recorder = self._recorder
        if recorder is not None and not recorder.in_trouble:
            self.close()

    def close(self, timeout_s: float = 5.0) -> bool:
        """Flush what is left, also of a run that did not end: its folder stays without an end and can be resumed."""
        with self._lock:
            recorder, self._recorder = self._recorder, None
            folder_lock, self._folder_lock = self._folder_lock, None
            flushed = recorder is None or recorder.stop(timeout_s)
            if folder_lock is not None:
                folder_lock.release()
        return flushed

    def _write(self, write: Callable[[SessionFolder], None]) -> None:
        folder = self.folder
        if folder is None:
            return
        try:
            write(folder)
        except OSError as error:
            _log.warning("Cannot write the facts of %s: %s", folder.path, error)


def _locked(folder: SessionFolder) -> filelock.BaseFileLock | None:
    """``None`` on a file system without locks: another Floodmark may take the run for one that was cut off."""
    lock = folder.lock()
    try:
        lock.acquire()
    except NotImplementedError:
        _log.warning("%s is on a file system without locks", folder.path)
        return None
    return lock


def _rooted(config: RunConfig) -> RunConfig:
    """The same run, readable from any folder: paths in a run file start from the file's own folder."""
    changes = {
        name: str(Path(folder).absolute())
        for name in ("data", "output_dir")
        if (folder := getattr(config, name)) is not None and folder not in field_spec(name).choices
    }
    return replace(config, **changes)  # type: ignore[arg-type]
