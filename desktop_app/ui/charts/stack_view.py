"""The one graphics view of the stack: places the panels and tells what mouse and wheel ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QMouseEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QFrame, QGraphicsWidget, QWidget

SPACING: Final = 8
_NOTCH: Final = 120.0  # wheel units of one notch (QWheelEvent::angleDelta)
_ZOOM_PER_NOTCH: Final = 1.25
_STILL: Final = 3  # pixels: a hand that clicks trembles


class StackView(pg.GraphicsLayoutWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """pyqtgraph's view and layout without its mouse: hover events to every item are dear and not needed."""

    hovered = Signal(QPointF)  # pixels of the scene
    left = Signal()
    dragged = Signal(float)  # pixels since the last one, to the right
    zoomed = Signal(float, QPointF)  # factor of the time shown, and where
    pressed = Signal()
    clicked = Signal(QPointF)  # pressed and let go at one place
    menu_wanted = Signal(QPointF)
    double_clicked = Signal()
    resized = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent=parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.ci.layout.setContentsMargins(0, 0, 0, 0)
        self.ci.layout.setVerticalSpacing(SPACING)
        self.viewport().setMouseTracking(True)
        self._drag_x: float | None = None
        self._press: QPointF | None = None
        self._rows: dict[str, int] = {}

    def add_panel(self, key: str, panel: QGraphicsWidget) -> None:
        """Append a panel below the others."""
        row = self._rows[key] = len(self._rows)
        self.addItem(panel, row=row, col=0)

    def set_heights(self, heights: Mapping[str, float]) -> None:
        """Heights by key; a panel that is not named is hidden and takes no room."""
        layout = self.ci.layout
        for key, row in self._rows.items():
            item = self.ci.getItem(row, 0)
            height = heights.get(key)
            item.setVisible(height is not None)
            layout.setRowFixedHeight(row, 0.0 if height is None else height)
            layout.setRowSpacing(row, 0.0 if height is None else SPACING)
        layout.activate()

    def rect_of(self, item: QGraphicsWidget) -> QRectF:
        """An item's rectangle in pixels of the scene."""
        rect: QRectF = item.mapRectToScene(QRectF(QPointF(0, 0), item.size()))
        return rect

    # -- mouse ----------------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.pressed.emit()
        if event.button() is Qt.MouseButton.LeftButton:
            self._drag_x = event.position().x()
            self._press = event.position()
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        position = event.position()
        if self._drag_x is not None and event.buttons() & Qt.MouseButton.LeftButton:
            self.dragged.emit(position.x() - self._drag_x)
            self._drag_x = position.x()
        self.hovered.emit(position)
        event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._drag_x = None
        press, self._press = self._press, None
        if press is not None and (event.position() - press).manhattanLength() <= _STILL:
            self.clicked.emit(event.position())
        event.accept()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.menu_wanted.emit(QPointF(event.pos()))
        event.accept()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.double_clicked.emit()
        event.accept()

    def wheelEvent(self, event: QWheelEvent) -> None:
        notches = event.angleDelta().y() / _NOTCH
        if notches:
            self.zoomed.emit(_ZOOM_PER_NOTCH**-notches, event.position())
        elif event.angleDelta().x():
            self.dragged.emit(event.angleDelta().x() / 2)
        event.accept()

    def leaveEvent(self, event: QEvent) -> None:
        self.left.emit()
        super().leaveEvent(event)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        # pyqtgraph calls this once from its own constructor.
        if event is not None:
            self.resized.emit()
