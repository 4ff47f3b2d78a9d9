"""Logs of other tools into a session of ours: what they say, what they do not, and nothing else."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from desktop_app.core.errors import ConfigError, FloodmarkError
from desktop_app.core.steps import RunState
from desktop_app.services.import_cards import CardBook, ImportedCard
from desktop_app.services.import_database import ImportDatabase
from desktop_app.services.locations import sessions_folder
from desktop_app.services.session_folder import SessionFolder, create_session
from desktop_app.telemetry.logs.kinds import OpenLog, UnknownKindError, open_log
from desktop_app.telemetry.logs.log_lines import MOST_BYTES
from desktop_app.telemetry.logs.record import LogRecord, Notes, Stamp
from desktop_app.telemetry.logs.times import DateOrder

_NO_CONFIG: Final = "# Imported from the logs of another tool: there was no configuration.\n"
# So many rows of one card with nothing but unknown errors are no hiccup (cases NV-20).
_ONLY_ERRORS: Final = 10
_LOOP_MODE: Final = (
    f"{_ONLY_ERRORS} rows and more with nothing but Unknown Error; where single calls work, call nvidia-smi anew for "
    "each row instead of with -l"
)
_HALF_A_DAY_S: Final = 43_200.0
_DAY_S: Final = 86_400.0
_KINDS_READ: Final = (
    "Floodmark reads nvidia-smi (-q -x, -q, --query-gpu CSV with its first line, table, dmon, pmon), rocm-smi --json, "
    "and the Prometheus text of dcgm-exporter and nvidia_gpu_exporter"
)


class Clock(StrEnum):
    """What the times of the rows are."""

    UTC = "utc"
    LOCAL = "local"  # of a place that the log does not name
    TIME_OF_DAY = "time_of_day"  # of a day that the log does not name
    INTERVAL = "interval"  # none in the log; the user said how far apart rows are
    NONE = "none"  # none in the log: rows are numbered


@dataclass(slots=True)
class ImportedFile:
    """One file of the import. ``problem``: why nothing came of it, in words that follow its name."""

    path: Path
    kinds: dict[str, int] = field(default_factory=dict)
    records: int = 0
    notes: Notes = field(default_factory=Notes)
    problem: str | None = None
    unreadable: bool = False


@dataclass(slots=True)
class Import:
    """What came of all files. ``session`` is ``None`` when there was nothing to keep."""

    files: list[ImportedFile]
    cards: list[ImportedCard] = field(default_factory=list)
    clock: Clock = Clock.NONE
    first_s: float | None = None
    last_s: float | None = None
    session: SessionFolder | None = None
    steps_back: int = 0

    @property
    def rows(self) -> int:
        return sum(card.rows for card in self.cards)

    @property
    def untimed_rows(self) -> int:
        return 0 if self.first_s is None else sum(card.untimed_rows for card in self.cards)

    @property
    def raw_fields(self) -> list[str]:
        return sorted({name for card in self.cards for name in card.last_raw})


def import_logs(
    paths: Sequence[Path], *, parent: Path | None = None, interval_s: float | None = None, dates: str | None = None
) -> Import:
    """Read ``paths`` into one new session. Files that cannot be read are told in the result, not raised.

    Raises ``FloodmarkError`` when the session cannot be written.
    """
    run = _Run(parent or sessions_folder(), paths, interval_s)
    try:
        seen: set[Path] = set()
        for number, file in enumerate(run.result.files):
            real = file.path.resolve()
            if real in seen:
                file.problem = " is given twice; its rows count once"
                continue
            seen.add(real)
            run.read(number, file, DateOrder(dates) if dates else DateOrder.UNKNOWN)
        run.finish()
    except (OSError, sqlite3.Error) as error:
        run.give_up()
        raise FloodmarkError("import.unwritable", f"Cannot write the session in {run.parent}: {error}.") from error
    except BaseException:
        run.give_up()
        raise
    return run.result


def check(result: Import) -> None:
    """Raises the one line for an import of nothing: exit code 2 when no file was of a kind we read, else 1."""
    if result.session is not None:
        return
    lines = [f"{file.path}{file.problem}" for file in result.files if file.problem]
    message = "; ".join(lines[:5]) + (f"; and {len(lines) - 5} more files" if len(lines) > 5 else "")
    message = message.rstrip(".") + ("" if message.endswith("…") else ".")
    if all(file.unreadable for file in result.files):
        raise ConfigError("import.unknown", message)
    raise FloodmarkError("import.nothing", message)


class _Run:
    """One import while it goes on."""

    def __init__(self, parent: Path, paths: Sequence[Path], interval_s: float | None) -> None:
        self.parent = parent
        self.result = Import([ImportedFile(path) for path in paths])
        self._interval_s = interval_s
        self._book = CardBook()
        self._database: ImportDatabase | None = None
        self._folder: SessionFolder | None = None
        self._days = 0.0  # passed since the first time of day of a file
        self._before: Stamp | None = None
        self._unnamed: dict[int, Stamp] = {}  # the last moment of a card that has no identity

    def read(self, number: int, file: ImportedFile, dates: DateOrder) -> None:
        """One file, as far as it can be read."""
        try:
            log = open_log(_content(file.path), dates=dates)
        except OSError as error:
            file.problem, file.unreadable = f": {error.strerror or error}; check the path and its permissions", True
            return
        except UnknownKindError as error:
            file.problem, file.unreadable = f" {error}. {_KINDS_READ}", True
            return
        except ValueError as error:
            file.problem, file.unreadable = f" {error}; unpack or copy it again", True
            return
        file.notes, self._days, self._before = log.notes, 0.0, None
        for record in log.records:
            file.records += 1
            self._take(number, record)
        file.kinds = log.kinds
        if not log.kinds:
            file.problem, file.unreadable = f" is of no kind that can be read. {_KINDS_READ}", True
        elif not file.records:
            file.problem = _nothing(log)

    def finish(self) -> None:
        result = self.result
        if self._database is None or self._folder is None:
            return
        result.cards = self._book.cards
        timed = result.first_s is not None
        self._database.finish(earliest_s=result.first_s or 0.0, any_timed=timed)
        if not timed and self._interval_s is not None:
            result.clock = Clock.INTERVAL
        result.session = self._folder
        self._write_facts(self._folder)

    def give_up(self) -> None:
        """Nothing half-made stays behind."""
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.close()
        if self._folder is not None:
            shutil.rmtree(self._folder.path, ignore_errors=True)

    def _take(self, file: int, record: LogRecord) -> None:
        known = len(self._book.cards)
        card = self._book.find(record.card, file=file)
        if record.readings and not self._tells_cards_apart(file, card, record):
            return
        database = self._opened(file)
        if len(self._book.cards) > known:
            database.add_card(card)
        seconds = self._seconds(record.stamp, file, record.line)
        if seconds is None:
            t_s = card.untimed_rows * (self._interval_s or 1.0)
            card.untimed_rows += bool(record.readings)
        else:
            t_s = seconds
        card.add(record)
        if card.unknown_rows == _ONLY_ERRORS:
            self.result.files[file].notes.remark(record.line, _LOOP_MODE)
        database.add(card, record, t_s=t_s, timed=seconds is not None)

    def _tells_cards_apart(self, file: int, card: ImportedCard, record: LogRecord) -> bool:
        """Whether the row can be taken for its card's. A second row of one moment is another card's, but whose?"""
        said = record.card
        if said.uuid is not None or said.bus_id is not None or said.index is not None:
            return True
        notes = self.result.files[file].notes
        if record.stamp is not None and self._unnamed.get(card.number) == record.stamp:
            notes.leave_out(record.line, "a second row of one moment that does not say whose; ask for index or uuid")
            return False
        if record.stamp is not None:
            self._unnamed[card.number] = record.stamp
        notes.remark(record.line, "rows do not say which card they are about (no index, uuid or bus id): taken as one")
        return True

    def _seconds(self, stamp: Stamp | None, file: int, line: int) -> float | None:
        """The time on the one axis of the session; ``None`` where it has none that can be compared."""
        if stamp is None:
            return None
        clock = Clock.UTC if stamp.zoned else Clock.TIME_OF_DAY if stamp.time_of_day else Clock.LOCAL
        result = self.result
        if result.first_s is None:
            result.clock = clock
        elif result.clock is not clock:
            self.result.files[file].notes.remark(line, "times of two kinds that cannot be compared; kept apart")
            return None
        before, self._before = self._before, stamp
        if before is not None and before.seconds > stamp.seconds:
            if stamp.time_of_day and before.seconds - stamp.seconds > _HALF_A_DAY_S:
                self._days += _DAY_S
            else:
                result.steps_back += 1
        seconds = stamp.seconds + (self._days if stamp.time_of_day else 0.0)
        result.first_s = seconds if result.first_s is None else min(result.first_s, seconds)
        result.last_s = seconds if result.last_s is None else max(result.last_s, seconds)
        return seconds

    def _opened(self, file: int) -> ImportDatabase:
        if self._database is None:
            name = f"import {self.result.files[file].path.name}"
            self._folder = create_session(
                self.parent, run_name=name, config_toml=_NO_CONFIG, card={}, anchor_wall_s=0.0
            )
            self._database = ImportDatabase(self._folder.database_path)
        return self._database

    def _write_facts(self, folder: SessionFolder) -> None:
        from desktop_app.services.import_report import as_facts

        facts: dict[str, Any] = folder.read_facts()
        first = self.result.cards[0]
        anchor = wall_time(self.result)
        facts["card"] = {"name": first.card.name or first.key, "uuid": first.key, "simulated": False}
        facts["clock_anchor_wall_s"] = anchor
        facts["started_wall_s"] = anchor if anchor is not None else facts["started_wall_s"]
        facts["host"] = {}  # the log does not say on which it was written
        facts["import"] = as_facts(self.result)
        facts["ended"] = {"state": RunState.FINISHED.value, "wall_s": time.time()}
        folder.write_facts(facts)


def wall_time(result: Import) -> float | None:
    """Seconds since 1970 at the first row. A local time is taken as this computer's, for want of any other."""
    if result.first_s is None:
        return None
    if result.clock is Clock.UTC:
        return result.first_s
    if result.clock is Clock.LOCAL:
        with contextlib.suppress(OverflowError, OSError, ValueError):
            return datetime.fromtimestamp(result.first_s, UTC).replace(tzinfo=None).timestamp()
    return None


def _content(path: Path) -> bytes:
    if path.is_dir():
        raise IsADirectoryError(21, "is a folder; give the files in it")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"has more than {MOST_BYTES >> 30} GiB; import it in parts")
    return data


def _nothing(log: OpenLog) -> str:
    first = next(_first_trouble(log.notes), None)
    if first is None:
        return " names the fields of cards and has no row; let the tool run longer"
    return first


def _first_trouble(notes: Notes) -> Iterator[str]:
    for item in notes.left_out:
        yield f", line {item.line}: {item.why}" + (f": {item.text}" if item.text else "")
