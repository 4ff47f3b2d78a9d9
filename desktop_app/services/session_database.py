"""The tables of one session in SQLite: one wide row per sample, readable while written."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from desktop_app.core.events import Event
from desktop_app.core.store import Rows
from desktop_app.core.telemetry import DETAIL_FIELDS, GPU_FIELDS

SCHEMA: Final = 1
# Histories of a card, and the tables that hold them for all cards.
_CARD_TABLES: Final = {"gpu:": ("telemetry", GPU_FIELDS), "details:": ("details", DETAIL_FIELDS)}
# Another program that holds the file (a database browser) is waited for this long; then the batch comes with the next.
_PATIENCE_S: Final = 1.0
# json_extract is part of every SQLite since 3.38 and of CPython's builds before that.
_ALERTS_VIEW: Final = """
CREATE VIEW IF NOT EXISTS alerts AS SELECT seq, t_s,
  json_extract(params, '$.step') AS step, json_extract(params, '$.cause') AS cause,
  json_extract(params, '$.severity') AS severity, json_extract(params, '$.eta_steps') AS eta_steps,
  json_extract(params, '$.eta_s') AS eta_s
FROM events WHERE kind = 'alert'
"""


@dataclass(frozen=True, slots=True)
class Block:
    """New rows of one history. A card's ``gpu:<uuid>`` goes to ``telemetry``, its ``details:<uuid>`` to ``details``."""

    name: str
    rows: Rows


class SessionDatabase:
    """Units are in the column names; a missing value is NULL. Raises ``sqlite3.Error``.

    Not thread-safe: it belongs to the thread that made it.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._tables: set[str] = set()
        self._gpus: dict[str, int] = {}

    @classmethod
    def open(cls, path: Path) -> Self:
        """The database at ``path``, made if need be."""
        connection = sqlite3.connect(path, isolation_level=None, timeout=_PATIENCE_S)
        try:
            _set_up(connection)
        except BaseException:
            connection.close()
            raise
        return cls(connection)

    def write(self, blocks: Iterable[Block], events: Iterable[Event]) -> None:
        """One transaction: all of it or nothing."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for block in blocks:
                self._write_rows(block)
            self._connection.executemany(
                "INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?, ?)", map(_event_row, events)
            )
            self._connection.execute("COMMIT")
        except BaseException:
            self._forget_batch()
            raise

    def close(self) -> None:
        self._connection.close()

    def _forget_batch(self) -> None:
        self._tables.clear()  # what the transaction had made is gone
        self._gpus.clear()
        if self._connection.in_transaction:  # a full disk rolls back by itself
            self._connection.execute("ROLLBACK")

    def _write_rows(self, block: Block) -> None:
        rows, table = block.rows, block.name
        lead: tuple[int, ...] = ()
        kind, _, uuid = table.partition(":")
        if f"{kind}:" in _CARD_TABLES:
            table, lead = _CARD_TABLES[f"{kind}:"][0], (self._gpu_number(uuid),)
        elif table not in self._tables:
            self._connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({_real_columns(('t_s', *rows.columns))})")
            self._tables.add(table)
        places = ", ".join("?" * (len(lead) + 1 + len(rows.columns)))
        # sqlite3 stores NaN as NULL by itself.
        matrix = zip(rows.t_s.tolist(), *rows.values.tolist(), strict=True)
        insert = f"INSERT INTO {table} VALUES ({places})"  # noqa: S608 - names are our own
        self._connection.executemany(insert, ((*lead, *row) for row in matrix))

    def _gpu_number(self, uuid: str) -> int:
        if uuid not in self._gpus:
            self._connection.execute("INSERT OR IGNORE INTO gpus (uuid) VALUES (?)", (uuid,))
            found = self._connection.execute("SELECT gpu FROM gpus WHERE uuid = ?", (uuid,)).fetchone()
            self._gpus[uuid] = int(found[0])
        return self._gpus[uuid]


def _set_up(connection: sqlite3.Connection) -> None:
    # WAL: readable while written. FULL: a committed batch survives power loss; two commits a second cost nothing.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA user_version = {SCHEMA}")
    for statement in (
        "CREATE TABLE IF NOT EXISTS gpus (gpu INTEGER PRIMARY KEY, uuid TEXT UNIQUE)",
        "CREATE TABLE IF NOT EXISTS events "
        "(seq INTEGER PRIMARY KEY, t_s REAL, kind TEXT, level TEXT, code TEXT, params TEXT)",
        _ALERTS_VIEW,
    ):
        connection.execute(statement)
    for table, fields in _CARD_TABLES.values():
        columns = '"gpu" INTEGER, ' + _real_columns(("t_s", *fields))
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        connection.execute(f"CREATE INDEX IF NOT EXISTS {table}_by_time ON {table} (gpu, t_s)")


def _real_columns(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}" REAL' for name in names)


def _event_row(event: Event) -> tuple[int, float, str, str, str, str]:
    text = json.dumps(_plain(event.params), ensure_ascii=False, default=str, allow_nan=False)
    return event.seq, event.t_s, event.kind.value, event.level.value, event.code, text


def _plain(value: object) -> object:
    """JSON has neither NaN nor infinity: unknown is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
