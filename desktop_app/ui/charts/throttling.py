"""When the card was held back and by what: episodes out of its history, at any zoom."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from desktop_app.core.curve import bin_width_s
from desktop_app.core.missing import Floats
from desktop_app.core.store import History

# As the event of the lane (services/telemetry_feed.py): less of a tick than this is no throttling worth a word.
THRESHOLD_PERCENT: Final = 5.0
# Shorter pauses than this, or than some pixels, are no pauses: a card on the edge would be shaded like a comb.
_PAUSE_S: Final = 3.0
_PAUSE_PIXELS: Final = 3
# A share belongs to the time since the tick before. Of the first tick after a gap no more than this is coloured.
_LONGEST_TICK_S: Final = 1.5


class Throttle(StrEnum):
    """What holds the clocks back. The heat is drawn over the power: it is what one can do something about."""

    POWER = "power"
    HEAT = "heat"

    @property
    def column(self) -> str:
        """Its column in the card's history: percent of each tick."""
        return _COLUMNS[self]


_COLUMNS: Final = {Throttle.HEAT: "throttle_thermal_percent", Throttle.POWER: "throttle_power_percent"}


@dataclass(frozen=True, slots=True)
class Episode:
    """From ``start_s`` to ``end_s`` (session time) the card was held back, pauses of a few seconds included."""

    start_s: float
    end_s: float
    cause: Throttle


def episodes(history: History, cause: Throttle, t0_s: float, t1_s: float, *, pixels: float) -> tuple[Episode, ...]:
    """Those in the window, oldest first. Costs a look at the extremes where there is none."""
    bounds = history.bounds(cause.column, t0_s, t1_s)
    if bounds is None or bounds[1] < THRESHOLD_PERCENT:
        return ()
    bins = max(1, round(pixels))
    curve = history.curve(cause.column, t0_s, t1_s, pixels=bins)
    pixel_s = (t1_s - t0_s) / max(1.0, pixels)
    longest_s = max(_LONGEST_TICK_S, bin_width_s(t1_s - t0_s, bins))
    spans = spans_above(curve.x, curve.y, longest_s=longest_s, pause_s=max(_PAUSE_S, _PAUSE_PIXELS * pixel_s))
    return tuple(Episode(start, end, cause) for start, end in spans.tolist())


def spans_above(x: Floats, y: Floats, *, longest_s: float, pause_s: float) -> Floats:
    """Spans (n, 2) that end at points of at least the threshold and begin at the point before; joined over pauses."""
    hits = np.flatnonzero(y >= THRESHOLD_PERCENT)
    if not hits.size:
        return np.empty((0, 2))
    ends = x[hits]
    starts = np.maximum(x[np.maximum(hits - 1, 0)], ends - longest_s)
    begins = np.flatnonzero(np.append(True, starts[1:] - ends[:-1] > pause_s))
    lasts = np.append(begins[1:], hits.size) - 1
    return np.stack((starts[begins], ends[lasts]), axis=1)
