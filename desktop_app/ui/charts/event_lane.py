"""The lane of events under the panels, and the figures of the time axis."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyqtgraph as pg
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF
from PySide6.QtWidgets import (
    QGraphicsItem,
    QGraphicsObject,
    QGraphicsSceneResizeEvent,
    QStyleOptionGraphicsItem,
    QWidget,
)

from desktop_app.core.events import Event, EventKind, Level
from desktop_app.ui.brush import LEFT, Typeset, write
from desktop_app.ui.charts import texts
from desktop_app.ui.charts.time_axis import TimeTick, View
from desktop_app.ui.charts.time_figures import axis_room, paint_times
from desktop_app.ui.theme import PANEL_RADIUS, Theme, color

MARK_ROW: Final = 1.05  # middle of the row of marks, in label lines from the top
_MARK: Final = 0.5  # half the height of a mark, in label lines
_TICK_SPACING: Final = 0.5  # least distance of epoch ticks, in label lines
_HELD_EVENTS: Final = 20_000  # on the lane; older ordinary ones go first
_GOOD_KINDS: Final = frozenset({EventKind.CHECKPOINT, EventKind.BACK, EventKind.ALERT_CLEARED})
# Too many to be marks: epochs are ticks, validations are the steps of their curve.
_SILENT_KINDS: Final = frozenset({EventKind.EPOCH, EventKind.VALIDATION})
_LOUDNESS: Final = {Level.ERROR: 0, Level.WARNING: 1, Level.INFO: 2}


@dataclass(frozen=True, slots=True)
class Mark:
    """One event in place. ``label`` is where its word goes, ``None`` where there is no room for it."""

    event: Event
    x: float
    text: str
    label: QRectF | None


def mark_token(event: Event) -> str:
    """The theme's colour of an event."""
    if event.level is Level.ERROR or event.kind is EventKind.ALERT:
        return "danger"
    if event.level is Level.WARNING:
        return "warn"
    return "ok" if event.kind in _GOOD_KINDS else "muted"


def place_marks(
    events: Sequence[Event],
    *,
    x_of: Callable[[float], float],
    room: tuple[float, float],
    blocked: float,
    width_of: Callable[[str], float],
    line: float,
) -> tuple[Mark, ...]:
    """Marks of ``events``, which are in order of time. The loudest and newest get their word first.

    Of marks that would lie on each other the loudest is drawn. No word overlaps a mark or another word. ``room``:
    where words may lie, in pixels (left, right); none crosses ``blocked``, the line of now. A word goes right of its
    mark, else left of it.
    """
    half = _MARK * line
    shown = spread(events, x_of=x_of, least=half)
    taken = [(x_of(event.t_s) - half, x_of(event.t_s) + half) for event in shown]
    taken.append((blocked - 2, blocked + 2))
    labels: dict[int, QRectF] = {}
    for event in sorted(shown, key=lambda event: (_LOUDNESS[event.level], -event.seq)):
        x, width = x_of(event.t_s), width_of(texts.event(event))
        for left in (x + half + 0.3 * line, x - half - 0.3 * line - width):
            free = left >= room[0] and left + width <= room[1]
            if free and all(left + width < start or end < left for start, end in taken):
                labels[event.seq] = QRectF(left, 0, width, line)
                taken.append((left - 0.3 * line, left + width + 0.3 * line))
                break
    return tuple(Mark(event, x_of(event.t_s), texts.event(event), labels.get(event.seq)) for event in shown)


def spread(events: Sequence[Event], *, x_of: Callable[[float], float], least: float) -> list[Event]:
    """One event, the loudest, of those closer than ``least`` pixels: thousands of checkpoints are some eighty marks."""
    kept: list[Event] = []
    last_x = -math.inf
    for event in events:
        x = x_of(event.t_s)
        if x - last_x >= least:
            kept.append(event)
            last_x = x
        elif _LOUDNESS[event.level] < _LOUDNESS[kept[-1].level]:
            kept[-1] = event
    return kept


def thinned(positions: Sequence[float], least: float) -> list[float]:
    """Every n-th of evenly spread ``positions``, so that they are ``least`` apart; n is 1, 2, 5, 10, 20, …"""
    if len(positions) < 2:
        return list(positions)
    spacing = (positions[-1] - positions[0]) / (len(positions) - 1)
    for decade in range(8):
        for step in (1, 2, 5):
            every: int = step * 10**decade
            if spacing * every >= least:
                return list(positions[::every])
    return [positions[0]]


class EventLane(pg.GraphicsWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """One row of marks and one row of times. The card and the times stand still and are kept as a picture."""

    def __init__(self, theme: Theme, types: Typeset) -> None:
        super().__init__()
        self._theme = theme
        self._types = types
        self._times: list[float] = []
        self._events: list[Event] = []
        self._epochs: list[float] = []
        self._view: View | None = None
        self._ticks: tuple[TimeTick, ...] = ()
        self._placed: tuple[Mark, ...] | None = None
        self._marks = MarkItem(self)
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)

    @property
    def theme(self) -> Theme:
        return self._theme

    @property
    def types(self) -> Typeset:
        return self._types

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()
        self._marks.update()

    def set_types(self, types: Typeset) -> None:
        self._types = types
        self.retranslate()

    def retranslate(self) -> None:
        self.update()
        self._replace()

    def add(self, events: Sequence[Event]) -> None:
        """New events, by the queue's order; times may lie a little apart from it."""
        for event in events:
            if event.kind is EventKind.EPOCH:
                bisect.insort(self._epochs, event.t_s)
            elif event.kind not in _SILENT_KINDS:
                at = bisect.bisect_right(self._times, event.t_s)
                self._times.insert(at, event.t_s)
                self._events.insert(at, event)
        del self._epochs[:-_HELD_EVENTS]
        if len(self._events) > _HELD_EVENTS:
            kept = [event for event in self._events[:-_HELD_EVENTS] if event.kept] + self._events[-_HELD_EVENTS:]
            self._events = kept
            self._times = [event.t_s for event in kept]
        if events:
            self._replace()

    def set_view(self, view: View, ticks: tuple[TimeTick, ...]) -> None:
        if ticks != self._ticks or self._view is None or (view.left, view.right) != (self._view.left, self._view.right):
            self.update()
        if view != self._view:
            self._view = view
            self._replace()
        self._ticks = ticks

    def _replace(self) -> None:
        self._placed = None
        self._marks.update()

    def resizeEvent(self, event: QGraphicsSceneResizeEvent) -> None:
        super().resizeEvent(event)
        self._marks.set_size(self.size())
        self._replace()

    # -- geometry -------------------------------------------------------------------------------------------------

    @property
    def plot(self) -> QRectF:
        """The stretch that shares its x axis with the plots above."""
        return axis_room(self.size(), self._types)

    def _placing(self, view: View) -> Callable[[float], float]:
        """Session time to pixels of the lane."""
        plot = self.plot
        left, start_s, scale = plot.left(), view.anchor_s + view.left, plot.width() / view.width
        return lambda t_s: float(left + (t_s - start_s) * scale)

    def x_of(self, t_s: float) -> float:
        """Where a session time lies, in pixels of the lane."""
        return float(self.plot.left()) if self._view is None else self._placing(self._view)(t_s)

    def _visible(self, times: list[float], view: View) -> slice:
        start_s, end_s = view.anchor_s + view.left, view.anchor_s + view.right
        return slice(bisect.bisect_left(times, start_s), bisect.bisect_right(times, end_s))

    def marks(self) -> tuple[Mark, ...]:
        """The marks on show, in order of time."""
        view, line = self._view, self._types.line
        if view is None:
            return ()
        if self._placed is None:
            x_of = self._placing(view)
            self._placed = place_marks(
                self._events[self._visible(self._times, view)],
                x_of=x_of,
                room=(self.plot.left(), self.size().width() - 0.5 * line),
                blocked=x_of(view.anchor_s) if view.live else -line,
                width_of=self._types.tick.width,
                line=line,
            )
        return self._placed

    def epochs(self) -> list[float]:
        """Where epochs end, in pixels: as many as can be told apart, none under a mark or a word."""
        view, line = self._view, self._types.line
        if view is None:
            return []
        taken = [(mark.x - 0.6 * line, mark.x + 0.6 * line) for mark in self.marks()]
        taken += [(mark.label.left() - 3, mark.label.right() + 3) for mark in self.marks() if mark.label is not None]
        ends = self._epochs[self._visible(self._epochs, view)]
        # Pixels are proportional to seconds: thinned before they are placed.
        kept = thinned(ends, _TICK_SPACING * line / self.plot.width() * view.width)
        xs = map(self._placing(view), kept)
        return [x for x in xs if not any(start <= x <= end for start, end in taken)]

    def event_at(self, x: float) -> Event | None:
        """The event whose mark lies within reach of ``x`` (pixels of the lane)."""
        reach = 0.8 * self._types.line
        near = min(self.marks(), key=lambda mark: abs(mark.x - x), default=None)
        return near.event if near is not None and abs(near.x - x) <= reach else None

    # -- painting -------------------------------------------------------------------------------------------------

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        del option, widget
        theme, line, size = self._theme, self._types.line, self.size()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(color(theme.line), 1))
        painter.setBrush(color(theme.surface))
        painter.drawRoundedRect(QRectF(0.5, 0.5, size.width() - 1, size.height() - 1), PANEL_RADIUS, PANEL_RADIUS)
        title = QRectF(1.1 * line, (MARK_ROW - 1) * line, self.plot.left() - 1.3 * line, 2 * line)
        write(painter, title, texts.title("events"), self._types.tick, color(theme.muted), align=LEFT)
        if self._view is not None:
            middle = size.height() - 0.8 * line
            paint_times(painter, self._ticks, self._view, self.plot, middle, theme=theme, types=self._types)


class MarkItem(QGraphicsObject):
    """The moving part of the lane: ticks of epochs, marks and their words."""

    def __init__(self, lane: EventLane) -> None:
        super().__init__(lane)
        self._lane = lane
        self._size = QSizeF()

    def set_size(self, size: QSizeF) -> None:
        self.prepareGeometryChange()
        self._size = QSizeF(size)

    def boundingRect(self) -> QRectF:
        return QRectF(0, 0, self._size.width(), 2 * MARK_ROW * self._lane.types.line)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        del option, widget
        line = self._lane.types.line
        middle = MARK_ROW * line
        painter.setPen(QPen(color(self._lane.theme.faint), 1))
        # On pixel centres, so that the smooth pen stays one pixel wide.
        xs = [math.floor(x) + 0.5 for x in self._lane.epochs()]
        painter.drawLines([QLineF(x, middle - 0.45 * line, x, middle + 0.45 * line) for x in xs])
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for mark in self._lane.marks():
            self._paint_mark(painter, mark, middle)

    def _paint_mark(self, painter: QPainter, mark: Mark, middle: float) -> None:
        theme, types = self._lane.theme, self._lane.types
        half = _MARK * types.line
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color(getattr(theme, mark_token(mark.event))))
        painter.drawPolygon(mark_shape(mark.event, QPointF(mark.x, middle), half))
        if mark.label is not None:
            rect = QRectF(mark.label.left(), middle - 2 * half, mark.label.width() + 2, 4 * half)
            write(painter, rect, mark.text, types.tick, color(theme.muted), align=LEFT)


def mark_shape(event: Event, centre: QPointF, half: float) -> QPolygonF:
    """A diamond; a triangle for a warning and a square for an error, so that colour does not speak alone."""
    x, y = centre.x(), centre.y()
    if event.level is Level.ERROR:
        side = 0.8 * half
        return QPolygonF([QPointF(x + dx * side, y + dy * side) for dx, dy in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
    if event.level is Level.WARNING and event.kind is not EventKind.ALERT:
        return QPolygonF([QPointF(x, y - half), QPointF(x + half, y + 0.8 * half), QPointF(x - half, y + 0.8 * half)])
    return QPolygonF([QPointF(x + dx * half * 0.85, y + dy * half) for dx, dy in ((0, -1), (1, 0), (0, 1), (-1, 0))])
