"""Draws one state of the tank into a layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from desktop_app.services.facade import EstimateState
from desktop_app.ui import tank_texts as texts
from desktop_app.ui.brush import CENTRE, LEFT, RIGHT, Type, Typeset, write
from desktop_app.ui.tank_layout import Density, Row, TankLayout
from desktop_app.ui.tank_model import Segment, TankSource, TankState
from desktop_app.ui.theme import PANEL_RADIUS, Theme, color, mix

# An estimate within 10 % of what is measured, in either direction, is good.
_CLOSE_SHARE: Final = 0.10
_ESTIMATE_STRENGTH: Final = 0.62  # estimated water is paler than measured water
_BAND_ALPHA: Final = 0.25
# The zone above the brim is at least this share of the capacity high, so that a hair's breadth over looks like one.
_LEAST_OVER_SHARE: Final = 0.06
_SWATCH: Final = 10 / 14  # of a label line


def segment_color(theme: Theme, name: Segment) -> str:
    """The token of one layer."""
    value: str = getattr(theme, f"tank_{name.value}")
    return value


def flood_color(theme: Theme, state: TankState) -> str:
    """Red over the brim, amber when only its upper end is, calm below."""
    if not state.overflows:
        return theme.ok
    low = state.flood_low_bytes or 0
    return theme.danger if low > (state.capacity_bytes or 0) else theme.warn


def verdict_color(theme: Theme, state: TankState) -> str:
    """Of the line that compares: how good the estimate was, or whether the run will fit."""
    share, what = state.error_share, state.said
    if share is not None:
        if what.p95_bytes is not None and (state.measured_bytes or 0) > what.p95_bytes:
            return theme.danger
        return theme.ok if abs(share) <= _CLOSE_SHARE else theme.warn
    if what.state is EstimateState.FAILED:
        return theme.danger
    if what.p50_bytes is None or state.capacity_bytes is None or what.state is EstimateState.WORKING:
        return theme.muted
    if what.p50_bytes > state.capacity_bytes:
        return theme.danger
    fits = what.p95_bytes is not None and what.p95_bytes <= state.capacity_bytes
    return theme.ok if fits else theme.warn


def segment_rects(layout: TankLayout, shares: Mapping[Segment, float]) -> list[tuple[Segment, QRectF]]:
    """Layers from the bottom up on whole pixels; one that exists is at least one pixel high."""
    inner = layout.tank.adjusted(2, 2, -2, -2)
    rects = []
    below = 0.0
    bottom = float(round(inner.bottom()))
    for name in Segment:
        share = shares.get(name, 0.0)
        if share <= 0:
            continue
        below += share
        top = min(bottom - 1, round(inner.bottom() - below * inner.height()))
        rects.append((name, QRectF(inner.left(), top, inner.width(), bottom - top)))
        bottom = top
    return rects


class TankPainter:
    """One painting of one state. ``shares``: the levels on show, as shares of the capacity."""

    def __init__(
        self,
        painter: QPainter,
        *,
        theme: Theme,
        types: Typeset,
        layout: TankLayout,
        state: TankState,
        shares: Mapping[Segment, float],
    ) -> None:
        self._painter = painter
        self._theme = theme
        self._types = types
        self._layout = layout
        self._state = state
        self._shares = shares

    def paint(self) -> None:
        self._title()
        self._body()
        if self._state.source is TankSource.NO_CARD:
            self._write(self._layout.tank.adjusted(4, 0, -4, 0), texts.no_card(self._state), align=CENTRE)
            return
        self._brim()
        self._flood()
        self._legend()
        if self._layout.card is not None:
            self._card(self._layout.card)

    def _write(
        self, rect: QRectF, text: str, kind: Type | None = None, value: str = "", *, align: Qt.AlignmentFlag = LEFT
    ) -> None:
        kind = kind or self._types.label
        write(self._painter, rect, text, kind, color(value or self._theme.muted), align=align)

    def _title(self) -> None:
        text = texts.title(self._state)
        rect = QRectF(self._layout.title.x(), 0, self._layout.column.right(), self._layout.scale * 1.3)
        self._write(rect, text, self._types.label_bold)

    # -- the tank -------------------------------------------------------------------------------------------------

    def _body(self) -> None:
        painter, tank = self._painter, self._layout.tank
        outline = QPen(color(self._theme.line), 1)
        if self._state.source is TankSource.NO_CARD:
            outline.setStyle(Qt.PenStyle.DashLine)
        painter.setPen(outline)
        painter.setBrush(color(self._theme.surface))
        painter.drawRoundedRect(tank.adjusted(0.5, 0.5, -0.5, -0.5), PANEL_RADIUS, PANEL_RADIUS)
        clip = QPainterPath()
        clip.addRoundedRect(tank.adjusted(2, 2, -2, -2), PANEL_RADIUS - 1, PANEL_RADIUS - 1)
        painter.save()
        painter.setClipPath(clip, Qt.ClipOperation.IntersectClip)
        for name, rect in segment_rects(self._layout, self._shares):
            painter.fillRect(rect, self._water(name))
            painter.fillRect(QRectF(rect.left(), rect.top(), rect.width(), 1), color(self._theme.window))
        painter.restore()

    def _water(self, name: Segment) -> QColor:
        value = segment_color(self._theme, name)
        if self._state.source is TankSource.ESTIMATE and name is not Segment.OTHERS:
            return mix(value, self._theme.surface, _ESTIMATE_STRENGTH)
        return color(value)

    def _brim(self) -> None:
        zone, tank, line = self._layout.flood_zone, self._layout.tank, self._layout.scale
        self._painter.setPen(QPen(color(self._theme.text), 2))
        self._painter.drawLine(QLineF(zone.left() + 1, tank.top(), zone.right() - 1, tank.top()))
        text = texts.amount(self._state.capacity_bytes)
        rect = QRectF(self._layout.column.left(), tank.top() + 0.45 * line, self._layout.column.width(), 1.2 * line)
        self._write(rect, f"{texts.brim()}  {text}", self._types.label_bold, self._theme.text)

    def _flood(self) -> None:
        low, high, capacity = self._state.flood_low_bytes, self._state.flood_high_bytes, self._state.capacity_bytes
        if low is None or high is None or not capacity:
            return
        value = flood_color(self._theme, self._state)
        band = self._flood_band(low, high, capacity)
        middle = round(min(max(self._flood_y(low, high, capacity), band.top() + 3), band.bottom() - 3))
        painter = self._painter
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color(value, _BAND_ALPHA))
        painter.drawRoundedRect(band, 4, 4)
        painter.setPen(QPen(color(value), 2))
        painter.drawLine(QLineF(band.left() + 1, middle, band.right() - 1, middle))
        self._flood_label(band, value)

    def _flood_band(self, low: int, high: int, capacity: int) -> QRectF:
        """P50 to P95 across the tank; what is over the brim is squeezed into the zone above it."""
        zone, brim = self._layout.flood_zone, self._layout.tank.top()
        top, bottom = self._flood_y(high, high, capacity), self._flood_y(low, high, capacity)
        least = (1.0 if self._state.overflows else 0.6) * self._layout.scale
        if bottom - top < least:
            middle = (top + bottom) / 2
            top, bottom = middle - least / 2, middle + least / 2
        if low > capacity:  # it stands clear of the brim's line
            bottom = min(max(bottom, zone.top() + least), brim - 3)
            top = min(max(top, zone.top()), bottom - least)
        return QRectF(zone.left(), round(top), zone.width(), round(bottom) - round(top))

    def _flood_y(self, size_bytes: int, high_bytes: int, capacity: int) -> float:
        tank, zone = self._layout.tank, self._layout.flood_zone
        if size_bytes <= capacity:
            return tank.bottom() - size_bytes / capacity * tank.height()
        over = max(high_bytes - capacity, _LEAST_OVER_SHARE * capacity)
        return tank.top() - (size_bytes - capacity) / over * zone.height()

    def _flood_label(self, band: QRectF, value: str) -> None:
        layout, line = self._layout, self._layout.scale
        column = layout.column
        kind = self._types.label_bold
        text = next(
            (known for known in texts.flood_labels(self._state) if kind.width(known) <= column.width()),
            texts.flood_range(self._state),
        )
        if self._state.overflows:
            y = min(band.center().y(), layout.tank.top() - 0.55 * line) - 0.65 * line
            self._write(QRectF(column.left(), y, column.width(), 1.3 * line), text, kind, value)
            return
        y = layout.tank.top() + 1.75 * line
        self._write(QRectF(column.left(), y, column.width(), 1.2 * line), text, kind, value)

    # -- the legend -----------------------------------------------------------------------------------------------

    def _legend(self) -> None:
        for row, rect in self._layout.rows:
            self._row(row, rect)
        free = self._layout.free
        if free is None:
            return
        amount = texts.amount(self._state.free_bytes)
        if free.height() < 2 * self._layout.scale:
            self._write(free, texts.free_now(self._state))
            self._write(free, amount, self._types.label_bold, self._theme.text, align=RIGHT)
            return
        line = self._layout.scale
        self._write(QRectF(free.left(), free.top(), free.width(), 1.2 * line), texts.free_now(self._state))
        figure = QRectF(free.left(), free.top() + 1.2 * line, free.width(), 1.7 * line)
        self._write(figure, amount, self._types.figure, self._theme.text)

    def _row(self, row: Row, rect: QRectF) -> None:
        line = self._layout.scale
        side = round(_SWATCH * line)
        first = QRectF(rect.left(), rect.top(), rect.width(), 1.2 * line)
        self._swatch(row, QRectF(first.left(), round(first.center().y() - side / 2), side, side))
        name = first.adjusted(1.15 * line, 0, 0, 0)
        quiet = row.segments[0] is Segment.IDLE or row.size_bytes is None
        name_color = self._theme.muted if quiet else self._theme.text
        amount = texts.amount(row.size_bytes)
        if self._layout.density is Density.FULL:
            self._write(name, texts.row_name(row.segments), None, name_color)
            self._write(name.translated(0, line), amount, self._types.label)
            return
        self._write(name, amount, self._types.label, align=RIGHT)
        room = self._types.label.width(amount) + 0.6 * line
        self._write(name.adjusted(0, 0, -room, 0), texts.row_name(row.segments), None, name_color)

    def _swatch(self, row: Row, square: QRectF) -> None:
        # The line around it: idle water is nearly the colour of the window.
        self._painter.setPen(QPen(color(self._theme.line), 1))
        self._painter.setBrush(self._water(row.segments[len(row.segments) // 2]))
        self._painter.drawRoundedRect(square.adjusted(0.5, 0.5, -0.5, -0.5), 2, 2)

    # -- the card below -------------------------------------------------------------------------------------------

    def _card(self, card: QRectF) -> None:
        painter, theme, line = self._painter, self._theme, self._layout.scale
        painter.setPen(QPen(color(theme.line), 1))
        painter.setBrush(color(theme.surface))
        painter.drawRoundedRect(card, PANEL_RADIUS, PANEL_RADIUS)
        inner = card.adjusted(line, 0.85 * line, -line, -0.7 * line)
        if self._layout.small_card:
            self._small_card(card.adjusted(0.7 * line, 0.3 * line, -0.7 * line, -0.3 * line))
            return
        self._write(self._line(inner, 0.0), texts.heading(self._state))
        self._said(self._line(inner, 1.55))
        verdict = texts.verdict_line(self._state)
        kind = self._types.body if self._types.body.width(verdict) <= inner.width() else self._types.label
        self._write(self._line(inner, 3.2), verdict, kind, verdict_color(self._theme, self._state))
        last = self._line(inner, 5.1)
        self._write(last, texts.largest_batch_value(self._state.said), self._types.figure, theme.text, align=RIGHT)
        room = self._types.figure.width(texts.largest_batch_value(self._state.said)) + line
        self._write(last.adjusted(0, 0, -room, 0), texts.largest_batch())

    def _line(self, inner: QRectF, lines: float) -> QRectF:
        line = self._layout.scale
        return QRectF(inner.left(), inner.top() + lines * line, inner.width(), 1.45 * line)

    def _said(self, rect: QRectF) -> None:
        """The number large, its range after it."""
        kind, what = self._types.figure, self._state.said
        number, around = texts.said(what), texts.said_range(what)
        unknown = what.p50_bytes is None or what.state is EstimateState.WORKING
        self._write(rect, number, kind, self._theme.muted if unknown else self._theme.text)
        offset = kind.width(number) + 0.7 * self._layout.scale
        self._write(rect.adjusted(offset, 1, 0, 1), around, self._types.label)

    def _small_card(self, inner: QRectF) -> None:
        line = self._layout.scale
        upper = QRectF(inner.left(), inner.top(), inner.width(), inner.height() / 2)
        lower = upper.translated(0, upper.height())
        number = texts.said(self._state.said)
        self._write(upper, number, self._types.label_bold, self._theme.text, align=RIGHT)
        upper.setRight(upper.right() - self._types.label_bold.width(number) - 0.6 * line)
        self._write(upper, texts.short_heading())
        batch = texts.largest_batch_value(self._state.said)
        self._write(lower, batch, self._types.label_bold, self._theme.text, align=RIGHT)
        lower.setRight(lower.right() - self._types.label_bold.width(batch) - 0.6 * line)
        self._write(lower, texts.largest_batch())
