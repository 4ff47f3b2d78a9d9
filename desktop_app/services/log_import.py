"""Logs of other tools into a session of ours: what they say, what they do not, and nothing else."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Final

from desktop_app.core.errors import FloodmarkError
from desktop_app.services.import_axis import Axis
from desktop_app.services.import_cards import CardBook, ImportedCard
from desktop_app.services.import_database import ImportDatabase
from desktop_app.services.import_files import Found, content, trouble_of, unfolded
from desktop_app.services.import_result import Import, ImportedFile
from desktop_app.services.import_runs import RunBook
from desktop_app.services.import_sessions import Placing, Sessions
from desktop_app.services.import_words import some
from desktop_app.services.locations import sessions_folder
from desktop_app.telemetry.logs.kinds import OpenLog, UnknownKindError, open_log
from desktop_app.telemetry.logs.record import LogRecord, Notes, Stamp
from desktop_app.telemetry.logs.tfevents import KIND as EVENTS_KIND
from desktop_app.telemetry.logs.times import DateOrder

# So many rows of one card with nothing but unknown errors are no hiccup (cases NV-20).
_ONLY_ERRORS: Final = 10
_LOOP_MODE: Final = (
    f"{_ONLY_ERRORS} rows and more with nothing but Unknown Error; where single calls work, call nvidia-smi anew for "
    "each row instead of with -l"
)
_KINDS_READ: Final = (
    "Floodmark reads nvidia-smi (-q -x, -q, --query-gpu CSV with its first line, table, dmon, pmon), rocm-smi --json, "
    "the Prometheus text of dcgm-exporter and nvidia_gpu_exporter, event files of TensorBoard, metrics as CSV or JSON "
    "lines, and training logs whose lines say a step and its loss"
)


def import_logs(
    paths: Sequence[Path],
    *,
    parent: Path | None = None,
    interval_s: float | None = None,
    dates: str | None = None,
    zone: tzinfo | None = None,
    start: Stamp | None = None,
) -> Import:
    """Read ``paths`` into one new session, or one for each training. What cannot be read is told, not raised.

    ``zone``: of local times; ``start``: of trainings that do not say when they were. Raises ``FloodmarkError`` when
    the session cannot be written.
    """
    run = _Run(parent or sessions_folder(), paths, Placing(interval_s, start), zone)
    try:
        for number, file in enumerate(run.result.files):
            run.read(number, file, DateOrder(dates) if dates else DateOrder.UNKNOWN)
        run.finish()
    except (OSError, sqlite3.Error) as error:
        run.sessions.give_up()
        reason = error.strerror or error if isinstance(error, OSError) else error
        raise FloodmarkError(
            "import.unwritable",
            f"Cannot write the session in {run.sessions.parent}: {reason}. Give another folder: --out FOLDER.",
        ) from error
    except BaseException:
        run.sessions.give_up()
        raise
    return run.result


class _Run:
    """One import while it goes on."""

    def __init__(self, parent: Path, paths: Sequence[Path], placing: Placing, zone: tzinfo | None) -> None:
        self.result = Import([_imported(found) for found in unfolded(paths)])
        self.sessions = Sessions(parent, placing)
        self._interval_s = placing.interval_s
        self._book = CardBook()
        self._runs = RunBook()
        self._database: ImportDatabase | None = None
        self._axis = Axis(zone=zone, convert=self._convert)
        self._unnamed: dict[int, Stamp] = {}  # the last moment of a card that has no identity
        self._places: set[Path] = set()
        self._contents: dict[bytes, Path] = {}
        self._with_cards: set[int] = set()

    def read(self, number: int, file: ImportedFile, dates: DateOrder) -> None:
        """One file, as far as it can be read."""
        log = self._open(file, dates)
        if log is None:
            return
        file.notes = log.notes
        self._axis.begin_file()
        for record in log.records:
            file.records += 1
            self._take(number, record)
        file.kinds = log.kinds
        if file.records:
            self._with_cards.add(number)
        file.records += len(log.training)
        self._runs.add(number, file.path, log.kinds, log.training)
        if not log.kinds:
            first = next(iter(log.notes.counts), "")
            lines = f" ({first})" if first.startswith("a line of") else ""
            file.problem, file.unreadable = f" is of no kind that can be read{lines}. {_KINDS_READ}", True
        elif not file.records:
            file.problem = _nothing(log)

    def finish(self) -> None:
        from desktop_app.services.import_report import as_facts

        self.result.cards = self._book.cards
        for number, (whole, line) in self._runs.beginnings().items():
            file = self.result.files[number]
            if number in self._with_cards:
                file.notes.remark(line, f"its steps are the beginning of those in {whole}, and count once")
            else:
                file.problem = f" is the beginning of {whole}; its steps count once"
        self.result.runs = self._runs.settled()
        self.sessions.finish(self.result, self._axis, as_facts)

    def _open(self, file: ImportedFile, dates: DateOrder) -> OpenLog | None:
        """The reader of a file; ``None`` where the reason stands in ``file``."""
        if file.problem is not None:
            return None
        try:
            place = file.path.resolve()
            if place in self._places:
                file.problem = " is given twice; its rows count once"
                return None
            self._places.add(place)
            data = content(file.path)
            alone = len(self.result.files) == 1
            same = file.path if alone else self._contents.setdefault(hashlib.blake2b(data).digest(), file.path)
            if same != file.path and data:
                file.problem = f" is the same, byte for byte, as {same}; its rows count once"
                return None
            return open_log(data, dates=dates)
        except UnknownKindError as error:
            file.problem = f" {error}" + (f". {_KINDS_READ}" if error.suggests else "")
        except (OSError, RuntimeError) as error:  # a ring of links is a RuntimeError
            file.problem, file.found_in = trouble_of(error), False
        except ValueError as error:
            file.problem = f" {error}; unpack or copy it again"
        file.unreadable = True
        return None

    def _take(self, file: int, record: LogRecord) -> None:
        known = len(self._book.cards)
        card = self._book.find(record.card, file=file)
        if record.readings and not self._tells_cards_apart(file, card, record):
            return
        database = self._opened(file)
        if len(self._book.cards) > known:
            database.add_card(card)
        seconds = None if record.stamp is None else self._axis.place(record.stamp)
        if seconds is None and record.stamp is not None:
            self.result.files[file].notes.remark(
                record.line,
                "times of two kinds that cannot be compared; kept apart"
                + ("; log them with their dates (dmon -o DT)" if record.stamp.time_of_day else ""),
            )
        if seconds is None:
            t_s = card.untimed_rows * (self._interval_s or 1.0)
            card.untimed_rows += bool(record.readings)
        else:
            t_s = seconds
        for name in card.add(record):
            notes = self.result.files[file].notes
            notes.remark(record.line, f"{name}: another value than in the rows before; what most rows say stands")
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

    def _opened(self, file: int) -> ImportDatabase:
        if self._database is None:
            self._database = self.sessions.open_cards(self.result.files[file].path.name)
        return self._database

    def _convert(self, convert: Callable[[float], float]) -> None:
        if self._database is not None:
            self._database.convert_times(convert)


def _imported(found: Found) -> ImportedFile:
    return ImportedFile(
        found.path, problem=found.problem, unreadable=found.problem is not None, found_in=found.in_folder
    )


def _nothing(log: OpenLog) -> str:
    first = next(_first_trouble(log.notes), None)
    if first is None and EVENTS_KIND in log.kinds:
        held = some(sorted(log.training.kept_out))
        return " has no scalar" + (f", only {held}" if held else " yet") + "; log one, such as the loss"
    if first is None:
        return " names the fields of cards and has no row; let the tool run longer"
    return first


def _first_trouble(notes: Notes) -> Iterator[str]:
    for item in notes.left_out:
        yield f", line {item.line}: {item.why}" + (f": {item.text}" if item.text else "")
