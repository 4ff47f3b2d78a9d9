"""One card among many: who it is, how busy, how full, how warm, and whether something slows it."""

from __future__ import annotations

import math
from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QEnterEvent, QKeyEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from desktop_app.ui.brush import LEFT, RIGHT, Typeset, write
from desktop_app.ui.charts.curves_item import cosmetic_pen
from desktop_app.ui.gpu.tile_reader import Bar, Spark, TileState, mark_text
from desktop_app.ui.texts import gpu
from desktop_app.ui.theme import CONTROL_RADIUS, PANEL_RADIUS, Theme, color

LEAST_LINES: Final = 13.5  # its width at least, in label lines
_PAD: Final = 0.8  # label lines
_ROW: Final = 1.3
_LOAD_ROW: Final = 2.2  # the load and its course
_BAR: Final = 0.42
_INSTANCE_ROW: Final = 2.0
_INSTANCE_GAP: Final = 0.5
_FULL: Final = 0.95  # of the memory, from which the bar is amber
_ARROWS: Final = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}


class CardTile(QAbstractButton):
    """Painted anew only when its state is another one. ``moved``: an arrow key, in columns and rows."""

    moved = Signal(object)

    def __init__(self, state: TileState, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("cardTile")
        self.setCheckable(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._theme = theme
        self._types = Typeset(self.font())
        self._state = state
        self._drawn_spark: object = None
        self._lines: list[QPolygonF] = []
        self.painted = 0  # for tests
        self._tell()

    @property
    def uuid(self) -> str:
        return self._state.uuid

    @property
    def state(self) -> TileState:
        return self._state

    def show_state(self, state: TileState) -> None:
        if state == self._state:
            return
        taller = len(state.instances) != len(self._state.instances)
        self._state = state
        self._tell()
        if taller:
            self.updateGeometry()
        self.update()

    def _tell(self) -> None:
        spoken = self._state.spoken()
        self.setAccessibleName(spoken)
        self.setToolTip(spoken.replace(", ", "\n"))

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    # -- size -----------------------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        line = self._types.line
        rows = 2 * _ROW + _LOAD_ROW + _ROW + _BAR + 0.5 + _ROW + _instance_rows(self._state)
        return QSize(round(LEAST_LINES * line), round((rows + 2 * _PAD) * line))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    # -- painting -------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        self.painted += 1
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_card(painter)
        line = self._types.line
        room = QRectF(self.rect()).adjusted(_PAD * line, _PAD * line, -_PAD * line, -_PAD * line)
        self._paint_names(painter, room)
        below = room.adjusted(0, 2 * _ROW * line, 0, 0)
        if self._state.lost:
            row = QRectF(below.left(), below.top(), below.width(), _LOAD_ROW * line)
            write(painter, row, self._state.lost, self._types.label, color(self._theme.danger))
        else:
            self._paint_values(painter, below)
        painter.end()

    def _paint_card(self, painter: QPainter) -> None:
        theme = self._theme
        chosen, focused = self.isChecked(), self.hasFocus()
        back = theme.hover if self.isDown() else theme.raised if self.underMouse() else theme.surface
        painter.setBrush(color(back))
        width = 2 if chosen or focused else 1
        edge = theme.accent if chosen or focused else theme.line
        painter.setPen(QPen(color(edge), width))
        inset = width / 2
        card = QRectF(self.rect()).adjusted(inset, inset, -inset, -inset)
        painter.drawRoundedRect(card, PANEL_RADIUS, PANEL_RADIUS)
        if focused:  # inside the line of the chosen one, so that both can be seen
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(color(theme.accent), 1))
            painter.drawRoundedRect(card.adjusted(3, 3, -3, -3), CONTROL_RADIUS, CONTROL_RADIUS)

    def _paint_names(self, painter: QPainter, room: QRectF) -> None:
        theme, types, state = self._theme, self._types, self._state
        line = types.line
        first = QRectF(room.left(), room.top(), room.width(), _ROW * line)
        strong = theme.muted if state.lost else theme.text
        mark_width = self._paint_mark(painter, first) if state.mark and not state.lost else 0.0
        index_width = types.title.width(state.index) + 0.6 * line
        write(painter, first, state.index, types.title, color(strong))
        write(painter, first.adjusted(index_width, 0, -mark_width, 0), state.name, types.label, color(strong))
        second = first.translated(0, _ROW * line)
        if state.simulated:
            word = gpu.simulated()
            width = types.tick.width(word)
            write(painter, second, word, types.tick, color(theme.warn), align=RIGHT)
            second.setRight(second.right() - width - 0.6 * line)
        write(painter, second, state.where, types.tick, color(theme.muted))

    def _paint_mark(self, painter: QPainter, row: QRectF) -> float:
        """A triangle at the right, with its word where there is room; the width that it takes."""
        types, line = self._types, self._types.line
        word = mark_text(self._state.mark)
        has_room = row.width() > 24 * line
        width = (types.tick.width(word) if has_room else 0.0) + 1.3 * line
        left, middle, half = row.right() - width, row.center().y(), 0.42 * line
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color(self._theme.warn))
        x = left + 0.7 * line
        painter.drawPolygon(
            QPolygonF([QPointF(x, middle - half), QPointF(x + half, middle + half), QPointF(x - half, middle + half)])
        )
        if has_room:
            words = QRectF(x + 0.6 * line, row.top(), row.right() - x, row.height())
            write(painter, words, word, types.tick, color(self._theme.warn))
        return width + (0.0 if has_room else 0.2 * line)

    def _paint_values(self, painter: QPainter, room: QRectF) -> None:
        theme, types, state = self._theme, self._types, self._state
        line = types.line
        load = QRectF(room.left(), room.top(), room.width(), _LOAD_ROW * line)
        width = max(types.figure.width(state.load), types.figure.width("100 %"))
        known = state.load[:1].isdigit()
        kind = types.figure if known else types.label
        write(painter, load, state.load, kind, color(theme.text if known else theme.muted))
        if known:
            self._paint_spark(painter, load.adjusted(width + 0.9 * line, 0.3 * line, 0, -0.3 * line))
        top = load.bottom()
        self._paint_bar(painter, QRectF(room.left(), top, room.width(), (_ROW + _BAR) * line), state.vram)
        top += (_ROW + _BAR + 0.5) * line
        row = QRectF(room.left(), top, room.width(), _ROW * line)
        hot = color(theme.warn) if state.hot else color(theme.text)
        warm = types.label.width(state.temperature) + 2
        write(painter, row, state.temperature, types.label, hot, align=RIGHT)
        write(painter, row.adjusted(0, 0, -warm - 0.5 * line, 0), state.power, types.label, color(theme.text))
        top += (_ROW + _INSTANCE_GAP) * line
        for bar in state.instances:
            self._paint_bar(painter, QRectF(room.left(), top, room.width(), (_ROW + _BAR) * line), bar)
            top += _INSTANCE_ROW * line

    def _paint_spark(self, painter: QPainter, room: QRectF) -> None:
        if room.width() < 12 or len(self._state.spark) < 2:
            return
        if self._drawn_spark != (self._state.spark, room.width(), room.height()):
            self._drawn_spark = self._state.spark, room.width(), room.height()
            self._lines = spark_lines(self._state.spark, room)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        painter.setPen(cosmetic_pen(color(self._theme.grid)))
        painter.drawLine(room.bottomLeft(), room.bottomRight())
        painter.setPen(cosmetic_pen(color(self._theme.utilization)))
        for line in self._lines:
            painter.drawPolyline(line)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=True)

    def _paint_bar(self, painter: QPainter, room: QRectF, bar: Bar) -> None:
        """Name and figures, and below them how full it is."""
        theme, types, line = self._theme, self._types, self._types.line
        words = QRectF(room.left(), room.top(), room.width(), _ROW * line)
        value = types.label.width(bar.text) + 2
        write(
            painter,
            words,
            bar.text,
            types.label,
            color(theme.text if bar.share is not None else theme.muted),
            align=RIGHT,
        )
        write(
            painter, words.adjusted(0, 0, -value - 0.4 * line, 0), bar.name, types.label, color(theme.muted), align=LEFT
        )
        track = QRectF(room.left(), words.bottom(), room.width(), _BAR * line)
        radius = track.height() / 2
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color(theme.tank_idle))
        painter.drawRoundedRect(track, radius, radius)
        if bar.share:
            track.setWidth(max(track.width() * bar.share, track.height()))
            painter.setBrush(color(theme.warn if bar.share >= _FULL else theme.device))
            painter.drawRoundedRect(track, radius, radius)

    # -- events ---------------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = _ARROWS.get(Qt.Key(event.key()))
        if step is not None:
            self.moved.emit(step)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.update()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._types = Typeset(self.font())
            self.updateGeometry()


def spark_lines(spark: Spark, room: QRectF) -> list[QPolygonF]:
    """One line for each stretch without gap."""
    lines = [QPolygonF()]
    for x, y in spark:
        if math.isnan(y):
            lines.append(QPolygonF())
        elif math.isfinite(y):
            lines[-1].append(QPointF(room.left() + x * room.width(), room.bottom() - y * room.height()))
    return [line for line in lines if line.size() > 1]


def _instance_rows(state: TileState) -> float:
    """Label lines that the MIG instances take."""
    return _INSTANCE_GAP + len(state.instances) * _INSTANCE_ROW - 0.2 if state.instances else 0.0
