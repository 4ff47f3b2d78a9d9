"""The table that ``nvidia-smi`` prints, of any driver since 2015, alone or in the midst of a log."""

from __future__ import annotations

import re
from typing import Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.logs import fields as f
from desktop_app.telemetry.logs.log_lines import Unfinished, is_open
from desktop_app.telemetry.logs.maker import RecordMaker
from desktop_app.telemetry.logs.record import LoggedInstance, LoggedProcess, LogRecord, Notes, Stamp
from desktop_app.telemetry.logs.values import bus_id_of, measure, reason_of, whole

_HEAD: Final = re.compile(
    r"\|\s*NVIDIA-SMI\s+(\S+)\s+(?:KMD Version|Driver Version):\s*(\S+)(?:\s+CUDA (?:UMD )?Version:\s*(\S+))?\s*\|",
    re.ASCII,
)
_CARD: Final = re.compile(
    r"\|\s*(\d{1,3})\s+(\S.*?)\s+(On|Off|N/A|WDDM|TCC|MCDM|WDM|ERR!|\[N/A\])\s*\|\s*([0-9A-Fa-f:.]{10,16})\s+(\S+)\s*\|"
    r"\s*(\S+)\s*\|",
    re.ASCII,
)
_STATE: Final = re.compile(r"(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*/\s*(\S+)", re.ASCII)
_PAIR: Final = re.compile(r"(\S+)\s*/\s*(\S+)", re.ASCII)
_PROCESS: Final = re.compile(
    r"\|\s*(\d{1,3})\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(\d+)\s+([CGM](?:\+[CGM])*)\s+(\S.*?)\s+(\d+\s?MiB|N/A|-|ERR!)\s*\|",
    re.ASCII,
)
_INSTANCE: Final = re.compile(
    r"\|\s*(\d{1,3})\s+(\d+|N/A)\s+(\d+|N/A)\s+(\d+)\s*\|\s*(\d+\s?MiB|N/A)\s*/\s*(\d+\s?MiB|N/A)\s*\|", re.ASCII
)
_KINDS: Final = {"C": "compute", "G": "graphics", "C+G": "both", "M+C": "compute"}
_MOST_CHARACTERS: Final = 400  # a line of the table has 80 to 95


def opens_table(line: str) -> bool:
    """Whether this is the line with the versions."""
    return len(line) < _MOST_CHARACTERS and _HEAD.match(line.strip()) is not None


class TableSection:
    """One table, from the line with the versions to the next."""

    def __init__(self, line: str, notes: Notes, *, stamp: Stamp | None) -> None:
        self._notes = notes
        self._stamp = stamp
        found = _HEAD.match(line.strip())
        self._versions = (found[2], found[3]) if found is not None else ("", None)
        self._open: RecordMaker | None = None
        self._rows_seen = 0
        self._cards: dict[int, tuple[str | None, str | None]] = {}
        self._processes: dict[int, RecordMaker] = {}

    def feed(self, number: int, line: str) -> list[LogRecord] | None:
        text = line.strip()
        if len(text) > _MOST_CHARACTERS or not text.startswith(("|", "+")):
            return None
        if text.startswith(("+", "|=", "|-")):
            return self._emit()
        if isinstance(line, Unfinished) and not text.endswith("|"):
            self._cut(number, line)
        elif found := _PROCESS.fullmatch(text):
            self._process(number, found)
        elif found := _INSTANCE.match(text):
            self._instance(number, found)
        elif found := _CARD.fullmatch(text):
            records = self._emit()
            self._card(number, found)
            return records
        elif self._open is not None:
            self._rows_seen += 1
            self._more(number, [cell.strip() for cell in text.strip("|").split("|")])
        return []

    def close(self) -> list[LogRecord]:
        records = self._emit()
        records += [maker.make() for maker in self._processes.values()]
        self._processes.clear()
        return records

    def _emit(self) -> list[LogRecord]:
        maker, self._open, self._rows_seen = self._open, None, 0
        if maker is None:
            return []
        if not maker.readings:
            self._notes.leave_out(maker.line, "a card of the table without its figures")
        return [maker.make()]

    def _maker(self, number: int, index: int) -> RecordMaker:
        maker = RecordMaker(number, self._notes)
        maker.stamp, maker.index = self._stamp, index
        maker.bus_id, maker.name = self._cards.get(index, (None, None))
        return maker

    def _card(self, number: int, found: re.Match[str]) -> None:
        index, name, mode, bus_id, display, ecc = found.groups()
        self._cards[int(index)] = (bus_id_of(bus_id), name)
        maker = self._open = self._maker(number, int(index))
        maker.say("driver_version", self._versions[0])
        maker.say("cuda_version", self._versions[1] or "")
        if mode in ("WDDM", "TCC", "MCDM", "WDM"):
            maker.say("driver_model", mode)
        else:
            maker.keep("persistence", mode)
        maker.keep("display", display)
        if whole(ecc) is not None or reason_of(ecc) is not None:
            maker.number("ecc", ecc, f.ECC)
        else:
            maker.keep("ecc", ecc)

    def _more(self, number: int, cells: list[str]) -> None:
        """The second line of a card has its figures, the third its MIG mode."""
        maker = self._open
        if maker is None or len(cells) != 3:
            self._notes.leave_out(number, "a line of the table that does not fit", " | ".join(cells))
            return
        if self._rows_seen > 1:
            maker.say("mig_mode", cells[2])
            return
        state, load = _STATE.fullmatch(cells[0]), cells[2].split(None, 1)
        if state is None or not load:
            self._notes.leave_out(number, "a line of the table that does not fit", " | ".join(cells))
            return
        self._figures(maker, number, state)
        self._memory(maker, number, cells[1])
        maker.number("GPU-Util", load[0], f.UTILIZATION, line=number)
        if len(load) > 1:
            maker.keep("compute mode", load[1])

    def _cut(self, number: int, line: Unfinished) -> None:
        """The figures of a card whose line the file ends in: those of the cells that are whole."""
        self._notes.cut(number, line)
        cells = [cell.strip() for cell in line.strip().lstrip("|").split("|")]
        there = cells[:-1] if is_open(line) else cells
        state = _STATE.fullmatch(there[0]) if there else None
        if self._open is None or self._rows_seen or state is None:
            return
        self._figures(self._open, number, state)
        if len(there) > 1 and (len(cells) > 2 or _PAIR.fullmatch(there[1])):
            self._memory(self._open, number, there[1])
        if len(there) > 2:
            self._open.number("GPU-Util", there[2].split(None, 1)[0], f.UTILIZATION, line=number)

    def _figures(self, maker: RecordMaker, number: int, state: re.Match[str]) -> None:
        for source, text, rule in zip(
            ("Fan", "Temp", "Perf", "Pwr:Usage", "Cap"),
            state.groups(),
            (f.FAN, f.TEMPERATURE, f.STATE, f.DRAW, f.LIMIT),
            strict=True,
        ):
            maker.number(source, text, rule, line=number)

    def _memory(self, maker: RecordMaker, number: int, cell: str) -> None:
        memory = _PAIR.fullmatch(cell)
        used, total = memory.groups() if memory is not None else (cell, cell)
        maker.number("Memory-Usage", used, f.USED, line=number)
        maker.number("Memory-Total", total, f.TOTAL, line=number)

    def _process(self, number: int, found: re.Match[str]) -> None:
        index, pid, kind, name, memory = found.groups()
        number_of_process = whole(pid)
        if not number_of_process:
            self._notes.leave_out(number, "pid: not a process", pid)
            return
        maker = self._processes.setdefault(int(index), self._maker(number, int(index)))
        maker.lists_processes = True
        used = measure(memory, f.PROCESS_MEMORY) or Reading(None, Reason.UNKNOWN_ERROR)
        maker.processes.append(LoggedProcess(number_of_process, name, _KINDS.get(kind), used))

    def _instance(self, number: int, found: re.Match[str]) -> None:
        index, _, _, device, used, total = found.groups()
        maker = self._processes.setdefault(int(index), self._maker(number, int(index)))
        unread = Reading(None, Reason.UNKNOWN_ERROR)
        maker.instances.append(
            LoggedInstance(whole(device), measure(total, f.TOTAL) or unread, measure(used, f.USED) or unread)
        )
