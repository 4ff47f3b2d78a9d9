"""The key of the timeline: a swatch for each kind of block, a dash for each line, in as many rows as it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from desktop_app.ui.brush import Typeset, write
from desktop_app.ui.theme import Theme, color

_ROW: Final = 1.35  # label lines
_SWATCH: Final = 0.62
_INDENT: Final = 0.95
_GAP: Final = 1.1


@dataclass(frozen=True, slots=True)
class Entry:
    """What a colour stands for. ``dash``: a line and no area."""

    text: str
    tint: QColor
    dash: bool = False


class Legend(QWidget):
    """As high as its entries need at its width."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._types = Typeset(self.font())
        self._entries: Sequence[Entry] = ()
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def set_entries(self, entries: Sequence[Entry], theme: Theme) -> None:
        if list(entries) != list(self._entries) or theme != self._theme:
            self._entries, self._theme = entries, theme
            self.setAccessibleName(", ".join(entry.text for entry in entries))
            self.updateGeometry()
            self.update()

    def _places(self, width: float) -> list[QRectF]:
        """Where each entry goes, left to right and then below."""
        line = self._types.line
        places = []
        x = y = 0.0
        for entry in self._entries:
            own = _INDENT * line + self._types.label.width(entry.text) + 2
            if x and x + own > width:
                x, y = 0.0, y + _ROW * line
            places.append(QRectF(x, y, min(own, width), _ROW * line))
            x += own + _GAP * line
        return places

    def heightForWidth(self, width: int) -> int:
        places = self._places(width)
        return round(places[-1].bottom()) + 1 if places else 0

    def sizeHint(self) -> QSize:
        return QSize(round(30 * self._types.line), self.heightForWidth(max(self.width(), 200)))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(10 * self._types.line), round(_ROW * self._types.line) if self._entries else 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width may take other rows, and the size hint, which is the most a layout gives, goes by the width."""
        super().resizeEvent(event)
        if self.heightForWidth(self.width()) != self.height():
            self.updateGeometry()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.FontChange:
            self._types = Typeset(self.font())
            self.updateGeometry()
        super().changeEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        line = self._types.line
        for entry, place in zip(self._entries, self._places(self.width()), strict=True):
            side = _SWATCH * line
            middle = place.center().y()
            if entry.dash:
                mark = QRectF(place.left(), round(middle - 1), side, 3)
                painter.setPen(Qt.PenStyle.NoPen)
            else:
                mark = QRectF(place.left() + 0.5, round(middle - side / 2) + 0.5, round(side), round(side))
                painter.setPen(color(self._theme.line))
            painter.setBrush(entry.tint)
            painter.drawRoundedRect(mark, 2, 2)
            write(
                painter,
                place.adjusted(_INDENT * line, 0, 0, 0),
                entry.text,
                self._types.label,
                color(self._theme.muted),
            )
        painter.end()
