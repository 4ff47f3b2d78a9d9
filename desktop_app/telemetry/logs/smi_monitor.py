"""``nvidia-smi dmon`` and ``pmon``: columns under two lines that begin with ``#``, with or without date and time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.logs import fields as f
from desktop_app.telemetry.logs.log_lines import Unfinished
from desktop_app.telemetry.logs.maker import RecordMaker
from desktop_app.telemetry.logs.record import LoggedProcess, LogRecord, Notes
from desktop_app.telemetry.logs.times import stamp_of
from desktop_app.telemetry.logs.values import Quantity, Rule, measure, whole
from desktop_app.telemetry.plausibility import PERCENT

# nvidia-smi dmon -h. ``dbecc`` counts since the board was made, not since the driver was loaded: it stays raw.
_RULES: Final[dict[str, Rule]] = {
    "pwr": f.DRAW,
    "gtemp": f.TEMPERATURE,
    "temp": f.TEMPERATURE,
    "mtemp": f.MEMORY_TEMPERATURE,
    "sm": f.UTILIZATION,
    "mem": f.MEMORY_UTILIZATION,
    "enc": f.ENCODER,
    "dec": f.DECODER,
    "mclk": f.MEMORY_CLOCK,
    "pclk": f.SM_CLOCK,
    "fb": f.USED,
    "bar1": f.BAR1_USED,
    "pviol": Rule("throttle_power_percent", Quantity.PERCENT, PERCENT, "%"),
    "rxpci": f.RX,
    "txpci": f.TX,
}
_TIMES: Final = ("date", "time")
_KINDS: Final = {"C": "compute", "G": "graphics", "C+G": "both"}
_ROW: Final = re.compile(r"\s*[0-9]")
# dmon and pmon write MB and mean MiB: the same numbers as in the table of the same driver.
_MEMORY_UNIT: Final = "mib"


@dataclass(frozen=True, slots=True)
class MonitorHeader:
    """The first of the two lines."""

    columns: tuple[str, ...]
    separator: str | None

    @property
    def of_processes(self) -> bool:
        return "pid" in self.columns


def monitor_header_of(line: str) -> MonitorHeader | None:
    """``# gpu    pwr  gtemp …`` or ``#Date       Time        gpu        pid …``."""
    text = line.strip()
    if not text.startswith("#") or len(text) > 2000:
        return None
    separator = "," if "," in text else None
    columns = tuple(word.strip().lower() for word in text.lstrip("# ").split(separator))
    lead = [column for column in columns if column not in _TIMES]
    known = {"pid", *_RULES}.intersection(columns)
    return MonitorHeader(columns, separator) if lead[:1] == ["gpu"] and known and len(lead) > 1 else None


class MonitorSection:
    """The rows under one header."""

    def __init__(self, header: MonitorHeader, notes: Notes) -> None:
        self._header = header
        self._notes = notes
        self._units: tuple[str, ...] = ()

    def feed(self, number: int, line: str) -> list[LogRecord] | None:
        text = line.strip()
        if text.startswith("#"):
            return self._take_units(text)
        if not _ROW.match(line):
            return None
        columns = self._header.columns
        last_has_spaces = columns[-1] == "command"
        cells = text.split(self._header.separator, len(columns) - 1 if last_has_spaces else -1)
        if isinstance(line, Unfinished) and 1 < len(cells) <= len(columns):
            return self._cut_row(number, line, cells)
        if len(cells) == len(columns):
            return [self._record(number, [cell.strip() for cell in cells])]
        if len(cells) > 1 and not any(character.isalpha() for character in text):
            self._notes.leave_out(number, f"{len(cells)} values, the head names {len(columns)}", line)
            return []
        return None

    def close(self) -> list[LogRecord]:
        return []

    def _cut_row(self, number: int, line: Unfinished, cells: Sequence[str]) -> list[LogRecord]:
        """What is whole of the row that the file ends in."""
        there = [cell.strip() for cell in (cells if line.closed else cells[:-1])]
        if len(there) < len(self._header.columns):
            self._notes.cut(number, line)
        needed = "pid" if self._header.of_processes else "gpu"
        if needed not in self._header.columns[: len(there)]:
            return []
        record = self._record(number, there)
        return [record] if record.readings or record.processes else []

    def _take_units(self, text: str) -> list[LogRecord] | None:
        words = tuple(word.strip() for word in text.lstrip("# ").split(self._header.separator))
        if "Idx" not in words:
            return None
        self._units = words if len(words) == len(self._header.columns) else ()
        return []

    def _record(self, number: int, cells: Sequence[str]) -> LogRecord:
        maker = RecordMaker(number, self._notes)
        row = dict(zip(self._header.columns, cells, strict=False))
        units = dict(zip(self._header.columns, self._units, strict=False))
        when = " ".join(row[name] for name in _TIMES if name in row)
        if when:
            maker.stamp = stamp_of(when)
            if maker.stamp is None:
                self._notes.leave_out(number, "date and time: not a time", when)
        maker.identify("index", row["gpu"])
        if self._header.of_processes:
            self._process(maker, row)
            return maker.make()
        for name, cell in row.items():
            rule = _RULES.get(name)
            unit = units.get(name)
            if rule is not None:
                unit = _MEMORY_UNIT if rule.quantity is Quantity.BYTES else unit
                maker.number(name, cell, rule, unit=unit)
            elif name not in (*_TIMES, "gpu"):
                maker.keep(name if unit is None else f"{name} [{unit}]", cell)
        return maker.make()

    def _process(self, maker: RecordMaker, row: dict[str, str]) -> None:
        maker.lists_processes = True
        if row["pid"] == "-":
            return  # no process on this card now
        pid = whole(row["pid"])
        if not pid:
            self._notes.leave_out(maker.line, "pid: not a process", row["pid"])
            return
        memory: Reading | None = Reading(None, Reason.NOT_READ_YET)
        if "fb" in row:
            memory = measure(row["fb"], f.PROCESS_MEMORY, unit=_MEMORY_UNIT)
            if memory is None:
                self._notes.leave_out(maker.line, "fb: not a value with a known unit", row["fb"])
        ours = (*_TIMES, "gpu", "pid", "type", "command", "fb")
        raw = {name: cell for name, cell in row.items() if name not in ours and cell != "-"}
        maker.processes.append(
            LoggedProcess(
                pid,
                row.get("command") if row.get("command") != "-" else None,
                _KINDS.get(row.get("type", "")),
                memory or Reading(None, Reason.UNKNOWN_ERROR),
                raw,
            )
        )
