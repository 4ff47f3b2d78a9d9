"""The history of one field, with the look, the time axis, the gaps and the shades of the dashboard's charts."""

from __future__ import annotations

from typing import Final

import numpy as np
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainterPath
from PySide6.QtWidgets import QWidget

from desktop_app.core.store import Curve, History
from desktop_app.services.facade import Workspace
from desktop_app.services.telemetry_feed import history_name
from desktop_app.ui.charts import texts as chart_texts
from desktop_app.ui.charts.cursor import ReadOut, ReadOutBox, VerticalLine
from desktop_app.ui.charts.curves_item import Content, Limit, Line, areas_below, line_path, stepped
from desktop_app.ui.charts.head_item import Head, Key
from desktop_app.ui.charts.panel import Panel, SideFigure
from desktop_app.ui.charts.scales import Axis, Limits, figures_for
from desktop_app.ui.charts.shading import bands_in, causes_at, said_of
from desktop_app.ui.charts.stack_view import SPACING, StackView
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.charts.time_chart import TimeChart
from desktop_app.ui.charts.time_figures import LINES, TimeFigures
from desktop_app.ui.gpu.field_series import FLAGS, Series, Unit, axis_of, unit_of, writer
from desktop_app.ui.texts import cards, gpu, numbers, reasons
from desktop_app.ui.theme import Theme, color, mix

_AREA_STRENGTH: Final = 0.16
_BOX_TOP: Final = 2.4


class FieldChart(TimeChart):
    """One panel on a time axis of its own. Runs in: GUI thread."""

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(workspace, theme, parent)
        self._workspace = workspace
        self._series: Series | None = None
        self._limits = Limits()
        self._signature: object = None
        self._summary: tuple[str, ...] = ()
        self.drawn = 0  # pictures made; for tests
        self.canvas = StackView(self)
        self.panel = Panel(theme, self._types)
        self.panel.name_shades(frozenset(Throttle))
        self._figures = TimeFigures(theme, self._types)
        self._cursor = VerticalLine(dotted=True)
        self.box = ReadOutBox(theme, self._types)
        self.canvas.add_panel("field", self.panel)
        self.canvas.add_panel("time", self._figures)
        for item in (self.panel.head_item, self._cursor, self.box):
            self.canvas.scene().addItem(item)
        self._hold(self.canvas)
        self.set_theme(theme)
        self.retranslate()

    # -- what the page calls --------------------------------------------------------------------------------------

    @property
    def series(self) -> Series | None:
        return self._series

    @property
    def span(self) -> tuple[float, float]:
        """The stretch on show, in session seconds, up to now."""
        view = self.view
        # Live, the picture stands still for less than a pixel; the newest value belongs to it all the same.
        return view.anchor_s + view.left, self._now_s if view.live else view.anchor_s + view.right

    def show_series(self, series: Series | None) -> None:
        """Another field, or another limit for it."""
        if series == self._series:
            return
        if series is None or self._series is None or series.key != self._series.key:
            self._limits = Limits()
        self._series = series
        self._name()
        self._redraw()

    def set_summary(self, summary: tuple[str, ...]) -> None:
        """Figures of the span on show, for the head, where they have no place of their own."""
        if summary != self._summary:
            self._summary = summary
            self.refresh_texts()

    def refresh_texts(self) -> None:
        if not self._on_screen():
            return
        self.panel.set_head(self._head())
        if self._cursor_x is not None:
            self._show_cursor(self._cursor_x)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.set_ring_color(theme.accent)
        self.canvas.setBackground(color(theme.window))
        self.panel.set_theme(theme)
        self._figures.set_look(theme, self._types)
        self.box.set_theme(theme)
        self._cursor.set_color(theme.muted)
        self._span_bar.set_theme(theme)
        self._redraw()

    def retranslate(self) -> None:
        self._name()
        super().retranslate()

    def _name(self) -> None:
        name = "" if self._series is None else cards.reading_name(self._series.key)
        self.setAccessibleName(gpu.history_name(name) if name else chart_texts.name())

    # -- drawing --------------------------------------------------------------------------------------------------

    def _history(self) -> History | None:
        series, store = self._series, self._workspace.store
        if series is None or series.history not in store.names():
            return None
        return store.history(series.history)

    def _card_history(self) -> History | None:
        """Of the card that the field belongs to: what held it back stands there."""
        name = "" if self._series is None else history_name(self._series.uuid)
        return self._workspace.store.history(name) if name in self._workspace.store.names() else None

    def _forget(self) -> None:
        self._signature = None

    def _draw(self) -> bool:
        view, plot, history = self.view, self.panel.plot, self._history()
        version = None if history is None else history.version
        signature = (view, plot.width(), plot.height(), version, self._series, self._theme.name)
        if signature == self._signature:
            return False
        self._signature = signature
        self._figures.set_view(view, self._ticks())
        self.panel.set_view(view.left, view.right)
        self._draw_curve(history)
        shaded = None if history is None or not self._measured(history) else self._card_history()
        self._bands = bands_in(shaded, view, self._causes, now_s=self._now_s, pixels=self._plot_width)
        self.panel.curves.set_bands(self._bands)
        self.drawn += 1
        return True

    def _draw_curve(self, history: History | None) -> None:
        series, curve = self._series, self._curve(history)
        # Where nothing was measured the panel says so in its middle; lines would run through the words.
        if series is None or curve is None or not np.isfinite(curve.y).any():
            self.panel.curves.set_content(Content())
            self.panel.set_figures(Axis(0.0, 1.0))
            return
        highest = max(float(curve.y[np.isfinite(curve.y)].max()), series.limit or 0.0)
        unit = unit_of(series.key, highest)
        at_most = figures_for(self.panel.plot.height(), self._types.tick.height)
        axis = axis_of(series, curve.y, unit, self._limits, at_most=at_most)
        line = self._line(series, curve, axis, unit)
        limits, figures = self._limit(series, axis, unit)
        grid = tuple(axis.share(tick) for tick in axis.ticks)
        self.panel.curves.set_content(Content([line], limits, grid))
        self.panel.set_figures(axis, figures)

    def _curve(self, history: History | None) -> Curve | None:
        """The points in view, x in seconds from the anchor, y in the field's unit."""
        series, view = self._series, self.view
        if series is None or history is None or not history.version:
            return None
        right = min(view.right, max(self._window.now_x, view.left))
        pixels = max(1, round(self.panel.plot.width() * (right - view.left) / view.width))
        curve = history.curve(series.key, view.anchor_s + view.left, view.anchor_s + right, pixels=pixels)
        return Curve(curve.x - view.anchor_s, series.drawn(curve.y), curve.has_gaps)

    def _line(self, series: Series, curve: Curve, axis: Axis, unit: Unit) -> Line:
        theme = self._theme
        x, y = curve.x, (curve.y * unit.factor - axis.low) / (axis.high - axis.low)
        if series.stepped:
            x, y = stepped(x, y, until=self._window.now_x)
        path = line_path(x, y, has_gaps=curve.has_gaps) if x.size > 1 else QPainterPath()
        pen = color(getattr(theme, series.token))
        if series.key.endswith("_bytes") or series.key in FLAGS:
            area = mix(getattr(theme, series.token), theme.surface, _AREA_STRENGTH)
            return Line(path, pen, areas_below(x, y), area)
        return Line(path, pen)

    def _limit(self, series: Series, axis: Axis, unit: Unit) -> tuple[tuple[Limit, ...], tuple[SideFigure, ...]]:
        if series.limit is None:
            return (), ()
        y = axis.share(series.limit * unit.factor)
        if not 0.0 <= y <= 1.0:
            return (), ()
        value = series.limit * unit.factor
        text = f"{value:.2f}" if unit.text.startswith("GiB") else numbers.integer(value)
        token = series.limit_token
        solid = token == "text"  # noqa: S105 - a capacity
        limit = Limit(y, color(getattr(self._theme, token)), dashed=not solid)
        return (limit,), (SideFigure(y, text, token, strong=solid),)

    def _head(self) -> Head:
        series = self._series
        if series is None:
            return Head(hint=gpu.choose_a_field())
        title = cards.reading_name(series.key)
        reading = self._workspace.readings.get().get(series.uuid, {}).get(series.key)
        history = self._history()
        hint = "" if history is not None and self._measured(history) else gpu.nothing_measured()
        if reading is None or reading.value is None:
            return Head(title, (Key(reasons.missing(None if reading is None else reading.reason), dash=False),), hint)
        summary = (Key(text, dash=False) for text in self._summary)
        return Head(title, (Key(cards.reading_value(series.key, reading), series.token), *summary), hint)

    def _measured(self, history: History) -> bool:
        return self._series is not None and history.bounds(self._series.key, *self.span) is not None

    # -- geometry -------------------------------------------------------------------------------------------------

    @property
    def _first_panel(self) -> Panel:
        return self.panel

    @property
    def _plot_width(self) -> float:
        return self._figures.plot.width()

    @property
    def _stretch(self) -> QRectF:
        rect: QRectF = self.canvas.rect_of(self.panel)
        plot = self.panel.plot
        return QRectF(rect.left() + plot.left(), rect.top() + 1, plot.width(), plot.bottom())

    def _place_panels(self) -> None:
        foot = round(LINES * self._types.line)
        self.canvas.set_heights({"field": max(1.0, self.canvas.height() - foot - SPACING), "time": float(foot)})
        self.panel.head_item.setPos(self.canvas.rect_of(self.panel).topLeft())

    def _take_types(self) -> None:
        self.panel.set_types(self._types)
        self._figures.set_look(self._theme, self._types)
        self.box.set_types(self._types)

    # -- cursor ---------------------------------------------------------------------------------------------------

    def _show_cursor(self, x: float) -> None:
        view, series, history, stretch = self.view, self._series, self._history(), self._stretch
        place = stretch.left() + (x - view.left) / view.width * stretch.width()
        self._cursor.place(place, stretch.top(), stretch.bottom())
        if series is None or history is None:
            return
        t_s = view.anchor_s + x
        value = history.value_at(series.key, t_s)
        row = () if value is None else ((cards.reading_name(series.key), writer(series.key)(value), series.token),)
        held = said_of(causes_at(self._bands, x), self._card_history(), t_s)
        self.box.say(ReadOut(numbers.wall_time(self._clock.wall_s(t_s)), "", (*row, *held)))
        bounds = QRectF(0, stretch.top(), self.canvas.width(), stretch.height())
        self.box.place(place, stretch.top() + _BOX_TOP * self._types.line, bounds)

    def _clear_cursor(self) -> None:
        self._cursor.setVisible(False)
        self.box.setVisible(False)

    def _panel_at(self, position: QPointF) -> str:
        del position
        return "field"
