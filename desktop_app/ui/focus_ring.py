"""A widget that shows a ring while the keyboard is on it."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from desktop_app.ui.theme import PANEL_RADIUS, color

MARGIN: Final = 2  # pixels that the ring needs around the content
_KEYBOARD: Final = frozenset(
    {Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason, Qt.FocusReason.ShortcutFocusReason}
)


class RingedWidget(QWidget):
    """Keeps ``MARGIN`` pixels free around its content for the ring. A mouse needs none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._ring = False
        self._ring_color = ""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def set_ring_color(self, value: str) -> None:
        self._ring_color = value
        self.update()

    def show_ring(self) -> None:
        """A key was used here, however the focus came."""
        self._ring = True
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._ring = event.reason() in _KEYBOARD
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._ring = False
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._ring:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(color(self._ring_color), 2))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), PANEL_RADIUS + 2, PANEL_RADIUS + 2)
        painter.end()
