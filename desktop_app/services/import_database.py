"""The tables of an imported session: telemetry as every session has it, and beside it what only a log has."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from desktop_app.core.telemetry import DETAIL_FIELDS, GPU_FIELDS
from desktop_app.services.import_cards import ImportedCard
from desktop_app.services.session_database import SessionDatabase
from desktop_app.telemetry.logs.record import LogRecord

_BATCH: Final = 2000
_COLUMNS: Final = ", ".join(f'"{name}"' for name in ("gpu", "t_s", *GPU_FIELDS))
_DETAIL_COLUMNS: Final = ", ".join(f'"{name}"' for name in ("gpu", "t_s", *DETAIL_FIELDS))
# A change of the reason or of the text is one row; it holds until the next. A NULL reason: there is a value again.
_TABLES: Final = (
    "CREATE TABLE import_reasons (gpu INTEGER, t_s REAL, field TEXT, reason TEXT)",
    "CREATE TABLE import_raw (gpu INTEGER, t_s REAL, field TEXT, text TEXT)",
    "CREATE TABLE import_processes (gpu INTEGER, t_s REAL, pid INTEGER, name TEXT, kind TEXT, memory_bytes REAL, "
    "reason TEXT)",
)
# Rows without a time, in their order (t_s is the row's number of its card), while others have one.
UNTIMED: Final = "telemetry_untimed"
_DETAILS: Final = "details"
_DETAILS_UNTIMED: Final = "details_untimed"
_TIMED: Final = ("telemetry", _DETAILS, "import_reasons", "import_raw", "import_processes")
_WORDS: Final = frozenset({"name", "text"})  # columns of a run's tables that are no numbers
_NAMED: Final = {
    "telemetry": _COLUMNS,
    UNTIMED: _COLUMNS,
    _DETAILS: _DETAIL_COLUMNS,
    _DETAILS_UNTIMED: _DETAIL_COLUMNS,
}


class ImportDatabase:
    """Writes rows in batches into a new ``samples.db``. Raises ``sqlite3.Error``."""

    def __init__(self, path: Path) -> None:
        SessionDatabase.open(path).close()  # the tables of every session
        self._path = path
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._waiting: dict[str, list[tuple[object, ...]]] = {}
        try:
            self._connection.execute("BEGIN")
            for statement in _TABLES:
                self._connection.execute(statement)
            self._connection.execute(f"CREATE TABLE {UNTIMED} ({_COLUMNS})")
            self._connection.execute(f"CREATE TABLE {_DETAILS_UNTIMED} ({_DETAIL_COLUMNS})")
        except BaseException:
            self._connection.close()
            raise

    def add_card(self, card: ImportedCard) -> None:
        self._connection.execute("INSERT INTO gpus (gpu, uuid) VALUES (?, ?)", (card.number, card.key))

    def add(self, card: ImportedCard, record: LogRecord, *, t_s: float, timed: bool) -> None:
        """One record at ``t_s``; without a time it goes apart until it is known whether any has one."""
        if record.readings:
            self._put("telemetry" if timed else UNTIMED, (card.number, t_s, *_values(record, GPU_FIELDS)))
        if any(name in record.readings for name in DETAIL_FIELDS):
            self._put(_DETAILS if timed else _DETAILS_UNTIMED, (card.number, t_s, *_values(record, DETAIL_FIELDS)))
        at = t_s if timed else None
        for name, reading in record.readings.items():
            reason = None if reading.reason is None else reading.reason.value
            if card.last_reasons.get(name) != reason:
                card.last_reasons[name] = reason
                self._put("import_reasons", (card.number, at, name, reason))
        for name, text in record.raw.items():
            if card.last_raw.get(name) != text:
                card.last_raw[name] = text
                self._put("import_raw", (card.number, at, name, text))
        for process in record.processes:
            memory = process.memory_bytes
            reason = None if memory.reason is None else memory.reason.value
            self._put(
                "import_processes", (card.number, at, process.pid, process.name, process.kind, memory.value, reason)
            )

    def convert_times(self, convert: Callable[[float], float]) -> None:
        """Every time so far by ``convert``: what was taken for local time is compared with UTC now."""
        self._flush_all()
        self._connection.create_function("converted", 1, convert, deterministic=True)
        for table in _TIMED:
            self._connection.execute(f"UPDATE {table} SET t_s = converted(t_s) WHERE t_s NOT NULL")  # noqa: S608 - our own

    def take_cards(self, of: ImportDatabase, *, first_s: float, last_s: float) -> None:
        """The cards' rows from ``first_s`` to ``last_s`` of another database, with the reasons that held then."""
        of.settle()
        self.settle(begin=False)  # nothing is attached within a transaction
        self._connection.execute("ATTACH DATABASE ? AS cards", (str(of._path),))
        self._connection.execute("BEGIN")
        between = "t_s BETWEEN :first AND :last"
        times: dict[str, float] = {"first": first_s, "last": last_s}
        for table, columns in (("telemetry", _COLUMNS), (_DETAILS, _DETAIL_COLUMNS), ("import_processes", "*")):
            into = "" if columns == "*" else f"({columns})"
            self._connection.execute(
                f"INSERT INTO {table} {into} SELECT {columns} FROM cards.{table} WHERE {between}",  # noqa: S608 - our own
                times,
            )
        span = self.span()
        if span is not None:
            times["first"] = span[0]
            for table, word in (("import_reasons", "reason"), ("import_raw", "text")):
                held = f"SELECT gpu, field, {word}, max(t_s) FROM cards.{table} WHERE t_s <= :first GROUP BY gpu, field"  # noqa: S608
                self._connection.execute(
                    f"INSERT INTO {table} SELECT gpu, :first, field, {word} FROM ({held})",  # noqa: S608 - our own
                    {"first": span[0]},
                )
                self._connection.execute(
                    f"INSERT INTO {table} SELECT * FROM cards.{table} WHERE t_s > :first AND t_s <= :last",  # noqa: S608
                    times,
                )
            self._connection.execute(
                "INSERT INTO gpus SELECT * FROM cards.gpus WHERE gpu IN (SELECT DISTINCT gpu FROM telemetry)"
            )
        self.settle(begin=False)
        self._connection.execute("DETACH DATABASE cards")
        self._connection.execute("BEGIN")

    def settle(self, *, begin: bool = True) -> None:
        """Everything so far is in the file."""
        self._flush_all()
        self._connection.execute("COMMIT")
        if begin:
            self._connection.execute("BEGIN")

    def count(self) -> int:
        """Rows of cards that have a time."""
        self._flush_all()
        return int(self._connection.execute("SELECT count(*) FROM telemetry").fetchone()[0])

    def span(self) -> tuple[float, float] | None:
        """First and last time of a card's rows."""
        self._flush_all()
        first, last = self._connection.execute("SELECT min(t_s), max(t_s) FROM telemetry").fetchone()
        return None if first is None else (first, last)

    def set_cards_apart(self) -> None:
        """Their times are of another clock than the axis."""
        self._flush_all()
        for table, names in (("telemetry", _COLUMNS), (_DETAILS, _DETAIL_COLUMNS)):
            numbered = names.replace('"t_s"', "row_number() OVER (PARTITION BY gpu ORDER BY rowid) - 1", 1)
            self._connection.execute(
                f"INSERT INTO {table}_untimed ({names}) SELECT {numbered} FROM {table}"  # noqa: S608 - our own
            )
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own
        for table in ("import_reasons", "import_raw", "import_processes"):
            self._connection.execute(f"UPDATE {table} SET t_s = NULL")  # noqa: S608 - our own

    def add_run(self, tables: Mapping[str, Iterable[Sequence[object]]], columns: Mapping[str, Sequence[str]]) -> None:
        """Tables of a training, with their rows in the order of ``columns``."""
        for table, names in columns.items():
            kinds = ", ".join(f'"{name}" {"TEXT" if name in _WORDS else "REAL"}' for name in names)
            self._connection.execute(f"CREATE TABLE {table} ({kinds})")
            places = ", ".join("?" * len(names))
            # sqlite3 stores NaN as NULL by itself.
            self._connection.executemany(f"INSERT INTO {table} VALUES ({places})", tables[table])  # noqa: S608 - our own

    def finish(self, *, earliest_s: float, any_timed: bool) -> None:
        """Times from the earliest row on; rows without times on the axis where none has one."""
        self._flush_all()
        if any_timed and earliest_s:
            for table in _TIMED:
                self._connection.execute(f"UPDATE {table} SET t_s = t_s - ?", (earliest_s,))  # noqa: S608 - our own
        if not any_timed:
            self._connection.execute(f"INSERT INTO telemetry ({_COLUMNS}) SELECT {_COLUMNS} FROM {UNTIMED}")  # noqa: S608
            self._connection.execute(f"DROP TABLE {UNTIMED}")
            self._connection.execute(
                f"INSERT INTO {_DETAILS} ({_DETAIL_COLUMNS}) SELECT {_DETAIL_COLUMNS} FROM {_DETAILS_UNTIMED}"  # noqa: S608
            )
            self._connection.execute(f"DROP TABLE {_DETAILS_UNTIMED}")
        self._connection.execute("COMMIT")
        self.close()

    def close(self) -> None:
        self._connection.close()

    def _flush_all(self) -> None:
        for table in tuple(self._waiting):
            self._flush(table)

    def _put(self, table: str, row: tuple[object, ...]) -> None:
        rows = self._waiting.setdefault(table, [])
        rows.append(row)
        if len(rows) >= _BATCH:
            self._flush(table)

    def _flush(self, table: str) -> None:
        rows = self._waiting.pop(table, [])
        if not rows:
            return
        names = _NAMED.get(table)
        columns = "" if names is None else f" ({names})"
        places = ", ".join("?" * len(rows[0]))
        self._connection.executemany(f"INSERT INTO {table}{columns} VALUES ({places})", rows)  # noqa: S608 - our own


def _values(record: LogRecord, fields: Iterable[str]) -> list[float | None]:
    return [None if (reading := record.readings.get(name)) is None else reading.value for name in fields]
