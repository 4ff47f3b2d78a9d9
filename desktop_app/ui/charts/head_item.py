"""The head of a panel: its name, and a colour key with the present values. Lies over the lines of now and cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QRectF, QSizeF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QGraphicsItem, QGraphicsObject, QStyleOptionGraphicsItem, QWidget

from desktop_app.ui.brush import Type, Typeset, write
from desktop_app.ui.theme import Theme, color

HEAD_Z: Final = 65  # over now (50) and the cursor (60), under the read-out (70)
_MARGIN: Final = 1.1  # label lines
_GAP: Final = 1.3
_DASH: Final = 1.15  # the dash and its gap


@dataclass(frozen=True, slots=True)
class Key:
    """One entry: a coloured dash and what it stands for now. ``token`` is a colour of the theme."""

    text: str
    token: str = "muted"  # noqa: S105  # a colour
    loud: bool = False  # the text itself is in the colour: a reason, not a value
    dash: bool = True


@dataclass(frozen=True, slots=True)
class Head:
    """What a head says. ``hint``: what stands in the middle of the plot while it is empty."""

    title: str = ""
    keys: tuple[Key, ...] = ()
    hint: str = ""


class HeadItem(QGraphicsObject):
    """Kept as a picture between two changes of its text."""

    def __init__(self, theme: Theme, types: Typeset) -> None:
        super().__init__()
        self._theme = theme
        self._types = types
        self._head = Head()
        self._size = QSizeF()
        self._widths: list[float] = []
        self._room_taken = 0.0
        self.setZValue(HEAD_Z)
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)

    @property
    def head(self) -> Head:
        return self._head

    def set_head(self, head: Head) -> None:
        if head == self._head:
            return
        if len(head.keys) != len(self._head.keys) or head.title != self._head.title:
            self._widths = []
        self._head = head
        self.update()

    def set_look(self, theme: Theme, types: Typeset) -> None:
        self._theme, self._types = theme, types
        self._widths = []
        self.update()

    def set_size(self, size: QSizeF) -> None:
        if size != self._size:
            self.prepareGeometryChange()
            self._size = QSizeF(size)

    def set_room_taken(self, pixels: float) -> None:
        """``pixels`` at its right belong to somebody else."""
        if pixels != self._room_taken:
            self._room_taken = pixels
            self.update()

    def boundingRect(self) -> QRectF:
        return QRectF(0, 0, self._size.width(), self._size.height())

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        del option, widget
        line, types = self._types.line, self._types
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        height = self._size.height()
        x = _MARGIN * line
        right = self._size.width() - x - self._room_taken
        title = QRectF(x, 0, right - x, height)
        self._word(painter, title, self._head.title, types.title, self._theme.text)
        x += types.title.width(self._head.title) + _GAP * line
        for index, key in enumerate(self._head.keys):
            width = self._key_width(index, key)
            if x + width > right + 0.5:
                break  # what does not fit is left out whole: half a number is a wrong number
            self._key(painter, QRectF(x, 0, width, height), key)
            x += width + _GAP * line

    def _key_width(self, index: int, key: Key) -> float:
        """Its widest so far, so that entries do not move as digits change."""
        width = (_DASH * self._types.line if key.dash else 0.0) + self._types.label.width(key.text)
        if index >= len(self._widths):
            self._widths.append(width)
        self._widths[index] = max(self._widths[index], width)
        return self._widths[index]

    def _key(self, painter: QPainter, rect: QRectF, key: Key) -> None:
        value = getattr(self._theme, key.token)
        if key.dash:
            line = self._types.line
            dash = QRectF(rect.left(), round(rect.center().y() - 1), round(0.75 * line), 3)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color(value))
            painter.drawRoundedRect(dash, 1, 1)
            rect = rect.adjusted(_DASH * line, 0, 0, 0)
        self._word(painter, rect.adjusted(0, 0, 2, 0), key.text, self._types.label, value if key.loud else "")

    def _word(self, painter: QPainter, rect: QRectF, text: str, kind: Type, value: str) -> None:
        """Text on its own piece of card: no line runs through it."""
        behind = QRectF(rect.left() - 2, rect.center().y() - kind.height / 2, kind.width(text) + 4, kind.height)
        painter.fillRect(behind & rect.adjusted(-2, 0, 2, 0), color(self._theme.surface))
        write(painter, rect, text, kind, color(value or self._theme.muted))
