"""A recorded session as a trace that ``floodmark forecast`` reads: steps, phases, surroundings and events by time."""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Final

from desktop_app.core.errors import ConfigError, FloodmarkError
from desktop_app.core.steps import Phase
from desktop_app.forecast.trace_rows import TraceRow
from desktop_app.services.forecast_trace import write_rows
from desktop_app.services.locations import sessions_folder
from desktop_app.services.trace_recording import PHASES
from desktop_app.services.whole_file import whole_file

# Rows of one moment: what was known before it, then phases within the step, the step, phases after it.
_KNOWN, _WITHIN, _STEP, _AFTER = range(4)
_AFTER_STEP: Final = frozenset({Phase.VALIDATION, Phase.SAVE})
_Keyed = tuple[tuple[float, float, int, int], TraceRow]


def export_trace(session: Path, out: Path) -> int:
    """Write the session of a folder to ``out``; the number of rows.

    ``ConfigError`` when it is no session or ``out`` a file of it, ``FloodmarkError`` when ``out`` cannot be written.
    """
    with closing(open_session(session)) as connection:
        _spare(connection, out)
        try:
            with whole_file(out) as file:
                return write_rows(rows_of(connection), file)
        except OSError as error:
            reason = error.strerror or error
            raise FloodmarkError("export.unwritable", f"{out} cannot be written: {reason}.") from None
        except sqlite3.Error as error:
            raise ConfigError("export.damaged", f"{session} cannot be read as a session: {error}.") from None


def _spare(connection: sqlite3.Connection, out: Path) -> None:
    """No file of the session is written over: it is the only record of its run."""
    (database,) = (Path(row[2]) for row in connection.execute("PRAGMA database_list") if row[1] == "main")
    is_own = out.exists() and (out.samefile(database) or out.resolve().is_relative_to(database.resolve().parent))
    if is_own and out.is_file():
        raise ConfigError("export.own_file", f"{out} is a file of the session itself. Give another one.")


def rows_of(connection: sqlite3.Connection) -> Iterator[TraceRow]:
    """All rows in the order in which they happened. Only a few are held at a time."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    numbers = count()  # rows of one key keep the order of their table
    streams: list[Iterable[_Keyed]] = [_steps(connection, tables, numbers), _events(connection, tables, numbers)]
    if "run_length" in tables:
        streams.append(_lengths(connection, numbers))
    if "phases" in tables:
        streams.append(_phases(connection, numbers))
    if "surroundings" in tables:
        streams.append(_surroundings(connection, numbers))
    elif "telemetry" in tables:  # recorded before surroundings were
        streams.append(_telemetry(connection, numbers))
    for _, row in heapq.merge(*streams, key=lambda keyed: keyed[0]):
        yield row


def open_session(session: Path) -> sqlite3.Connection:
    """The database of a session, to read only: of its folder, its name below ``sessions/``, or the file itself.

    ``ConfigError`` when it is none.
    """
    if not session.exists() and session.name == str(session):
        session = sessions_folder() / session
    database = session / "samples.db" if session.is_dir() else session
    if not database.is_file():
        raise ConfigError(
            "export.no_session", f"{session} is no session: it has no samples.db. Give a folder of sessions/."
        )
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        connection.close()
        raise ConfigError("export.damaged", f"{session} cannot be read as a session: {error}.") from None
    if not tables:
        connection.close()
        raise ConfigError("export.no_session", f"{session} is no session: its samples.db has no table.")
    return connection


def _in_time(connection: sqlite3.Connection, table: str) -> Iterator[Mapping[str, Any]]:
    """Rows of our own tables as they were written; gaps between runs, which have nothing but a time, left out."""
    for row in connection.execute(f'SELECT * FROM "{table}" ORDER BY rowid'):  # noqa: S608 - names are our own
        values = {name: row[name] for name in row.keys() if row[name] is not None}  # noqa: SIM118 - sqlite3.Row
        if len(values) > 1 and "t_s" in values:
            yield values


def _steps(connection: sqlite3.Connection, tables: set[str], numbers: Iterator[int]) -> Iterator[_Keyed]:
    if "steps" not in tables:
        return
    shapes = _in_time(connection, "step_shapes") if "step_shapes" in tables else iter(())
    shape = next(shapes, None)
    epoch = 1
    for values in _in_time(connection, "steps"):
        while shape is not None and shape["t_s"] < values["t_s"]:
            shape = next(shapes, None)
        more = shape if shape is not None and shape["t_s"] == values["t_s"] else {}
        now = int(values.get("epoch", epoch))
        row = TraceRow(
            **_numbers(values, "step", "live_after_bytes", "live_peak_bytes", "reserved_bytes", "reserved_peak_bytes"),
            **_numbers(values, "idle_split_bytes", "alloc_retries", "batch_samples"),
            **_numbers(more, "batch_tokens", "batch_pixels", "returnable_bytes", "outside_bytes"),
            t_s=values["t_s"],
            phase="step",
            step_s=values.get("step_s"),
            event="epoch" if now > epoch else "",
        )
        epoch = now
        yield (values["t_s"], values.get("step", 0.0), _STEP, next(numbers)), row


def _phases(connection: sqlite3.Connection, numbers: Iterator[int]) -> Iterator[_Keyed]:
    for values in _in_time(connection, "phases"):
        phase = PHASES[int(values["phase"])]
        row = TraceRow(
            **_numbers(values, "step", "batch_samples", "batch_tokens", "batch_pixels", "live_after_bytes"),
            **_numbers(values, "live_peak_bytes", "reserved_bytes", "reserved_peak_bytes", "idle_split_bytes"),
            **_numbers(values, "returnable_bytes", "alloc_retries", "outside_bytes"),
            t_s=values["t_s"],
            phase=phase.value,
            event="; ".join(_phase_words(values)),
        )
        place = _AFTER if phase in _AFTER_STEP else _WITHIN
        yield (values["t_s"], values.get("step", 0.0), place, next(numbers)), row


def _phase_words(values: Mapping[str, Any]) -> Iterator[str]:
    yield "phase_end" if values.get("ended") else "phase_begin"
    demand = _figures(values, bytes="known_demand_bytes", host="known_host_bytes")
    if demand:
        yield f"demand:{demand}"
    if values.get("done") or "count" in values:
        yield f"progress:{_figures(values, done='done', count='count')}"


def _surroundings(connection: sqlite3.Connection, numbers: Iterator[int]) -> Iterator[_Keyed]:
    for values in _in_time(connection, "surroundings"):
        row = TraceRow(
            **_numbers(values, "device_used_bytes", "capacity_bytes", "outside_bytes", "host_used_bytes"),
            **_numbers(values, "host_total_bytes", "host_available_bytes", "own_rss_bytes", "children_rss_bytes"),
            **_numbers(values, "children", "commit_used_bytes", "commit_limit_bytes", "spills"),
            t_s=values["t_s"],
            other_used_bytes=_number(values, "others_bytes"),
        )
        yield (values["t_s"], 0.0, _KNOWN, next(numbers)), row


def _telemetry(connection: sqlite3.Connection, numbers: Iterator[int]) -> Iterator[_Keyed]:
    for values in _in_time(connection, "telemetry"):
        if values.get("gpu", 1) == 1 and "memory_used_bytes" in values:
            row = TraceRow(t_s=values["t_s"], device_used_bytes=int(values["memory_used_bytes"]))
            yield (values["t_s"], 0.0, _KNOWN, next(numbers)), row


def _lengths(connection: sqlite3.Connection, numbers: Iterator[int]) -> Iterator[_Keyed]:
    for values in _in_time(connection, "run_length"):
        words = []
        run = _figures(values, total_steps="total_steps", steps_per_epoch="steps_per_epoch")
        longest = _figures(
            values, samples="longest_samples", tokens="longest_tokens", pixels="longest_pixels", step="longest_step"
        )
        words += [f"run:{run}"] if run else []
        words += [f"longest_batch:{longest}"] if longest else []
        row = TraceRow(t_s=values["t_s"], event="; ".join(words))
        yield (values["t_s"], 0.0, _KNOWN, next(numbers)), row


def _events(connection: sqlite3.Connection, tables: set[str], numbers: Iterator[int]) -> Iterator[_Keyed]:
    """Alerts and the end, for readers; a forecast passes over both."""
    if "events" not in tables:
        return
    wanted = "SELECT t_s, kind, params FROM events WHERE kind IN ('alert', 'oom') ORDER BY seq"
    for t_s, kind, text in connection.execute(wanted):
        params = json.loads(text or "{}")
        said = "oom"
        if kind == "alert":
            said = f"alert:cause={params.get('cause')},severity={params.get('severity')}"
        yield (t_s, float("inf"), _AFTER, next(numbers)), TraceRow(t_s=t_s, event=said)


def _numbers(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: _number(values, name) for name in names}


def _number(values: Mapping[str, Any], name: str) -> int | None:
    value = values.get(name)
    return None if value is None else int(value)


def _figures(values: Mapping[str, Any], **names: str) -> str:
    return ",".join(f"{word}={int(values[name])}" for word, name in names.items() if name in values)
