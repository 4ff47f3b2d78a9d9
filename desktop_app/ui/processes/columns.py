"""The columns of the process table: what each shows, why it may show nothing, and by what it sorts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from desktop_app.core.telemetry import ProcessSample, Reason
from desktop_app.ui.texts import numbers, reasons
from desktop_app.ui.texts import processes as texts

Key = int | float | str


class Column(IntEnum):
    """In the order of the table."""

    NAME = 0
    PID = 1
    USER = 2
    MEMORY = 3
    GPU = 4
    BUS = 5
    CPU = 6
    RSS = 7
    STARTED = 8
    SLICE = 9
    CONTAINER = 10

    @property
    def key(self) -> str:
        """Its name in settings and texts."""
        return self.name.lower()


# What fits into the dock: who it is, and the two things one looks for.
NARROW: Final = (Column.NAME, Column.PID, Column.MEMORY, Column.GPU)
WIDE: Final = tuple(column for column in Column if column not in (Column.SLICE, Column.CONTAINER))
LEFT_ALIGNED: Final = frozenset({Column.NAME, Column.USER, Column.SLICE, Column.CONTAINER})
# Numbers are looked at from the largest down, words from A on.
DESCENDING_FIRST: Final = frozenset({Column.MEMORY, Column.GPU, Column.BUS, Column.CPU, Column.RSS, Column.STARTED})
# The longest value that is usual: a column is as wide as this even while its values are shorter.
SAMPLES: Final = {
    Column.NAME: "python3",
    Column.PID: "00000",
    Column.USER: "username",
    Column.MEMORY: "00.00 GiB",
    Column.GPU: "100 %",
    Column.BUS: "100 %",
    Column.CPU: "0,000 %",
    Column.RSS: "000.00 GiB",
    Column.STARTED: "0000-00-00",
    Column.SLICE: "GI 00",
    Column.CONTAINER: "kubernetes",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """What one cell says. ``key``: by what it sorts, ``None`` where it is not known; ``why`` is then a sentence."""

    text: str
    key: Key | None
    why: str = ""


def _name(process: ProcessSample) -> Cell:
    return Cell(texts.name(process), process.name.casefold() or None, "" if process.name else _closed(process).why)


def _pid(process: ProcessSample) -> Cell:
    return Cell(str(process.pid), process.pid)


def _user(process: ProcessSample) -> Cell:
    return _closed(process) if process.user is None else Cell(process.user, process.user.casefold())


def _memory(process: ProcessSample) -> Cell:
    if process.memory_bytes is None:
        return _missing(process.memory_reason)
    return Cell(numbers.size(process.memory_bytes), process.memory_bytes)


def _gpu(process: ProcessSample) -> Cell:
    if process.sm_percent is None:
        return _missing(process.sm_reason)
    return Cell(numbers.percent(process.sm_percent), process.sm_percent)


def _bus(process: ProcessSample) -> Cell:
    if process.memory_bus_percent is None:
        return _missing(process.sm_reason)  # the driver gives the two together
    return Cell(numbers.percent(process.memory_bus_percent), process.memory_bus_percent)


def _cpu(process: ProcessSample) -> Cell:
    if process.cpu_percent is not None:
        return Cell(numbers.percent(process.cpu_percent), process.cpu_percent)
    # A share of time takes two looks.
    return _missing(Reason.NOT_READ_YET) if process.rss_bytes is not None else _closed(process)


def _rss(process: ProcessSample) -> Cell:
    return _closed(process) if process.rss_bytes is None else Cell(numbers.size(process.rss_bytes), process.rss_bytes)


def _started(process: ProcessSample) -> Cell:
    if process.started_wall_s is None:
        return _closed(process)
    return Cell(texts.started(process.started_wall_s), process.started_wall_s)


def _slice(process: ProcessSample) -> Cell:
    return Cell(texts.slice_of(process), process.gpu_instance)


def _container(process: ProcessSample) -> Cell:
    return Cell(texts.container(process), process.container)


def _missing(reason: Reason | None) -> Cell:
    return Cell(reasons.short(reason), None, reasons.sentence(reason))


def _closed(process: ProcessSample) -> Cell:
    return Cell(texts.unknown(process), None, texts.why_unknown(process))


_MAKERS: Final[tuple[Callable[[ProcessSample], Cell], ...]] = (
    _name,
    _pid,
    _user,
    _memory,
    _gpu,
    _bus,
    _cpu,
    _rss,
    _started,
    _slice,
    _container,
)


def cell(process: ProcessSample, column: int) -> Cell:
    """The cell of ``process`` in ``column``."""
    return _MAKERS[column](process)


def from_keys(keys: tuple[str, ...], usual: tuple[Column, ...]) -> tuple[Column, ...]:
    """Columns by their remembered names; ``usual`` where none is known. The name of the process is never hidden."""
    found = tuple(column for column in Column if column.key in keys)
    return (Column.NAME, *(column for column in found if column is not Column.NAME)) if found else usual
