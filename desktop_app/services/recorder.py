"""The recorder: everything in the store and the event queue into one SQLite file, at most one second behind."""

from __future__ import annotations

import json
import logging
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from desktop_app.core.events import Event, EventQueue
from desktop_app.core.store import History, Rows, Store
from desktop_app.core.telemetry import GPU_FIELDS
from desktop_app.services.session_folder import SessionFolder

_log = logging.getLogger(__name__)

SCHEMA: Final = 1
# Half of the promised second, so that a batch that takes long still keeps the promise.
INTERVAL_S: Final = 0.5
_GPU_PREFIX: Final = "gpu:"
# json_extract is part of every SQLite since 3.38 and of CPython's builds before that.
_ALERTS_VIEW: Final = """
CREATE VIEW IF NOT EXISTS alerts AS SELECT seq, t_s,
  json_extract(params, '$.step') AS step, json_extract(params, '$.cause') AS cause,
  json_extract(params, '$.severity') AS severity, json_extract(params, '$.eta_steps') AS eta_steps,
  json_extract(params, '$.eta_s') AS eta_s
FROM events WHERE kind = 'alert'
"""


class SessionDatabase:
    """The tables of one session. Not thread-safe: it belongs to the thread that made it.

    One wide row per sample; units are in the column names; a missing value is NULL. Raises ``sqlite3.Error``.
    """

    def __init__(self, folder: SessionFolder) -> None:
        self._connection = sqlite3.connect(folder.database_path, isolation_level=None)
        # WAL: readable while written. FULL: a committed batch survives power loss; two commits a second cost nothing.
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(f"PRAGMA user_version = {SCHEMA}")
        self._columns: dict[str, int] = {}
        self._gpus: dict[str, int] = {}
        self._create("gpus", "gpu INTEGER PRIMARY KEY, uuid TEXT UNIQUE")
        self._create("events", "seq INTEGER PRIMARY KEY, t_s REAL, kind TEXT, level TEXT, code TEXT, params TEXT")
        self._create("telemetry", _real_columns(("gpu", "t_s", *GPU_FIELDS)))
        self._connection.execute("CREATE INDEX IF NOT EXISTS telemetry_by_time ON telemetry (gpu, t_s)")
        self._connection.execute(_ALERTS_VIEW)

    def write(self, batch: Iterable[tuple[str, tuple[str, ...], Rows]], events: Iterable[Event]) -> None:
        """One transaction: all of it or nothing."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for name, columns, rows in batch:
                self._write_rows(name, columns, rows)
            self._connection.executemany(
                "INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?, ?)", map(_event_row, events)
            )
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()

    def _write_rows(self, name: str, columns: tuple[str, ...], rows: Rows) -> None:
        lead: tuple[float, ...] = ()
        table = name
        if name.startswith(_GPU_PREFIX):
            table, lead = "telemetry", (self._gpu_number(name.removeprefix(_GPU_PREFIX)),)
        elif table not in self._columns:
            self._create(table, _real_columns(("t_s", *columns)))
            self._columns[table] = len(columns)
        places = ", ".join("?" * (len(lead) + 1 + len(columns)))
        # sqlite3 stores NaN as NULL by itself.
        matrix = zip(rows.t_s.tolist(), *rows.values.tolist(), strict=True)
        self._connection.executemany(f"INSERT INTO {table} VALUES ({places})", ((*lead, *row) for row in matrix))  # noqa: S608 - names are our own

    def _gpu_number(self, uuid: str) -> int:
        if uuid not in self._gpus:
            self._connection.execute("INSERT OR IGNORE INTO gpus (uuid) VALUES (?)", (uuid,))
            found = self._connection.execute("SELECT gpu FROM gpus WHERE uuid = ?", (uuid,)).fetchone()
            self._gpus[uuid] = int(found[0])
        return self._gpus[uuid]

    def _create(self, table: str, columns: str) -> None:
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")


class Recorder:
    """Pulls what is new since its own positions and writes it in batches. Runs in: recorder thread.

    A batch that cannot be written (disk full, folder gone) is kept: positions move only after a commit, and the
    rings still hold the rows. ``on_trouble`` gets the error's text, and ``None`` when writing works again.
    """

    def __init__(
        self,
        folder: SessionFolder,
        *,
        store: Store,
        events: EventQueue,
        start_at: dict[str, int],
        first_event: int,
        on_trouble: Callable[[str | None], None],
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._folder = folder
        self._store = store
        self._events = events
        self._positions = dict(start_at)
        self._event_position = first_event
        self._on_trouble = on_trouble
        self._interval_s = interval_s
        self._ending = threading.Event()
        self._in_trouble = False
        self.rows_missed = 0
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> bool:
        """Write what is left and end. ``False`` when the disk did not answer in time."""
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        database: SessionDatabase | None = None
        while True:
            ending = self._ending.wait(self._interval_s)
            database = self._write_batch(database)
            if ending:
                break
        if database is not None:
            database.close()

    def _write_batch(self, database: SessionDatabase | None) -> SessionDatabase | None:
        started_s = time.perf_counter()
        try:
            database = database or SessionDatabase(self._folder)
            batch, positions = self._pull()
            events, event_position = self._events.since(self._event_position)
            database.write(batch, events)
        except (sqlite3.Error, OSError) as error:
            self._trouble(str(error))
            if database is not None:
                database.close()
            return None
        self._positions, self._event_position = positions, event_position
        self._trouble(None)
        _log.debug("Batch written in %.1f ms", (time.perf_counter() - started_s) * 1e3)
        return database

    def _pull(self) -> tuple[list[tuple[str, tuple[str, ...], Rows]], dict[str, int]]:
        batch, positions = [], dict(self._positions)
        for name in self._store.names():
            history: History = self._store.history(name)
            rows = history.since(positions.get(name, 0))
            positions[name] = rows.version
            self.rows_missed += rows.missed
            if rows.t_s.size:
                batch.append((name, history.columns, rows))
        return batch, positions

    def _trouble(self, text: str | None) -> None:
        if text is None and not self._in_trouble:
            return
        if text is not None and not self._in_trouble:
            _log.error("The session cannot be written: %s", text)
        self._in_trouble = text is not None
        self._on_trouble(text)


def _real_columns(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}" {"INTEGER" if name == "gpu" else "REAL"}' for name in names)


def _event_row(event: Event) -> tuple[int, float, str, str, str, str]:
    params = {name: _plain(value) for name, value in event.params.items()}
    text = json.dumps(params, ensure_ascii=False, default=str, allow_nan=False)
    return event.seq, event.t_s, event.kind.value, event.level.value, event.code, text


def _plain(value: object) -> object:
    """JSON has neither NaN nor infinity: unknown is null. Mappings inside are evidence in plain numbers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return value
