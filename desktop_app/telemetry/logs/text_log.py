"""Text of ``nvidia-smi`` and of trainings, each alone or in the midst of another, line by line; the rest is listed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Protocol

from desktop_app.core.telemetry import Reason
from desktop_app.telemetry.logs.log_lines import Unfinished, is_open, numbered_lines
from desktop_app.telemetry.logs.record import LogRecord, Notes, Stamp
from desktop_app.telemetry.logs.smi_csv import CsvTable, header_of
from desktop_app.telemetry.logs.smi_monitor import MonitorSection, monitor_header_of
from desktop_app.telemetry.logs.smi_query import QuerySection, opens_query
from desktop_app.telemetry.logs.smi_table import TableSection, opens_table
from desktop_app.telemetry.logs.times import DateOrder, order_of, stamp_of
from desktop_app.telemetry.logs.training_lines import KIND, TrainingLines

NOT_KNOWN: Final = "neither about cards nor a step of a training"
_LINES_TO_TABLE: Final = 3
# What the tools say instead of an answer, and what it means.
_FAILURES: Final = (
    (re.compile(r"Driver/library version mismatch", re.I), Reason.DRIVER_MISMATCH),
    (
        re.compile(r"couldn't communicate with the NVIDIA driver|NVIDIA driver is not loaded|Driver Not Loaded", re.I),
        Reason.NO_DRIVER,
    ),
    (re.compile(r"No devices were found", re.I), Reason.NO_DRIVER),
    (re.compile(r"GPU is lost|fallen off the bus", re.I), Reason.GPU_LOST),
    (re.compile(r"Insufficient Permissions", re.I), Reason.NO_PERMISSION),
    (re.compile(r"Failed to initialize NVML|Unable to determine the device handle", re.I), Reason.UNKNOWN_ERROR),
)
_ANY_FAILURE: Final = re.compile(
    r"mismatch|communicate with|not loaded|No devices|is lost|fallen off|Permissions|initialize NVML|Unable to", re.I
)
_LONGEST_LINE: Final = 4 << 20
_LONGEST_FAILURE: Final = 1000  # a line of megabytes is none, and costs seconds to look through
ADVICE: Final = {
    Reason.DRIVER_MISMATCH: "the driver was updated while it was loaded: reboot, or reload it",
    Reason.NO_DRIVER: "no NVIDIA driver was running when this was written",
    Reason.GPU_LOST: "a card was lost: its bus no longer answered",
    Reason.NO_PERMISSION: "the user who wrote this was not allowed to ask",
    Reason.UNKNOWN_ERROR: "the driver did not answer",
}


class Section(Protocol):
    """A part of the text that one tool wrote."""

    def feed(self, number: int, line: str) -> list[LogRecord] | None:
        """The records that ``line`` completes; ``None``: it is no line of this part."""
        ...

    def close(self) -> list[LogRecord]:
        """What was still open."""
        ...


class _CsvSection:
    def __init__(self, table: CsvTable, head: str, notes: Notes) -> None:
        self._table = table
        self.head = head
        self._notes = notes

    def feed(self, number: int, line: str) -> list[LogRecord] | None:
        if line.strip() == self.head:
            return []  # again, as after a restart of the tool
        if line.startswith("#"):
            return None
        cells = self._table.cells_of(line)
        if isinstance(line, Unfinished) and 1 < len(cells) <= self._table.width:
            return self._table.cut_row(number, line, cells)
        if len(cells) == self._table.width:
            return list(self._table.rows(number, cells))
        if len(cells) > 1:
            self._notes.leave_out(number, f"{len(cells)} cells, the header has {self._table.width}", line)
            return []
        return None

    def close(self) -> list[LogRecord]:
        return []


class TextReader:
    """Reads lines in their order. ``sections``: which kinds were found; ``training``: steps between them."""

    def __init__(self, notes: Notes, *, order: DateOrder = DateOrder.UNKNOWN) -> None:
        self._notes = notes
        self._order = order
        self._text: str | None = None  # until it has been asked for the order of its dates
        self._current: Section | None = None
        self._time: tuple[int, Stamp] | None = None  # a line that is a time and nothing else
        self.sections: dict[str, int] = {}  # kind → first line
        self.training = TrainingLines(notes)

    def read(self, text: str) -> Iterator[LogRecord]:
        self._text = text
        for number, line in numbered_lines(text):
            yield from self._line(number, line)
        if self._current is not None:
            yield from self._current.close()

    def _line(self, number: int, line: str) -> Iterator[LogRecord]:
        if len(line) > _LONGEST_LINE:
            self._notes.leave_out(number, f"a line of {len(line):,} characters is none of a tool", line[:200])
            return
        if not line.strip():
            return
        if 16 < len(line) < 48 and line[0].isalpha() and (stamp := stamp_of(line)) is not None:
            self._time = (number, stamp)
            return
        opened = self._open(number, line)
        if opened is not None:
            if self._current is not None:
                yield from self._current.close()
            self._current = opened
            return
        if _failure(line) is not None and not line.startswith((" ", "|")) and "," not in line:
            self._fail(number, line)
            return
        records = self._current.feed(number, line) if self._current is not None else None
        if records is not None:
            yield from records
            return
        taken = self.training.feed(number, line)
        if taken:
            self.sections.setdefault(KIND, number)
        if is_open(line):
            self._notes.cut(number, line)
        elif taken:
            return
        elif line.strip(" +-=|"):
            self._notes.leave_out(number, NOT_KNOWN, line)

    def _open(self, number: int, line: str) -> Section | None:
        notes = self._notes
        if opens_table(line):
            return self._named("nvidia-smi table", number, TableSection(line, notes, stamp=self._recent(number)))
        if opens_query(line):
            return self._named("nvidia-smi -q", number, QuerySection(notes))
        monitor = monitor_header_of(line)
        if monitor is not None:
            kind = "nvidia-smi pmon" if monitor.of_processes else "nvidia-smi dmon"
            return self._named(kind, number, MonitorSection(monitor, notes))
        header = header_of(line)
        if header is None or (isinstance(self._current, _CsvSection) and self._current.head == line.strip()):
            return None
        if self._order is DateOrder.UNKNOWN and self._text is not None:
            self._order = order_of(self._text)
        self._text = None
        table = CsvTable(header, notes, order=self._order)
        return self._named("nvidia-smi CSV", number, _CsvSection(table, line.strip(), notes))

    def _named(self, kind: str, number: int, section: Section) -> Section:
        self.sections.setdefault(kind, number)
        return section

    def _recent(self, number: int) -> Stamp | None:
        """The time that stands right above a table is the table's."""
        if self._time is None or number - self._time[0] > _LINES_TO_TABLE:
            return None
        return self._time[1]

    def _fail(self, number: int, line: str) -> None:
        reason = _failure(line)
        if reason is not None:
            self.sections.setdefault("nvidia-smi", number)
            self._notes.failure = self._notes.failure or reason
            self._notes.leave_out(number, f"an error of the tool: {ADVICE[reason]}", line)


def _failure(line: str) -> Reason | None:
    if len(line) > _LONGEST_FAILURE or _ANY_FAILURE.search(line) is None:
        return None
    return next((reason for pattern, reason in _FAILURES if pattern.search(line)), None)
