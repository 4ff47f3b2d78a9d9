"""The sessions of an import: the cards' rows beside the steps of each training, on one axis where times allow it."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
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
from desktop_app.services.import_words import encodable
from desktop_app.services.session_folder import SessionFolder, create_session
from desktop_app.telemetry.logs.record import Stamp

_NO_CONFIG: Final = "# Imported from the logs of another tool: there was no configuration.\n"
_HOUR_S: Final = 3600.0
_MARGIN_S: Final = 600.0  # of cards' rows before and after a run: how the card was without it
_UNTIMED: Final = "_untimed"
_SCALARS: Final = ("name", "step", "t_s", "value", "text", "purged")
_TEXTS: Final = ("name", "step", "t_s", "text")
_Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Placing:
    """What the user says of times that the files do not have."""

    interval_s: float | None = None
    start: Stamp | None = None


class Sessions:
    """Makes folders and databases, one at a time beside the cards', and throws all away if the import fails."""

    def __init__(self, parent: Path, placing: Placing) -> None:
        self.parent = parent
        self._placing = placing
        self._made: list[SessionFolder] = []
        self._open: list[ImportDatabase] = []
        self._cards: tuple[SessionFolder, ImportDatabase] | None = None

    def open_cards(self, name: str) -> ImportDatabase:
        """The session of all the cards' rows, and of the first run."""
        self._cards = self._create(name)
        return self._cards[1]

    def finish(self, result: Import, axis: Axis, facts_of: Callable[[Import], dict[str, Any]]) -> None:
        """Write the runs, settle the times, and say in ``session.json`` what it is."""
        result.cards_timed = axis.first_s is not None
        local = _Local(cards=axis.clock is Clock.LOCAL, zoned_cards=axis.clock is Clock.UTC and not axis.assumes_zone)
        axis.settle(_stamps(result.runs, self._placing))
        times = [_Times(run, axis, self._placing) for run in result.runs]
        result.take_axis(axis)
        put: list[tuple[SessionFolder, float | None]] = []
        if self._cards is not None:
            folder, database = self._cards
            span = database.span()
            put = [self._put_later(taken, span, local, result) for taken in times[1:]]
            if times:
                put.insert(0, (folder, self._put_first(times[0], database, span, local, result)))
            else:
                put.append((folder, result.first_s))
            self._close(database, put[0][1], any_timed=bool(times) or result.cards_timed)
        else:
            put = [self._put_later(taken, None, local, result) for taken in times]
        if not put:
            return
        if result.clock is Clock.NONE or all(origin is None for _, origin in put):
            result.clock = self._clock_without_times(times)
        result.sessions = [folder for folder, _ in put]
        for folder, taken in zip(result.sessions, times, strict=False):
            taken.run.session = folder.path
        facts = facts_of(result)
        for number, (folder, origin) in enumerate(put):
            _write_facts(folder, result, facts, axis.wall_s(origin), times[number].run if times else None)

    def give_up(self) -> None:
        """Nothing half-made stays behind."""
        for database in self._open:
            with suppress(DatabaseError):
                database.close()
        for folder in self._made:
            shutil.rmtree(folder.path, ignore_errors=True)

    def _create(self, name: str) -> tuple[SessionFolder, ImportDatabase]:
        folder = create_session(
            self.parent, run_name=encodable(f"import {name}"), config_toml=_NO_CONFIG, card={}, anchor_wall_s=0.0
        )
        self._made.append(folder)
        database = ImportDatabase(folder.database_path)
        self._open.append(database)
        return folder, database

    def _close(self, database: ImportDatabase, earliest_s: float | None, *, any_timed: bool = True) -> None:
        database.finish(earliest_s=earliest_s or 0.0, any_timed=any_timed)
        self._open.remove(database)

    def _put_first(
        self, taken: _Times, database: ImportDatabase, span: _Span | None, local: _Local, result: Import
    ) -> float | None:
        """Write a run beside all rows of the cards; the moment from which its session counts."""
        run = taken.run
        if taken.timed:
            taken.begin_with(span)
            self._compare(taken, span, local, result)
        elif span is not None and span[0] < span[1]:
            run.apart = True
            run.remarks.append(_how_to_place(taken, self._placing, "kept apart in steps_untimed"))
        elif span is not None:  # a single moment is no history: the axis is that of the steps
            database.set_cards_apart()
            result.cards_apart = True
        database.add_run(taken.rows(), taken.columns())
        return taken.origin_s if taken.timed else span[0] if run.apart and span is not None else None

    def _put_later(
        self, taken: _Times, span: _Span | None, local: _Local, result: Import
    ) -> tuple[SessionFolder, float | None]:
        """A session of its own, with the cards' rows of its time: all of them in each would be runs times cards."""
        run = taken.run
        folder, database = self._create(run.name)
        if self._cards is not None and span is not None:
            whole = self._cards[0].path.name
            if taken.timed:
                first_s, last_s = taken.first_s - _MARGIN_S, taken.last_s + _MARGIN_S
                database.take_cards(self._cards[1], first_s=first_s, last_s=last_s)
                here, there = database.count(), self._cards[1].count()
                if here < there:
                    run.remarks.append(
                        f"{here:,} of the {there:,} rows of cards are here, those of its time and "
                        f"{_MARGIN_S / 60:.0f} minutes around it; all are in {whole}"
                    )
            elif span[0] < span[1]:
                run.remarks.append(_how_to_place(taken, self._placing, f"the cards' rows are in {whole} only"))
        if taken.timed:
            taken.begin_with(database.span())
            self._compare(taken, span, local, result)
        database.add_run(taken.rows(), taken.columns())
        origin = taken.origin_s if taken.timed else None
        self._close(database, origin)
        return folder, origin

    @staticmethod
    def _compare(taken: _Times, span: _Span | None, local: _Local, result: Import) -> None:
        if span is not None and (taken.last_s < span[0] or taken.first_s > span[1]):
            towards = local.shift_of(taken) if result.assumes_zone else 0
            taken.run.remarks.append(_no_overlap(span, taken, towards=towards))

    def _clock_without_times(self, times: list[_Times]) -> Clock:
        if self._placing.interval_s is not None:
            return Clock.INTERVAL
        return Clock.ELAPSED if any(taken.counts_seconds for taken in times) else Clock.NONE


class _Times:
    """When each row of a run was: on the axis where it has a time, else since the run's own beginning."""

    def __init__(self, run: ImportedRun, axis: Axis, placing: Placing) -> None:
        self.run = run
        self.origin_s = 0.0
        self._walls: dict[RunLog, list[float]] = {}  # by row; NaN without a time
        self._interval_s = placing.interval_s
        for log in run.logs:
            axis.begin_file()
            start_s = None
            if placing.start is not None and _takes_start(log, placing):
                start_s = axis.place(placing.start)
            self._walls[log] = [self._wall(axis, Place(log, row), start_s) for row in range(len(log.log))]
        found = [wall for walls in self._walls.values() for wall in walls if not math.isnan(wall)]
        self.timed = bool(found)
        self.first_s, self.last_s = (min(found), max(found)) if found else (0.0, 0.0)
        if found:
            axis.first_s = min(self.first_s, math.inf if axis.first_s is None else axis.first_s)
            axis.last_s = max(self.last_s, -math.inf if axis.last_s is None else axis.last_s)
        self.counts_seconds = any(_says_when(log) for log in run.logs)
        self.local, self.zoned = _clocks(_stamps([run], placing))

    def begin_with(self, span: _Span | None) -> None:
        """The session begins with its first row, of the cards beside it or of the run."""
        self.origin_s = self.first_s if span is None else min(self.first_s, span[0])

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
        since = place.elapsed_s if _says_when(place.log) else place.row * (self._interval_s or math.nan)
        return math.nan if since is None else start_s + since

    def _t_s(self, place: Place) -> float:
        """NaN for a row without a time among rows that have one."""
        wall = self._walls[place.log][place.row]
        if self.timed:
            return wall - self.origin_s
        if self.counts_seconds:
            return math.nan if place.elapsed_s is None else place.elapsed_s
        return place.row * (self._interval_s or 1.0)

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


@dataclass(frozen=True, slots=True)
class _Local:
    """Whether the cards' times were local ones, of which the zone is assumed, or in UTC. Neither: of both kinds."""

    cards: bool
    zoned_cards: bool

    def shift_of(self, taken: _Times) -> int:
        """Which way a zone would move the cards' rows against the steps: 1, -1, or 0 where it moves both or none."""
        if self.cards and taken.zoned and not taken.local:
            return 1
        return -1 if self.zoned_cards and taken.local and not taken.zoned else 0


def _says_when(log: RunLog) -> bool:
    return any(not math.isnan(seconds) for seconds in log.log.elapsed_s)


def _takes_start(log: RunLog, placing: Placing) -> bool:
    return log.log.stamp is None and (bool(placing.interval_s) or _says_when(log))


def _stamps(runs: Iterable[ImportedRun], placing: Placing) -> list[Stamp]:
    """One for each clock of each file: all times of a file are of the clock of its first."""
    logs = [log for run in runs for log in run.logs]
    found = [log.log.stamp for log in logs if log.log.stamp is not None]
    if placing.start is not None and any(_takes_start(log, placing) for log in logs):
        found.append(placing.start)
    return found


def _clocks(stamps: list[Stamp]) -> tuple[bool, bool]:
    """Whether there are local times among them, and whether there are times in UTC."""
    local = any(not stamp.zoned and not stamp.time_of_day for stamp in stamps)
    return local, any(stamp.zoned for stamp in stamps)


def _values(t_s: float, row: RunRow, names: tuple[str, ...]) -> tuple[object, ...]:
    return (t_s, *(row.values.get(name) for name in names))


def _no_overlap(span: _Span, taken: _Times, *, towards: int) -> str:
    """The steps and the cards' rows have no moment in common: said, and with it what zone would change that.

    ``towards``: 1 where a zone moves the cards' rows, -1 where it moves the steps, 0 where it helps nothing.
    """
    text = (
        f"no step lies in the time of the cards' rows ({_utc(span[0])} to {_utc(span[1])}; "
        f"steps {_utc(taken.first_s)} to {_utc(taken.last_s)})"
    )
    if not towards:
        return text
    local = datetime.fromtimestamp(span[0] if towards > 0 else taken.first_s, UTC).astimezone().utcoffset()
    offset_s = 0.0 if local is None else local.total_seconds()
    shared = {
        hours: min(taken.last_s, span[1] + shift) - max(taken.first_s, span[0] + shift)
        for hours in range(-12, 15)
        for shift in (towards * (offset_s - hours * _HOUR_S),)
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


def _how_to_place(taken: _Times, placing: Placing, where: str) -> str:
    if any(log.log.stamp is not None for log in taken.run.logs):
        return (
            f"times of the steps and of the cards' rows are of two kinds that cannot be compared: {where}; "
            "log the cards with their dates (dmon -o DT)"
        )
    need = (
        "--start TIME" if taken.counts_seconds or placing.interval_s is not None else "--start TIME --interval SECONDS"
    )
    return f"the file does not say when its steps were: {where}; {need} sets them beside the cards"


def _write_facts(
    folder: SessionFolder, result: Import, said: dict[str, Any], anchor: float | None, run: ImportedRun | None
) -> None:
    facts: dict[str, Any] = folder.read_facts()
    if result.cards:
        first = result.cards[0]
        facts["card"] = {"name": first.card.name or first.key, "uuid": first.key, "simulated": False}
    if run is not None:
        facts["run_name"] = encodable(f"import {run.name}")
    facts["clock_anchor_wall_s"] = anchor
    facts["started_wall_s"] = anchor if anchor is not None else facts["started_wall_s"]
    facts["host"] = {}  # the log does not say on which it was written
    facts["import"] = said if run is None else {**said, "run": encodable(run.name)}
    facts["ended"] = {"state": RunState.FINISHED.value, "wall_s": time.time()}
    folder.write_facts(facts)
