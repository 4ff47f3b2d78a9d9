"""Growth in stairs: jumps of like size at like distances, such as a copy kept at every checkpoint."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from desktop_app.forecast.ramps import Change
from desktop_app.forecast.robust import deviation, median

_KEPT: Final = 8
_ALIKE: Final = 0.35  # sizes and distances may differ from their median by this share
_FEW: Final = 3
_ALIKE_FEW: Final = 0.1  # of up to three: two random distances are within 35 % of each other one time in three
_ALIKE_SHARE: Final = 0.7  # of the newest risers; else what is alike is so by chance
_DOUBT: Final = 0.3  # relative deviation of distances assumed before any has been seen twice; one observation's worth
OVERDUE: Final = 1.7  # no riser for this many distances: the stairs have ended
_MIN_DISTANCE_STEPS: Final = 3.0  # closer ones are a line


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
        self._found: list[Stairs] | None = []  # as of the newest riser, most risers first; None: to be looked for

    def restart(self) -> None:
        self._risers.clear()
        self._found = []

    def add(self, step: int, change: Change) -> None:
        """Take one change of the troughs. What jumps down as well is no stair."""
        if change.outstanding and change.size_bytes < 0:
            self.restart()
        elif change.outstanding:
            self._risers.append((step, change.size_bytes))
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
