"""Which card each row of a log is about, and what was found of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.logs.record import LoggedCard, LoggedInstance, LoggedProcess, LogRecord

_CUT_OFF: Final = "..."  # how nvidia-smi's table ends a name that is too long for it


@dataclass(slots=True)
class FieldSummary:
    """What one field of one card came to."""

    values: int = 0
    lowest: float | None = None
    highest: float | None = None
    last: float | None = None
    reasons: Counter[Reason] = field(default_factory=Counter)

    def add(self, reading: Reading) -> None:
        if reading.value is None:
            self.reasons[reading.reason or Reason.UNKNOWN_ERROR] += 1
            return
        self.values += 1
        self.last = reading.value
        self.lowest = reading.value if self.lowest is None else min(self.lowest, reading.value)
        self.highest = reading.value if self.highest is None else max(self.highest, reading.value)


@dataclass(slots=True)
class ImportedCard:
    """A card of the import. ``key`` stands for it in the session: its UUID, or the best name that the log gives."""

    number: int
    key: str
    card: LoggedCard
    file: int
    rows: int = 0
    fields: dict[str, FieldSummary] = field(default_factory=dict)
    facts: dict[str, Reading] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    processes: dict[int, LoggedProcess] = field(default_factory=dict)
    instances: tuple[LoggedInstance, ...] = ()
    untimed_rows: int = 0
    last_reasons: dict[str, str | None] = field(default_factory=dict)
    last_raw: dict[str, str] = field(default_factory=dict)
    unknown_rows: int = 0  # in a row, up to now, with nothing but unknown errors
    said: dict[str, Counter[float]] = field(default_factory=dict)  # values of each fact, and in how many rows

    def add(self, record: LogRecord) -> list[str]:
        """Take a row; the facts of which it says something else than most rows before it, and which therefore stay."""
        self.rows += bool(record.readings)
        if record.readings:
            unknown = all(reading.reason is Reason.UNKNOWN_ERROR for reading in record.readings.values())
            self.unknown_rows = self.unknown_rows + 1 if unknown else 0
        for name, reading in record.readings.items():
            self.fields.setdefault(name, FieldSummary()).add(reading)
        others = [name for name, reading in record.facts.items() if not self._settle(name, reading)]
        self.texts.update(record.texts)
        for process in record.processes:
            self.processes[process.pid] = _later(self.processes.get(process.pid), process)
        self.instances = record.instances or self.instances
        return others

    def _settle(self, name: str, reading: Reading) -> bool:
        """A fact is what most rows say, of several the first. Whether this reading is it now, or says nothing."""
        held = self.facts.setdefault(name, reading)
        if reading.value is None:
            return True
        said = self.said.setdefault(name, Counter())
        said[reading.value] += 1
        if held.value is None or said[reading.value] > said[held.value]:
            self.facts[name] = held = reading
        return held.value == reading.value


class CardBook:
    """Finds the card of a row. Two rows are of one card when nothing that both say differs, and an identity agrees."""

    def __init__(self) -> None:
        self.cards: list[ImportedCard] = []
        self._held: dict[tuple[int, LoggedCard], ImportedCard] = {}

    def find(self, card: LoggedCard, *, file: int) -> ImportedCard:
        held = self._held.get((file, card))
        if held is None:
            held = next((known for known in self.cards if _same(known, card, file)), None) or self._add(card, file)
            held.card = _merged(held.card, card)
            held.file = file
            self._held[(file, card)] = held
        return held

    def _add(self, card: LoggedCard, file: int) -> ImportedCard:
        key = _key(card)
        taken = {known.key for known in self.cards}
        number = next(n for n in range(1, len(self.cards) + 2) if (key if n == 1 else f"{key} #{n}") not in taken)
        self.cards.append(ImportedCard(len(self.cards) + 1, key if number == 1 else f"{key} #{number}", card, file))
        return self.cards[-1]


def _key(card: LoggedCard) -> str:
    if card.uuid is not None:
        return card.uuid
    if card.bus_id is not None:
        return f"bus {card.bus_id}"
    return f"index {card.index}" if card.index is not None else card.name or "unnamed card"


def _same(known: ImportedCard, card: LoggedCard, file: int) -> bool:
    held = known.card
    if _differ(held.uuid, card.uuid) or _differ(held.bus_id, card.bus_id) or not _names_agree(held.name, card.name):
        return False
    if held.uuid is not None and held.uuid == card.uuid:
        return True
    if held.bus_id is not None and held.bus_id == card.bus_id:
        return True
    if _differ(held.index, card.index):
        return False
    bare = card.uuid is None and card.bus_id is None
    if card.index is not None and held.index == card.index:
        # In one file a number is one card. In another it may be another's, unless neither has more than a number.
        return known.file == file or (bare and held.uuid is None and held.bus_id is None)
    nothing_more = card.index is None and held.index is None and held.uuid is None and held.bus_id is None
    return bare and nothing_more and (known.file == file or held.name == card.name)


def _later(held: LoggedProcess | None, process: LoggedProcess) -> LoggedProcess:
    """The newer word on a process; what it does not speak of stays as it was."""
    if held is None:
        return process
    unasked = process.memory_bytes.reason is Reason.NOT_READ_YET
    return LoggedProcess(
        process.pid,
        max(held.name or "", process.name or "", key=len) or None,
        process.kind or held.kind,
        held.memory_bytes if unasked else process.memory_bytes,
        process.raw,
    )


def _differ(one: object | None, other: object | None) -> bool:
    return one is not None and other is not None and one != other


def _names_agree(one: str | None, other: str | None) -> bool:
    if one is None or other is None or one == other:
        return True
    short, long = sorted((one, other), key=len)
    cut = next((name for name in (short, long) if name.endswith(_CUT_OFF)), None)
    whole = long if cut == short else short
    return cut is not None and whole.startswith(cut.removesuffix(_CUT_OFF).rstrip())


def _merged(held: LoggedCard, card: LoggedCard) -> LoggedCard:
    name = held.name
    if card.name is not None and (name is None or (name.endswith(_CUT_OFF) and not card.name.endswith(_CUT_OFF))):
        name = card.name
    return LoggedCard(
        held.uuid or card.uuid, held.bus_id or card.bus_id, name, held.index if held.index is not None else card.index
    )
