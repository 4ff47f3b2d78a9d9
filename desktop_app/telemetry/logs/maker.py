"""One record from the cells of one row, table or document: the rules that hold for every format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.logs.detail_fields import summed_field
from desktop_app.telemetry.logs.fields import ECC, POWER_DRAW
from desktop_app.telemetry.logs.generations import power_is_average, shares_memory
from desktop_app.telemetry.logs.record import LoggedCard, LoggedInstance, LoggedProcess, LogRecord, Notes, Stamp, shown
from desktop_app.telemetry.logs.values import Rule, bus_id_of, measure, uuid_of, whole
from desktop_app.telemetry.plausibility import IMPLAUSIBLE

# What a card split into MIG instances does not report as a whole (telemetry.nvml_card).
_NOT_IN_MIG: Final = (
    "utilization_percent",
    "memory_utilization_percent",
    "encoder_percent",
    "decoder_percent",
    "jpeg_percent",
    "optical_flow_percent",
)
_UNKNOWN_GENERATION: Final = (
    "power.draw taken as the one-second average: the log does not say of which generation the card is"
)
_UNNAMED_SHARED: Final = (
    "memory n/a of a card that works, and whose name the log does not say: taken as shared with the system (GB10, "
    "Jetson)"
)


class RecordMaker:
    """Takes cells one by one; ``make`` applies what only the whole row can tell."""

    def __init__(self, line: int, notes: Notes) -> None:
        self.line = line
        self._notes = notes
        self.stamp: Stamp | None = None
        self.uuid: str | None = None
        self.bus_id: str | None = None
        self.name: str | None = None
        self.index: int | None = None
        self.readings: dict[str, Reading] = {}
        self.facts: dict[str, Reading] = {}
        self.texts: dict[str, str] = {}
        self.raw: dict[str, str] = {}
        self.processes: list[LoggedProcess] = []
        self.instances: list[LoggedInstance] = []
        self.lists_processes = False
        self.whole = True  # no cut came before the end of what is said of the card
        self._parts: dict[str, list[Reading | None]] = {}

    def identify(self, kind: str, text: str) -> None:
        """A cell that says which card: ``uuid``, ``bus_id``, ``name`` or ``index``. What it is not stays raw."""
        text = text.strip()
        if kind == "name":
            self.name = self.name or (text if text and not text.startswith("[") else None)
        elif kind == "uuid":
            self.uuid = self.uuid or uuid_of(text)
        elif kind == "bus_id":
            self.bus_id = self.bus_id or bus_id_of(text)
        elif self.index is None:
            self.index = whole(text)

    def number(
        self,
        source: str,
        text: str,
        rule: Rule,
        *,
        line: int | None = None,
        unit: str | None = None,
        comma: bool = False,
    ) -> None:
        """A cell for a field of ours. One that is not understood is missing, and said."""
        reading = measure(text, rule, unit=unit, decimal_comma=comma)
        if reading is None:
            self._notes.leave_out(self.line if line is None else line, f"{source}: not a value with a known unit", text)
            self.raw[source] = shown(text)
            reading = Reading(None, Reason.UNKNOWN_ERROR)
        target = self.facts if rule.fact else self.readings
        held = target.get(rule.field)
        if held is None or held.value is None:  # the first value stands; a reason gives way to a value
            target[rule.field] = reading
        elif reading.value is not None and reading.value != held.value:
            self.raw[source] = shown(text)

    def keep(self, source: str, text: str) -> None:
        """A cell that is none of our fields, as it is written."""
        self.raw[source] = self.raw[source] + ", " + text.strip() if source in self.raw else text.strip()

    def add_part(self, source: str, text: str) -> None:
        """A cell that may be a part of a count of ours."""
        field = summed_field(source)
        if field is not None:
            self._parts.setdefault(field, []).append(measure(text, ECC))

    def say(self, name: str, text: str) -> None:
        """A word that does not change, such as the driver's version. What is not known is left away."""
        text = text.strip()
        if text.strip("[]").lower() not in ("", "n/a", "not supported", "unknown error"):
            self.texts.setdefault(name, text)

    def make(self) -> LogRecord:
        """The record: power by its kind, memory against its total, MIG and shared memory with their reasons."""
        known = self._notes.known
        self.bus_id = self.bus_id or known.bus_id(self.index)
        self.name = self.name or known.name(self._card())
        said = {**known.texts(self.bus_id), **self.texts}
        self._settle_power(said)
        self._settle_memory()
        self._settle_parts()
        mig = said.get("mig_mode", "").lower() == "enabled"
        for field in _NOT_IN_MIG if mig else ():
            if self.readings.get(field) == Reading(None, Reason.NOT_SUPPORTED):
                self.readings[field] = Reading(None, Reason.MIG)
        if said.get("driver_model", "").upper().startswith("WDDM"):
            self.processes = [_under_wddm(process) for process in self.processes]
        total = self.facts.get("total_bytes", IMPLAUSIBLE).value
        if total is not None:
            self.processes = [_within(process, total) for process in self.processes]
        record = LogRecord(
            line=self.line,
            stamp=self.stamp,
            card=self._card(),
            readings=self.readings,
            facts=self.facts,
            texts=self.texts,
            raw=self.raw,
            processes=tuple(self.processes),
            instances=tuple(self.instances),
            lists_processes=self.lists_processes,
        )
        known.remember(record)
        return record

    def _card(self) -> LoggedCard:
        return LoggedCard(self.uuid, self.bus_id, self.name, self.index)

    def _settle_power(self, said: Mapping[str, str]) -> None:
        """``power.draw`` is the moment on older cards and an average on newer: never one for the other."""
        drawn = self.readings.pop(POWER_DRAW, None)
        if drawn is None:
            return
        average = power_is_average(self.name, said.get("architecture"), said.get("compute_capability"))
        if average is None:
            if drawn.value is not None and not self.readings.keys() & {"power_w", "power_average_w"}:
                self._notes.remark(self.line, _UNKNOWN_GENERATION)
            average = True
        field = "power_average_w" if average else "power_w"
        held = self.readings.get(field)
        if held is None or (held.value is None and drawn.value is not None):
            self.readings[field] = drawn

    def _settle_parts(self) -> None:
        """What NVML gives as one count and the log in parts: their sum, where every part is a number."""
        for field, parts in self._parts.items() if self.whole else ():  # a sum of some parts is no sum
            missing = [part for part in parts if part is None or part.value is None]
            if missing:
                self.readings.setdefault(field, missing[0] or Reading(None, Reason.UNKNOWN_ERROR))
            else:
                self.readings[field] = Reading(sum(part.value or 0.0 for part in parts if part is not None))

    def _settle_memory(self) -> None:
        total, used = self.facts.get("total_bytes"), self.readings.get("memory_used_bytes")
        if used is None or total is None:
            return
        if total.value is not None and (total.value <= 0 or (used.value is not None and used.value > total.value)):
            self.readings["memory_used_bytes"] = IMPLAUSIBLE
        if total.value is not None and total.value <= 0:
            self.facts["total_bytes"] = IMPLAUSIBLE
        unsupported = Reading(None, Reason.NOT_SUPPORTED)
        if total == unsupported and used == unsupported and self._shares_memory():
            self.facts["total_bytes"] = self.readings["memory_used_bytes"] = Reading(None, Reason.UNIFIED_MEMORY)

    def _shares_memory(self) -> bool:
        """Whether the card has no memory of its own: by its name. Of a log without names, a card that never told the
        size of its memory and works: tells its load and its heat (cases NV-31)."""
        if self.name is not None:
            return shares_memory(self.name)
        load, heat = self.readings.get("utilization_percent"), self.readings.get("temperature_c")
        alive = load is not None and load.value is not None and heat is not None and heat.value is not None
        if not alive or self._notes.known.has_memory(self._card()):
            return False
        self._notes.remark(self.line, _UNNAMED_SHARED)
        return True


def _within(process: LoggedProcess, total_bytes: float) -> LoggedProcess:
    """No process has more of a card than there is (cases NV-46)."""
    if (process.memory_bytes.value or 0.0) <= total_bytes:
        return process
    return LoggedProcess(process.pid, process.name, process.kind, IMPLAUSIBLE, process.raw)


def _under_wddm(process: LoggedProcess) -> LoggedProcess:
    if process.memory_bytes.reason is not Reason.NOT_SUPPORTED:
        return process
    return LoggedProcess(process.pid, process.name, process.kind, Reading(None, Reason.WDDM), process.raw)
