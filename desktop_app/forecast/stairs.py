"""Growth in stairs: jumps of like size at like distances, such as a copy kept at every checkpoint."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from desktop_app.forecast.ramps import Change
from desktop_app.forecast.robust import deviation, mean_square, median

_KEPT: Final = 8
_KEPT_TO_SLOW: Final = 16  # risers over which their slowing down is looked at
_ALIKE: Final = 0.35  # sizes and distances may differ from their median by this share
_FEW: Final = 3
_ALIKE_FEW: Final = 0.1  # of up to three: two random distances are within 35 % of each other one time in three
_ALIKE_SHARE: Final = 0.7  # of the newest risers; else what is alike is so by chance
_DOUBT: Final = 0.3  # relative deviation of distances assumed before any has been seen twice; one observation's worth
OVERDUE: Final = 1.7  # no riser for this many distances: the stairs have ended
_MIN_DISTANCE_STEPS: Final = 3.0  # closer ones are a line
_SLOWING_RISERS: Final = 6  # at least, to say that they come ever more slowly
# Deviations by which their distances must have grown more than stairs that reach the brim could; of 25 caches that fill
# and 8 leaks in stairs (tuning half) every number from 0.5 to 2 tells them apart.
_SLOWING_Z: Final = 1.3
_STILL_SLOWING_Z: Final = 2.5  # when an alert is out
_EVEN: Final = 0.4  # of their distance, what it may vary by chance; of risers that come at random it is about 1
_ROUNDING: Final = 1.0 / 6.0  # variance of the difference of two whole numbers of steps


@dataclass(frozen=True, slots=True)
class Stairs:
    """Recurring jumps. Spreads are deviations relative to the value."""

    jump_bytes: float
    jump_spread: float
    distance_steps: float
    distance_spread: float
    risers: int
    since_last_steps: float
    event: str | None = None  # what the risers come with: a ``Happening``
    at_random: bool = False  # at any distances, of which this is the mean one

    @property
    def slope(self) -> float:
        """Bytes per step over many stairs."""
        return self.jump_bytes / self.distance_steps

    @property
    def grown_bytes(self) -> float:
        return self.jump_bytes * self.risers

    @property
    def spread(self) -> float:
        """Relative deviation of the slope."""
        return math.hypot(self.jump_spread, self.distance_spread) / math.sqrt(self.risers)

    def risers_until_full(self, room_bytes: float) -> float:
        """Risers to come until one does not fit into ``room_bytes`` any more, that one included."""
        return max(0.0, room_bytes // self.jump_bytes) + 1.0

    def steps_until_full(self, room_bytes: float) -> float:
        """Steps until the riser that no longer fits into ``room_bytes``."""
        risers = self.risers_until_full(room_bytes)
        return max(self.distance_steps - self.since_last_steps, 0.0) + (risers - 1.0) * self.distance_steps


class StairWatch:
    """Collects the jumps that stand out from the ordinary change between steps."""

    def __init__(self) -> None:
        self._risers: deque[tuple[int, float]] = deque(maxlen=_KEPT)
        self._many: deque[tuple[int, float]] = deque(maxlen=_KEPT_TO_SLOW)
        self._found: list[Stairs] | None = []  # as of the newest riser, most risers first; None: to be looked for

    def restart(self) -> None:
        self._risers.clear()
        self._many.clear()
        self._found = []

    def add(self, step: int, change: Change) -> None:
        """Take one change of the troughs. What jumps down as well is no stair."""
        if change.outstanding and change.size_bytes < 0:
            self.restart()
        elif change.outstanding:
            self._risers.append((step, change.size_bytes))
            self._many.append((step, change.size_bytes))
            self._found = None

    def stairs(self, step: int) -> Stairs | None:
        """The stairs as seen at ``step``: the most of the newest risers that are alike, at least two.

        With two risers their distance has been seen once only; the caller decides whether that is enough.
        """
        if self._found is None:
            self._found = self._look()
        for stairs in self._found:
            since = float(step - self._risers[-1][0])
            if since <= OVERDUE * stairs.distance_steps:
                return replace(stairs, since_last_steps=since)
        return None

    @property
    def newest_slope(self) -> float:
        """Bytes per step over the newest half of the risers; there must be two."""
        newest = list(self._many)[-(len(self._many) // 2 + 1) :]
        return sum(riser[1] for riser in newest[1:]) / max(newest[-1][0] - newest[0][0], 1)

    def level_off_within(self, room_bytes: float, *, known: bool = False) -> bool:
        """Like risers come ever more slowly, and so much so that they will end before they take ``room_bytes`` more.

        If the speed falls in proportion to what is still to come, as it does where things seen for the first time are
        kept, the newest half of the risers times T1 / (T2 - T1) is still to come, T1 and T2 the times of the halves.
        """
        risers = list(self._many)
        if len(risers) < _SLOWING_RISERS:
            return False
        sizes = np.array([riser[1] for riser in risers])
        jump = median(sizes)
        if np.max(np.abs(sizes - jump)) > _ALIKE * jump:
            return False
        distances = np.diff(np.array([riser[0] for riser in risers], dtype=np.float64))
        half = distances.size // 2
        early, late = float(distances[:half].sum()), float(distances[-half:].sum())
        needed = early * half * jump / max(room_bytes, 1.0)  # by so much the later half must be slower
        scatter = mean_square(distances[2:] - 2.0 * distances[1:-1] + distances[:-2]) / 6.0  # of even ones: 6 σ²
        if scatter > (_EVEN * median(distances)) ** 2:  # they come by chance: nothing fills up
            return False
        sd = math.sqrt(2.0 * max(half * scatter, _ROUNDING))
        return late - early - needed > (_STILL_SLOWING_Z if known else _SLOWING_Z) * sd

    def _look(self) -> list[Stairs]:
        risers = list(self._risers)
        fewest = max(2, math.ceil(_ALIKE_SHARE * len(risers)))
        found = (_alike(risers[-count:]) for count in range(len(risers), fewest - 1, -1))
        return [stairs for stairs in found if stairs is not None]


def _alike(risers: list[tuple[int, float]]) -> Stairs | None:
    at = np.array([riser[0] for riser in risers], dtype=np.float64)
    sizes = np.array([riser[1] for riser in risers])
    distances = np.diff(at)
    jump, distance = median(sizes), median(distances)
    allowed = _ALIKE if len(risers) > _FEW else _ALIKE_FEW
    alike = (
        np.max(np.abs(sizes - jump)) <= allowed * jump and np.max(np.abs(distances - distance)) <= allowed * distance
    )
    if not alike or distance < _MIN_DISTANCE_STEPS:
        return None
    return Stairs(
        jump_bytes=jump,
        jump_spread=deviation(sizes) / jump,
        distance_steps=distance,
        distance_spread=math.sqrt((_DOUBT**2 + float(np.sum((distances / distance - 1.0) ** 2))) / (sizes.size + 1)),
        risers=sizes.size,
        since_last_steps=0.0,
    )
