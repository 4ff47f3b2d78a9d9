"""Numbers, sizes and times as the window writes them. Fixed decimals, so that digits keep their place."""

from __future__ import annotations

import math
import time
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.units import GIB, MIB, TIB, format_bytes

# Between a number and its unit, so that a line never breaks there.
NBSP: Final = "\N{NO-BREAK SPACE}"
DASH: Final = "\N{EN DASH}"
MINUS: Final = "\N{MINUS SIGN}"
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_DAY_S: Final = 86_400


def integer(value: float) -> str:
    """``1,840``."""
    return f"{value:,.0f}".replace("-", MINUS)


def decimal(value: float, digits: int) -> str:
    """``0.182`` with as many decimals as asked for."""
    return f"{value:,.{digits}f}".replace("-", MINUS)


def percent(value: float, digits: int = 0) -> str:
    """``97 %`` of a value that is already in percent."""
    return f"{decimal(value, digits)}{NBSP}%"


def with_unit(value: float, unit: str, digits: int = 0) -> str:
    """``117 W``."""
    return f"{decimal(value, digits)}{NBSP}{unit}"


def size(size_bytes: float, *, signed: bool = False) -> str:
    """``6.00 GiB``, ``512 MiB``."""
    return format_bytes(size_bytes, signed=signed).replace(" ", NBSP)


def spare(size_bytes: float) -> str:
    """A size one need not know to the last digit: one decimal from 1 GiB."""
    if abs(size_bytes) >= TIB:
        return with_unit(size_bytes / TIB, "TiB", 1)
    if abs(size_bytes) >= GIB:
        return with_unit(size_bytes / GIB, "GiB", 1)
    return size(size_bytes)


def small_size(size_bytes: float) -> str:
    """``9.2 MiB``: a size per step, where a tenth matters."""
    if MIB <= abs(size_bytes) < 100 * MIB:
        return with_unit(size_bytes / MIB, "MiB", 1)
    return size(size_bytes)


def size_range(low_bytes: float, high_bytes: float) -> str:
    """``4.2 – 4.6 GiB``; one number where both ends read the same."""
    low, high = spare(low_bytes), spare(high_bytes)
    if low == high:
        return high
    low_number, _, low_unit = low.partition(NBSP)
    if high.endswith(NBSP + low_unit):
        return f"{low_number}{NBSP}{DASH}{NBSP}{high}"
    return f"{low}{NBSP}{DASH}{NBSP}{high}"


def duration(seconds: float) -> str:
    """``45 s``, ``3 min 20 s``, ``12 min``, ``1 h 12 min``, ``2 d 4 h``."""
    whole = max(0, round(seconds))
    if whole < _MINUTE_S:
        return _seconds(whole)
    if whole < 10 * _MINUTE_S:
        return _minutes_seconds(whole)
    if whole < _HOUR_S:
        return _minutes(round(whole / _MINUTE_S))
    if whole < _DAY_S:
        return _hours_minutes(round(whole / _MINUTE_S))
    return _days_hours(round(whole / _HOUR_S))


def _seconds(whole: int) -> str:
    return QCoreApplication.translate("Numbers", "{0} s").format(whole).replace(" ", NBSP)


def _minutes(whole: int) -> str:
    return QCoreApplication.translate("Numbers", "{0} min").format(whole).replace(" ", NBSP)


def _minutes_seconds(whole: int) -> str:
    minutes, rest = divmod(whole, _MINUTE_S)
    if not rest:
        return _minutes(minutes)
    return QCoreApplication.translate("Numbers", "{0} min {1} s").format(minutes, rest).replace(" ", NBSP)


def _hours_minutes(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    if not rest:
        return QCoreApplication.translate("Numbers", "{0} h").format(hours).replace(" ", NBSP)
    return QCoreApplication.translate("Numbers", "{0} h {1} min").format(hours, rest).replace(" ", NBSP)


def _days_hours(hours: int) -> str:
    days, rest = divmod(hours, 24)
    if not rest:
        return QCoreApplication.translate("Numbers", "{0} d").format(days).replace(" ", NBSP)
    return QCoreApplication.translate("Numbers", "{0} d {1} h").format(days, rest).replace(" ", NBSP)


def about(seconds: float) -> str:
    """A duration as coarse as a forecast deserves, so that it does not flicker: to 5 s, 10 s, then minutes."""
    grain = _grain_s(seconds)
    return duration(max(5, grain * round(seconds / grain)))


def _grain_s(seconds: float) -> int:
    if seconds < _MINUTE_S:
        return 5
    return 10 if seconds < 10 * _MINUTE_S else _MINUTE_S


def clock(seconds: float) -> str:
    """``2:50`` or ``1:02:50``."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, _HOUR_S)
    minutes, rest = divmod(rest, _MINUTE_S)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def time_range(low_s: float, high_s: float) -> str:
    """``2:50 to 4:10``, or in hours and minutes where seconds say nothing.

    As coarse as ``about``, and rounded outwards, so that it never leaves out the duration that is said before it.
    """
    if high_s >= 2 * _HOUR_S:
        low, high = about(low_s), about(high_s)
    else:
        grain = _grain_s(high_s)
        low, high = clock(grain * math.floor(low_s / grain)), clock(grain * math.ceil(high_s / grain))
    return QCoreApplication.translate("Numbers", "{0} to {1}").format(low, high)


def with_uncertainty(seconds: float, half_s: float) -> str:
    """``1 h 12 min ± 4``: an uncertainty in the last unit of the duration needs none of its own."""
    text = about(seconds)
    if half_s < 1.0:
        return text
    minutes = round(half_s / _MINUTE_S)
    ends_in_minutes = 10 * _MINUTE_S <= seconds < _DAY_S
    if ends_in_minutes and minutes < 60:
        return f"{text}{NBSP}±{NBSP}{max(minutes, 1)}"
    coarse = half_s if half_s < _MINUTE_S else _MINUTE_S * minutes
    return f"{text}{NBSP}±{NBSP}{about(coarse)}"


def sentences(*parts: str) -> str:
    """Several sentences in one line, with what stands between two of them in this language. Empty ones are left out."""
    joined = ""
    for part in parts:
        both = QCoreApplication.translate("Numbers", "{0} {1}").format(joined, part)
        joined = both if joined and part else joined or part
    return joined


def wall_time(wall_s: float) -> str:
    """``14:32:08`` on the local clock."""
    return time.strftime("%H:%M:%S", time.localtime(wall_s))


def wall_date(wall_s: float) -> str:
    """``2026-09-21 14:32`` on the local clock."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(wall_s))
