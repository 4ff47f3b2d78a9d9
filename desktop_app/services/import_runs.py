"""Trainings among the imported files: which files are one run, and its steps as rows of our tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from desktop_app.core.steps import STEP_COLUMNS, VALIDATION_COLUMNS
from desktop_app.services.import_words import short, some
from desktop_app.telemetry.logs.record import Stamp
from desktop_app.telemetry.logs.tfevents import KIND as EVENTS_KIND
from desktop_app.telemetry.logs.training_log import Target, TrainingLog

TABLES: Final = {"steps": STEP_COLUMNS, "validation": VALIDATION_COLUMNS}
_EPOCH: Final = "epoch"
_Key = tuple[float, float, int]  # segment, step, occurrence; of a row without a step: its log, its row, -1


@dataclass(slots=True)
class ScalarSummary:
    """What one name came to. ``column``: where it is in our tables, such as ``steps.loss``."""

    values: int = 0
    not_numbers: int = 0
    lowest: float | None = None
    highest: float | None = None
    last: float | None = None
    column: str | None = None

    def add(self, value: float) -> None:
        if not math.isfinite(value):
            self.not_numbers += 1
            return
        self.values += 1
        self.last = value
        self.lowest = value if self.lowest is None else min(self.lowest, value)
        self.highest = value if self.highest is None else max(self.highest, value)


@dataclass(slots=True, eq=False)
class RunLog:
    """One file of a run."""

    file: int
    path: Path
    log: TrainingLog
    purged: list[bool] = field(default_factory=list)  # by row


@dataclass(slots=True)
class Place:
    """Where a row of a table comes from: a row of a log."""

    log: RunLog
    row: int

    @property
    def stamp(self) -> Stamp | None:
        first, seconds = self.log.log.stamp, self.log.log.seconds[self.row]
        return None if first is None or math.isnan(seconds) else Stamp(seconds, first.zoned, first.time_of_day)

    @property
    def elapsed_s(self) -> float | None:
        seconds = self.log.log.elapsed_s[self.row]
        return None if math.isnan(seconds) else seconds


@dataclass(slots=True)
class RunRow:
    """A row of ``steps`` or ``validation``."""

    place: Place
    values: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class ImportedRun:
    """One training: what its files say, and what became of it."""

    name: str
    logs: list[RunLog] = field(default_factory=list)
    scalars: dict[str, ScalarSummary] = field(default_factory=dict)
    tables: dict[str, list[RunRow]] = field(default_factory=lambda: {name: [] for name in TABLES})
    purged: int = 0
    restarts: int = 0
    out_of_order: int = 0  # steps that are no more than one row's spacing below the one before
    remarks: list[str] = field(default_factory=list)
    apart: bool = False  # its times cannot be compared with the cards'
    session: Path | None = None

    @property
    def kept_out(self) -> dict[str, dict[str, int]]:
        """Kinds of what is no scalar, their names, and how often each is there."""
        found: dict[str, dict[str, int]] = {}
        for log in self.logs:
            for kind, names in log.log.kept_out.items():
                held = found.setdefault(kind, {})
                for name, count in names.items():
                    held[name] = held.get(name, 0) + count
        return found

    def step_range(self, table: str) -> tuple[float, float] | None:
        steps = [row.values["step"] for row in self.tables[table] if "step" in row.values]
        return (min(steps), max(steps)) if steps else None


class RunBook:
    """Files by run: event files of one folder are one, as TensorBoard has it; any other file is one by itself."""

    def __init__(self) -> None:
        self._runs: dict[object, ImportedRun] = {}

    def add(self, file: int, path: Path, kinds: dict[str, int], log: TrainingLog) -> None:
        if not log and not log.kept_out:
            return
        folder = path.absolute().parent
        events = EVENTS_KIND in kinds
        key: object = folder if events else file
        run = self._runs.setdefault(key, ImportedRun(folder.name if events else path.name))
        run.logs.append(RunLog(file, path, log))

    def beginnings(self) -> dict[int, tuple[Path, int]]:
        """Files that begin another, which counts, with their first line: every checkpoint has the history so far."""
        alone = [run.logs[0] for run in self._runs.values() if len(run.logs) == 1 and run.logs[0].log]
        alike: dict[object, list[RunLog]] = {}
        for log in alone:
            alike.setdefault(_first(log), []).append(log)
        found: dict[int, tuple[Path, int]] = {}
        for group in alike.values():
            group.sort(key=lambda log: (len(log.log), log.file))
            for number, log in enumerate(group):  # against the longer ones, the longest first
                whole = next((other for other in group[:number:-1] if log.log.begins(other.log)), None)
                if whole is not None:
                    found[log.file] = whole.path, log.log.line[0]
        self._runs = {key: run for key, run in self._runs.items() if run.logs[0].file not in found}
        return found

    def settled(self) -> list[ImportedRun]:
        """The runs, their rows made."""
        runs = [run for run in self._runs.values() if any(log.log for log in run.logs)]
        for run in runs:
            run.logs.sort(key=lambda log: log.path.name)  # event files have their time in the name
            _purge(run)
            _Rows(run).make()
        return runs


def _purge(run: ImportedRun) -> None:
    """What a restart takes back: everything logged before it for its step and later ones, as TensorBoard does."""
    lowest = math.inf  # step of the restarts that come later
    for log in reversed(run.logs):
        log.purged = [False] * len(log.log)
        restarts = sorted(log.log.restarts)
        for row in range(len(log.log) - 1, -1, -1):
            while restarts and restarts[-1][0] > row:
                lowest = min(lowest, restarts.pop()[1])
            log.purged[row] = log.log.step[row] >= lowest
        lowest = min([lowest, *(step for _, step in restarts)])
        run.purged += sum(log.purged)


class _Rows:
    """Puts scalars of one step into one row, whatever the order in which they were logged."""

    def __init__(self, run: ImportedRun) -> None:
        self._run = run
        self._rows: dict[str, dict[_Key, RunRow]] = {name: {} for name in TABLES}
        self._epochs: dict[_Key, float] = {}
        self._last: dict[str, _Key] = {}  # by name
        self._segment = 0
        self._spacing: dict[str, float] = {}  # by name, in the log that is read
        self._begun: set[str] = set()  # names that this log has had

    def make(self) -> None:
        run = self._run
        for log in run.logs:
            for name in log.log.names:
                run.scalars.setdefault(name, ScalarSummary())
        columns = self._choose()
        plain = not any(target.table == "steps" and target.column != _EPOCH for target in columns.values())
        for number, log in enumerate(run.logs):
            of_validation = _rows_of_validation(log.log, columns)
            self._spacing, self._begun = _spacing(log.log), set()
            for row, name, value in _scalars(log):
                self._add(number, log, row, name, value, columns.get(name))
                if plain and name not in columns and row not in of_validation:
                    self._row("steps", self._last[name], log, row)
        for table, rows in self._rows.items():
            for key, row_made in rows.items():
                self._say_epoch(key, row_made)
            run.tables[table] = list(rows.values())

    def _add(self, number: int, log: RunLog, row: int, name: str, value: float, target: Target | None) -> None:
        self._run.scalars[name].add(value)
        step = log.log.step[row]
        if math.isnan(step):
            key: _Key = (number, row, -1)
        else:
            key = self._key(name, step)
        self._last[name] = key
        if target is None:
            return
        value = value if target.scale == 1.0 else value / round(1 / target.scale)
        if target.column == _EPOCH:
            self._epochs.setdefault((*key[:2], min(key[2], 0)), value)
            return
        made = self._row(target.table, key, log, row)
        if target.column == "loss":
            made.place = Place(log, row)
        made.values[target.column] = value

    def _key(self, name: str, step: float) -> _Key:
        """A name whose step goes back begins the next segment, unless another has begun it since its last value."""
        last, goes_on = self._last.get(name), name in self._begun
        self._begun.add(name)
        if last is not None and last[2] >= 0 and last[0] == self._segment:
            if step < last[1]:
                self._segment += 1
                if goes_on and last[1] - step <= self._spacing.get(name, 0.0):
                    self._run.out_of_order += 1  # other ranks, or a writer that is late
                else:
                    self._run.restarts += 1
            elif step == last[1]:
                return self._segment, step, last[2] + 1
        return self._segment, step, 0

    def _row(self, table: str, key: _Key, log: RunLog, row: int) -> RunRow:
        made = self._rows[table].get(key)
        if made is None:
            made = self._rows[table][key] = RunRow(Place(log, row))
            if key[2] >= 0:
                made.values["step"] = key[1]
        return made

    def _say_epoch(self, key: _Key, row: RunRow) -> None:
        epoch = self._epochs.get((*key[:2], min(key[2], 0)))
        if epoch is not None:
            row.values[_EPOCH] = epoch

    def _choose(self) -> dict[str, Target]:
        """For each column the name that has it: the one with the most values, then the more particular one."""
        run = self._run
        counts: dict[str, int] = {}
        targets: dict[str, Target] = {}
        strange: set[str] = set()
        for log in run.logs:
            names, values = np.frombuffer(log.log.scalar_name, "q"), np.frombuffer(log.log.scalar_value, "d")
            found = np.bincount(names, minlength=len(log.log.names))
            for number, (name, target) in enumerate(zip(log.log.names, log.log.targets, strict=True)):
                counts[name] = counts.get(name, 0) + int(found[number])
                if target is None:
                    continue
                targets.setdefault(name, target)
                share = values[names == number] * target.scale if target.share else values[:0]
                if np.any((share < 0) | (share > 1)):
                    strange.add(name)
        chosen: dict[str, Target] = {}
        for column in dict.fromkeys((target.table, target.column) for target in targets.values()):
            rivals = [n for n, t in targets.items() if (t.table, t.column) == column and n not in strange]
            rivals.sort(key=lambda name: (-counts[name], targets[name].rank))
            if not rivals:
                continue
            first = rivals[0]
            same = [name for name in rivals[1:] if targets[name].rank == targets[first].rank]
            where = ".".join(column)
            if same:
                run.remarks.append(f"{some([first, *same], most=3)} may all be {where}: none is taken for it")
                continue
            chosen[first] = targets[first]
            run.scalars[first].column = where
            if len(rivals) > 1:
                run.remarks.append(f"{where} is {short(first)}; {some(rivals[1:], most=3)} as written only")
        if strange:
            run.remarks.append(f"{some(sorted(strange), most=3)}: values above 1 are no shares, as written only")
        return chosen


def _scalars(log: RunLog) -> Iterator[tuple[int, str, float]]:
    """Those that no restart has taken back."""
    names, purged = log.log.names, log.purged
    for row, name, value in zip(log.log.scalar_row, log.log.scalar_name, log.log.scalar_value, strict=True):
        if not purged[row]:
            yield row, names[name], value


def _rows_of_validation(log: TrainingLog, columns: dict[str, Target]) -> set[int]:
    numbers = {n for n, name in enumerate(log.names) if name in columns and columns[name].table == "validation"}
    return {row for row, name in zip(log.scalar_row, log.scalar_name, strict=True) if name in numbers}


def _spacing(log: TrainingLog) -> dict[str, float]:
    """By name the usual distance of two steps: the median of those that go forward."""
    numbers = np.frombuffer(log.scalar_name, "q")
    order = np.argsort(numbers, kind="stable")
    steps = np.frombuffer(log.step, "d")[np.frombuffer(log.scalar_row, "q")[order]]
    ends = np.searchsorted(numbers[order], np.arange(len(log.names) + 1))
    found = {}
    for name, begin, end in zip(log.names, ends, ends[1:], strict=False):
        forward = np.diff(steps[begin:end])
        forward = forward[forward > 0]  # nor NaN
        if forward.size:
            found[name] = float(np.median(forward))
    return found


def _first(log: RunLog) -> object:
    """What two files share of which one is the beginning of the other."""
    return tuple(log.log.names[:1]), log.log.step[:1].tobytes(), log.log.scalar_value[:1].tobytes()
