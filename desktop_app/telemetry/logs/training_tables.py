"""Metrics of a training as a table: CSV with a column of steps, JSON lines, Transformers' ``trainer_state.json``.

Lightning's and timm's CSV, exports of TensorBoard and Weights & Biases, MMEngine's and detectron2's JSON.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from desktop_app.telemetry.logs.log_lines import Unfinished, is_open, numbered_lines
from desktop_app.telemetry.logs.record import Notes, Stamp, shown
from desktop_app.telemetry.logs.smi_csv import header_of
from desktop_app.telemetry.logs.times import LATEST_S, DateOrder, stamp_of
from desktop_app.telemetry.logs.training_log import Target, TrainingLog
from desktop_app.telemetry.logs.training_names import NUMBER, plain, target_of

CSV_KIND: Final = "metrics CSV"
LINES_KIND: Final = "JSON lines of metrics"
STATE_KIND: Final = "trainer_state.json"
_STEPS: Final = frozenset({"step", "steps", "global_step", "iteration", "iter", "trainer/global_step"})
_GLOBAL: Final = frozenset({"global_step", "trainer/global_step"})  # beside another step it is the one of the run
_TIMES: Final = frozenset({"timestamp", "_timestamp", "wall_time", "datetime", "time", "date"})
_SINCE_START: Final = frozenset({"_runtime", "elapsed_s", "time_elapsed_s"})
_TENSORBOARD: Final = ("wall_time", "step", "value")
_NUMBER: Final = re.compile(NUMBER, re.IGNORECASE)
_ENTRY: Final = re.compile(r"\{[^{}]*\}")
_RUN: Final = " - "  # Weights & Biases writes "the run's name - train/loss"
_MOST_CELLS: Final = 2000
_LONGEST_HEAD: Final = 65_536
_LONGEST_LINE: Final = 1 << 20
_MOST_JSON: Final = 256 << 20
_EARLIEST_S: Final = 1e8  # 1973: smaller ones are no time of a day


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    role: str  # "step", "time", "since" or ""
    target: Target | None = None


def metrics_header(line: str) -> tuple[_Column, ...] | None:
    """The columns when ``line`` heads a table of metrics: a step or an epoch, and a name that is a column of ours."""
    text = line.strip().lstrip("\ufeff")
    if not 5 < len(text) <= _LONGEST_HEAD or "," not in text or header_of(text) is not None:
        return None
    try:
        cells = next(csv.reader([text], strict=True, skipinitialspace=True), [])
    except csv.Error:
        return None
    names = [plain(cell) for cell in cells]
    if not 2 <= len(names) <= _MOST_CELLS or any(_NUMBER.fullmatch(name) for name in names):
        return None
    columns: list[_Column] = []
    step = min((name for name in names if name in _STEPS), key=lambda name: name not in _GLOBAL, default="")
    for cell, name in zip(cells, names, strict=True):
        role = "step" if name == step else "time" if name in _TIMES else "since" if name in _SINCE_START else ""
        if role and any(column.role == role for column in columns):
            role = ""
        title = cell.strip() or "column"
        title = title if all(title != column.name for column in columns) else f"{title} ({len(columns) + 1})"
        columns.append(_Column(title, role, None if role else target_of(title.rpartition(_RUN)[2])))
    known = {column.target.column for column in columns if column.target is not None}
    if tuple(names) == _TENSORBOARD or ("step" in names and "epoch" in names):
        return tuple(columns)
    stepped = any(column.role == "step" for column in columns) or "epoch" in known
    return tuple(columns) if stepped and known - {"epoch"} else None


def read_metrics_csv(text: str, columns: tuple[_Column, ...], notes: Notes) -> TrainingLog:
    """The rows below the header. An empty cell is a value that was not logged there."""
    log = TrainingLog(notes)
    lines = ((number, line) for number, line in numbered_lines(text) if line.strip())
    next(lines, None)
    head = [column.name for column in columns]
    for number, line in lines:
        try:
            cells = (
                next(csv.reader([line], strict=True, skipinitialspace=True), []) if len(line) <= _LONGEST_LINE else []
            )
        except csv.Error:
            cells = []
        if [cell.strip() for cell in cells] == head:
            continue  # again, after a restart
        if isinstance(line, Unfinished) and (is_open(line) or len(cells) < len(columns)):
            notes.cut(number, line)  # the cells before its last, where the step is one of them
            cells = cells[:-1] if is_open(line) else cells
            if len(cells) <= max((place for place, column in enumerate(columns) if column.role == "step"), default=-1):
                continue
        elif len(cells) != len(columns):
            notes.leave_out(number, f"{len(cells)} cells, the header has {len(columns)}", line)
            continue
        _row(log, number, ((column, cell.strip()) for column, cell in zip(columns, cells, strict=False)))
    return log


def _row(log: TrainingLog, number: int, cells: Iterable[tuple[_Column, str]]) -> None:
    step: float | None = None
    stamp: Stamp | None = None
    since: float | None = None
    values: list[tuple[_Column, float]] = []
    words: list[tuple[str, str]] = []
    for column, cell in cells:
        if not cell:
            continue
        value = float(cell) if len(cell) <= 100 and _NUMBER.fullmatch(cell) else None
        if column.role == "step":
            if value is None or not value.is_integer():
                log.notes.leave_out(number, f"{column.name}: not a number of a step", cell)
                return
            step = value
        elif column.role == "time" and (stamp := _moment(cell, value)) is not None:
            continue
        elif column.role == "since" and value is not None and value >= 0 and math.isfinite(value):
            since = value
        elif value is not None:
            values.append((column, value))
        else:
            words.append((column.name, cell))
    if not values and not words:
        return
    row = log.add_row(number, step=step, stamp=stamp, elapsed_s=None if stamp is not None else since)
    for column, value in values:
        log.add(row, column.name, value, column.target)
    for name, cell in words:
        log.keep_text(row, name, shown(cell))


def _moment(cell: str, value: float | None) -> Stamp | None:
    """A time of a day: in words, or as seconds since 1970 with any number of digits."""
    if value is None:
        return stamp_of(cell, order=DateOrder.UNKNOWN)
    return Stamp(value, zoned=True) if _EARLIEST_S < value < LATEST_S else None


def opens_json_lines(start: str) -> bool:
    """Whether the first line is an object with a step and a scalar that is a column of ours."""
    row = _object(start.split("\n", 1)[0])
    if row is None:
        return False
    numbers = {name for name, value in row.items() if _is_number(value)}
    return any(plain(name) in _STEPS | {"epoch"} for name in numbers) and any(
        (target := target_of(name)) is not None and target.column != "epoch" for name in numbers
    )


def read_json_lines(text: str, notes: Notes) -> TrainingLog:
    """One object a line."""
    log, steps = TrainingLog(notes), _StepNames()
    for number, line in numbered_lines(text):
        if not line.strip():
            continue
        row = _object(line)
        if row is None:
            if isinstance(line, Unfinished):
                notes.cut(number, line)
            else:
                notes.leave_out(number, "not an object of JSON", line)
            continue
        _take(log, number, row, steps)
    return log


def read_trainer_state(text: str, notes: Notes) -> TrainingLog | None:
    """``log_history`` of Transformers' Trainer; ``None`` when it is none. ``line`` is the entry's number from 1."""
    if len(text) > _MOST_JSON or '"log_history"' not in text:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        notes.leave_out(line, "damaged JSON; entries that are whole are read")
        entries = (_object(entry[0]) for entry in _ENTRY.finditer(text, text.index('"log_history"')))
        found = {"log_history": [entry for entry in entries if entry is not None]}
    history = found.get("log_history") if isinstance(found, dict) else None
    if not isinstance(history, list):
        return None
    log, steps = TrainingLog(notes), _StepNames()
    for number, entry in enumerate(history, start=1):
        if isinstance(entry, dict):
            _take(log, number, entry, steps, whole_run="train_runtime" in entry)
        else:
            notes.leave_out(number, "an entry of log_history that is no object")
    return log


class _StepNames:
    """Which of the names of steps is the step of a row, by the rules of a table: ``global_step``, else the first."""

    def __init__(self) -> None:
        self._ranks: dict[str, tuple[bool, int]] = {}
        self._before: str | None = None

    def choose(self, row: Mapping[str, Any], number: int, notes: Notes) -> str | None:
        names = [name for name, value in row.items() if plain(name) in _STEPS and _is_number(value)]
        for name in names:
            self._ranks.setdefault(name, (plain(name) not in _GLOBAL, len(self._ranks)))
        chosen = min(names, key=self._ranks.__getitem__, default=None)
        if chosen is not None and self._before not in (None, chosen):
            notes.remark(number, f"the step is {shown(chosen)} here, and {shown(self._before or '')} before")
        self._before = chosen or self._before
        return chosen


def _take(log: TrainingLog, number: int, row: Mapping[str, Any], steps: _StepNames, *, whole_run: bool = False) -> None:
    step: float | None = None
    step_name = steps.choose(row, number, log.notes)
    stamp: Stamp | None = None
    scalars: list[tuple[str, float]] = []
    words: list[tuple[str, str]] = []
    for name, value in row.items():
        if not _is_number(value):
            words += list(_flat(name, value))
            continue
        role = plain(name)
        if name == step_name:
            if not float(value).is_integer():
                log.notes.leave_out(number, f"{shown(name)}: not a number of a step", str(value))
                return
            step = float(value)
        elif role in _TIMES and stamp is None and (stamp := _moment("", float(value))) is not None:
            continue
        else:
            scalars.append((name, float(value)))
    if not scalars:
        log.notes.leave_out(number, "no scalar")
        return
    at = log.add_row(number, step=step, stamp=stamp)
    for name, number_value in scalars:
        log.add(at, name, number_value, None if whole_run else target_of(name))
    for name, word in words:
        log.keep_text(at, name, word)


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if value is None:
        return
    try:
        yield shown(name), shown(value if isinstance(value, str) else json.dumps(value)[:400])
    except RecursionError:  # nested as deep as it can just be read
        yield shown(name), "nested too deep to be shown"


def _object(line: str) -> dict[str, Any] | None:
    if not line.lstrip().startswith("{") or len(line) > _LONGEST_LINE:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _is_number(value: Any) -> bool:
    """Whole numbers as large as a file likes are none that a column could hold."""
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63)
