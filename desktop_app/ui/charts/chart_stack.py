"""The chart stack: everything about a run and its card on one time axis."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, Signal
from PySide6.QtGui import QAccessible, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QToolTip, QVBoxLayout, QWidget

from desktop_app.services.facade import Workspace
from desktop_app.ui.brush import Typeset
from desktop_app.ui.charts import texts
from desktop_app.ui.charts.cursor import ReadOut
from desktop_app.ui.charts.load import Load
from desktop_app.ui.charts.shades import Band
from desktop_app.ui.charts.source import Source
from desktop_app.ui.charts.span_bar import SpanBar
from desktop_app.ui.charts.stage import Stage
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.charts.time_axis import DEFAULT_SPAN_S, TimeTick, TimeWindow, View, browsed_ticks, live_ticks
from desktop_app.ui.focus_ring import MARGIN, RingedWidget
from desktop_app.ui.texts import numbers
from desktop_app.ui.theme import Theme

# A window that moves by a pixel only every few seconds still shows new values within half a pixel's time, but no
# sooner and no later than this: the longer the window, the less a new value changes its picture.
_STALE_S: Final = 0.5
_LONGEST_STALE_S: Final = 2.0
_SMALL_WIDTH: Final = 56  # label lines; narrower, the presets share one button
_TICK_LINES: Final = 6.5  # least distance of time figures, in label lines
_KEY_STEP: Final = 0.01  # share of the window that an arrow key moves the cursor
_FAR: Final = 10  # times as far with Shift
_KEY_ZOOM: Final = 1.5
_HAND: Final = Qt.CursorShape.PointingHandCursor
_ARROW: Final = Qt.CursorShape.ArrowCursor


class ChartStack(RingedWidget):
    """Panels on one time axis with one cursor. The window calls ``refresh`` (10 Hz) and ``refresh_texts`` (2 Hz).

    Runs in: GUI thread. It owns no timer.
    """

    span_changed = Signal(float)  # seconds on show, 0 for everything
    live_changed = Signal(bool)
    menu_wanted = Signal(str, QPoint)  # key of the panel, and where on the screen

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._source = Source(workspace)
        self._theme = theme
        self._types = Typeset(self.font())
        self._window = TimeWindow(DEFAULT_SPAN_S)
        self._compact = False
        self._drawn_at_s = -_LONGEST_STALE_S
        self._cursor_x: float | None = None  # seconds from the anchor
        self._load = Load.UTILIZATION
        self._causes = frozenset({Throttle.HEAT})
        self._bands: tuple[Band, ...] = ()
        self.stage = Stage(self, theme, self._types)
        self._span_bar = SpanBar(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        layout.addWidget(self.stage.canvas)
        self._span_bar.raise_()
        self._connect()
        self.set_theme(theme)
        self.retranslate()

    def _connect(self) -> None:
        canvas = self.stage.canvas
        canvas.resized.connect(self._arrange)
        canvas.hovered.connect(self._on_hovered)
        canvas.left.connect(self.hide_cursor)
        canvas.dragged.connect(self._on_dragged)
        canvas.zoomed.connect(self._on_zoomed)
        canvas.pressed.connect(self._on_pressed)
        canvas.double_clicked.connect(self.go_live)
        canvas.clicked.connect(self._on_clicked)
        canvas.menu_wanted.connect(self._on_menu_wanted)
        self._span_bar.chosen.connect(self.set_span_s)
        self._span_bar.live_wanted.connect(self.go_live)

    # -- what the window calls ------------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Draw what is new; whether anything was. Does nothing while nobody can see it."""
        if not self._on_screen():
            return False
        now_s = self._source.now_s
        before = self._window.view
        pixels = self.stage.lane.plot.width() * self.devicePixelRatioF()
        view = self._window.follow(now_s, pixels=pixels, forecast_s=self._source.forecast_s)
        patience_s = min(max(view.width / max(1.0, pixels) / 2, _STALE_S), _LONGEST_STALE_S)
        if view == before and now_s - self._drawn_at_s < patience_s:
            return False
        self._drawn_at_s = now_s
        return self._draw()

    def refresh_texts(self) -> None:
        """New values in the heads and at the cursor."""
        if not self._on_screen():
            return
        heads = self._source.heads(self.load)
        for track in self.stage.shown:
            track.panel.set_head(heads.head(track.spec.key))
        if self._cursor_x is not None:
            self._show_cursor(self._cursor_x)
        if QAccessible.isActive():
            self.setAccessibleDescription(self.describe())

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.set_ring_color(theme.accent)
        self.stage.set_theme(theme)
        self._span_bar.set_theme(theme)
        self._redraw()

    def retranslate(self) -> None:
        """Take the texts of a new language."""
        self.setAccessibleName(texts.name())
        self._words = texts.time_words()
        self._span_bar.retranslate()
        self.stage.lane.retranslate()
        self._place_span_bar()
        self._redraw()

    @property
    def span_s(self) -> float:
        """Seconds chosen; 0 for everything."""
        return self._window.span_s

    @property
    def live(self) -> bool:
        return self._window.live

    @property
    def view(self) -> View:
        """The stretch of time on show."""
        return self._window.view

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
        middle = (self.view.left + self.view.right) / 2
        self._window.zoom(factor, at=middle if self._cursor_x is None else self._cursor_x)
        self._after_navigation()

    def pan(self, seconds: float) -> None:
        """Move into the past (negative) or towards now."""
        self._window.pan(seconds)
        self._after_navigation()

    @property
    def load(self) -> Load:
        """What the panel of utilisation shows: the choice, or what the card has."""
        return self._source.load(self._load)

    def set_load(self, load: Load) -> None:
        """Choose what the panel of utilisation shows."""
        self._load = load
        self._redraw()

    def set_shades(self, causes: frozenset[Throttle]) -> None:
        """Shade the time in which one of ``causes`` held the card back."""
        self._causes = causes
        self._redraw()

    @property
    def bands(self) -> tuple[Band, ...]:
        """The shades on show."""
        return self._bands

    def set_compact(self, compact: bool) -> None:  # noqa: FBT001  # a Qt slot
        """For small windows: without the panel of learning rate and gradient norm."""
        if compact != self._compact:
            self._compact = compact
            self._arrange()

    @property
    def hidden_panels(self) -> tuple[str, ...]:
        """Keys of the panels that there is no room for."""
        return self.stage.hidden

    def describe(self) -> str:
        """All heads in words, for screen readers."""
        heads = [track.panel.head for track in self.stage.shown]
        return "\n".join(f"{head.title}: {', '.join(key.text for key in head.keys) or head.hint}" for head in heads)

    # -- drawing --------------------------------------------------------------------------------------------------

    def _on_screen(self) -> bool:
        return self.isVisible() and not self.window().isMinimized()

    def _draw(self) -> bool:
        view = self.view
        frame = self._source.frame(view, theme=self._theme, load=self.load)
        self._bands = self._source.bands(view, self._causes, pixels=self.stage.lane.plot.width())
        self.stage.lane.add(self._source.new_events())
        self.stage.draw_time(view, self._ticks(view), now_x=0.0 if view.live else self._window.now_x)
        return self.stage.draw(frame, forecast=self._source.forecast(), bands=self._bands)

    def _ticks(self, view: View) -> tuple[TimeTick, ...]:
        at_most = max(2, int(self.stage.lane.plot.width() / (_TICK_LINES * self._types.line)))
        if view.live:
            return live_ticks(view, self._words, at_most=at_most)
        return browsed_ticks(view, self._source.wall_s, at_most=at_most)

    def _redraw(self) -> None:
        """Everything again: now, if it is on screen, else at the next refresh."""
        self.stage.forget()
        self._drawn_at_s = -_LONGEST_STALE_S
        self.refresh_texts()
        self.refresh()

    def _after_navigation(self) -> None:
        self._drawn_at_s = -_LONGEST_STALE_S
        if self._on_screen():
            self._draw()
        self._span_bar.set_state(span_s=self.span_s, live=self.live, hidden=self.hidden_panels)
        self._place_span_bar()
        if self._cursor_x is not None:
            self._show_cursor(self._cursor_x)
        self.span_changed.emit(self.span_s)
        self.live_changed.emit(self.live)

    # -- geometry -------------------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        self.stage.arrange(compact=self._compact)
        self._span_bar.set_small(small=self.width() < _SMALL_WIDTH * self._types.line)
        self._span_bar.set_state(span_s=self.span_s, live=self.live, hidden=self.hidden_panels)
        self._place_span_bar()
        self._redraw()

    def _place_span_bar(self) -> None:
        """At the right of the first head that is shown."""
        first, canvas = self.stage.shown[0].panel, self.stage.canvas
        rect = canvas.rect_of(first).translated(canvas.x(), canvas.y())
        self._span_bar.adjustSize()
        size = self._span_bar.sizeHint()
        inset = 0.5 * self._types.line
        left, top = rect.right() - size.width() - inset, rect.top() + 0.3 * inset + 1
        self._span_bar.setGeometry(round(left), round(top), size.width(), size.height())
        for track in self.stage.tracks.values():
            track.panel.head_item.set_room_taken(size.width() if track.panel is first else 0.0)

    # -- cursor ---------------------------------------------------------------------------------------------------

    @property
    def cursor_t_s(self) -> float | None:
        """Session time at the cursor; ``None`` while there is none."""
        return None if self._cursor_x is None else self.view.anchor_s + self._cursor_x

    @property
    def read_out(self) -> ReadOut:
        """What the box at the cursor says."""
        return self.stage.box.said

    def move_cursor(self, x: float) -> None:
        """Put the cursor ``x`` seconds from the window's anchor, within the window and not beyond now."""
        self._show_cursor(min(max(x, self.view.left), min(self.view.right, self._window.now_x)))

    def hide_cursor(self) -> None:
        self._cursor_x = None
        self.stage.hide_cursor()

    def _show_cursor(self, x: float) -> None:
        self._cursor_x = x
        said = None
        if x <= self._window.now_x:  # nothing was measured in the future
            said = self._source.read_out(
                self.view.anchor_s + x,
                hidden=self.hidden_panels,
                load=self.load,
                throttles=frozenset(band.cause for band in self._bands if band.left <= x <= band.right),
            )
        self.stage.show_cursor(x, self.view, said)

    # -- mouse and keys -------------------------------------------------------------------------------------------

    def _on_pressed(self) -> None:
        self.setFocus(Qt.FocusReason.MouseFocusReason)

    def _on_hovered(self, position: QPointF) -> None:
        canvas, lane = self.stage.canvas, self.stage.lane
        rect = canvas.rect_of(lane)
        event = lane.event_at(position.x() - rect.left()) if rect.contains(position) else None
        if event is not None:
            text = texts.event_details(event, numbers.wall_time(self._source.wall_s(event.t_s)))
            QToolTip.showText(canvas.mapToGlobal(position.toPoint()), text, canvas)
        elif self.stage.panel_at(position, head=True) == "utilization":
            QToolTip.showText(canvas.mapToGlobal(position.toPoint()), texts.load_meaning(self.load), canvas)
        canvas.viewport().setCursor(_HAND if self._opens_choice(position) else _ARROW)
        self._show_cursor(self.stage.seconds_at(position.x(), self.view))

    def _opens_choice(self, position: QPointF) -> bool:
        return self.stage.title_at(position) == "utilization"

    def _on_clicked(self, position: QPointF) -> None:
        if self._opens_choice(position):
            head = self.stage.tracks["utilization"].panel.head_item
            corner = head.mapToScene(head.title_rect.bottomLeft()).toPoint()
            self.menu_wanted.emit("utilization", self.stage.canvas.mapToGlobal(corner))

    def _on_menu_wanted(self, position: QPointF) -> None:
        self.menu_wanted.emit(self.stage.panel_at(position), self.stage.canvas.mapToGlobal(position.toPoint()))

    def _on_dragged(self, pixels: float) -> None:
        self.pan(-pixels / self.stage.stretch.width() * self.view.width)

    def _on_zoomed(self, factor: float, position: QPointF) -> None:
        self._window.zoom(factor, at=self.stage.seconds_at(position.x(), self.view))
        self._after_navigation()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._handle_key(event):
            self.show_ring()
        else:
            super().keyPressEvent(event)

    def _handle_key(self, event: QKeyEvent) -> bool:
        """← → move the cursor (with Shift ten times as far), + − zoom, Page keys browse, Home is now, Esc no cursor."""
        key, width = event.key(), self.view.width
        if key in {Qt.Key.Key_Left, Qt.Key.Key_Right}:
            self._step_cursor(-1 if key == Qt.Key.Key_Left else 1, event.modifiers())
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

    def _step_cursor(self, direction: int, modifiers: Qt.KeyboardModifier) -> None:
        steps = direction * (_FAR if modifiers & Qt.KeyboardModifier.ShiftModifier else 1)
        start = min(self.view.right, self._window.now_x) if self._cursor_x is None else self._cursor_x
        self.move_cursor(start + steps * _KEY_STEP * self.view.width)

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
            self.stage.set_types(self._types)
            self._arrange()
        super().changeEvent(event)
