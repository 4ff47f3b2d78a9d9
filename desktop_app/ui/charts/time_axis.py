"""The time axis all panels share: live ("12 min ago" to now, and the future where one is forecast) or browsed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

ALL: Final = 0.0  # the span that means everything since the session began
SPANS_S: Final = (60.0, 300.0, 900.0, 3600.0, ALL)
DEFAULT_SPAN_S: Final = 900.0
_SHORTEST_S: Final = 5.0
_YOUNGEST_S: Final = 60.0
_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
_DAY: Final = 86_400.0
# While the session is younger than the span, the window grows in steps of this factor: seldom, and never half empty.
_GROWTH: Final = 1.1
# Distances of ticks, in seconds.
_TICKS_S: Final = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(n * _MINUTE for n in (1, 2, 3, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 5, 10, 30, 90, 365)),
)
# Room for the future, as shares of the past on show: few steps, so that the axis rests.
_FUTURE_SHARES: Final = (0.15, 0.25, 0.35, 0.5, 0.75, 1.0, 1.25, 1.5)
_FUTURE_SLACK: Final = 1.1  # the dot must not touch the edge


def grown_span_s(seconds: float) -> float:
    """The first step of the growing window that holds ``seconds``."""
    steps = math.ceil(math.log(max(seconds, _YOUNGEST_S) / _YOUNGEST_S, _GROWTH) - 1e-9)
    return float(_YOUNGEST_S * _GROWTH**steps)


@dataclass(frozen=True, slots=True)
class View:
    """The window on show. Seconds: ``anchor_s`` is session time at x = 0, x runs from ``left`` to ``right``."""

    anchor_s: float
    left: float
    right: float
    live: bool

    @property
    def width(self) -> float:
        return self.right - self.left


class TimeWindow:
    """Which stretch of time the panels show.

    Live, x = 0 is now and the window stands still while the data move; x is always seconds from ``anchor_s``, so
    leaving the live view changes no picture: the anchor only stops.
    """

    def __init__(self, span_s: float = DEFAULT_SPAN_S) -> None:
        self.span_s = span_s  # what was chosen; ALL for everything
        self._exact = False  # chosen with the wheel: not shortened while the session is young
        self._future_share = 0.0
        self._now_s = 0.0
        self.view = View(0.0, -max(span_s, _YOUNGEST_S), 0.0, live=True)

    @property
    def live(self) -> bool:
        return self.view.live

    @property
    def now_x(self) -> float:
        """Where now lies, in seconds from the anchor."""
        return self._now_s - self.view.anchor_s

    def set_span_s(self, span_s: float) -> None:
        """Choose a span (``ALL`` for everything) and go live."""
        self.span_s = span_s
        self._exact = False
        self._show_live(self.view.anchor_s if self.view.live else self._now_s)

    def go_live(self) -> None:
        self._show_live(self._now_s)

    def follow(self, now_s: float, *, pixels: float, forecast_s: float | None) -> View:
        """The view at ``now_s``. Live, it moves by whole pixels of ``pixels``; ``forecast_s`` asks for a future."""
        self._now_s = now_s
        if not self.view.live:
            return self.view
        self._follow_future(forecast_s)
        past = self._past_s()
        width = past * (1 + self._future_share)
        grain = width / max(1.0, pixels)
        self.view = View(math.floor(now_s / grain) * grain, -past, past * self._future_share, live=True)
        return self.view

    def pan(self, seconds: float) -> None:
        """Move the window by ``seconds`` (negative: into the past). At now it becomes live again."""
        view = self.view
        if view.live and seconds >= 0:
            return
        right = view.right + seconds
        if right >= self.now_x and seconds > 0:
            self.span_s, self._exact = view.width, True
            self.go_live()
            return
        self.view = View(view.anchor_s, view.left + seconds, right, live=False)

    def zoom(self, factor: float, *, at: float) -> None:
        """Show ``factor`` times as much time; live around now, else around x = ``at``."""
        view = self.view
        longest = grown_span_s(self._now_s)
        if view.live:
            self.span_s = min(max(-view.left * factor, _SHORTEST_S), longest)
            self._exact = True
            self._show_live(view.anchor_s)
            return
        width = min(max(view.width * factor, _SHORTEST_S), longest)
        left = at - (at - view.left) * width / view.width
        self.view = View(view.anchor_s, left, left + width, live=False)

    def _show_live(self, anchor_s: float) -> None:
        past = self._past_s()
        self.view = View(anchor_s, -past, past * self._future_share, live=True)

    def _past_s(self) -> float:
        age = grown_span_s(self._now_s)
        if self._exact:
            return self.span_s
        return age if self.span_s == ALL else min(self.span_s, age)

    def _follow_future(self, forecast_s: float | None) -> None:
        if forecast_s is None:
            self._future_share = 0.0
            return
        wanted = forecast_s * _FUTURE_SLACK / self._past_s()
        fitting = [share for share in _FUTURE_SHARES if share >= wanted]
        # What is farther than the largest share gets the smallest: the line then leaves the panel at its edge.
        self._future_share = fitting[0] if fitting else _FUTURE_SHARES[0]


@dataclass(frozen=True, slots=True)
class TimeTick:
    """One figure below the panels: where (seconds from the anchor) and what."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class TimeWords:
    """The words of the axis in one language. ``ago`` and ``ahead`` take a length, units a number."""

    now: str
    ago: Callable[[str], str]
    ahead: Callable[[str], str]
    seconds: Callable[[str], str]
    minutes: Callable[[str], str]
    hours: Callable[[str], str]
    days: Callable[[str], str]


def tick_distance_s(width_s: float, *, at_most: int) -> float:
    """The smallest round distance of which at most ``at_most`` fit into ``width_s``."""
    rough = width_s / max(1, at_most)
    return next((step for step in _TICKS_S if step >= rough), math.ceil(rough / (365 * _DAY)) * 365 * _DAY)


def live_ticks(view: View, words: TimeWords, *, at_most: int) -> tuple[TimeTick, ...]:
    """ "12 min ago", "9", "6", "3", "now", "+3": the unit is said once, at the oldest."""
    step = tick_distance_s(view.width, at_most=at_most)
    unit_s, unit = _unit(step, words)
    count = math.floor(-view.left / step + 1e-9)
    ticks = [TimeTick(-index * step, _number(index * step / unit_s)) for index in range(count, 0, -1)]
    if ticks:
        ticks[0] = TimeTick(ticks[0].x, words.ago(unit(ticks[0].text)))
    ticks.append(TimeTick(0.0, words.now))
    ahead = math.floor(view.right / step + 1e-9)
    ticks += [TimeTick(index * step, words.ahead(_number(index * step / unit_s))) for index in range(1, ahead + 1)]
    return tuple(ticks)


def _unit(step: float, words: TimeWords) -> tuple[float, Callable[[str], str]]:
    if step < _MINUTE:
        return 1.0, words.seconds
    if step < _HOUR:
        return _MINUTE, words.minutes
    if step < _DAY:
        return _HOUR, words.hours
    return _DAY, words.days


def _number(value: float) -> str:
    return f"{value:g}"


def browsed_ticks(view: View, wall_s: Callable[[float], float], *, at_most: int) -> tuple[TimeTick, ...]:
    """Round times of the local clock. ``wall_s`` turns session time into Unix time."""
    step = tick_distance_s(view.width, at_most=at_most)
    start = wall_s(view.anchor_s + view.left)
    offset = float(time.localtime(start).tm_gmtoff)
    first = math.ceil((start + offset) / step) * step - offset
    count = math.floor((view.width - (first - start)) / step) + 1
    wall = [first + index * step for index in range(max(0, count))]
    return tuple(TimeTick(view.left + at - start, _wall_text(at, step)) for at in wall)


def _wall_text(wall_s: float, step: float) -> str:
    local = time.localtime(wall_s)
    if step >= _DAY:
        return time.strftime("%m-%d", local)
    if step >= _HOUR and local.tm_hour == 0:
        return time.strftime("%m-%d", local)
    return time.strftime("%H:%M:%S" if step < _MINUTE else "%H:%M", local)
