"""``nvidia-smi -q``: names and values, indented by four for each group."""

from __future__ import annotations

import re
from typing import Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.logs import detail_fields
from desktop_app.telemetry.logs import fields as f
from desktop_app.telemetry.logs.log_lines import is_open
from desktop_app.telemetry.logs.maker import RecordMaker
from desktop_app.telemetry.logs.record import LoggedInstance, LoggedProcess, LogRecord, Notes, Stamp
from desktop_app.telemetry.logs.times import stamp_of
from desktop_app.telemetry.logs.values import Rule, measure, whole

_HEAD: Final = re.compile(r"=+NVSMI LOG=+")
_CARD: Final = re.compile(r"GPU ((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])", re.ASCII)
_LINE: Final = re.compile(r"( *)(\S.*?)(?:\s+: ?(.*))?", re.DOTALL)
_STEP: Final = 4
# Paths under a card, in small letters. The module's power and the memory's are other numbers: they stay raw.
_PATHS: Final[dict[str, Rule]] = {
    "utilization/gpu": f.UTILIZATION,
    "utilization/memory": f.MEMORY_UTILIZATION,
    "utilization/encoder": f.ENCODER,
    "utilization/decoder": f.DECODER,
    "fb memory usage/total": f.TOTAL,
    "fb memory usage/reserved": f.RESERVED,
    "fb memory usage/used": f.USED,
    "bar1 memory usage/used": f.BAR1_USED,
    "bar1 memory usage/total": f.BAR1_TOTAL,
    "temperature/gpu current temp": f.TEMPERATURE,
    "temperature/memory current temp": f.MEMORY_TEMPERATURE,
    "temperature/gpu slowdown temp": f.SLOWDOWN,
    "temperature/gpu shutdown temp": f.SHUTDOWN,
    "clocks/sm": f.SM_CLOCK,
    "clocks/memory": f.MEMORY_CLOCK,
    "max clocks/sm": f.CLOCK_MAX,
    "fan speed": f.FAN,
    "performance state": f.STATE,
    "pci/tx throughput": f.TX,
    "pci/rx throughput": f.RX,
    "pci/gpu link info/pcie generation/current": f.GENERATION,
    "pci/gpu link info/link width/current": f.WIDTH,
    "ecc errors/volatile/double bit/total": f.ECC,
    **detail_fields.TEXT,
}
_POWER_PATHS: Final = {
    "power draw": f.DRAW,
    "average power draw": f.AVERAGE,
    "instantaneous power draw": f.INSTANT,
    "enforced power limit": f.LIMIT,
    "current power limit": f.LIMIT,
    "max power limit": f.POWER_MAX,
}
_PATHS.update(
    {
        f"{block}/{name}": rule
        for block in ("gpu power readings", "power readings")
        for name, rule in _POWER_PATHS.items()
    }
)
_TEXTS: Final = {
    "product architecture": "architecture",
    "mig mode/current": "mig_mode",
    "driver model/current": "driver_model",
    "vbios version": "vbios_version",
}
_IDENTITY: Final = {"gpu uuid": "uuid", "pci/bus id": "bus_id", "product name": "name"}
_HEADS: Final = ("timestamp", "driver version", "cuda version", "attached gpus")
_KINDS: Final = {"C": "compute", "G": "graphics", "C+G": "both"}


def opens_query(line: str) -> bool:
    return _HEAD.fullmatch(line.strip()) is not None


class QuerySection:
    """One answer, from its title to the next or to a line that is none of it."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._stamp: Stamp | None = None
        self._versions: dict[str, str] = {}
        self._maker: RecordMaker | None = None
        self._path: list[str] = []
        self._part: dict[str, str] = {}  # of the process or instance that is being read
        self._part_kind = ""
        self._ended = False

    def feed(self, number: int, line: str) -> list[LogRecord] | None:
        if self._ended:
            return None
        if is_open(line) and line.startswith((" ", "GPU ")):
            return self._cut(number, line)
        found = _CARD.fullmatch(line.strip()) if line.startswith("GPU") else None
        if found is not None:
            return self._begin(number, found[1])
        match = _LINE.fullmatch(line.rstrip())
        if match is None or len(line) > 4096:
            return None
        indent, name, value = len(match[1]), match[2].strip(), match[3]
        if indent == 0:
            return self._head(number, name.lower(), value)
        if self._maker is None:
            return None
        self._entry(self._maker, number, indent // _STEP, name.lower(), value)
        return []

    def _cut(self, number: int, line: str) -> list[LogRecord]:
        self._notes.cut(number, line)
        if self._maker is not None:
            self._maker.whole = False
        return []

    def close(self) -> list[LogRecord]:
        maker, self._maker = self._maker, None
        if maker is None:
            return []
        self._finish_part(maker)
        return [maker.make()]

    def _begin(self, number: int, bus_id: str) -> list[LogRecord]:
        records = self.close()
        self._maker = RecordMaker(number, self._notes)
        self._maker.stamp = self._stamp
        self._maker.identify("bus_id", bus_id)
        for name, text in self._versions.items():
            self._maker.say(name, text)
        self._path.clear()
        return records

    def _head(self, number: int, name: str, value: str | None) -> list[LogRecord] | None:
        if name not in _HEADS or value is None:
            self._ended = True  # another text begins
            return None
        if name == "timestamp":
            self._stamp = stamp_of(value)
            if self._stamp is None:
                self._notes.leave_out(number, "timestamp: not a time", value)
        elif name != "attached gpus":
            self._versions[name.replace(" ", "_")] = value
        return []

    def _entry(self, maker: RecordMaker, number: int, depth: int, name: str, value: str | None) -> None:
        del self._path[max(depth - 1, 0) :]
        path = "/".join((*self._path, name))
        if value is None:
            self._path.append(name)
            if name == "mig device":
                self._finish_part(maker)
                self._part_kind = name
            return
        text = value.strip()
        if path.startswith("mig device/"):
            self._part[path.removeprefix("mig device/")] = text
        elif path.startswith("processes/"):
            self._process_entry(maker, name, text)
        elif path in _PATHS:
            maker.number(path, text, _PATHS[path], line=number)
        elif path in _TEXTS:
            maker.say(_TEXTS[path], text)
        elif path in _IDENTITY:
            maker.identify(_IDENTITY[path], text)
        elif path == "processes":
            maker.lists_processes = True
        else:
            maker.add_part(path, text)
            maker.keep(path, text)
        if name == "process id":
            self._path.append(name)

    def _process_entry(self, maker: RecordMaker, name: str, text: str) -> None:
        if name == "process id":
            self._finish_part(maker)
            self._part_kind = "process"
        self._part[name] = text

    def _finish_part(self, maker: RecordMaker) -> None:
        part, kind = self._part, self._part_kind
        self._part, self._part_kind = {}, ""
        unread = Reading(None, Reason.UNKNOWN_ERROR)
        if kind == "process":
            maker.lists_processes = True
            pid = whole(part.get("process id", ""))
            if not pid:
                self._notes.leave_out(maker.line, "process id: not a process", part.get("process id", ""))
                return
            memory = measure(part.get("used gpu memory", ""), f.PROCESS_MEMORY)
            maker.processes.append(
                LoggedProcess(pid, part.get("name") or None, _KINDS.get(part.get("type", "")), memory or unread)
            )
        elif kind == "mig device":
            total = measure(part.get("shared fb memory usage/total", part.get("fb memory usage/total", "")), f.TOTAL)
            used = measure(part.get("shared fb memory usage/used", part.get("fb memory usage/used", "")), f.USED)
            maker.instances.append(LoggedInstance(whole(part.get("index", "")), total or unread, used or unread))
