"""Growth by one amount at any distances: a branch that is taken now and then keeps the same thing each time."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

import numpy as np

from desktop_app.core.units import MIB
from desktop_app.forecast.robust import deviation
from desktop_app.forecast.stairs import Stairs

_KEPT: Final = 24
_LEAST_BYTES: Final = 1 * MIB  # smaller changes are neither risers nor falls
_FEWEST: Final = 3
_ALIKE: Final = 0.35  # sizes may differ from their median by this share
_ALIKE_FEW: Final = 0.1  # of up to three
_LEAST_DISTANCE_STEPS: Final = 2.5  # on average; closer ones are a line
_SILENT: Final = 3.0  # mean distances without a riser: by chance one time in twenty
_STILL_SILENT: Final = 5.0  # when an alert is out: one in 150
_EARLY_Z: Final = 1.64  # deviations by which risers at random lie early in their time one time in twenty: fewer come


class EqualRisers:
    """Collects the rises of a series since it last fell. Not thread-safe."""

    def __init__(self) -> None:
        self._risers: deque[tuple[int, float]] = deque(maxlen=_KEPT)

    def restart(self) -> None:
        """What rose has fallen back."""
        self._risers.clear()

    def add(self, step: int, change_bytes: float) -> None:
        """Take one change of the troughs."""
        if change_bytes >= _LEAST_BYTES:
            self._risers.append((step, change_bytes))
        elif change_bytes <= -_LEAST_BYTES:
            self._risers.clear()

    def stairs(self, step: int, *, known: bool = False) -> Stairs | None:
        """The risers as seen at ``step``; ``None`` when they are not of one size, become rare, or none has come for
        too long. ``known``: an alert about them is out.

        Their distance is the mean one, the silence since the newest riser included: without it the estimate would be
        of moments that are rich in risers. Its deviation is that of an exponential distribution.
        """
        risers = self._risers
        if len(risers) < _FEWEST:
            return None
        first, newest, between = risers[0][0], risers[-1][0], len(risers) - 1
        lasted, silent = float(step - first), float(step - newest)
        if lasted < _LEAST_DISTANCE_STEPS * between or silent > (_STILL_SILENT if known else _SILENT) * (
            (newest - first) / between
        ):
            return None
        sizes = np.array([size for _, size in risers])
        jump = float(np.sort(sizes)[sizes.size // 2])
        if float(np.abs(sizes - jump).max()) > (_ALIKE if between >= _FEWEST else _ALIKE_FEW) * jump:
            return None
        middle = sum(at - first for at, _ in list(risers)[1:]) / between
        if not known and (0.5 - middle / lasted) * math.sqrt(12.0 * between) > _EARLY_Z:
            return None
        return Stairs(
            jump_bytes=jump,
            jump_spread=deviation(sizes) / jump,
            distance_steps=lasted / between,
            distance_spread=1.0,
            risers=sizes.size,
            since_last_steps=0.0,  # what comes at random has no memory
            at_random=True,
        )
