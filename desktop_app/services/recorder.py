"""The recorder: everything in the store and the event queue into one SQLite file, at most one second behind."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from desktop_app.core.events import EventQueue
from desktop_app.core.store import Store
from desktop_app.services.session_database import Block, SessionDatabase
from desktop_app.services.session_folder import SessionFolder

_log = logging.getLogger(__name__)

# Half of the promised second, so that a batch that takes long still keeps the promise.
INTERVAL_S: Final = 0.5


class Recorder:
    """Pulls what is new since its own positions and writes it in batches. Runs in: recorder thread.

    A batch that cannot be written (disk full, folder gone) is kept: positions move only after a commit, and the rings
    still hold the rows. ``on_trouble`` gets one line, and ``None`` when writing works again.
    """

    def __init__(
        self,
        folder: SessionFolder,
        *,
        store: Store,
        events: EventQueue,
        start_at: Mapping[str, int],
        first_event: int,
        on_trouble: Callable[[str | None], None],
        interval_s: float = INTERVAL_S,
        open_database: Callable[[Path], SessionDatabase] = SessionDatabase.open,
    ) -> None:
        self._folder = folder
        self._store = store
        self._events = events
        self._positions = dict(start_at)
        self._event_position = first_event
        self._on_trouble = on_trouble
        self._interval_s = interval_s
        self._open_database = open_database
        self._database: SessionDatabase | None = None
        self._ending = threading.Event()
        self._trouble: str | None = None
        self.rows_missed = 0  # that the rings no longer had when writing worked again
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    @property
    def in_trouble(self) -> bool:
        """What came last could not be written."""
        return self._trouble is not None

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> bool:
        """Write what is left and end. ``False`` when the disk did not answer in time or did not take it."""
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive() and not self.in_trouble

    def _run(self) -> None:
        while True:
            ending = self._ending.wait(self._interval_s)
            try:
                self._write_batch()
            except (sqlite3.Error, OSError) as error:
                self._give_up(f"The session cannot be written to {self._folder.path}: {error}.")
            except Exception as error:  # thread main: what comes next may be written again
                _log.exception("The recorder failed")
                self._give_up(f"The session cannot be written: {error!r}.")
            else:
                self._say(None)
            if ending:
                break
        self._close()

    def _write_batch(self) -> None:
        database = self._database or self._open_database(self._folder.database_path)
        self._database = database
        blocks, positions, missed = self._pull()
        events, event_position = self._events.since(self._event_position)
        if blocks or events:
            database.write(blocks, events)
        self._positions, self._event_position = positions, event_position
        if missed:
            self.rows_missed += missed
            _log.error("%d rows came too late to be recorded", missed)

    def _pull(self) -> tuple[list[Block], dict[str, int], int]:
        blocks, positions, missed = [], dict(self._positions), 0
        for name in self._store.names():
            rows = self._store.history(name).since(positions.get(name, 0))
            positions[name] = rows.version
            missed += rows.missed
            if rows.t_s.size:
                blocks.append(Block(name, rows))
        return blocks, positions, missed

    def _give_up(self, text: str) -> None:
        """Until the next interval: the file is opened anew then."""
        self._close()
        self._say(f"{text} It is kept and tried again.")

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _say(self, text: str | None) -> None:
        if text != self._trouble:
            self._trouble = text
            self._on_trouble(text)
