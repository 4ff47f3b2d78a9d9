"""The chart stack: everything about a run and its card on one time axis."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QToolTip, QVBoxLayout, QWidget

from desktop_app.services.facade import Workspace
from desktop_app.ui.brush import Typeset
from desktop_app.ui.charts import texts
from desktop_app.ui.charts.arrangement import arrange
from desktop_app.ui.charts.cursor import ReadOutBox, VerticalLine
from desktop_app.ui.charts.event_lane import EventLane
from desktop_app.ui.charts.forecast_item import ForecastItem, course
from desktop_app.ui.charts.panel import Panel
from desktop_app.ui.charts.source import Source
from desktop_app.ui.charts.span_bar import SpanBar
from desktop_app.ui.charts.stack_view import SPACING, StackView
from desktop_app.ui.charts.time_axis import DEFAULT_SPAN_S, TimeWindow, View, browsed_ticks, live_ticks
from desktop_app.ui.charts.tracks import PANELS, Track
from desktop_app.ui.texts import numbers
from desktop_app.ui.theme import PANEL_RADIUS, Theme, color

# A window that moves by a pixel only every few seconds still shows new values this often.
_STALE_S: Final = 0.5
_FOCUS_MARGIN: Final = 2
_SMALL_WIDTH: Final = 56  # label lines; narrower, the presets share one button
_TICK_LINES: Final = 6.5  # least distance of time figures, in label lines
_KEY_STEP: Final = 0.01  # share of the window that an arrow key moves the cursor
_KEY_ZOOM: Final = 1.5
_KEYBOARD_REASONS: Final = frozenset(
    {Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason, Qt.FocusReason.ShortcutFocusReason}
)


class ChartStack(QWidget):
    """Panels on one time axis with one cursor. The window calls ``refresh`` (10 Hz) and ``refresh_texts`` (2 Hz).

    Runs in: GUI thread. It owns no timer.
    """

    span_changed = Signal(float)  # seconds on show, 0 for everything
    live_changed = Signal(bool)

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._source = Source(workspace)
        self._theme = theme
        self._types = Typeset(self.font())
        self._window = TimeWindow(DEFAULT_SPAN_S)
        self._compact = False
        self._hidden: tuple[str, ...] = ()
        self._drawn_at_s = -_STALE_S
        self._cursor_x: float | None = None  # seconds from the anchor
        self._ring = False  # the keyboard is here: a mouse needs no ring
        self._view = StackView(self)
        self._tracks = {spec.key: Track(spec, Panel(theme, self._types)) for spec in PANELS}
        self._lane = EventLane(theme, self._types)
        self._now_line = VerticalLine(dotted=False)
        self._cursor_line = VerticalLine(dotted=True)
        self._box = ReadOutBox(theme, self._types)
        self._forecast = ForecastItem(self._tracks["vram"].panel, theme, self._types)
        self._span_bar = SpanBar(self)
        self._assemble()
        self._connect()
        self.set_theme(theme)
        self.retranslate()

    def _assemble(self) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*(_FOCUS_MARGIN,) * 4)
        layout.addWidget(self._view)
        for key, track in self._tracks.items():
            track.set_line_height(self._types.tick.height)
            self._view.add_panel(key, track.panel)
        self._view.add_panel("events", self._lane)
        heads = [track.panel.head_item for track in self._tracks.values()]
        for item in (*heads, self._now_line, self._cursor_line, self._box):
            self._view.scene().addItem(item)
        self._span_bar.raise_()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def _connect(self) -> None:
        self._view.resized.connect(self._arrange)
        self._view.hovered.connect(self._on_hovered)
        self._view.left.connect(self.hide_cursor)
        self._view.dragged.connect(self._on_dragged)
        self._view.zoomed.connect(self._on_zoomed)
        self._view.pressed.connect(self._on_pressed)
        self._view.double_clicked.connect(self.go_live)
        self._span_bar.chosen.connect(self.set_span_s)
        self._span_bar.live_wanted.connect(self.go_live)

    # -- what the window calls ------------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Draw what is new; whether anything was. Does nothing while nobody can see it."""
        if not self._on_screen():
            return False
        now_s = self._source.now_s
        before = self._window.view
        plot = self._tracks["vram"].panel.plot
        forecast = self._source.forecast()
        eta_s = None if forecast is None else _until(forecast.t_s, forecast.eta_high_s or forecast.eta_s, now_s)
        view = self._window.follow(now_s, pixels=plot.width() * self.devicePixelRatioF(), forecast_s=eta_s)
        if view == before and now_s - self._drawn_at_s < _STALE_S:
            return False
        self._drawn_at_s = now_s
        return self._draw(view, now_s)

    def refresh_texts(self) -> None:
        """New values in the heads and at the cursor."""
        if not self._on_screen():
            return
        heads = self._source.heads()
        for key, track in self._tracks.items():
            if key not in self._hidden:
                track.panel.set_head(heads.head(key))
        if self._cursor_x is not None:
            self._show_cursor(self._cursor_x)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._view.setBackground(color(theme.window))
        for track in self._tracks.values():
            track.panel.set_theme(theme)
        self._lane.set_theme(theme)
        self._forecast.set_theme(theme)
        self._box.set_theme(theme)
        self._span_bar.set_theme(theme)
        self._now_line.set_color(theme.line)
        self._cursor_line.set_color(theme.muted)
        self._redraw()

    def retranslate(self) -> None:
        """Take the texts of a new language."""
        self.setAccessibleName(texts.name())
        self._words = texts.time_words()
        self._span_bar.retranslate()
        self._lane.retranslate()
        self._redraw()

    @property
    def span_s(self) -> float:
        """Seconds chosen; 0 for everything."""
        return self._window.span_s

    @property
    def live(self) -> bool:
        return self._window.live

    def set_span_s(self, span_s: float) -> None:
        """Show the last ``span_s`` seconds (0: everything), live."""
        self._window.set_span_s(span_s)
        self._after_navigation()

    def go_live(self) -> None:
        """Leave the past."""
        self._window.go_live()
        self._after_navigation()

    def zoom(self, factor: float) -> None:
        """Show ``factor`` times as much time, around the cursor or the middle."""
        view = self._window.view
        at = self._cursor_x if self._cursor_x is not None else (view.left + view.right) / 2
        self._window.zoom(factor, at=at)
        self._after_navigation()

    def set_compact(self, compact: bool) -> None:  # noqa: FBT001  # a Qt slot
        """For small windows: without the panel of learning rate and gradient norm."""
        if compact != self._compact:
            self._compact = compact
            self._arrange()

    @property
    def hidden_panels(self) -> tuple[str, ...]:
        """Keys of the panels that there is no room for."""
        return self._hidden

    # -- drawing --------------------------------------------------------------------------------------------------

    def _on_screen(self) -> bool:
        return self.isVisible() and not self.window().isMinimized()

    def _draw(self, view: View, now_s: float) -> bool:
        frame = self._source.frame(view, now_s=now_s, theme=self._theme)
        shown = [track for key, track in self._tracks.items() if key not in self._hidden]
        changed = [track.update(frame) for track in shown]
        self._draw_forecast(view)
        self._lane.add(self._source.new_events())
        self._draw_time_axis(view)
        return any(changed)

    def _draw_forecast(self, view: View) -> None:
        panel = self._tracks["vram"].panel
        forecast = self._source.forecast()
        made = None
        if forecast is not None and panel.isVisible():
            made = course(forecast, view=view, plot=panel.plot, axis=panel.left_axis)
        self._forecast.set_course(made, panel.plot)

    def _draw_time_axis(self, view: View) -> None:
        at_most = max(2, int(self._lane.plot.width() / (_TICK_LINES * self._types.line)))
        if view.live:
            ticks = live_ticks(view, self._words, at_most=at_most)
        else:
            ticks = browsed_ticks(view, self._source.wall_s, at_most=at_most)
        self._lane.set_view(view, ticks)
        now_x = 0.0 if view.live else self._window.now_x
        if view.left < now_x < view.right:
            self._now_line.place(self._scene_x(now_x), *self._ends())
        else:
            self._now_line.setVisible(False)

    def _redraw(self) -> None:
        """Everything again at the next refresh, now if it is on screen."""
        for track in self._tracks.values():
            track.forget()
        self._drawn_at_s = -_STALE_S
        self.refresh_texts()
        self.refresh()

    def _after_navigation(self) -> None:
        self._drawn_at_s = -_STALE_S
        if self._on_screen():
            self._draw(self._window.view, self._source.now_s)
        self._tell_span()
        if self._cursor_x is not None:
            self._show_cursor(self._cursor_x)

    def _tell_span(self) -> None:
        self._span_bar.set_state(span_s=self.span_s, live=self.live, hidden=self._hidden)
        self._place_span_bar()
        self.span_changed.emit(self.span_s)
        self.live_changed.emit(self.live)

    # -- geometry -------------------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        line = self._types.line
        heights = arrange(self._view.height(), line=line, spacing=SPACING, compact=self._compact)
        self._hidden = tuple(key for key in self._tracks if key not in heights)
        self._view.set_heights(heights)
        for track in self._tracks.values():
            track.panel.head_item.setVisible(track.panel.isVisible())
            track.panel.head_item.setPos(self._view.rect_of(track.panel).topLeft())
        self._span_bar.set_small(small=self.width() < _SMALL_WIDTH * line)
        self._span_bar.set_state(span_s=self.span_s, live=self.live, hidden=self._hidden)
        self._place_span_bar()
        self._redraw()

    def _place_span_bar(self) -> None:
        """At the right of the first head that is shown."""
        first = next(track.panel for key, track in self._tracks.items() if key not in self._hidden)
        rect = self._view.rect_of(first).translated(self._view.x(), self._view.y())
        self._span_bar.adjustSize()
        size = self._span_bar.sizeHint()
        inset = 0.5 * self._types.line
        self._span_bar.setGeometry(
            round(rect.right() - size.width() - inset), round(rect.top() + 0.3 * inset + 1), size.width(), size.height()
        )
        for track in self._tracks.values():
            track.panel.head_item.set_room_taken(size.width() if track.panel is first else 0.0)

    def _ends(self) -> tuple[float, float]:
        """Top of the first panel and bottom of the lane, in pixels of the scene."""
        first = next(track.panel for key, track in self._tracks.items() if key not in self._hidden)
        return self._view.rect_of(first).top() + 1, self._view.rect_of(self._lane).bottom() - 1

    def _scene_x(self, x: float) -> float:
        plot, view = self._lane.plot, self._window.view
        return self._view.rect_of(self._lane).left() + plot.left() + (x - view.left) / view.width * plot.width()

    def _x_at(self, scene_x: float) -> float:
        """Seconds from the anchor at a pixel of the scene, within the window."""
        plot, view = self._lane.plot, self._window.view
        offset = scene_x - self._view.rect_of(self._lane).left() - plot.left()
        return view.left + min(max(offset / plot.width(), 0.0), 1.0) * view.width

    # -- cursor ---------------------------------------------------------------------------------------------------

    @property
    def cursor_t_s(self) -> float | None:
        """Session time at the cursor; ``None`` while there is none."""
        return None if self._cursor_x is None else self._window.view.anchor_s + self._cursor_x

    def move_cursor(self, x: float) -> None:
        """Put the cursor ``x`` seconds from the window's anchor, within the window."""
        view = self._window.view
        self._show_cursor(min(max(x, view.left), min(view.right, self._window.now_x)))

    def hide_cursor(self) -> None:
        self._cursor_x = None
        self._cursor_line.setVisible(False)
        self._box.setVisible(False)

    def _show_cursor(self, x: float) -> None:
        self._cursor_x = x
        scene_x = self._scene_x(x)
        top, bottom = self._ends()
        self._cursor_line.place(scene_x, top, bottom)
        t_s = self._window.view.anchor_s + x
        if x > self._window.now_x:
            self._box.setVisible(False)  # nothing was measured in the future
            return
        self._box.say(self._source.read_out(t_s, hidden=self._hidden))
        bounds = QRectF(0, top, self._view.width(), bottom - top)
        self._box.place(scene_x, top + 2.4 * self._types.line, bounds)

    # -- mouse and keys -------------------------------------------------------------------------------------------

    def _on_pressed(self) -> None:
        self.setFocus(Qt.FocusReason.MouseFocusReason)

    def _on_hovered(self, position: QPointF) -> None:
        lane = self._view.rect_of(self._lane)
        event = self._lane.event_at(position.x() - lane.left()) if lane.contains(position) else None
        if event is not None:
            text = texts.event_details(event, numbers.wall_time(self._source.wall_s(event.t_s)))
            QToolTip.showText(self._view.mapToGlobal(position.toPoint()), text, self._view)
        self._show_cursor(self._x_at(position.x()))

    def _on_dragged(self, pixels: float) -> None:
        self._window.pan(-pixels / self._lane.plot.width() * self._window.view.width)
        self._after_navigation()

    def _on_zoomed(self, factor: float, position: QPointF) -> None:
        self._window.zoom(factor, at=self._x_at(position.x()))
        self._after_navigation()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self._handle_key(event):
            super().keyPressEvent(event)

    def _handle_key(self, event: QKeyEvent) -> bool:
        key, view = event.key(), self._window.view
        far = 10 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
        at = self._cursor_x if self._cursor_x is not None else min(view.right, self._window.now_x)
        if key in {Qt.Key.Key_Left, Qt.Key.Key_Right}:
            direction = -1 if key == Qt.Key.Key_Left else 1
            self.move_cursor(at + direction * far * _KEY_STEP * view.width)
        elif key in {Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus}:
            self.zoom(_KEY_ZOOM if key == Qt.Key.Key_Minus else 1 / _KEY_ZOOM)
        elif key in {Qt.Key.Key_PageUp, Qt.Key.Key_PageDown}:
            self._window.pan((-0.5 if key == Qt.Key.Key_PageUp else 0.5) * view.width)
            self._after_navigation()
        elif key == Qt.Key.Key_Home:
            self.go_live()
        elif key == Qt.Key.Key_Escape and self._cursor_x is not None:
            self.hide_cursor()
        else:
            return False
        self._ring = True
        self.update()
        return True

    # -- events of the widget -------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_span_bar()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.FontChange:
            self._types = Typeset(self.font())
            for track in self._tracks.values():
                track.set_line_height(self._types.tick.height)
                track.panel.set_types(self._types)
            for part in (self._lane, self._forecast, self._box):
                part.set_types(self._types)
            self._arrange()
        super().changeEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._ring = event.reason() in _KEYBOARD_REASONS
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._ring = False
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._ring:
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(color(self._theme.accent), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), PANEL_RADIUS + 2, PANEL_RADIUS + 2)
            painter.end()


def _until(t_s: float, eta_s: float | None, now_s: float) -> float | None:
    """Seconds from now to ``eta_s`` after ``t_s``."""
    return None if eta_s is None else max(0.0, t_s + eta_s - now_s)
