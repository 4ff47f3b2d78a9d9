"""What the timeline's canvas shows: numbers and choices, worked out before anything is painted."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPointF, QRectF

from desktop_app.core.estimates import PhaseSpan
from desktop_app.ui.memory.stretch import Stretch
from desktop_app.ui.memory.timeline_layout import Extent, Layout


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the picture: after which event, how many bytes above the ground."""

    event: int
    height_bytes: float


@dataclass(frozen=True)
class Scene:
    """One timeline at one stretch in one rectangle. ``room_bytes``: what the card has for the allocator."""

    layout: Layout
    stretch: Stretch
    plot: QRectF
    ratio: float  # device pixels to a logical one
    room_bytes: int | None = None
    hovered: int | None = None  # blocks
    pinned: int | None = None
    cursor: Point | None = None
    owners: frozenset[int] | None = field(default=None)

    @cached_property
    def extent(self) -> Extent:
        """As many columns and rows as the plot has device pixels."""
        columns = max(1, round(self.plot.width() * self.ratio))
        rows = max(1, round(self.plot.height() * self.ratio))
        stretch = self.stretch
        return Extent(stretch.first, stretch.last, stretch.low, stretch.high, columns, rows)

    @cached_property
    def column_events(self) -> npt.NDArray[np.int64]:
        return self.layout.column_events(self.extent)

    def x(self, event: float) -> float:
        """The left edge of an event, in pixels."""
        return self.plot.left() + (event - self.stretch.first) / self.stretch.width * self.plot.width()

    def y(self, height_bytes: float) -> float:
        return self.plot.bottom() - (height_bytes - self.stretch.low) / self.stretch.height * self.plot.height()

    def point_at(self, position: QPointF) -> Point:
        """What lies under a pixel: of the events of a column, the one that the column shows."""
        plot, extent = self.plot, self.extent
        share = min(max((position.x() - plot.left()) / plot.width(), 0.0), 1.0)
        column = min(int(share * extent.columns), extent.columns - 1)
        row = (plot.bottom() - position.y()) / plot.height()
        return Point(int(self.column_events[column]), self.stretch.low + row * self.stretch.height)

    def column_x(self, column: int) -> float:
        """The left edge of a column, in pixels."""
        return self.plot.left() + column / self.extent.columns * self.plot.width()

    def shown_phases(self) -> list[tuple[PhaseSpan, QRectF]]:
        """Phases on show, with the part of the plot that each takes."""
        found = []
        for span in self.layout.timeline.phases:
            left, right = max(self.x(span.first), self.plot.left()), min(self.x(span.last + 1), self.plot.right())
            if right > left:
                found.append((span, QRectF(left, self.plot.top(), right - left, self.plot.height())))
        return found
