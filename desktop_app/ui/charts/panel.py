"""One panel: a card with a head (name, colour key, values), figures at its sides, and the plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QGraphicsSceneResizeEvent, QStyleOptionGraphicsItem, QWidget

from desktop_app.ui.brush import CENTRE, LEFT, RIGHT, Typeset, write
from desktop_app.ui.charts.curves_item import Curves
from desktop_app.ui.charts.scales import Axis
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
class Key:
    """One entry of a head: a coloured dash and what it stands for now. ``token`` is a colour of the theme."""

    text: str
    token: str = "muted"  # noqa: S105  # a colour
    loud: bool = False  # the text itself is in the colour: a reason, not a value
    dash: bool = True


@dataclass(frozen=True, slots=True)
class SideFigure:
    """A figure at the right of the plot: of a right-hand axis or of a limit. ``y`` from 0 to 1."""

    y: float
    text: str
    token: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Head:
    title: str = ""
    keys: tuple[Key, ...] = ()
    hint: str = ""  # in the middle of an empty plot


class Panel(pg.GraphicsWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """Draws its own card, head and figures; the curves live in a view box of their own that clips them."""

    def __init__(self, theme: Theme, types: Typeset) -> None:
        super().__init__()
        self._theme = theme
        self._types = types
        self._head = Head()
        self._left = Axis(0.0, 1.0)
        self._right: tuple[SideFigure, ...] = ()
        self._key_widths: list[float] = []
        # Card, head and figures are kept as a picture: drawing them anew costs six times what the curves cost.
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)
        self.head_room = 0.0  # pixels at the right of the head that belong to somebody else
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
        self.update()

    def set_types(self, types: Typeset) -> None:
        self._types = types
        self._key_widths = []
        self._place_box()
        self.update()

    def set_view(self, left: float, right: float) -> None:
        """The window on the time axis, in seconds from the anchor."""
        if self.curves.set_view(left, right):
            self.box.setXRange(left, right, padding=0)

    def set_head(self, head: Head) -> None:
        if head == self._head:
            return
        if len(head.keys) != len(self._head.keys) or head.title != self._head.title:
            self._key_widths = []
        redraw_all = head.hint != self._head.hint
        self._head = head
        self.update() if redraw_all else self.update(QRectF(0, 0, self.width(), self._head_height()))

    def set_figures(self, left: Axis, right: tuple[SideFigure, ...] = ()) -> None:
        if left != self._left or right != self._right:
            self._left, self._right = left, right
            self.update()

    @property
    def head(self) -> Head:
        return self._head

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
        self._paint_head(painter)
        if self._head.hint:
            hint = self._head.hint
            write(painter, self.plot, hint, self._types.label, color(self._theme.muted), align=CENTRE)
        else:
            self._paint_figures(painter)

    def _paint_head(self, painter: QPainter) -> None:
        line, types = self._types.line, self._types
        height = self._head_height() - (0 if self._tight else 0.25 * line)
        left = 1.1 * line
        right = self.width() - 1.1 * line - self.head_room
        title = types.title
        write(painter, QRectF(left, 0, right - left, height), self._head.title, title, color(self._theme.text))
        x = left + title.width(self._head.title) + 1.3 * line
        for index, key in enumerate(self._head.keys):
            width = self._key_width(index, key)
            if x + width > right + 0.5:
                break  # what does not fit is left out whole: half a number is a wrong number
            self._paint_key(painter, QRectF(x, 0, width, height), key)
            x += width + 1.3 * line

    def _key_width(self, index: int, key: Key) -> float:
        """Its widest so far, so that entries do not move as digits change."""
        dash = 1.15 * self._types.line if key.dash else 0.0
        width = dash + self._types.label.width(key.text)
        if index >= len(self._key_widths):
            self._key_widths.append(width)
        self._key_widths[index] = max(self._key_widths[index], width)
        return self._key_widths[index]

    def _paint_key(self, painter: QPainter, rect: QRectF, key: Key) -> None:
        line = self._types.line
        value = color(getattr(self._theme, key.token))
        if key.dash:
            dash = QRectF(rect.left(), round(rect.center().y() - 1), round(0.75 * line), 3)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(value)
            painter.drawRoundedRect(dash, 1, 1)
            rect = rect.adjusted(1.15 * line, 0, 0, 0)
        text_color = value if key.loud else color(self._theme.muted)
        write(painter, rect.adjusted(0, 0, 2, 0), key.text, self._types.label, text_color)

    def _paint_figures(self, painter: QPainter) -> None:
        plot, line = self.plot, self._types.line
        faint = color(self._theme.faint)
        # Under a tight head the highest figure keeps below it.
        highest = plot.top() + (0.4 if self._tight else -0.1) * line
        for value, text in zip(self._left.ticks, self._left.labels, strict=True):
            y = max(highest, plot.bottom() - self._left.share(value) * plot.height())
            rect = QRectF(0.3 * line, y - line, plot.left() - 0.9 * line, 2 * line)
            write(painter, rect, text, self._types.tick, faint, align=RIGHT)
        for figure in self._right:
            y = max(highest, plot.bottom() - figure.y * plot.height())
            kind = self._types.tick_bold if figure.strong else self._types.tick
            rect = QRectF(plot.right() + 0.4 * line, y - line, self.width() - plot.right() - 0.6 * line, 2 * line)
            write(painter, rect, figure.text, kind, color(getattr(self._theme, figure.token)), align=LEFT)
