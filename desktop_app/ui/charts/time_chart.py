"""What every chart with a time axis has: the window and its presets, the cursor, mouse and keys, and its shades."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from desktop_app.services.facade import Workspace
from desktop_app.ui.brush import Typeset
from desktop_app.ui.charts import texts
from desktop_app.ui.charts.panel import Panel
from desktop_app.ui.charts.shades import Band
from desktop_app.ui.charts.span_bar import SpanBar
from desktop_app.ui.charts.stack_view import StackView
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.charts.time_axis import DEFAULT_SPAN_S, TimeTick, TimeWindow, View, browsed_ticks, live_ticks
from desktop_app.ui.focus_ring import MARGIN, RingedWidget
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


class TimeChart(RingedWidget):
    """The window calls ``refresh`` (10 Hz) and ``refresh_texts`` (2 Hz). Runs in: GUI thread. It owns no timer.

    A kind of chart makes its panels in a ``StackView``, gives it to ``_hold``, and fills in what is marked as its part.
    """

    span_changed = Signal(float)  # seconds on show, 0 for everything
    live_changed = Signal(bool)
    menu_wanted = Signal(str, QPoint)  # key of the panel, and where on the screen

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._clock = workspace.clock
        self._theme = theme
        self._types = Typeset(self.font())
        self._words = texts.time_words()
        self._window = TimeWindow(DEFAULT_SPAN_S)
        self._drawn_at_s = -_LONGEST_STALE_S
        self._cursor_x: float | None = None  # seconds from the anchor
        self._causes = frozenset({Throttle.HEAT})
        self._bands: tuple[Band, ...] = ()
        self._span_bar = SpanBar(self)

    def _hold(self, canvas: StackView) -> None:
        """Take the view with the panels."""
        self._canvas = canvas
        layout = QVBoxLayout(self)
        layout.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        layout.addWidget(canvas)
        self._span_bar.raise_()
        canvas.resized.connect(self._arrange)
        canvas.hovered.connect(self._on_hovered)
        canvas.left.connect(self.hide_cursor)
        canvas.dragged.connect(lambda pixels: self.pan(-pixels / self._stretch.width() * self.view.width))
        canvas.zoomed.connect(self._on_zoomed)
        canvas.pressed.connect(lambda: self.setFocus(Qt.FocusReason.MouseFocusReason))
        canvas.double_clicked.connect(self.go_live)
        canvas.menu_wanted.connect(self._on_menu_wanted)
        self._span_bar.chosen.connect(self.set_span_s)
        self._span_bar.live_wanted.connect(self.go_live)

    # -- the part of each kind of chart ---------------------------------------------------------------------------

    @property
    def _first_panel(self) -> Panel:
        """The uppermost on show: the presets lie in its head."""
        raise NotImplementedError

    @property
    def _plot_width(self) -> float:
        """Pixels of the time axis."""
        raise NotImplementedError

    @property
    def _stretch(self) -> QRectF:
        """The time axis in pixels of the scene, as high as the cursor."""
        raise NotImplementedError

    @property
    def _future_s(self) -> float | None:
        """Seconds of future that are wanted on show."""
        return None

    @property
    def hidden_panels(self) -> tuple[str, ...]:
        """Keys of the panels that there is no room for."""
        return ()

    def refresh_texts(self) -> None:
        """New values in the heads and at the cursor."""
        raise NotImplementedError

    def _draw(self) -> bool:
        """Draw the view; whether anything was new."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Draw everything anew at the next frame."""
        raise NotImplementedError

    def _place_panels(self) -> None:
        raise NotImplementedError

    def _take_types(self) -> None:
        """Letters of another size."""
        raise NotImplementedError

    def _show_cursor(self, x: float) -> None:
        """The cursor ``x`` seconds from the anchor, and what was measured there."""
        raise NotImplementedError

    def _clear_cursor(self) -> None:
        raise NotImplementedError

    def _panel_at(self, position: QPointF) -> str:
        """Key of the panel at a pixel of the scene."""
        raise NotImplementedError

    # -- what the window calls ------------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Draw what is new; whether anything was. Does nothing while nobody can see it."""
        if not self._on_screen():
            return False
        now_s, before = self._now_s, self.view
        pixels = self._plot_width * self.devicePixelRatioF()
        view = self._window.follow(now_s, pixels=pixels, forecast_s=self._future_s)
        patience_s = min(max(view.width / max(1.0, pixels) / 2, _STALE_S), _LONGEST_STALE_S)
        if view == before and now_s - self._drawn_at_s < patience_s:
            return False
        self._drawn_at_s = now_s
        return self._draw()

    def retranslate(self) -> None:
        """Take the texts of a new language."""
        self._words = texts.time_words()
        self._span_bar.retranslate()
        self._place_span_bar()
        self._redraw()

    def set_shades(self, causes: frozenset[Throttle]) -> None:
        """Shade the time in which one of ``causes`` held the card back."""
        self._causes = causes
        self._redraw()

    @property
    def bands(self) -> tuple[Band, ...]:
        """The shades on show."""
        return self._bands

    @property
    def _now_s(self) -> float:
        return self._clock.now_s()

    def _on_screen(self) -> bool:
        return self.isVisible() and not self.window().isMinimized()

    def _redraw(self) -> None:
        """Everything again: now, if it is on screen, else at the next refresh."""
        self._forget()
        self._drawn_at_s = -_LONGEST_STALE_S
        self.refresh_texts()
        self.refresh()

    def _ticks(self) -> tuple[TimeTick, ...]:
        """The figures of the time axis."""
        view = self.view
        at_most = max(2, int(self._plot_width / (_TICK_LINES * self._types.line)))
        if view.live:
            return live_ticks(view, self._words, at_most=at_most)
        return browsed_ticks(view, self._clock.wall_s, at_most=at_most)

    # -- navigation -----------------------------------------------------------------------------------------------

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
        self._zoom(factor, at=middle if self._cursor_x is None else self._cursor_x)

    def pan(self, seconds: float) -> None:
        """Move into the past (negative) or towards now."""
        self._window.pan(seconds)
        self._after_navigation()

    def _zoom(self, factor: float, *, at: float) -> None:
        self._window.zoom(factor, at=at)
        self._after_navigation()

    def _after_navigation(self) -> None:
        self._drawn_at_s = -_LONGEST_STALE_S
        if self._on_screen():
            self._draw()
        self._place_span_bar()
        if self._cursor_x is not None:
            self._show_cursor(self._cursor_x)
        self.span_changed.emit(self.span_s)
        self.live_changed.emit(self.live)

    # -- geometry -------------------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        self._place_panels()
        self._span_bar.set_small(small=self.width() < _SMALL_WIDTH * self._types.line)
        self._place_span_bar()
        self._redraw()

    def _place_span_bar(self) -> None:
        """At the right of the first head that is shown."""
        self._span_bar.set_state(span_s=self.span_s, live=self.live, hidden=self.hidden_panels)
        first = self._first_panel
        rect = self._canvas.rect_of(first).translated(self._canvas.x(), self._canvas.y())
        self._span_bar.adjustSize()
        size, inset = self._span_bar.sizeHint(), 0.5 * self._types.line
        left, top = rect.right() - size.width() - inset, rect.top() + 0.3 * inset + 1
        self._span_bar.setGeometry(round(left), round(top), size.width(), size.height())
        first.head_item.set_room_taken(size.width())

    # -- cursor, mouse and keys -----------------------------------------------------------------------------------

    def move_cursor(self, x: float) -> None:
        """Put the cursor ``x`` seconds from the window's anchor, within the window and not beyond now."""
        self._cursor_x = min(max(x, self.view.left), min(self.view.right, self._window.now_x))
        self._show_cursor(self._cursor_x)

    def hide_cursor(self) -> None:
        self._cursor_x = None
        self._clear_cursor()

    def _seconds_at(self, x: float) -> float:
        """Seconds from the anchor at a pixel of the scene, within the window."""
        stretch, view = self._stretch, self.view
        return view.left + min(max((x - stretch.left()) / stretch.width(), 0.0), 1.0) * view.width

    def _on_hovered(self, position: QPointF) -> None:
        self._cursor_x = self._seconds_at(position.x())
        self._show_cursor(self._cursor_x)

    def _on_zoomed(self, factor: float, position: QPointF) -> None:
        self._zoom(factor, at=self._seconds_at(position.x()))

    def _on_menu_wanted(self, position: QPointF) -> None:
        self.menu_wanted.emit(self._panel_at(position), self._canvas.mapToGlobal(position.toPoint()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """← → move the cursor (with Shift ten times as far), + − zoom, Page keys browse, Home is now, Esc no cursor."""
        if self._handle_key(event):
            self.show_ring()
        else:
            super().keyPressEvent(event)

    def _handle_key(self, event: QKeyEvent) -> bool:
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
            self._take_types()
            self._arrange()
        super().changeEvent(event)
