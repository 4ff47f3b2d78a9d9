"""What a file says about a training: rows of scalars under their own names, in columns. Data only."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from desktop_app.telemetry.logs.record import Notes, Stamp

NAN: Final = math.nan
# Names of each kind of what is left out; all are counted.
_NAMES_KEPT: Final = 200


@dataclass(frozen=True, slots=True)
class Target:
    """The place of a scalar in a session: ``steps`` or ``validation``, its column, and its unit in ours.

    Of two names for one column that of the lower ``rank`` has it. ``share``: only as a share of 1.
    """

    table: str
    column: str
    rank: int = 0
    scale: float = 1.0
    share: bool = False


class TrainingLog:
    """Rows in the order of the file. One row: one event, line or cell row, with its scalars."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.line = array("q")
        self.step = array("d")  # NaN where the file does not say
        self.seconds = array("d")  # of the row's stamp
        self.elapsed_s = array("d")  # since a beginning that the file does not date
        self.scalar_row = array("q")
        self.scalar_name = array("q")
        self.scalar_value = array("d")
        self.names: list[str] = []
        self.targets: list[Target | None] = []
        self.texts: list[tuple[int, str, str]] = []  # (row, name, text) where the text changes
        self.restarts: list[tuple[int, int]] = []  # (row, step): what was logged for it and later is void
        self.kept_out: dict[str, dict[str, int]] = {}  # kind → name → how many
        self.stamp: Stamp | None = None  # the first: all are of its clock
        self._ids: dict[str, int] = {}
        self._last_texts: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self.line)

    def name(self, name: str, target: Target | None) -> int:
        """The number of a name. What it is for, the first mention says."""
        found = self._ids.get(name)
        if found is None:
            found = self._ids[name] = len(self.names)
            # JSON can name what UTF-8 has no bytes for.
            self.names.append(name.encode("utf-8", "replace").decode("utf-8"))
            self.targets.append(target)
        return found

    def add_row(
        self, line: int, *, step: float | None = None, stamp: Stamp | None = None, elapsed_s: float | None = None
    ) -> int:
        """Begin a row; the number of it. A time of another clock than that of the first is none."""
        if stamp is not None and self.stamp is None:
            self.stamp = stamp
        if stamp is not None and self.stamp is not None and _kind(stamp) != _kind(self.stamp):
            self.notes.remark(line, "a time of another kind than those before it: the row counts as one without a time")
            stamp = None
        self.line.append(line)
        self.step.append(NAN if step is None else step)
        self.seconds.append(NAN if stamp is None else stamp.seconds)
        self.elapsed_s.append(NAN if elapsed_s is None else elapsed_s)
        return len(self.line) - 1

    def add(self, row: int, name: str, value: float, target: Target | None) -> None:
        self.scalar_row.append(row)
        self.scalar_name.append(self.name(name, target))
        self.scalar_value.append(value)

    def keep_text(self, row: int, name: str, text: str) -> None:
        """A word of the row that is no number."""
        if self._last_texts.get(name) != text:
            self._last_texts[name] = text
            self.texts.append((row, name, text))

    def keep_out(self, kind: str, name: str) -> None:
        """Something that is no scalar: not imported, but said."""
        names = self.kept_out.setdefault(kind, {})
        if name in names or len(names) < _NAMES_KEPT:
            names[name] = names.get(name, 0) + 1

    def begins(self, other: TrainingLog) -> bool:
        """Whether ``other`` says all of this first, number by number."""
        if len(self) > len(other) or other.names[: len(self.names)] != self.names:
            return False
        for ours, theirs in zip(self._columns(), other._columns(), strict=True):
            if not ours:
                continue
            mine = memoryview(ours).cast("B")  # bytes: NaN is itself, and nothing is copied
            if len(theirs) < len(ours) or memoryview(theirs).cast("B")[: len(mine)] != mine:
                return False
        return True

    def _columns(self) -> tuple[array[float] | array[int], ...]:
        """Those first in which two logs of one script differ the earliest."""
        return self.scalar_value, self.seconds, self.step, self.elapsed_s, self.scalar_name, self.scalar_row

    def values(self) -> Mapping[str, list[float]]:
        """By name, for a look at a small file."""
        found: dict[str, list[float]] = {name: [] for name in self.names}
        for number, value in zip(self.scalar_name, self.scalar_value, strict=True):
            found[self.names[number]].append(value)
        return found


def _kind(stamp: Stamp) -> tuple[bool, bool]:
    return stamp.zoned, stamp.time_of_day
