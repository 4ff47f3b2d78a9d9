"""What a log of other tools says: records, one per card and moment, and what was not understood. Data only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from desktop_app.core.telemetry import Reading, Reason

# Of each kind of trouble so many lines are kept; all are counted.
_LINES_KEPT: Final = 20
_SHOWN_CHARACTERS: Final = 80
_END_SHOWN: Final = 60  # of a line that the file ends in


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time as the log has it. ``zoned``: seconds since 1970 UTC; else the same arithmetic on a local clock, of which
    the log does not say where on earth it hung."""

    seconds: float
    zoned: bool = False
    time_of_day: bool = False  # seconds since midnight of a day that the log does not say


@dataclass(frozen=True, slots=True)
class LoggedCard:
    """Who a row is about, as far as the log says. ``bus_id`` as NVML writes it (``00000000:01:00.0``)."""

    uuid: str | None = None
    bus_id: str | None = None
    name: str | None = None
    index: int | None = None


@dataclass(frozen=True, slots=True)
class LoggedProcess:
    """A process on a card. ``memory_bytes`` has its reason where it is missing; ``raw``: what else the log says."""

    pid: int
    name: str | None
    kind: str | None  # "compute", "graphics" or "both"
    memory_bytes: Reading
    raw: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoggedInstance:
    """One MIG instance of a card."""

    index: int | None
    total_bytes: Reading
    used_bytes: Reading
    uuid: str | None = None


@dataclass(frozen=True, slots=True)
class LogRecord:
    """What one line, table or document says about one card at one moment.

    ``readings``: fields of ``ALL_GPU_FIELDS`` in their units; a field that the log does not have is not there.
    ``facts``: numbers that do not change (``total_bytes`` …), ``texts``: words that do not (``driver_version`` …).
    ``raw``: everything else, as it is written.
    """

    line: int
    stamp: Stamp | None
    card: LoggedCard
    readings: Mapping[str, Reading]
    facts: Mapping[str, Reading] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, str] = field(default_factory=dict)
    processes: tuple[LoggedProcess, ...] = ()
    instances: tuple[LoggedInstance, ...] = ()
    lists_processes: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A line that was not understood, or only in part. ``line`` counts from 1."""

    line: int
    why: str
    text: str = ""


class KnownCards:
    """What a file has said about its cards so far: later parts of it say less (dmon has nothing but an index)."""

    def __init__(self) -> None:
        self._bus_ids: dict[int, str] = {}
        self._names: dict[str | int, str] = {}
        self._have_memory: set[str | int] = set()
        self._texts: dict[str, dict[str, str]] = {}

    def bus_id(self, index: int | None) -> str | None:
        return None if index is None else self._bus_ids.get(index)

    def name(self, card: LoggedCard) -> str | None:
        """The name that an earlier row gave to this card; of a log that says only one name, that one."""
        found = next((self._names[key] for key in _keys(card) if key in self._names), None)
        names = set(self._names.values()) if found is None and not _keys(card) else ()
        return found if len(names) != 1 else next(iter(names))

    def has_memory(self, card: LoggedCard) -> bool:
        """Whether an earlier row gave the size of its memory."""
        return any(key in self._have_memory for key in _keys(card) or ("",))

    def texts(self, bus_id: str | None) -> Mapping[str, str]:
        return self._texts.get(bus_id or "", {})

    def remember(self, record: LogRecord) -> None:
        card = record.card
        total = record.facts.get("total_bytes")
        for key in _keys(card) or ("",):
            if card.name is not None:
                self._names.setdefault(key, card.name)
            if total is not None and total.value is not None:
                self._have_memory.add(key)
        if card.bus_id is None:
            return
        if card.index is not None:
            self._bus_ids[card.index] = card.bus_id
        self._texts.setdefault(card.bus_id, {}).update(record.texts)


def _keys(card: LoggedCard) -> tuple[str | int, ...]:
    return tuple(key for key in (card.uuid, card.bus_id, card.index) if key is not None)


class Notes:
    """Collects what a parser could not make sense of, and what the reader should know. Bounded."""

    def __init__(self) -> None:
        self.known = KnownCards()
        self._kept: list[LeftOut] = []
        self.counts: Counter[str] = Counter()
        self.remarks: dict[str, int] = {}  # text → first line
        self.failure: Reason | None = None

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return tuple(self._kept)

    def leave_out(self, line: int, why: str, text: str = "") -> None:
        self.counts[why] += 1
        if self.counts[why] <= _LINES_KEPT:
            self._kept.append(LeftOut(line, why, shown(text)))

    def cut(self, line: int, text: str) -> None:
        """The file ends inside ``line``; ``text`` is what there is of it."""
        why = f"the file ends inside line {line}: a value that may be half of one does not count"
        end = text.rstrip()[-_END_SHOWN:]
        self.leave_out(line, why, end if len(end) == len(text.rstrip()) else f"…{end}")

    def remark(self, line: int, text: str) -> None:
        self.remarks.setdefault(text, line)


def shown(text: str) -> str:
    """A piece of a log fit for one line of a terminal."""
    text = " ".join("".join(character if character.isprintable() else " " for character in text[:400]).split())
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
