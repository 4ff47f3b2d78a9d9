"""The timeline under mouse and keyboard."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from desktop_app.ui.memory.scene import Point, Scene
from desktop_app.ui.memory.timeline_layout import Layout
from desktop_app.ui.memory.timeline_view import TimelineView
from desktop_app.ui.theme import Theme

_KEY_ZOOM: Final = 1.5
_KEY_STEP: Final = 0.01  # share of the stretch that an arrow key moves the cursor
_FAR: Final = 10
_NOTCH: Final = 120.0
_ZOOM_PER_NOTCH: Final = 1.25


class TimelineCanvas(TimelineView):
    """Wheel and drag zoom and pan, a click pins; every one of them can be done by keys."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._pressed: QPointF | None = None
        self._dragged_to: QPointF | None = None
        self.setMouseTracking(True)

    # -- mouse ----------------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self._layout is not None:
            self.setFocus(Qt.FocusReason.MouseFocusReason)
            self._pressed = self._dragged_to = event.position()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        scene, position = self.scene(), event.position()
        if scene is None:
            return
        if self._pressed is not None and self._dragged_to is not None:
            if not self._is_click(position):
                self._dragging = True
                moved = position - self._dragged_to
                self._dragged_to = position
                stretch, plot = self._stretch, scene.plot
                across = -moved.x() / plot.width() * stretch.width
                self._set_stretch(stretch.moved(across, moved.y() / plot.height() * stretch.height))
        elif self._pinned is None:
            inside = scene.plot.contains(position)
            self._set_cursor(scene.point_at(position) if inside else None, position)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        scene, pressed = self.scene(), self._pressed
        self._pressed = self._dragged_to = None
        self._dragging = False
        self._changed()
        if scene is None or pressed is None or event.button() is not Qt.MouseButton.LeftButton:
            return
        if (event.position() - pressed).manhattanLength() < QApplication.startDragDistance():
            self._click(scene, event.position())

    def _is_click(self, position: QPointF) -> bool:
        """Not yet moved far enough to be a drag; once it is one it stays one."""
        if self._pressed is None or self._dragging:
            return False
        return (position - self._pressed).manhattanLength() < QApplication.startDragDistance()

    def _click(self, scene: Scene, position: QPointF) -> None:
        """Pin what is under the mouse; the pinned one or nothing lets go."""
        point = scene.point_at(position)
        block = self._layout.block_at(point.event, point.height_bytes) if self._layout is not None else None
        again = block is not None and block == self._pinned
        self._set_cursor(point, position)
        self._set_pinned(None if again else block)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self.show_whole()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        if self._pinned is None:
            self._set_cursor(None, self._near)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Wheel: time around the mouse; with Ctrl the height as well; to the side, or with Shift: along the step."""
        scene = self.scene()
        if scene is None:
            return
        delta, keys = event.angleDelta(), event.modifiers()
        across = delta.x() or (delta.y() if keys & Qt.KeyboardModifier.ShiftModifier else 0)
        if across:
            self._set_stretch(self._stretch.moved(-across / _NOTCH * 0.1 * self._stretch.width))
        elif delta.y():
            factor = _ZOOM_PER_NOTCH ** (-delta.y() / _NOTCH)
            share = (event.position().x() - scene.plot.left()) / scene.plot.width()
            at = self._stretch.first + min(max(share, 0.0), 1.0) * self._stretch.width
            height = scene.point_at(event.position()).height_bytes
            upwards = bool(keys & Qt.KeyboardModifier.ControlModifier)
            self._set_stretch(self._stretch.zoomed(factor, event=at, height_bytes=height if upwards else None))
        event.accept()

    # -- keys -----------------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._layout is not None and self._handle_key(event, self._layout):
            self.show_ring()
        else:
            super().keyPressEvent(event)

    def _handle_key(self, event: QKeyEvent, layout: Layout) -> bool:
        """← → move the cursor (Shift: far), ↑ ↓ go from block to block, Enter pins, + − zoom, Home is the whole."""
        key = event.key()
        if key in {Qt.Key.Key_Left, Qt.Key.Key_Right}:
            self._step_across(layout, -1 if key == Qt.Key.Key_Left else 1, event.modifiers())
        elif key in {Qt.Key.Key_Up, Qt.Key.Key_Down}:
            self._step_up(layout, 1 if key == Qt.Key.Key_Up else -1)
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space} and self._hovered is not None:
            self._set_pinned(None if self._pinned == self._hovered else self._hovered)
        elif key in {Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus}:
            self.zoom(_KEY_ZOOM if key == Qt.Key.Key_Minus else 1 / _KEY_ZOOM)
        elif key in {Qt.Key.Key_PageUp, Qt.Key.Key_PageDown}:
            self._set_stretch(self._stretch.moved((-0.5 if key == Qt.Key.Key_PageUp else 0.5) * self._stretch.width))
        elif key == Qt.Key.Key_Home:
            self.show_whole()
        elif key == Qt.Key.Key_Escape and (self._pinned is not None or self._cursor is not None):
            self._set_pinned(None)
            self._set_cursor(None, self._near)
        else:
            return False
        return True

    def _go_to(self, point: Point) -> None:
        self._set_stretch(self._stretch.showing(point.event, point.height_bytes))
        self._set_pinned(None)
        self._set_cursor(point, self._position_of(point))
        self._describe()

    def _start(self, layout: Layout) -> Point:
        """Where the keyboard begins: in the largest block at the peak."""
        if self._cursor is not None:
            return self._cursor
        event = layout.peak_event
        alive = layout.alive(event)
        if not len(alive):
            return Point(event, 0.0)
        block = int(alive[layout.timeline.size_bytes[alive].argmax()])
        return Point(event, layout.bottom_at(block, event) + int(layout.timeline.size_bytes[block]) / 2)

    def _step_across(self, layout: Layout, direction: int, keys: Qt.KeyboardModifier) -> None:
        start = self._start(layout)
        far = _FAR if keys & Qt.KeyboardModifier.ShiftModifier else 1
        step = direction * far * max(1, round(_KEY_STEP * self._stretch.width))
        event = min(max(start.event + step, 0), layout.timeline.event_count - 1)
        self._go_to(Point(event, start.height_bytes))

    def _step_up(self, layout: Layout, direction: int) -> None:
        start = self._start(layout)
        alive = layout.alive(start.event)
        if not len(alive):
            return
        block = layout.block_at(start.event, start.height_bytes)
        place = int(alive.searchsorted(block)) + direction if block is not None else len(alive) - 1
        chosen = int(alive[min(max(place, 0), len(alive) - 1)])
        size = int(layout.timeline.size_bytes[chosen])
        self._go_to(Point(start.event, layout.bottom_at(chosen, start.event) + size / 2))
