"""The one time axis of an import: what clocks the files have, and which of them can be compared."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import Final

from desktop_app.telemetry.logs.record import Stamp

_HALF_A_DAY_S: Final = 43_200.0
_DAY_S: Final = 86_400.0


class Clock(StrEnum):
    """What the times of the rows are."""

    UTC = "utc"
    LOCAL = "local"  # of a place that the log does not name
    TIME_OF_DAY = "time_of_day"  # of a day that the log does not name
    INTERVAL = "interval"  # none in the log; the user said how far apart rows are
    ELAPSED = "elapsed"  # seconds since a training began, and no word on when that was
    NONE = "none"  # none in the log: rows are numbered


class Axis:
    """Seconds of the axis for stamps of the files.

    The first time decides what clock it is. Local times beside times in UTC become UTC by ``zone``, or, for want of
    any word on it, by this computer's: ``assumes_zone`` then says so. ``convert`` is called once, with what turns
    a time that was placed before into UTC.
    """

    def __init__(self, *, zone: tzinfo | None, convert: Callable[[Callable[[float], float]], None]) -> None:
        self.clock = Clock.NONE
        self.first_s: float | None = None
        self.last_s: float | None = None
        self.steps_back = 0
        self.assumes_zone = False
        self._zone = zone
        self._convert = convert
        self._days_s = 0.0  # passed since the first time of day of a file
        self._before: Stamp | None = None

    def begin_file(self) -> None:
        self._days_s, self._before = 0.0, None

    def place(self, stamp: Stamp) -> float | None:
        """The time on the axis; ``None`` where it cannot be compared with those before it."""
        clock = self._clock_of(stamp)
        if self.clock is Clock.NONE:
            self.clock = clock
        elif {self.clock, clock} == {Clock.LOCAL, Clock.UTC}:
            self._become_utc()
        elif self.clock is not clock:
            return None
        before, self._before = self._before, stamp
        if before is not None and before.seconds > stamp.seconds:
            if stamp.time_of_day and before.seconds - stamp.seconds > _HALF_A_DAY_S:
                self._days_s += _DAY_S
            else:
                self.steps_back += 1
        seconds = stamp.seconds + (self._days_s if stamp.time_of_day else 0.0)
        if self.clock is Clock.UTC and not stamp.zoned:
            seconds = self.to_utc(seconds)
        self.first_s = seconds if self.first_s is None else min(self.first_s, seconds)
        self.last_s = seconds if self.last_s is None else max(self.last_s, seconds)
        return seconds

    def settle(self, stamps: Iterable[Stamp]) -> None:
        """Choose the clock for all of ``stamps``, none of which is placed yet: no file's place in the order does."""
        clocks = {self._clock_of(stamp) for stamp in stamps}
        if self.clock is Clock.NONE:  # dates before times of a day; among dates the one that stays when both are there
            found = (clock for clock in (Clock.LOCAL, Clock.UTC, Clock.TIME_OF_DAY) if clock in clocks)
            self.clock = next(found, Clock.NONE)
        if {Clock.LOCAL, Clock.UTC} <= clocks | {self.clock}:
            self._become_utc()

    def to_utc(self, local_s: float) -> float:
        """A local time, in seconds as if it were UTC, as seconds since 1970."""
        with contextlib.suppress(OverflowError, OSError, ValueError):
            naive = datetime.fromtimestamp(local_s, UTC).replace(tzinfo=None)
            return (naive if self._zone is None else naive.replace(tzinfo=self._zone)).timestamp()
        return local_s

    def wall_s(self, seconds: float | None) -> float | None:
        """Seconds since 1970 of a time of the axis. A local time is taken as this computer's, for want of any other."""
        if seconds is None or self.clock not in (Clock.UTC, Clock.LOCAL):
            return None
        return seconds if self.clock is Clock.UTC else self.to_utc(seconds)

    def _clock_of(self, stamp: Stamp) -> Clock:
        if stamp.zoned:
            return Clock.UTC
        if stamp.time_of_day:
            return Clock.TIME_OF_DAY
        return Clock.LOCAL if self._zone is None else Clock.UTC

    def _become_utc(self) -> None:
        self.assumes_zone = self._zone is None
        if self.clock is Clock.UTC:
            return
        self.clock = Clock.UTC
        self.first_s = None if self.first_s is None else self.to_utc(self.first_s)
        self.last_s = None if self.last_s is None else self.to_utc(self.last_s)
        self._convert(self.to_utc)
