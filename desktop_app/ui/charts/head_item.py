"""The head of a panel: its name, and a colour key with the present values. Lies over the lines of now and cursor."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
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
_ARROW: Final = " \N{BLACK DOWN-POINTING SMALL TRIANGLE}"


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
    menu: bool = False  # its name opens a choice


def _kinds(head: Head) -> tuple[str, tuple[str, ...]]:
    """The words of a head without its figures."""
    return head.title, tuple("".join(filter(str.isalpha, key.text)) for key in head.keys)


def _fitting(widths: list[float], room: float, gap: float) -> list[float]:
    """The first of ``widths`` that fit beside one another."""
    ends = accumulate(widths, lambda end, width: end + gap + width)
    return [width for width, end in zip(widths, ends, strict=True) if end <= room + 0.5]


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
        if _kinds(head) != _kinds(self._head):
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
        self._word(painter, title, self._title, types.title, self._theme.text)
        x += types.title.width(self._title) + _GAP * line
        for key, width in zip(self._head.keys, self.key_widths(right - x), strict=False):
            self._key(painter, QRectF(x, 0, width, height), key)
            x += width + _GAP * line

    @property
    def _title(self) -> str:
        return self._head.title + (_ARROW if self._head.menu else "")

    @property
    def title_rect(self) -> QRectF:
        """Where its name stands."""
        left = _MARGIN * self._types.line
        return QRectF(left, 0, self._types.title.width(self._title), self._size.height())

    def key_widths(self, room: float) -> list[float]:
        """Of the entries that fit into ``room``; what does not is left out whole: half a number is a wrong number.

        Each is as wide as it has ever been, so that entries do not move as digits change; where that would push one
        out, as wide as it is.
        """
        own = [self._own_width(key) for key in self._head.keys]
        kept = self._widths if len(self._widths) == len(own) else own
        self._widths = [max(pair) for pair in zip(own, kept, strict=True)]
        gap = _GAP * self._types.line
        steady = _fitting(self._widths, room, gap)
        return steady if len(steady) == len(own) else _fitting(own, room, gap)

    def _own_width(self, key: Key) -> float:
        return (_DASH * self._types.line if key.dash else 0.0) + self._types.label.width(key.text)

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
