"""One panel: a card with a head (name, colour key, values), figures at its sides, and the plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyqtgraph as pg
from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QGraphicsSceneResizeEvent, QStyleOptionGraphicsItem, QWidget

from desktop_app.ui.brush import CENTRE, LEFT, RIGHT, Typeset, write
from desktop_app.ui.charts.curves_item import Curves
from desktop_app.ui.charts.head_item import Head, HeadItem
from desktop_app.ui.charts.scales import Axis
from desktop_app.ui.charts.shades import Look
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.theme import PANEL_RADIUS, Theme, color

# In label lines: gutters for the figures left and right of the plot, the head above and the air below it.
LEFT_GUTTER: Final = 4.0
RIGHT_GUTTER: Final = 3.2
_HEAD: Final = 2.05
_TIGHT_HEAD: Final = 1.55
_FOOT: Final = 0.8
_TIGHT_FOOT: Final = 0.5
_TIGHT_HEIGHT: Final = 5.4  # a panel lower than this many lines has the tight head


@dataclass(frozen=True, slots=True)
class SideFigure:
    """A figure at the right of the plot: of a right-hand axis or of a limit. ``y`` from 0 to 1."""

    y: float
    text: str
    token: str
    strong: bool = False


class Panel(pg.GraphicsWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """Draws its own card, head and figures; the curves live in a view box of their own that clips them."""

    def __init__(self, theme: Theme, types: Typeset) -> None:
        super().__init__()
        self._theme = theme
        self._types = types
        self._left = Axis(0.0, 1.0)
        self._right: tuple[SideFigure, ...] = ()
        self._named: frozenset[Throttle] = frozenset()
        self.head_item = HeadItem(theme, types)  # in the scene on its own: it lies over the lines through all panels
        # Card and figures are kept as a picture: drawing them anew costs six times what the curves cost.
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)
        self.box = pg.ViewBox(parent=self, border=None, enableMouse=False, enableMenu=False, defaultPadding=0.0)
        self.box.disableAutoRange()
        self.box.setYRange(0.0, 1.0, padding=0)
        self.curves = Curves()
        self.box.addItem(self.curves, ignoreBounds=True)
        self.set_theme(theme)

    # -- what the stack calls -------------------------------------------------------------------------------------

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.curves.set_grid_color(color(theme.grid))
        self._dress_shades()
        self.head_item.set_look(theme, self._types)
        self.update()

    def set_types(self, types: Typeset) -> None:
        self._types = types
        self.head_item.set_look(self._theme, types)
        self._dress_shades()
        self._place_box()
        self.update()

    def name_shades(self, named: frozenset[Throttle]) -> None:
        """The reasons that are written into their shades in this panel."""
        self._named = named
        self._dress_shades()

    def _dress_shades(self) -> None:
        self.curves.set_look(Look(self._theme, self._types, self._named))

    def set_view(self, left: float, right: float) -> None:
        """The window on the time axis, in seconds from the anchor."""
        if self.curves.set_view(left, right):
            self.box.setXRange(left, right, padding=0)

    def set_head(self, head: Head) -> None:
        if head.hint != self.head_item.head.hint:
            self.update()
        self.head_item.set_head(head)

    def set_figures(self, left: Axis, right: tuple[SideFigure, ...] = ()) -> None:
        if left != self._left or right != self._right:
            self._left, self._right = left, right
            self.update()

    @property
    def head(self) -> Head:
        return self.head_item.head

    @property
    def left_axis(self) -> Axis:
        return self._left

    @property
    def plot(self) -> QRectF:
        """The plot's rectangle within the panel, in pixels."""
        rect: QRectF = self.box.geometry()
        return rect

    def width(self) -> float:
        return float(self.size().width())

    def height(self) -> float:
        return float(self.size().height())

    # -- geometry -------------------------------------------------------------------------------------------------

    def resizeEvent(self, event: QGraphicsSceneResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_box()

    def _place_box(self) -> None:
        line = self._types.line
        left, right = round(LEFT_GUTTER * line), round(RIGHT_GUTTER * line)
        top, foot = self._head_height(), round((_TIGHT_FOOT if self._tight else _FOOT) * line)
        width = max(1.0, self.width() - left - right)
        self.box.setGeometry(QRectF(left, top, width, max(1.0, self.height() - top - foot)))
        self.head_item.set_size(QSizeF(self.width(), top - (0 if self._tight else 0.25 * line)))

    @property
    def _tight(self) -> bool:
        return self.height() < _TIGHT_HEIGHT * self._types.line

    def _head_height(self) -> int:
        return round((_TIGHT_HEAD if self._tight else _HEAD) * self._types.line)

    # -- painting -------------------------------------------------------------------------------------------------

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        del option, widget
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(color(self._theme.line), 1))
        painter.setBrush(color(self._theme.surface))
        painter.drawRoundedRect(QRectF(0.5, 0.5, self.width() - 1, self.height() - 1), PANEL_RADIUS, PANEL_RADIUS)
        hint = self.head_item.head.hint
        if hint:
            write(painter, self.plot, hint, self._types.label, color(self._theme.muted), align=CENTRE)
        else:
            self._paint_figures(painter)

    def _paint_figures(self, painter: QPainter) -> None:
        plot, line = self.plot, self._types.line
        faint = color(self._theme.faint)
        # Under a tight head the highest figure keeps below it.
        highest = plot.top() + (0.4 if self._tight else -0.1) * line
        for value, text in zip(self._left.ticks, self._left.labels, strict=True):
            y = max(highest, plot.bottom() - self._left.share(value) * plot.height())
            rect = QRectF(0.3 * line, y - line, plot.left() - 0.9 * line, 2 * line)
            write(painter, rect, text, self._types.tick, faint, align=RIGHT)
        highest = plot.top() + 0.4 * line  # the presets hang a little into the first panel
        for figure in self._right:
            y = max(highest, plot.bottom() - figure.y * plot.height())
            kind = self._types.tick_bold if figure.strong else self._types.tick
            rect = QRectF(plot.right() + 0.4 * line, y - line, self.width() - plot.right() - 0.6 * line, 2 * line)
            write(painter, rect, figure.text, kind, color(getattr(self._theme, figure.token)), align=LEFT)
