"""Which part of a timeline is on show: events across, bytes up. Pure numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

_FEWEST_EVENTS: Final = 8.0
_FEWEST_SHARE: Final = 1 / 4096  # of the height: a block of 2 MiB in 8 GiB
_AIR: Final = 1.12  # above the highest line, for the mark of the peak


@dataclass(frozen=True, slots=True)
class Stretch:
    """Events ``first`` to ``last`` of ``events``, and bytes ``low`` to ``high`` of ``top``."""

    events: int
    top: float
    first: float
    last: float
    low: float
    high: float

    @classmethod
    def whole(cls, events: int, highest_bytes: float) -> Stretch:
        """Everything, with some air above."""
        top = max(1.0, _AIR * highest_bytes)
        return cls(events, top, 0.0, float(max(1, events)), 0.0, top)

    @property
    def is_whole(self) -> bool:
        return (self.first, self.last, self.low, self.high) == (0.0, float(max(1, self.events)), 0.0, self.top)

    @property
    def width(self) -> float:
        return self.last - self.first

    @property
    def height(self) -> float:
        return self.high - self.low

    def zoomed(self, factor: float, *, event: float, height_bytes: float | None = None) -> Stretch:
        """``factor`` times as much of it; ``event`` stays where it is. With ``height_bytes`` upwards as well."""
        whole = float(max(1, self.events))
        width = min(max(self.width * factor, min(_FEWEST_EVENTS, whole)), whole)
        first = event - (event - self.first) * width / self.width
        made = replace(self, first=first, last=first + width)
        if height_bytes is not None:
            height = min(max(self.height * factor, self.top * _FEWEST_SHARE), self.top)
            low = height_bytes - (height_bytes - self.low) * height / self.height
            made = replace(made, low=low, high=low + height)
        return _within(made)

    def moved(self, events: float, height_bytes: float = 0.0) -> Stretch:
        """Moved by so much, and no further than there is something."""
        first, last = self.first + events, self.last + events
        return _within(
            replace(self, first=first, last=last, low=self.low + height_bytes, high=self.high + height_bytes)
        )

    def showing(self, event: float, height_bytes: float) -> Stretch:
        """Moved so that a point comes on show; as it is where it is on show already."""
        across = min(0.0, event - self.first) + max(0.0, event + 1 - self.last)
        up = min(0.0, height_bytes - self.low) + max(0.0, height_bytes - self.high)
        return self.moved(across, up) if across or up else self


def _within(stretch: Stretch) -> Stretch:
    """Slid back to where there is something."""
    first, last = _slid(stretch.first, stretch.last, float(max(1, stretch.events)))
    low, high = _slid(stretch.low, stretch.high, stretch.top)
    return replace(stretch, first=first, last=last, low=low, high=high)


def _slid(low: float, high: float, end: float) -> tuple[float, float]:
    size = min(high - low, end)
    low = min(max(low, 0.0), end - size)
    return low, low + size
