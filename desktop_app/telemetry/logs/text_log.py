"""Text of ``nvidia-smi`` alone or in the midst of another log, line by line: what is not about cards is passed over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Protocol

from desktop_app.core.telemetry import Reason
from desktop_app.telemetry.logs.record import LogRecord, Notes
from desktop_app.telemetry.logs.smi_csv import CsvTable, header_of
from desktop_app.telemetry.logs.times import DateOrder

NOT_OF_CARDS: Final = "not about cards"
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
        self._head = head
        self._notes = notes

    def feed(self, number: int, line: str) -> list[LogRecord] | None:
        if line.strip() == self._head:
            return []  # again, as after a restart of the tool
        cells = self._table.cells_of(line)
        if len(cells) == self._table.width:
            return list(self._table.rows(number, cells))
        if len(cells) > 1:
            self._notes.leave_out(number, f"{len(cells)} cells, the header has {self._table.width}", line)
            return []
        return None

    def close(self) -> list[LogRecord]:
        return []


class TextReader:
    """Reads lines in their order. ``sections``: which kinds were found."""

    def __init__(self, notes: Notes, *, order: DateOrder = DateOrder.UNKNOWN) -> None:
        self._notes = notes
        self._order = order
        self._current: Section | None = None
        self.sections: dict[str, int] = {}  # kind → first line

    def read(self, text: str) -> Iterator[LogRecord]:
        for number, line in enumerate(text.splitlines(), start=1):
            yield from self._line(number, line)
        if self._current is not None:
            yield from self._current.close()

    def _line(self, number: int, line: str) -> Iterator[LogRecord]:
        if not line.strip():
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
        self._notes.leave_out(number, NOT_OF_CARDS, line)

    def _open(self, number: int, line: str) -> Section | None:
        header = header_of(line)
        if header is not None and not (
            isinstance(self._current, _CsvSection) and self._current.feed(number, line) == []
        ):
            self.sections.setdefault("nvidia-smi CSV", number)
            return _CsvSection(CsvTable(header, self._notes, order=self._order), line.strip(), self._notes)
        return None

    def _fail(self, number: int, line: str) -> None:
        reason = _failure(line)
        if reason is not None:
            self.sections.setdefault("nvidia-smi", number)
            self._notes.failure = self._notes.failure or reason
            self._notes.leave_out(number, f"an error of the tool: {ADVICE[reason]}", line)


def _failure(line: str) -> Reason | None:
    return next((reason for pattern, reason in _FAILURES if pattern.search(line)), None)
