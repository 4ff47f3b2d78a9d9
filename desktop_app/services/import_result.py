"""What came of an import: its files, cards, runs and sessions. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from desktop_app.core.errors import ConfigError, FloodmarkError
from desktop_app.services.import_axis import Axis, Clock
from desktop_app.services.import_cards import ImportedCard
from desktop_app.services.import_runs import ImportedRun
from desktop_app.services.import_words import printable
from desktop_app.services.session_folder import SessionFolder
from desktop_app.telemetry.logs.record import Notes

_MOST_PROBLEMS = 5


@dataclass(slots=True)
class ImportedFile:
    """One file of the import. ``problem``: why nothing came of it, in words that follow its name.

    ``found_in``: the folder that was named, and brought it.
    """

    path: Path
    kinds: dict[str, int] = field(default_factory=dict)
    records: int = 0
    notes: Notes = field(default_factory=Notes)
    problem: str | None = None
    unreadable: bool = False
    found_in: bool = False

    @property
    def passed_over(self) -> bool:
        """A file of a folder that nobody has named, and of no kind that is read."""
        return self.found_in and self.unreadable


@dataclass(slots=True)
class Import:
    """What came of all files. ``sessions`` is empty when there was nothing to keep; else one for each run."""

    files: list[ImportedFile]
    cards: list[ImportedCard] = field(default_factory=list)
    runs: list[ImportedRun] = field(default_factory=list)
    clock: Clock = Clock.NONE
    first_s: float | None = None
    last_s: float | None = None
    sessions: list[SessionFolder] = field(default_factory=list)
    steps_back: int = 0
    assumes_zone: bool = False
    cards_apart: bool = False  # their one moment cannot be compared with the steps
    cards_timed: bool = False

    @property
    def session(self) -> SessionFolder | None:
        return self.sessions[0] if self.sessions else None

    @property
    def rows(self) -> int:
        return sum(card.rows for card in self.cards)

    @property
    def untimed_rows(self) -> int:
        """Rows of cards that stand apart from the axis for want of a time."""
        if self.cards_apart:
            return self.rows
        return 0 if self.first_s is None else sum(card.untimed_rows for card in self.cards)

    @property
    def raw_fields(self) -> list[str]:
        return sorted({name for card in self.cards for name in card.last_raw})

    def take_axis(self, axis: Axis) -> None:
        self.clock, self.first_s, self.last_s = axis.clock, axis.first_s, axis.last_s
        self.steps_back, self.assumes_zone = axis.steps_back, axis.assumes_zone


def check(result: Import) -> None:
    """Raises the one line for an import of nothing: exit code 2 when no file was of a kind we read, else 1."""
    if result.sessions:
        return
    named = [file for file in result.files if not file.passed_over]
    lines = [printable(f"{file.path}{file.problem}") for file in named if file.problem]
    passed_over = len(result.files) - len(named)
    if passed_over:
        what = "one file" if passed_over == 1 else f"{passed_over:,} files"
        lines.append(f"{what} in the folder, of no kind that can be read; name the log itself to hear why")
    more = len(lines) - _MOST_PROBLEMS
    message = "; ".join(lines[:_MOST_PROBLEMS]) + (f"; and {more} more files" if more > 0 else "")
    message = message.rstrip(".") + ("" if message.endswith("…") else ".")
    if all(file.unreadable for file in result.files):
        raise ConfigError("import.unknown", message)
    raise FloodmarkError("import.nothing", message)
