"""Times in logs, read without a locale: month names are English in every tool we read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Final

from desktop_app.telemetry.logs.record import Stamp

LATEST_S: Final = 253_402_300_800.0  # the year 10000
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK: Final = r"(\d{1,2}):(\d{2}):(\d{2})(?:[.,](\d{1,9}))?"
_YEAR_FIRST: Final = re.compile(
    r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?"
    r" ?(Z|UTC|GMT|[-+]\d{2}:?\d{2})?",
    re.ASCII,
)
_YEAR_LAST: Final = re.compile(
    r"(\d{1,2})([-/.])(\d{1,2})[-/.](\d{4}),?"
    r"(?: +(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(?: ?([AaPp])[Mm])?)?",
    re.ASCII,
)
_NAMED: Final = re.compile(
    rf"(?:[A-Za-z]{{3}},? +)?([A-Za-z]{{3}}) +(\d{{1,2}}) +{_CLOCK}(?: [A-Z]{{3,5}})? +(\d{{4}})", re.ASCII
)
_COMPACT: Final = re.compile(rf"(\d{{4}})(\d{{2}})(\d{{2}}) +{_CLOCK}", re.ASCII)
_ONLY_CLOCK: Final = re.compile(_CLOCK, re.ASCII)
_SINCE_1970: Final = re.compile(r"(\d{10})(?:\.(\d{1,9}))?|(\d{13})", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class DateOrder(StrEnum):
    """Whether 03/04/2026 is in April or in March."""

    UNKNOWN = "unknown"
    DAY_FIRST = "dmy"
    MONTH_FIRST = "mdy"


def order_of(text: str) -> DateOrder:
    """What the dates of a log themselves prove: 14/07/2026 has the day first; so has every date with points."""
    firsts, seconds, points = 0, 0, False
    for found in _YEAR_LAST.finditer(text):
        firsts, seconds = max(firsts, int(found[1])), max(seconds, int(found[3]))
        points = points or found[2] == "."
        if firsts > 12 or seconds > 12 or points:
            break
    if (firsts > 12 or points) and seconds <= 12:
        return DateOrder.DAY_FIRST
    return DateOrder.MONTH_FIRST if seconds > 12 and firsts <= 12 else DateOrder.UNKNOWN


def stamp_of(text: str, *, order: DateOrder = DateOrder.UNKNOWN) -> Stamp | None:
    """The time that ``text`` is as a whole, or ``None``: not a time, no such day, or day and month cannot be told."""
    text = text.strip()
    if len(text) > 48:
        return None
    try:
        return _stamp(text, order)
    except (ValueError, OverflowError):  # 31 February, 25:00:00
        return None


def is_ambiguous(text: str, order: DateOrder) -> bool:
    """A date that has two readings while nothing says which."""
    return order is DateOrder.UNKNOWN and _YEAR_LAST.fullmatch(text.strip()) is not None


def _stamp(text: str, order: DateOrder) -> Stamp | None:
    if found := _YEAR_FIRST.fullmatch(text):
        year, month, day, hour, minute, second, fraction, zone = found.groups()
        return _at((year, month, day), (hour or "0", minute or "0", second or "0"), fraction, zone)
    if found := _COMPACT.fullmatch(text):
        return _at(found.groups()[:3], found.groups()[3:6], found[7])
    if found := _NAMED.fullmatch(text):
        month_name, day, hour, minute, second, fraction, year = found.groups()
        month = str(_MONTHS.index(month_name.lower()) + 1)
        return _at((year, month, day), (hour, minute, second), fraction)
    if found := _YEAR_LAST.fullmatch(text):
        return _year_last(found, order)
    if found := _SINCE_1970.fullmatch(text):
        seconds = int(found[3]) / 1e3 if found[3] else float(text)
        return Stamp(seconds, zoned=True)
    if found := _ONLY_CLOCK.fullmatch(text):
        hour, minute, second, fraction = found.groups()
        at = _at(("1970", "1", "1"), (hour, minute, second), fraction)
        return Stamp(at.seconds, time_of_day=True)
    return None


def _year_last(found: re.Match[str], order: DateOrder) -> Stamp | None:
    first, _, second, year, hour, minute, seconds, fraction, half = found.groups()
    if order is DateOrder.UNKNOWN:
        return None
    day, month = (first, second) if order is DateOrder.DAY_FIRST else (second, first)
    if half is not None:
        if not 1 <= int(hour) <= 12:
            return None
        hour = str(int(hour) % 12 + (12 if half.lower() == "p" else 0))
    return _at((year, month, day), (hour or "0", minute or "0", seconds or "0"), fraction)


def _at(date: tuple[str, ...], clock: tuple[str, ...], fraction: str | None, zone: str | None = None) -> Stamp:
    year, month, day = (int(part) for part in date)
    hour, minute, second = (int(part) for part in clock)
    moment = datetime(year, month, day, hour, minute, second, tzinfo=_zone(zone) if zone else UTC)
    seconds = (moment - _EPOCH).total_seconds()
    return Stamp(seconds + (float("0." + fraction) if fraction else 0.0), zoned=bool(zone))


def _zone(text: str) -> timezone:
    if text in ("Z", "UTC", "GMT"):
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text[0] == "-" else offset)
