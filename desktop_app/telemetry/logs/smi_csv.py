"""``nvidia-smi --query-gpu=… --format=csv`` and ``--query-compute-apps``: any fields, with or without units."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.logs.fields import LIMIT, PROCESS_MEMORY, QUERY, QUERY_CARD, QUERY_TEXTS
from desktop_app.telemetry.logs.log_lines import Unfinished
from desktop_app.telemetry.logs.maker import RecordMaker
from desktop_app.telemetry.logs.record import LoggedProcess, LogRecord, Notes
from desktop_app.telemetry.logs.times import DateOrder, is_ambiguous, stamp_of
from desktop_app.telemetry.logs.values import Rule, measure, reason_of, whole

_HEAD: Final = re.compile(r"(.*?)(?:\s*\[([^\]]+)\])?", re.DOTALL)
_SEPARATORS: Final = ",;\t"
_PROCESS_HEADS: Final = frozenset({"pid", "process_name", "used_gpu_memory", "used_memory"})
# Words that many tables have; a header needs one that only nvidia-smi has.
_PLAIN_WORDS: Final = frozenset({"timestamp", "name", "index", "uuid", "pid", "count", "process_name", "serial"})
_TIME_HEADS: Final = frozenset({"timestamp", "time", "date"})
_KNOWN: Final = (
    frozenset({*QUERY, *QUERY_TEXTS, *QUERY_CARD, "power.limit", "memory.free", "timestamp"}) | _PROCESS_HEADS
)
# Most lines have none of these words and need no closer look.
_HINT: Final = re.compile("|".join(map(re.escape, sorted(_KNOWN - _PLAIN_WORDS))), re.IGNORECASE)
_MOST_CELLS: Final = 2000


@dataclass(frozen=True, slots=True)
class _Column:
    name: str  # as our tables have it: small letters, without its unit
    title: str  # as the file has it
    unit: str | None
    rule: Rule | None


@dataclass(frozen=True, slots=True)
class CsvHeader:
    """The first line of such a table."""

    separator: str
    columns: tuple[_Column, ...]

    @property
    def of_processes(self) -> bool:
        names = {column.name for column in self.columns}
        return "pid" in names and bool(names & {"used_gpu_memory", "used_memory", "process_name"})


def header_of(line: str) -> CsvHeader | None:
    """The header that ``line`` is, or ``None``. One known name that only nvidia-smi has is enough."""
    text = line.strip().lstrip("\ufeff")
    if not text or len(text) > 65536 or text[0] in "|+#{<" or _HINT.search(text) is None:
        return None
    if "--" in text:  # the command, as a shell shows it
        return None
    separator = max(_SEPARATORS, key=text.count)
    heads = [_split_head(cell) for cell in _cells(text, separator)]
    names = [title.lower() for title, _ in heads]
    known = _KNOWN.intersection(names)
    if len(names) > _MOST_CELLS or not known - _PLAIN_WORDS or any(whole(name) is not None for name in names):
        return None
    rules = {name: QUERY.get(name) for name in names}
    if "power.limit" in rules and "enforced.power.limit" not in rules:
        rules["power.limit"] = LIMIT
    if "pcie.link.gen.current" in rules and "pcie.link.gen.gpucurrent" in rules:
        rules["pcie.link.gen.gpucurrent"] = None
    columns = []
    for number, (title, unit) in enumerate(heads, start=1):
        name = title.lower()
        if not name or name in names[: number - 1]:
            name = title = f"{title or 'column'} ({number})"
        columns.append(_Column(name, title, unit, rules.get(name)))
    return CsvHeader(separator, tuple(columns))


class CsvTable:
    """The rows under one header."""

    def __init__(self, header: CsvHeader, notes: Notes, *, order: DateOrder) -> None:
        self._header = header
        self._notes = notes
        self._order = order
        self._of_processes = header.of_processes

    def cells_of(self, line: str) -> list[str]:
        return _cells(line, self._header.separator)

    @property
    def width(self) -> int:
        return len(self._header.columns)

    def rows(self, number: int, cells: Sequence[str]) -> Iterator[LogRecord]:
        """The record of one line. Of a row that was cut off, ``cells`` are those that are whole."""
        maker = RecordMaker(number, self._notes)
        process: dict[str, str] = {}
        comma = self._header.separator != ","
        for column, cell in zip(self._header.columns, cells, strict=False):
            if column.name in _TIME_HEADS and maker.stamp is None:
                self._time(maker, column.name, cell)
            elif self._of_processes and column.name in _PROCESS_HEADS:
                process[column.name] = cell.strip()
            elif column.rule is not None:
                maker.number(column.name, cell, column.rule, unit=column.unit, comma=comma)
            elif column.name in QUERY_CARD:
                self._card(maker, column.name, cell)
            elif column.name in QUERY_TEXTS:
                maker.say(QUERY_TEXTS[column.name], cell)
            else:
                maker.add_part(column.name, cell)
                maker.keep(column.title if column.unit is None else f"{column.title} [{column.unit}]", cell)
        if self._of_processes and (len(cells) == self.width or "pid" in process):
            self._process(maker, process)
        yield maker.make()

    def cut_row(self, number: int, line: Unfinished, cells: Sequence[str]) -> list[LogRecord]:
        """What is whole of the row that the file ends in: all before its last cell, and that one where it is closed."""
        there = cells if line.closed else cells[:-1]
        if len(there) == self.width:
            return list(self.rows(number, cells))
        self._notes.cut(number, line)
        columns = self._header.columns
        held = {column.name for column in columns[: len(there)]}
        says_card = {column.name for column in columns if QUERY_CARD.get(column.name, "name") != "name"}
        if (says_card and not says_card & held) or not self._fits(there):
            return []  # whose values these are went with the cut, or they are none
        records = self.rows(number, there)
        return [found for found in records if found.readings or found.facts or found.processes or found.raw]

    def _fits(self, cells: Sequence[str]) -> bool:
        """Whether the beginning of a row can be one of this table, and not of another text."""
        comma = self._header.separator != ","
        return all(
            column.rule is None or measure(cell, column.rule, unit=column.unit, decimal_comma=comma) is not None
            for column, cell in zip(self._header.columns, cells, strict=False)
        )

    def _time(self, maker: RecordMaker, name: str, cell: str) -> None:
        maker.stamp = stamp_of(cell, order=self._order)
        if maker.stamp is None and reason_of(cell) is None:
            ambiguous = is_ambiguous(cell, self._order)
            why = "day and month cannot be told apart; say --dates dmy or mdy" if ambiguous else "not a time"
            self._notes.leave_out(maker.line, f"{name}: {why}", cell)
            maker.keep(name, cell)

    def _card(self, maker: RecordMaker, name: str, cell: str) -> None:
        before = (maker.uuid, maker.bus_id, maker.name, maker.index)
        maker.identify(QUERY_CARD[name], cell)
        if (maker.uuid, maker.bus_id, maker.name, maker.index) == before:
            maker.keep(name, cell)

    def _process(self, maker: RecordMaker, cells: dict[str, str]) -> None:
        maker.lists_processes = True
        pid = whole(cells.get("pid", ""))
        if not pid:
            self._notes.leave_out(maker.line, "pid: not a process", cells.get("pid", ""))
            return
        text = cells.get("used_gpu_memory", cells.get("used_memory", ""))
        unit = next((c.unit for c in self._header.columns if c.name in ("used_gpu_memory", "used_memory")), None)
        memory = measure(text, PROCESS_MEMORY, unit=unit)
        if memory is None:
            self._notes.leave_out(maker.line, "used_gpu_memory: not a value with a known unit", text)
        name = cells.get("process_name") or None
        maker.processes.append(LoggedProcess(pid, name, None, memory or Reading(None, Reason.UNKNOWN_ERROR)))


def _cells(line: str, separator: str) -> list[str]:
    """The cells of a line. Quotes count as they do for a spreadsheet; ``nvidia-smi`` itself writes none."""
    if '"' not in line:
        return [cell.strip() for cell in line.split(separator)]
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])]
    except csv.Error:
        return [line]


def _split_head(cell: str) -> tuple[str, str | None]:
    found = _HEAD.fullmatch(cell.strip().strip('"'))
    if found is None:
        return cell.strip(), None
    return found[1].strip(), found[2]
