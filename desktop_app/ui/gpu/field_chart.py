"""The history of one field, with the look, the time axis and the gaps of the dashboard's charts."""

from __future__ import annotations

from typing import Final

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QKeyEvent, QPainterPath, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from desktop_app.core.store import Curve, History
from desktop_app.services.facade import Workspace
from desktop_app.ui.brush import Typeset
from desktop_app.ui.charts import texts as chart_texts
from desktop_app.ui.charts.cursor import ReadOut, ReadOutBox, VerticalLine
from desktop_app.ui.charts.curves_item import Content, Limit, Line, areas_below, line_path, stepped
from desktop_app.ui.charts.head_item import Head, Key
from desktop_app.ui.charts.panel import Panel, SideFigure
from desktop_app.ui.charts.scales import Axis, Limits, figures_for
from desktop_app.ui.charts.span_bar import SpanBar
from desktop_app.ui.charts.stack_view import StackView
from desktop_app.ui.charts.time_axis import DEFAULT_SPAN_S, TimeWindow, View, browsed_ticks, live_ticks
from desktop_app.ui.focus_ring import MARGIN, RingedWidget
from desktop_app.ui.gpu.field_series import FLAGS, Series, Unit, axis_of, unit_of, writer
from desktop_app.ui.gpu.time_figures import LINES, TimeFigures
from desktop_app.ui.texts import cards, gpu, numbers, reasons
from desktop_app.ui.theme import Theme, color, mix

_TICK_LINES: Final = 6.5  # least distance of time figures, in label lines
_AREA_STRENGTH: Final = 0.16
_KEY_STEP: Final = 0.01
_FAR: Final = 10
_KEY_ZOOM: Final = 1.5
_STALE_S: Final = 0.5
_LONGEST_STALE_S: Final = 2.0
_SMALL_WIDTH: Final = 56  # label lines; narrower, the presets share one button
_BOX_TOP: Final = 2.4


class FieldChart(RingedWidget):
    """One panel on a time axis of its own. The page calls ``refresh`` and ``refresh_texts``. Runs in: GUI thread."""

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._theme = theme
        self._types = Typeset(self.font())
        self._window = TimeWindow(DEFAULT_SPAN_S)
        self._series: Series | None = None
        self._limits = Limits()
        self._signature: object = None
        self._drawn_at_s = -_LONGEST_STALE_S
        self._cursor_x: float | None = None
        self._axis = Axis(0.0, 1.0)
        self._unit = Unit(1.0, "")
        self.drawn = 0  # pictures made; for tests
        self.canvas = StackView(self)
        self.panel = Panel(theme, self._types)
        self._figures = TimeFigures(theme, self._types)
        self._cursor = VerticalLine(dotted=True)
        self.box = ReadOutBox(theme, self._types)
        self._span_bar = SpanBar(self)
        self._build()
        self.set_theme(theme)
        self.retranslate()

    def _build(self) -> None:
        canvas = self.canvas
        canvas.add_panel("field", self.panel)
        canvas.add_panel("time", self._figures)
        for item in (self.panel.head_item, self._cursor, self.box):
            canvas.scene().addItem(item)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        layout.addWidget(canvas)
        self._span_bar.raise_()
        canvas.resized.connect(self._arrange)
        canvas.hovered.connect(lambda position: self.move_cursor(self._seconds_at(position.x())))
        canvas.left.connect(self.hide_cursor)
        canvas.dragged.connect(lambda pixels: self.pan(-pixels / self._stretch.width() * self.view.width))
        canvas.zoomed.connect(self._on_zoomed)
        canvas.pressed.connect(lambda: self.setFocus(Qt.FocusReason.MouseFocusReason))
        canvas.double_clicked.connect(self.go_live)
        self._span_bar.chosen.connect(self.set_span_s)
        self._span_bar.live_wanted.connect(self.go_live)

    # -- what the page calls --------------------------------------------------------------------------------------

    @property
    def series(self) -> Series | None:
        return self._series

    @property
    def view(self) -> View:
        return self._window.view

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

    def refresh(self) -> bool:
        """Draw what is new; whether anything was. Does nothing while nobody can see it."""
        if not self._on_screen():
            return False
        now_s, before = self._now_s, self.view
        pixels = self._figures.plot.width() * self.devicePixelRatioF()
        view = self._window.follow(now_s, pixels=pixels, forecast_s=None)
        patience_s = min(max(view.width / max(1.0, pixels) / 2, _STALE_S), _LONGEST_STALE_S)
        if view == before and now_s - self._drawn_at_s < patience_s:
            return False
        self._drawn_at_s = now_s
        return self._draw()

    def refresh_texts(self) -> None:
        """The value in the head and at the cursor."""
        if not self._on_screen():
            return
        self.panel.set_head(self._head())
        if self._cursor_x is not None:
            self.move_cursor(self._cursor_x)

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
        self._words = chart_texts.time_words()
        self._span_bar.retranslate()
        self._name()
        self._place_span_bar()
        self._redraw()

    def _name(self) -> None:
        name = "" if self._series is None else cards.reading_name(self._series.key)
        self.setAccessibleName(gpu.history_name(name) if name else chart_texts.name())

    # -- navigation -----------------------------------------------------------------------------------------------

    def set_span_s(self, span_s: float) -> None:
        self._window.set_span_s(span_s)
        self._after_navigation()

    def go_live(self) -> None:
        self._window.go_live()
        self._after_navigation()

    def zoom(self, factor: float) -> None:
        middle = (self.view.left + self.view.right) / 2
        self._window.zoom(factor, at=middle if self._cursor_x is None else self._cursor_x)
        self._after_navigation()

    def pan(self, seconds: float) -> None:
        self._window.pan(seconds)
        self._after_navigation()

    def _on_zoomed(self, factor: float, position: QPointF) -> None:
        self._window.zoom(factor, at=self._seconds_at(position.x()))
        self._after_navigation()

    def _after_navigation(self) -> None:
        self._drawn_at_s = -_LONGEST_STALE_S
        self.refresh()
        self._span_bar.set_state(span_s=self._window.span_s, live=self._window.live, hidden=())
        self._place_span_bar()
        if self._cursor_x is not None:
            self.move_cursor(self._cursor_x)

    # -- drawing --------------------------------------------------------------------------------------------------

    @property
    def _now_s(self) -> float:
        return self._workspace.clock.now_s()

    def _on_screen(self) -> bool:
        return self.isVisible() and not self.window().isMinimized()

    def _history(self) -> History | None:
        series, store = self._series, self._workspace.store
        if series is None or series.history not in store.names():
            return None
        return store.history(series.history)

    def _redraw(self) -> None:
        self._signature = None
        self._drawn_at_s = -_LONGEST_STALE_S
        self.refresh_texts()
        self.refresh()

    def _draw(self) -> bool:
        view, plot, history = self.view, self.panel.plot, self._history()
        version = None if history is None else history.version
        signature = (view, plot.width(), plot.height(), version, self._series, self._theme.name)
        if signature == self._signature:
            return False
        self._signature = signature
        at_most = max(2, int(self._figures.plot.width() / (_TICK_LINES * self._types.line)))
        clock = self._workspace.clock
        ticks = (
            live_ticks(view, self._words, at_most=at_most)
            if view.live
            else browsed_ticks(view, clock.wall_s, at_most=at_most)
        )
        self._figures.set_view(view, ticks)
        self.panel.set_view(view.left, view.right)
        self._draw_curve(history)
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
        unit = self._unit = unit_of(series.key, highest)
        at_most = figures_for(self.panel.plot.height(), self._types.tick.height)
        axis = self._axis = axis_of(series, curve.y, unit, self._limits, at_most=at_most)
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
        return Head(title, (Key(cards.reading_value(series.key, reading), series.token),), hint)

    def _measured(self, history: History) -> bool:
        return self._series is not None and history.bounds(self._series.key, *self.span) is not None

    # -- geometry -------------------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        foot = round(LINES * self._types.line)
        self.canvas.set_heights({"field": max(1.0, self.canvas.height() - foot - 8), "time": float(foot)})
        self.panel.head_item.setPos(self.canvas.rect_of(self.panel).topLeft())
        self._span_bar.set_small(small=self.width() < _SMALL_WIDTH * self._types.line)
        self._span_bar.set_state(span_s=self._window.span_s, live=self._window.live, hidden=())
        self._place_span_bar()
        self._redraw()

    def _place_span_bar(self) -> None:
        rect = self.canvas.rect_of(self.panel).translated(self.canvas.x(), self.canvas.y())
        self._span_bar.adjustSize()
        size, inset = self._span_bar.sizeHint(), 0.5 * self._types.line
        left, top = rect.right() - size.width() - inset, rect.top() + 0.3 * inset + 1
        self._span_bar.setGeometry(round(left), round(top), size.width(), size.height())
        self.panel.head_item.set_room_taken(size.width())

    @property
    def _stretch(self) -> QRectF:
        """The plot in pixels of the scene."""
        rect: QRectF = self.canvas.rect_of(self.panel)
        plot = self.panel.plot
        return QRectF(rect.left() + plot.left(), rect.top() + 1, plot.width(), plot.bottom())

    def _seconds_at(self, x: float) -> float:
        stretch, view = self._stretch, self.view
        return view.left + min(max((x - stretch.left()) / stretch.width(), 0.0), 1.0) * view.width

    # -- cursor ---------------------------------------------------------------------------------------------------

    def move_cursor(self, x: float) -> None:
        """Put the cursor ``x`` seconds from the anchor, and say what was measured there."""
        view, series, history = self.view, self._series, self._history()
        x = self._cursor_x = min(max(x, view.left), min(view.right, self._window.now_x))
        stretch = self._stretch
        place = stretch.left() + (x - view.left) / view.width * stretch.width()
        self._cursor.place(place, stretch.top(), stretch.bottom())
        if series is None or history is None:
            return
        value = history.value_at(series.key, view.anchor_s + x)
        row = () if value is None else ((cards.reading_name(series.key), writer(series.key)(value), series.token),)
        self.box.say(ReadOut(numbers.wall_time(self._workspace.clock.wall_s(view.anchor_s + x)), "", row))
        bounds = QRectF(0, stretch.top(), self.canvas.width(), stretch.height())
        self.box.place(place, stretch.top() + _BOX_TOP * self._types.line, bounds)

    def hide_cursor(self) -> None:
        self._cursor_x = None
        self._cursor.setVisible(False)
        self.box.setVisible(False)

    # -- events ---------------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The keys of the dashboard's charts."""
        if self._handle_key(event):
            self.show_ring()
        else:
            super().keyPressEvent(event)

    def _handle_key(self, event: QKeyEvent) -> bool:
        key, width = event.key(), self.view.width
        if key in {Qt.Key.Key_Left, Qt.Key.Key_Right}:
            far = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            steps = (-1 if key == Qt.Key.Key_Left else 1) * (_FAR if far else 1)
            start = min(self.view.right, self._window.now_x) if self._cursor_x is None else self._cursor_x
            self.move_cursor(start + steps * _KEY_STEP * width)
        elif key in {Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus}:
            self.zoom(_KEY_ZOOM if key == Qt.Key.Key_Minus else 1 / _KEY_ZOOM)
        elif key in {Qt.Key.Key_PageUp, Qt.Key.Key_PageDown}:
            self.pan((-0.5 if key == Qt.Key.Key_PageUp else 0.5) * width)
        elif key == Qt.Key.Key_Home:
            self.go_live()
        elif key == Qt.Key.Key_Escape and self._cursor_x is not None:
            self.hide_cursor()
        else:
            return False
        return True

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_span_bar()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.FontChange:
            self._types = Typeset(self.font())
            self.panel.set_types(self._types)
            self._figures.set_look(self._theme, self._types)
            self.box.set_types(self._types)
            self._arrange()
        super().changeEvent(event)
