"""The figures of the time axis: below the marks of the lane, or on their own below one chart."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from desktop_app.ui.brush import CENTRE, Typeset, write
from desktop_app.ui.charts.panel import LEFT_GUTTER, RIGHT_GUTTER
from desktop_app.ui.charts.time_axis import TimeTick, View
from desktop_app.ui.theme import Theme, color

LINES = 1.5  # its height in label lines


class TimeFigures(pg.GraphicsWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """Stands still while the window does, and is kept as a picture."""

    def __init__(self, theme: Theme, types: Typeset) -> None:
        super().__init__()
        self._theme = theme
        self._types = types
        self._view: View | None = None
        self._ticks: tuple[TimeTick, ...] = ()
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)

    def set_look(self, theme: Theme, types: Typeset) -> None:
        self._theme, self._types = theme, types
        self.update()

    def set_view(self, view: View, ticks: tuple[TimeTick, ...]) -> None:
        old = self._view
        if ticks != self._ticks or old is None or (view.left, view.right) != (old.left, old.right):
            self.update()
        self._view, self._ticks = view, ticks

    @property
    def plot(self) -> QRectF:
        """The stretch that shares its x axis with the plot above."""
        return axis_room(self.size(), self._types)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        del option, widget
        if self._view is not None:
            middle = self.size().height() / 2
            paint_times(painter, self._ticks, self._view, self.plot, middle, theme=self._theme, types=self._types)


def axis_room(size: QSizeF, types: Typeset) -> QRectF:
    """Of an item as wide as the panels the part that lies below their plots, in full height."""
    left, right = round(LEFT_GUTTER * types.line), round(RIGHT_GUTTER * types.line)
    return QRectF(left, 0, max(1.0, size.width() - left - right), size.height())


def paint_times(
    painter: QPainter,
    ticks: tuple[TimeTick, ...],
    view: View,
    room: QRectF,
    middle: float,
    *,
    theme: Theme,
    types: Typeset,
) -> None:
    """The figures below ``room``, their middles at the height ``middle``. Those at the ends stay within the panel."""
    kind = types.tick
    last = room.right() + round(RIGHT_GUTTER * types.line)
    # "now" is never left out; its neighbours are, where they would touch it.
    placed: list[tuple[float, float]] = []
    for tick in sorted(ticks, key=lambda tick: (tick.x != 0.0 or not view.live, tick.x)):
        width = kind.width(tick.text)
        centre = room.left() + (tick.x - view.left) / view.width * room.width()
        left = min(max(centre - width / 2, 3.0), last - width - 4)
        if any(left < end and start < left + width for start, end in placed):
            continue
        placed.append((left - 4, left + width + 4))
        rect = QRectF(left, middle - kind.height / 2, width + 1, kind.height)
        write(painter, rect, tick.text, kind, color(theme.faint), align=CENTRE)
