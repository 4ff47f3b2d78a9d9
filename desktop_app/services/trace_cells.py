"""The cells of a recorded run: text to figures, and why one cannot be read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Final

from desktop_app.forecast.trace_rows import TRACE_COLUMNS

Figure = int | float | str | None
Reader = Callable[[str], Figure]

# What programs write for "unknown": pandas, nvidia-smi, spreadsheets.
_UNKNOWN: Final = frozenset(
    {
        "",
        "nan",
        "none",
        "null",
        "nil",
        "n/a",
        "[n/a]",
        "na",
        "<na>",
        "#n/a",
        "-",
        "--",
        "?",
        "unknown",
        "[not supported]",
    }
)
_UNITS: Final = {"b": 0, "byte": 0, "bytes": 0, "kib": 1, "mib": 2, "gib": 3, "tib": 4}
_DECIMAL_UNITS: Final = frozenset({"k", "m", "g", "t", "kb", "mb", "gb", "tb"})
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_GROUPS: Final = re.compile(r"[+-]?\d{1,3}(?:([,_  '’ ])\d{3})(?:\1\d{3})*(?:\.\d+)?")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+")
# No memory is that large: 2^63, 2^64 - 1 and their like are drivers' "not available" (as under WSL).
_NONSENSE_BYTES: Final = 1 << 60
_LONGEST: Final = 60  # characters of a cell that are shown


class CellError(ValueError):
    """What is wrong with a cell, and what to write instead."""


def read_seconds(cell: str, *, least: float = -math.inf) -> float | None:
    """Seconds; ``None`` for unknown."""
    if cell.lower() in _UNKNOWN:
        return None
    number = _number(cell, what="seconds")
    if number < least:
        raise CellError("is negative, which no duration is; leave the cell empty when it is unknown")
    return number


def read_count(cell: str) -> int | None:
    """A whole number of 0 or more; ``None`` for unknown."""
    if cell.isdecimal() and cell.isascii() and len(cell) < 19:
        return int(cell)
    if cell.lower() in _UNKNOWN:
        return None
    number = _number(cell, what="a whole number")
    if number < 0:
        raise CellError("is negative; leave the cell empty when the count is unknown")
    if number != int(number):
        raise CellError("is not whole; write a whole number")
    if number >= _NONSENSE_BYTES:
        raise CellError("is too large for a count")
    return int(number)


def read_bytes(cell: str) -> int | None:
    """Bytes of ``1073741824``, ``1.07e9`` or ``1 GiB``; ``None`` for unknown and for more than any memory holds."""
    if cell.isdecimal() and cell.isascii() and len(cell) < 19:
        size = int(cell)
        return size if size < _NONSENSE_BYTES else None
    if cell.lower() in _UNKNOWN:
        return None
    figure = cell.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = cell[len(figure) :].lower()
    if unit in _DECIMAL_UNITS and figure:
        raise CellError("has a unit that means two things (KB, MB, GB); write bytes, or KiB, MiB, GiB")
    if unit not in _UNITS and unit:
        raise CellError(_infinite(cell) or "is not a size; write bytes as a number, or with KiB, MiB or GiB")
    number = _number(figure.strip(), what="bytes") * 1024.0 ** _UNITS.get(unit, 0)
    if number < 0:
        raise CellError("is negative; leave the cell empty when the bytes are unknown")
    return round(number) if number < _NONSENSE_BYTES else None


def read_flag(cell: str) -> int | None:
    """0 or 1, also in words; ``None`` for unknown."""
    word = cell.lower()
    if word in ("true", "yes"):
        return 1
    if word in ("false", "no"):
        return 0
    return read_count(cell)


def shown(cell: str) -> str:
    """A cell in an error line: quoted, in one line, not too long."""
    short = cell if len(cell) <= _LONGEST else f"{cell[:_LONGEST]}…"
    return repr(short)


def _number(cell: str, *, what: str) -> float:
    if _NUMBER.fullmatch(cell):
        number = float(cell)
    elif _GROUPS.fullmatch(cell):
        number = float(re.sub(r"[,_  '’ ]", "", cell))
    elif _DECIMAL_COMMA.fullmatch(cell):
        raise CellError(f"has a decimal comma; write {cell.replace(',', '.')}")
    else:
        raise CellError(_infinite(cell) or f"is not {what}; leave the cell empty when it is unknown")
    if not math.isfinite(number):
        raise CellError("is too large")
    return number


def _infinite(cell: str) -> str | None:
    """What is wrong with it, where it is infinity."""
    if cell.lower().lstrip("+-") in ("inf", "infinity"):
        return "is infinite, which no figure is; leave the cell empty when it is unknown"
    return None


def _capacity(cell: str) -> int | None:
    """No card has 0 bytes: a driver that says so does not know."""
    return read_bytes(cell) or None


def _text(cell: str) -> str:
    return cell


def _duration(cell: str) -> float | None:
    return read_seconds(cell, least=0.0)


_READERS: Final[Mapping[str, Reader]] = {
    "t_s": read_seconds,
    "step_s": _duration,
    "phase": _text,
    "event": _text,
    "spills": read_flag,
    "capacity_bytes": _capacity,
}


def reader_of(column: str) -> Reader:
    """How to read the cells of a column of ``TRACE_COLUMNS``."""
    assert column in TRACE_COLUMNS
    return _READERS.get(column) or (read_bytes if column.endswith("_bytes") else read_count)
