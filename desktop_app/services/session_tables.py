"""A recorded session as CSV files, one for each table: for spreadsheets and whatever else reads no SQLite."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from desktop_app.core.errors import ConfigError, FloodmarkError
from desktop_app.services.trace_export import open_session


def export_tables(session: Path, folder: Path) -> dict[str, int]:
    """Write every table and view of the session's ``samples.db`` to ``folder``; the number of rows by table.

    The first line names the columns, units in the names (docs/guide/sessions.md). A value that was not there is an
    empty cell, a whole number has no point. All tables are of one moment, also while the session is being recorded.
    ``ConfigError`` when it is no session or ``folder`` holds something, ``FloodmarkError`` when it cannot be written.
    """
    with closing(open_session(session)) as connection:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise ConfigError("export.not_empty", f"{folder} holds files already. Give a new or an empty folder.")
            connection.execute("BEGIN")
            return _write_all(connection, folder)
        except OSError as error:
            reason = error.strerror or error
            raise FloodmarkError("export.unwritable", f"{folder} cannot be written: {reason}.") from None
        except sqlite3.Error as error:
            raise ConfigError("export.damaged", f"{session} cannot be read as a session: {error}.") from None


def _write_all(connection: sqlite3.Connection, folder: Path) -> dict[str, int]:
    """All of them or none: half an export would look like a whole one, and stand in the way of the next."""
    paths = {name: folder / f"{name}.csv" for name in _tables(connection)}
    try:
        return {name: _write(connection, name, path) for name, path in paths.items()}
    except BaseException:
        for path in paths.values():
            with suppress(OSError):
                path.unlink(missing_ok=True)
        raise


def _tables(connection: sqlite3.Connection) -> list[str]:
    wanted = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
    return [name for (name,) in connection.execute(wanted)]


def _write(connection: sqlite3.Connection, table: str, path: Path) -> int:
    quoted = table.replace('"', '""')
    rows = connection.execute(f'SELECT * FROM "{quoted}"')  # noqa: S608 - from the file's own list of tables
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(column[0] for column in rows.description)
        for row in rows:
            writer.writerow(_cell(value) for value in row)
            count += 1
    return count


def _cell(value: Any) -> Any:
    """SQLite holds bytes and counts as REAL: 1073741824, not 1073741824.0. ``None`` is written as nothing."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
