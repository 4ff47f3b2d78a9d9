"""Value axes: round limits that seldom change, and round ticks. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# Round numbers between 1 and 10. 2.5 is left out: its multiples need one decimal more than their step.
_ROUND_STEPS: Final = (1.0, 2.0, 5.0, 10.0)
# Below this, powers of ten lose digits (IEEE 754 subnormals begin at 2.2e-308) and there is nothing to see.
_SMALLEST: Final = 1e-300
_ROUND_LIMITS: Final = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
# Limits shrink only when the data use less than this share of them: an axis that breathes cannot be read.
_SHRINK_SHARE: Final = 0.55
# Below this share of its top, the bottom of an axis is pulled to zero.
_ZERO_SHARE: Final = 0.6


@dataclass(frozen=True, slots=True)
class Axis:
    """A value axis: what its ends stand for, and where figures go."""

    low: float
    high: float
    ticks: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()

    def share(self, value: float) -> float:
        """Height of ``value``: 0 at the bottom, 1 at the top."""
        return (value - self.low) / (self.high - self.low)


def round_step(span: float, *, at_most: int) -> float:
    """The smallest 1, 2 or 5 times a power of ten of which at most ``at_most`` fit into ``span``."""
    if not _SMALLEST <= span < math.inf:
        return 1.0
    rough = span / max(1, at_most)
    scale = 10.0 ** math.floor(math.log10(rough))
    return next(step * scale for step in _ROUND_STEPS if step * scale >= rough * (1 - 1e-9))


def ceiling(value: float) -> float:
    """The next round number at or above a positive ``value``."""
    if not _SMALLEST <= value < math.inf:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(step * scale for step in _ROUND_LIMITS if step * scale >= value * (1 - 1e-9))


def ticks_within(low: float, high: float, *, at_most: int) -> tuple[float, ...]:
    """Multiples of a round step in [low, high]: about ``at_most`` of them, and two where that is possible."""
    most = max(1, at_most - 1)
    ticks = _multiples(low, high, round_step(high - low, at_most=most))
    while len(ticks) < 2 and most < 8:
        most += 1
        ticks = _multiples(low, high, round_step(high - low, at_most=most))
    return ticks


def _multiples(low: float, high: float, step: float) -> tuple[float, ...]:
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return tuple(0.0 if index == 0 else index * step for index in range(first, last + 1))


class Limits:
    """The ends of an axis that follows its data: round, quick to grow, slow to shrink."""

    def __init__(self) -> None:
        self._ends: tuple[float, float] | None = None

    def follow(self, low: float, high: float) -> tuple[float, float]:
        """The ends for data between ``low`` and ``high``."""
        wanted = _round_ends(low, high)
        ends = self._ends
        if ends is None or low < ends[0] or high > ends[1] or _is_wide(ends, wanted):
            self._ends = ends = wanted
        return ends


def _is_wide(ends: tuple[float, float], wanted: tuple[float, float]) -> bool:
    return wanted[1] - wanted[0] < _SHRINK_SHARE * (ends[1] - ends[0])


def _round_ends(low: float, high: float) -> tuple[float, float]:
    if low >= 0 and low <= _ZERO_SHARE * high:
        return 0.0, ceiling(high * 1.02)
    span = (high - low) or abs(high) or 1.0
    step = round_step(span, at_most=5)
    bottom, top = math.floor(low / step) * step, math.ceil(high / step) * step
    return bottom, top if top > bottom else bottom + step


def make_axis(low: float, high: float, *, at_most: int, text: Callable[[float], str] | None = None) -> Axis:
    """An axis from ``low`` to ``high`` with up to ``at_most`` figures."""
    ticks = ticks_within(low, high, at_most=at_most)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else abs(high - low) or 1.0
    write = text or plain(step)
    return Axis(low, high, ticks, tuple(write(tick) for tick in ticks))


def plain(step: float) -> Callable[[float], str]:
    """Writes multiples of ``step`` with the decimals they need, and powers of ten where those are many."""
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    if digits > 3:
        return scientific
    return lambda value: f"{value:,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def scientific(value: float) -> str:
    """``3e-4``: a learning rate as everybody writes it; ``0.3`` from a hundredth on."""
    if value == 0:
        return "0"
    if abs(value) >= 0.01:
        return f"{value:.2g}".replace("-", "\N{MINUS SIGN}")
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}".replace("e-", "e\N{MINUS SIGN}")


def figures_for(height: float, line: float) -> int:
    """How many figures an axis ``height`` pixels high can carry, ``line`` pixels each, with air between."""
    return max(2, min(6, int(height / (1.7 * line)) + 1))
