"""The sessions of an import: the cards' rows beside the steps of each training, on one axis where times allow it."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import Error as DatabaseError
from typing import Any, Final

from desktop_app.core.steps import RunState
from desktop_app.services.import_axis import Axis, Clock
from desktop_app.services.import_database import ImportDatabase
from desktop_app.services.import_result import Import
from desktop_app.services.import_runs import TABLES, ImportedRun, Place, RunLog, RunRow
from desktop_app.services.session_folder import SessionFolder, create_session
from desktop_app.telemetry.logs.record import Stamp

_NO_CONFIG: Final = "# Imported from the logs of another tool: there was no configuration.\n"
_HOUR_S: Final = 3600.0
_UNTIMED: Final = "_untimed"
_SCALARS: Final = ("name", "step", "t_s", "value", "text", "purged")
_TEXTS: Final = ("name", "step", "t_s", "text")


@dataclass(frozen=True, slots=True)
class Placing:
    """What the user says of times that the files do not have."""

    interval_s: float | None = None
    start: Stamp | None = None


class Sessions:
    """Makes folders and databases, and throws them away again if the import fails."""

    def __init__(self, parent: Path, placing: Placing) -> None:
        self.parent = parent
        self._placing = placing
        self._made: list[tuple[SessionFolder, ImportDatabase]] = []

    def open(self, name: str, *, of_cards: ImportDatabase | None = None) -> ImportDatabase:
        """A new session; with the rows ``of_cards`` of another."""
        folder = create_session(
            self.parent, run_name=f"import {name}", config_toml=_NO_CONFIG, card={}, anchor_wall_s=0.0
        )
        try:
            path = folder.database_path
            database = ImportDatabase(path) if of_cards is None else of_cards.copy(path)
        except BaseException:
            shutil.rmtree(folder.path, ignore_errors=True)
            raise
        self._made.append((folder, database))
        return database

    def finish(self, result: Import, axis: Axis, facts_of: Callable[[Import], dict[str, Any]]) -> None:
        """Write the runs, settle the times, and say in ``session.json`` what it is."""
        cards = bool(result.cards)
        result.cards_timed = axis.first_s is not None
        times = [_Times(run, axis, self._placing) for run in result.runs]
        if result.runs and not self._made:
            self.open(result.runs[0].name)
        for run in result.runs[1:]:
            self.open(run.name, of_cards=self._made[0][1])
        result.take_axis(axis)
        if not self._made:
            return
        origins: list[float | None] = []
        for number, (_, database) in enumerate(self._made):
            taken = times[number] if times else None
            earliest = result.first_s if taken is None else self._put_run(result, taken, database, cards=cards)
            origins.append(earliest)
            database.finish(earliest_s=earliest or 0.0, any_timed=axis.first_s is not None or taken is not None)
        if result.clock is Clock.NONE or all(origin is None for origin in origins):
            result.clock = self._clock_without_times(times)
        result.sessions = [folder for folder, _ in self._made]
        for number, folder in enumerate(result.sessions):
            if times:
                times[number].run.session = folder.path
        facts = facts_of(result)
        for number, folder in enumerate(result.sessions):
            anchor = axis.wall_s(origins[number])
            _write_facts(folder, result, facts, anchor, None if not times else times[number].run)

    def give_up(self) -> None:
        """Nothing half-made stays behind."""
        for folder, database in self._made:
            with suppress(DatabaseError):
                database.close()
            shutil.rmtree(folder.path, ignore_errors=True)

    def _put_run(self, result: Import, taken: _Times, database: ImportDatabase, *, cards: bool) -> float | None:
        """Write one run; the moment from which its session counts."""
        run, span = taken.run, database.span() if cards else None
        if taken.timed:
            taken.origin_s = min(taken.first_s, span[0]) if span is not None else taken.first_s
            if span is not None and (taken.last_s < span[0] or taken.first_s > span[1]):
                run.remarks.append(_no_overlap(span, taken, assumed=result.assumes_zone))
        elif span is not None and span[0] < span[1]:
            run.apart = True
            run.remarks.append(_how_to_place(taken, self._placing))
        elif span is not None:  # a single moment is no history: the axis is that of the steps
            database.set_cards_apart()
            result.cards_apart = True
        database.add_run(taken.rows(), taken.columns())
        return taken.origin_s if taken.timed else span[0] if run.apart and span is not None else None

    def _clock_without_times(self, times: list[_Times]) -> Clock:
        if self._placing.interval_s is not None:
            return Clock.INTERVAL
        return Clock.ELAPSED if any(taken.counts_seconds for taken in times) else Clock.NONE


class _Times:
    """When each row of a run was: on the axis where it has a time, else since the run's own beginning."""

    def __init__(self, run: ImportedRun, axis: Axis, placing: Placing) -> None:
        self.run = run
        self.origin_s = 0.0
        self._walls: list[list[float]] = []  # by log and row; NaN without a time
        self._interval_s = placing.interval_s
        for log in run.logs:
            axis.begin_file()
            start_s = None
            if placing.start is not None and log.log.stamp is None and (self._says_when(log) or self._interval_s):
                start_s = axis.place(placing.start)
            self._walls.append([self._wall(axis, Place(log, row), start_s) for row in range(len(log.log))])
        found = [wall for walls in self._walls for wall in walls if not math.isnan(wall)]
        self.timed = bool(found)
        self.first_s, self.last_s = (min(found), max(found)) if found else (0.0, 0.0)
        if found:
            axis.first_s = min(self.first_s, math.inf if axis.first_s is None else axis.first_s)
            axis.last_s = max(self.last_s, -math.inf if axis.last_s is None else axis.last_s)
        self.counts_seconds = any(self._says_when(log) for log in run.logs)

    def columns(self) -> dict[str, tuple[str, ...]]:
        suffix = _UNTIMED if self.run.apart else ""
        tables = {f"{table}{suffix}": ("t_s", *names) for table, names in TABLES.items()}
        for table, names in TABLES.items():
            if self.timed and any(math.isnan(self._t_s(row.place)) for row in self.run.tables[table]):
                tables[f"{table}{_UNTIMED}"] = ("t_s", *names)
        tables["import_scalars"] = _SCALARS
        if any(log.log.texts for log in self.run.logs):
            tables["import_texts"] = _TEXTS
        return tables

    def rows(self) -> dict[str, list[tuple[object, ...]]]:
        """By table. ``t_s`` counts from ``origin_s``."""
        tables: dict[str, list[tuple[object, ...]]] = {
            "import_scalars": list(self._scalars()),
            "import_texts": list(self._texts()),
        }
        for table, names in TABLES.items():
            placed = [(self._t_s(row.place), row) for row in self.run.tables[table]]
            without = [_values(float(n), row, names) for n, (t_s, row) in enumerate(placed) if math.isnan(t_s)]
            placed = sorted((pair for pair in placed if not math.isnan(pair[0])), key=lambda pair: pair[0])
            tables[f"{table}{_UNTIMED}"] = without
            tables[table + (_UNTIMED if self.run.apart else "")] = [_values(t_s, row, names) for t_s, row in placed]
        return tables

    def _wall(self, axis: Axis, place: Place, start_s: float | None) -> float:
        stamp = place.stamp
        if stamp is not None:
            found = axis.place(stamp)
            return math.nan if found is None else found
        if start_s is None:
            return math.nan
        since = place.elapsed_s if self._says_when(place.log) else place.row * (self._interval_s or math.nan)
        return math.nan if since is None else start_s + since

    def _t_s(self, place: Place) -> float:
        """NaN for a row without a time among rows that have one."""
        wall = self._walls[self.run.logs.index(place.log)][place.row]
        if self.timed:
            return wall - self.origin_s
        if self.counts_seconds:
            return math.nan if place.elapsed_s is None else place.elapsed_s
        return place.row * (self._interval_s or 1.0)

    @staticmethod
    def _says_when(log: RunLog) -> bool:
        return any(not math.isnan(seconds) for seconds in log.log.elapsed_s)

    def _scalars(self) -> Iterator[tuple[object, ...]]:
        for log in self.run.logs:
            names = log.log.names
            for row, name, value in zip(log.log.scalar_row, log.log.scalar_name, log.log.scalar_value, strict=True):
                finite = math.isfinite(value)
                word = None if finite else str(value)
                t_s = self._t_s(Place(log, row))
                yield names[name], log.log.step[row], t_s, value if finite else None, word, float(log.purged[row])

    def _texts(self) -> Iterator[tuple[object, ...]]:
        for log in self.run.logs:
            for row, name, text in log.log.texts:
                yield name, log.log.step[row], self._t_s(Place(log, row)), text


def _values(t_s: float, row: RunRow, names: tuple[str, ...]) -> tuple[object, ...]:
    return (t_s, *(row.values.get(name) for name in names))


def _no_overlap(span: tuple[float, float], taken: _Times, *, assumed: bool) -> str:
    """The steps and the cards' rows have no moment in common: said, and with it what zone would change that."""
    text = (
        f"no step lies in the time of the cards' rows ({_utc(span[0])} to {_utc(span[1])}; "
        f"steps {_utc(taken.first_s)} to {_utc(taken.last_s)})"
    )
    if not assumed:
        return text
    local = datetime.fromtimestamp(span[0], UTC).astimezone().utcoffset()
    offset_s = 0.0 if local is None else local.total_seconds()
    shared = {
        hours: min(taken.last_s, span[1] + shift) - max(taken.first_s, span[0] + shift)
        for hours in range(-12, 15)
        for shift in (offset_s - hours * _HOUR_S,)
    }
    best = max(shared, key=lambda hours: shared[hours])
    if shared[best] < 0:
        return text
    return f"{text}; with --zone {best:+03d}:00 they would share {shared[best]:.0f} s"


def _utc(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, OSError, ValueError):
        return f"{seconds} s"


def _how_to_place(taken: _Times, placing: Placing) -> str:
    if any(log.log.stamp is not None for log in taken.run.logs):
        return (
            "times of the steps and of the cards' rows are of two kinds that cannot be compared: kept apart in "
            "steps_untimed; log the cards with their dates (dmon -o DT)"
        )
    need = (
        "--start TIME" if taken.counts_seconds or placing.interval_s is not None else "--start TIME --interval SECONDS"
    )
    return f"the file does not say when its steps were: kept apart in steps_untimed; {need} sets them beside the cards"


def _write_facts(
    folder: SessionFolder, result: Import, said: dict[str, Any], anchor: float | None, run: ImportedRun | None
) -> None:
    facts: dict[str, Any] = folder.read_facts()
    if result.cards:
        first = result.cards[0]
        facts["card"] = {"name": first.card.name or first.key, "uuid": first.key, "simulated": False}
    if run is not None:
        facts["run_name"] = f"import {run.name}"
    facts["clock_anchor_wall_s"] = anchor
    facts["started_wall_s"] = anchor if anchor is not None else facts["started_wall_s"]
    facts["host"] = {}  # the log does not say on which it was written
    facts["import"] = said if run is None else {**said, "run": run.name}
    facts["ended"] = {"state": RunState.FINISHED.value, "wall_s": time.time()}
    folder.write_facts(facts)
