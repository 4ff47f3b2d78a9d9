"""All curves of one panel as one graphics item: paths made from at most two points per pixel, drawn one pixel wide.

Measured with eight panels of four curves at 10 M points: 14 ms a frame where stock ``PlotDataItem`` takes minutes, and
own grid lines for 0.5 ms where ``showGrid`` takes 35 ms and more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPolygonF
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from desktop_app.ui.charts import shades
from desktop_app.ui.charts.shades import Band, Look

Floats = NDArray[np.float64]
_NO_PATH: Final = QPainterPath()


@dataclass(frozen=True, slots=True)
class Line:
    """One curve in panel coordinates: x in seconds from the anchor, y from 0 (bottom) to 1 (top)."""

    path: QPainterPath
    color: QColor
    areas: tuple[QPolygonF, ...] = ()
    area_color: QColor | None = None
    heavy: bool = False  # twice as thick as the others


@dataclass(frozen=True, slots=True)
class Limit:
    """A straight line across the panel at height ``y``: a thin dashed one, or a full one for a capacity."""

    y: float
    color: QColor
    dashed: bool = True


@dataclass(slots=True)
class Content:
    """What a panel draws now."""

    lines: Sequence[Line] = ()
    limits: Sequence[Limit] = ()
    grid: Sequence[float] = field(default_factory=tuple)  # heights, 0 to 1


class Curves(pg.GraphicsObject):  # type: ignore[misc]  # pyqtgraph has no types
    """Draws a ``Content``. The owner says which rectangle is in view; nothing is asked of the data."""

    def __init__(self) -> None:
        super().__init__()
        self._bounds = QRectF(0, 0, 1, 1)
        self._content = Content()
        self._grid_pen = QPen()
        self._bands: tuple[Band, ...] = ()
        self._look: Look | None = None

    def set_view(self, left: float, right: float) -> bool:
        """The window on the x axis, in seconds from the anchor; whether it is another one."""
        if left == self._bounds.left() and right == self._bounds.right():
            return False
        self.prepareGeometryChange()
        self._bounds = QRectF()
        self._bounds.setCoords(left, 0.0, right, 1.0)
        return True

    def set_grid_color(self, color: QColor) -> None:
        self._grid_pen = cosmetic_pen(color)
        self.update()

    def set_content(self, content: Content) -> None:
        self._content = content
        self.update()

    def set_look(self, look: Look) -> None:
        """How shades are drawn."""
        self._look = look
        self.update()

    def set_bands(self, bands: tuple[Band, ...]) -> None:
        """Shades of the time in which the card was held back, behind the lines and over the areas."""
        if bands != self._bands:
            self._bands = bands
            self.update()

    @property
    def bands(self) -> tuple[Band, ...]:
        return self._bands

    @property
    def content(self) -> Content:
        return self._content

    def boundingRect(self) -> QRectF:
        return self._bounds

    def dataBounds(self, axis: int, *_: object, **__: object) -> tuple[None, None]:
        """pyqtgraph asks this of every item for its auto-range, which we do not use."""
        del axis
        return None, None

    def pixelPadding(self) -> float:
        return 0.0

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        del option
        left, right = self._bounds.left(), self._bounds.right()
        for line in self._content.lines:
            self._paint_areas(painter, line)
        ratio = widget.devicePixelRatioF() if widget is not None else 1.0
        if self._look is not None:
            shades.paint(painter, self._bands, self._look, ratio=ratio)
        painter.setPen(self._grid_pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawLines([QLineF(left, y, right, y) for y in self._content.grid])
        for limit in self._content.limits:
            painter.setPen(cosmetic_pen(limit.color, dashed=limit.dashed))
            painter.drawLine(QLineF(left, limit.y, right, limit.y))
        height = abs(painter.worldTransform().m22()) or 1.0  # logical pixels from the bottom to the top
        for line in self._content.lines:
            painter.setPen(cosmetic_pen(line.color))
            # A pen of two pixels costs five times a pen of one (and a hundred times without luck); the same path
            # drawn a device pixel lower costs as much again.
            for below in range(round(ratio * (2 if line.heavy else 1))):
                painter.drawPath(line.path.translated(0, below / (ratio * height)) if below else line.path)

    def _paint_areas(self, painter: QPainter, line: Line) -> None:
        if line.area_color is None:
            return
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(line.area_color)
        for area in line.areas:
            painter.drawPolygon(area)


def cosmetic_pen(color: QColor, *, dashed: bool = False) -> QPen:
    """One pixel wide at every scale: anything wider costs a hundred times as much."""
    pen = QPen(color, 1)
    pen.setCosmetic(True)
    if dashed:
        pen.setDashPattern([3, 4])
    return pen


def line_path(x: Floats, y: Floats, *, has_gaps: bool) -> QPainterPath:
    """The path through (x, y). Where y is NaN the pen is lifted: a gap is a gap."""
    if x.size < 2:
        return _NO_PATH
    connect = "finite" if has_gaps else "all"
    path: QPainterPath = pg.arrayToQPath(x, y, connect=connect, finiteCheck=False)
    return path


def stepped(x: Floats, y: Floats, *, until: float) -> tuple[Floats, Floats]:
    """Corners of a line that holds each value until the next one, the last one until x = ``until``."""
    if not x.size:
        return x, y
    ends = np.append(x[1:], max(until, float(x[-1])))
    return np.stack((x, ends), axis=1).reshape(-1), np.repeat(y, 2)


def areas_below(x: Floats, y: Floats) -> tuple[QPolygonF, ...]:
    """One closed shape down to the bottom for each stretch without gap."""
    if not x.size:
        return ()
    cuts = np.flatnonzero(~np.isfinite(y))
    pieces = np.split(np.arange(x.size), cuts)
    areas = []
    for piece in pieces:
        kept = piece[np.isfinite(y[piece])]
        if kept.size > 1:
            areas.append(_closed(x[kept], y[kept]))
    return tuple(areas)


def _closed(x: Floats, y: Floats) -> QPolygonF:
    area = pg.functions.arrayToQPolygonF(x, y)
    area.append(QPointF(float(x[-1]), 0.0))
    area.append(QPointF(float(x[0]), 0.0))
    return QPolygonF(area)
