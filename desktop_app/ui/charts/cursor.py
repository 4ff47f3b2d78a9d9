"""One cursor through all panels with a box of what was measured there, and the line of now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QGraphicsObject, QStyleOptionGraphicsItem, QWidget

from desktop_app.ui.brush import LEFT, RIGHT, Typeset, write
from desktop_app.ui.charts.curves_item import cosmetic_pen
from desktop_app.ui.theme import CONTROL_RADIUS, Theme, color

_NOW_Z: Final = 50
_CURSOR_Z: Final = 60
_BOX_Z: Final = 70
_ROW: Final = 1.32  # label lines
_PAD: Final = 0.75
_LEAST_WIDTH: Final = 11.5


class VerticalLine(QGraphicsObject):
    """A line through everything, one pixel wide; dotted for the cursor, full for now."""

    def __init__(self, *, dotted: bool) -> None:
        super().__init__()
        self._pen = QPen()
        self._dotted = dotted
        self._height = 0.0
        self.setZValue(_CURSOR_Z if dotted else _NOW_Z)
        self.setVisible(False)

    def set_color(self, value: str) -> None:
        self._pen = cosmetic_pen(color(value))
        if self._dotted:
            self._pen.setDashPattern([2, 3])
        self.update()

    def place(self, x: float, top: float, bottom: float) -> None:
        """In pixels of the scene."""
        if bottom - top != self._height:
            self.prepareGeometryChange()
            self._height = bottom - top
        self.setPos(QPointF(round(x) + 0.5, top))
        self.setVisible(True)

    def boundingRect(self) -> QRectF:
        return QRectF(-1, 0, 2, self._height)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        del option, widget
        painter.setPen(self._pen)
        painter.drawLine(QLineF(0, 0, 0, self._height))


@dataclass(frozen=True, slots=True)
class ReadOut:
    """What the box says: two words on top, then names and values. ``token``: the colour of the curve."""

    left: str
    right: str
    rows: tuple[tuple[str, str, str], ...] = ()  # (name, value, token)


class ReadOutBox(QGraphicsObject):
    """The box beside the cursor."""

    def __init__(self, theme: Theme, types: Typeset) -> None:
        super().__init__()
        self._theme = theme
        self._types = types
        self._said = ReadOut("", "")
        self._size = QRectF()
        self.setZValue(_BOX_Z)
        self.setVisible(False)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def set_types(self, types: Typeset) -> None:
        self._types = types
        self.say(self._said)

    @property
    def said(self) -> ReadOut:
        return self._said

    def say(self, said: ReadOut) -> None:
        self._said = said
        size = self._measure()
        if size != self._size:
            self.prepareGeometryChange()
            self._size = size
        self.update()

    def _measure(self) -> QRectF:
        line, kind = self._types.line, self._types.tick
        pairs = [(self._said.left, self._said.right), *((name, value) for name, value, _ in self._said.rows)]
        width = max(kind.width(left) + kind.width(right) for left, right in pairs) + 3.2 * line
        # Whole lines wide, so that the box does not tremble with its digits.
        width = max(_LEAST_WIDTH * line, line * round(width / line + 0.5))
        return QRectF(0, 0, width, (len(pairs) * _ROW + 2 * _PAD - 0.2) * line)

    def place(self, x: float, top: float, bounds: QRectF) -> None:
        """Right of the cursor at ``x``, or left of it where the scene ends."""
        gap = 0.7 * self._types.line
        left = x + gap
        if left + self._size.width() > bounds.right():
            left = x - gap - self._size.width()
        lowest = max(bounds.top(), bounds.bottom() - self._size.height())
        self.setPos(QPointF(round(max(left, bounds.left())), round(min(top, lowest))))
        self.setVisible(True)

    def boundingRect(self) -> QRectF:
        return self._size

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        del option, widget
        theme, line = self._theme, self._types.line
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(color(theme.line), 1))
        painter.setBrush(color(theme.raised))
        painter.drawRoundedRect(self._size.adjusted(0.5, 0.5, -0.5, -0.5), CONTROL_RADIUS, CONTROL_RADIUS)
        self._pair(painter, 0, self._said.left, self._said.right)
        for index, (name, value, token) in enumerate(self._said.rows, start=1):
            row = self._row(index)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color(getattr(theme, token)))
            painter.drawRoundedRect(QRectF(row.left(), round(row.center().y() - 1), 0.6 * line, 3), 1, 1)
            self._pair(painter, index, name, value, indent=0.95 * line)

    def _row(self, index: int) -> QRectF:
        line = self._types.line
        top = (_PAD + index * _ROW) * line - 0.1 * line
        return QRectF(0.8 * line, top, self._size.width() - 1.6 * line, _ROW * line)

    def _pair(self, painter: QPainter, index: int, left: str, right: str, *, indent: float = 0.0) -> None:
        kind, row = self._types.tick, self._row(index)
        write(painter, row.adjusted(indent, 0, 0, 0), left, kind, color(self._theme.muted), align=LEFT)
        write(painter, row, right, kind, color(self._theme.text), align=RIGHT)
