"""Paints a scene: phases behind, the picture, lines over it, and what is said of the block under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from desktop_app.core.units import GIB, MIB
from desktop_app.ui.brush import CENTRE, LEFT, RIGHT, Typeset, write
from desktop_app.ui.charts.scales import figures_for, plain, ticks_within
from desktop_app.ui.memory.picture import TimelinePicture
from desktop_app.ui.memory.scene import Scene
from desktop_app.ui.memory.timeline_layout import Layout
from desktop_app.ui.texts import memory as texts
from desktop_app.ui.theme import CONTROL_RADIUS, Theme, color

PHASE_STRIP: Final = 1.5  # label lines
_PHASE_ALPHA: Final = 0.55
_LINE_ALPHA: Final = 0.9
_PAD: Final = 0.7
_ROW: Final = 1.35
Row = tuple[str, str, QColor | None]


def room_color(theme: Theme, layout: Layout, room_bytes: int) -> str:
    """Of the line of what the card has: red where the step reserves more."""
    return theme.danger if layout.top_bytes > room_bytes else theme.text


class CanvasPainter:
    """One painting of one scene."""

    def __init__(self, painter: QPainter, *, scene: Scene, theme: Theme, types: Typeset) -> None:
        self._painter = painter
        self._scene = scene
        self._theme = theme
        self._types = types

    def paint(self, picture: TimelinePicture) -> None:
        self._phases()
        self._grid()
        painter, plot = self._painter, self._scene.plot
        painter.save()
        painter.setClipRect(plot)
        picture.paint(painter, plot, self._scene.extent)
        self._phase_lines()
        self._reserved()
        self._room()
        self._outline(self._scene.hovered, self._theme.text, 1)
        self._outline(self._scene.pinned, self._theme.text, 2)
        self._cursor()
        painter.restore()
        self._peak()
        self._phase_names()
        painter.setPen(color(self._theme.line))
        painter.drawLine(QLineF(plot.left(), plot.bottom() + 0.5, plot.right(), plot.bottom() + 0.5))

    # -- behind ---------------------------------------------------------------------------------------------------

    def _phases(self) -> None:
        """Every second phase is shaded, from its name down to the ground."""
        strip = PHASE_STRIP * self._types.line
        for place, (_, rect) in enumerate(self._scene.shown_phases()):
            if place % 2 == 0:
                self._painter.fillRect(rect.adjusted(0, -strip, 0, 0), color(self._theme.raised, _PHASE_ALPHA))

    def _phase_names(self) -> None:
        strip = PHASE_STRIP * self._types.line
        for span, rect in self._scene.shown_phases():
            name = texts.phase_name(span.phase)
            place = QRectF(rect.left() + 1, rect.top() - strip, rect.width() - 2, strip)
            if place.width() >= 2 * self._types.line:
                write(self._painter, place, name, self._types.tick, color(self._theme.muted), align=CENTRE)

    def _phase_lines(self) -> None:
        self._painter.setPen(self._pen(color(self._theme.line)))
        for _, rect in self._scene.shown_phases()[1:]:
            x = round(rect.left()) + 0.5
            self._painter.drawLine(QLineF(x, rect.top(), x, rect.bottom()))

    def _grid(self) -> None:
        scene, line = self._scene, self._types.line
        low, high = scene.stretch.low, scene.stretch.high
        unit, name = (GIB, "GiB") if high >= GIB else (MIB, "MiB")
        at_most = figures_for(scene.plot.height(), line)
        ticks = ticks_within(low / unit, high / unit, at_most=at_most)
        step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
        figure = plain(step)
        for tick in ticks:
            y = round(scene.y(tick * unit)) + 0.5
            self._painter.setPen(self._pen(color(self._theme.grid)))
            self._painter.drawLine(QLineF(scene.plot.left(), y, scene.plot.right(), y))
            if y - scene.plot.top() < 0.5 * line:
                continue  # the unit stands there
            rect = QRectF(0, y - line, scene.plot.left() - 0.6 * line, 2 * line)
            write(self._painter, rect, figure(tick), self._types.tick, color(self._theme.faint), align=RIGHT)
        corner = QRectF(0, scene.plot.top() - PHASE_STRIP * line, scene.plot.left() - 0.6 * line, PHASE_STRIP * line)
        write(self._painter, corner, name, self._types.tick, color(self._theme.faint), align=RIGHT)

    # -- lines ----------------------------------------------------------------------------------------------------

    def _reserved(self) -> None:
        scene = self._scene
        reserved = scene.layout.timeline.reserved_bytes
        if not len(reserved):
            return
        heights = np.asarray(reserved)[scene.column_events]
        corners = np.flatnonzero(np.diff(heights)) + 1
        path = QPolygonF()
        begin = 0
        for corner in (*corners.tolist(), len(heights)):
            y = round(scene.y(float(heights[begin]))) + 0.5
            path.append(QPointF(scene.column_x(begin), y))
            path.append(QPointF(scene.column_x(corner), y))
            begin = corner
        self._painter.setPen(self._pen(color(self._theme.validation, _LINE_ALPHA)))
        self._painter.drawPolyline(path)

    def _room(self) -> None:
        room, scene = self._scene.room_bytes, self._scene
        if room is None or not scene.stretch.low <= room <= scene.stretch.high:
            return
        y = round(scene.y(room)) + 0.5
        self._painter.setPen(self._pen(color(room_color(self._theme, scene.layout, room))))
        self._painter.drawLine(QLineF(scene.plot.left(), y, scene.plot.right(), y))

    def _peak(self) -> None:
        """A small mark on the highest point, with its number where there is room above it."""
        scene, line = self._scene, self._types.line
        timeline = scene.layout.timeline
        event = scene.layout.peak_event
        live = int(timeline.live_bytes[event])
        x, y = scene.x(event + 0.5), scene.y(live)
        if not scene.plot.left() <= x <= scene.plot.right() or not scene.plot.top() <= y <= scene.plot.bottom():
            return
        side = 0.32 * line
        self._painter.setPen(Qt.PenStyle.NoPen)
        self._painter.setBrush(color(self._theme.text))
        tip = QPolygonF(
            [QPointF(x, y - 2), QPointF(x - side, y - 2 - 1.4 * side), QPointF(x + side, y - 2 - 1.4 * side)]
        )
        self._painter.drawPolygon(tip)
        text = texts.peak_mark(live)
        width = self._types.tick_bold.width(text) + 2
        left = x + 1.4 * side
        if left + width > scene.plot.right():
            left = x - 1.4 * side - width
        rect = QRectF(left, y - 4 - 1.2 * line, width, 1.3 * line)
        if rect.top() < scene.plot.top() - 0.2 * line:
            return
        self._painter.fillRect(rect.adjusted(-2, 1, 2, -1), color(self._theme.surface, 0.75))
        write(self._painter, rect, text, self._types.tick_bold, color(self._theme.text))

    def _outline(self, block: int | None, value: str, width: int) -> None:
        if block is None:
            return
        scene = self._scene
        first, bottoms = scene.layout.outline(block, scene.extent)
        if not len(bottoms):
            return
        size = float(scene.layout.timeline.size_bytes[block])
        corners = np.concatenate(([0], np.flatnonzero(np.diff(bottoms)) + 1, [len(bottoms)]))
        lower = [
            QPointF(scene.column_x(first + column), scene.y(float(bottoms[begin])))
            for begin, end in pairwise(corners.tolist())
            for column in (begin, end)
        ]
        raised = size / scene.stretch.height * scene.plot.height()
        upper = [QPointF(point.x(), point.y() - max(raised, 1.0)) for point in reversed(lower)]
        self._painter.setPen(self._pen(color(value), width))
        self._painter.setBrush(color(value, 0.16))
        self._painter.drawPolygon(QPolygonF([*lower, *upper]))

    def _cursor(self) -> None:
        cursor, scene = self._scene.cursor, self._scene
        if cursor is None:
            return
        pen = self._pen(color(self._theme.muted))
        pen.setDashPattern([2, 3])
        self._painter.setPen(pen)
        x = round(scene.x(cursor.event + 0.5)) + 0.5
        self._painter.drawLine(QLineF(x, scene.plot.top(), x, scene.plot.bottom()))

    def _pen(self, value: QColor, width: int = 1) -> QPen:
        """So many logical pixels: a cosmetic pen would be half as wide at scale 2."""
        pen = QPen(value, width)
        pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        return pen

    # -- the box --------------------------------------------------------------------------------------------------

    def box(self, title: str, rows: Sequence[Row], near: QPointF) -> None:
        """Title and rows of (name, value, colour) beside ``near``, where it hides least."""
        line, scene = self._types.line, self._scene
        widest = 0.66 * scene.plot.width()
        kind, bold = self._types.tick, self._types.tick_bold
        names = max(kind.width(name) for name, _, _ in rows)
        values = max(kind.width(value) + (line if tint else 0) for _, value, tint in rows)
        width = min(max(bold.width(title), names + values + 1.6 * line) + 2 * _PAD * line + 2, widest)
        height = (_ROW * (len(rows) + 1) + 2 * _PAD - 0.2) * line
        left = near.x() + line
        if left + width > scene.plot.right():
            left = max(scene.plot.left(), near.x() - line - width)
        top = min(max(near.y() - height / 2, scene.plot.top()), max(scene.plot.top(), scene.plot.bottom() - height))
        rect = QRectF(round(left) + 0.5, round(top) + 0.5, round(width), round(height))
        painter = self._painter
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(color(self._theme.line))
        painter.setBrush(color(self._theme.raised))
        painter.drawRoundedRect(rect, CONTROL_RADIUS, CONTROL_RADIUS)
        inner = rect.adjusted(_PAD * line, _PAD * line, -_PAD * line, -_PAD * line)
        row = QRectF(inner.left(), inner.top() - 0.1 * line, inner.width(), _ROW * line)
        write(painter, row, bold.shortened_middle(title, inner.width()), bold, color(self._theme.text))
        for name, value, tint in rows:
            row = row.translated(0, _ROW * line)
            write(painter, row, name, kind, color(self._theme.muted), align=LEFT)
            room = row.adjusted(names + 0.8 * line, 0, 0, 0)
            shown = kind.shortened_middle(value, room.width() - (line if tint else 0))
            write(painter, room, shown, kind, color(self._theme.text), align=RIGHT)
            if tint is not None:
                swatch = QRectF(
                    room.right() - kind.width(shown) - line, row.center().y() - 0.35 * line, 0.7 * line, 0.7 * line
                )
                painter.setPen(color(self._theme.line))
                painter.setBrush(tint)
                painter.drawRoundedRect(swatch, 2, 2)
