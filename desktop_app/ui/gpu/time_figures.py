"""The figures of the time axis below one chart."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import QRectF
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
        line = self._types.line
        left, right = round(LEFT_GUTTER * line), round(RIGHT_GUTTER * line)
        size = self.size()
        return QRectF(left, 0, max(1.0, size.width() - left - right), size.height())

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        del option, widget
        view, kind = self._view, self._types.tick
        if view is None:
            return
        plot, middle = self.plot, self.size().height() / 2
        placed: list[tuple[float, float]] = []
        # "now" is never left out; its neighbours are, where they would touch it.
        for tick in sorted(self._ticks, key=lambda tick: (tick.x != 0.0 or not view.live, tick.x)):
            width = kind.width(tick.text)
            centre = plot.left() + (tick.x - view.left) / view.width * plot.width()
            left = min(max(centre - width / 2, 3.0), self.size().width() - width - 4)
            if any(left < end and start < left + width for start, end in placed):
                continue
            placed.append((left - 4, left + width + 4))
            rect = QRectF(left, middle - kind.height / 2, width + 1, kind.height)
            write(painter, rect, tick.text, kind, color(self._theme.faint), align=CENTRE)
