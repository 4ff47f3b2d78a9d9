"""Small things that all painted widgets share: fonts measured once, text placed and shortened."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter

from desktop_app.ui.theme import FontRole, font

LEFT: Final = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
CENTRE: Final = Qt.AlignmentFlag.AlignCenter


class Type:
    """A font and its measures, asked once. All lengths in logical pixels."""

    __slots__ = ("_metrics", "_widths", "font", "height")

    def __init__(self, made: QFont) -> None:
        self.font = made
        self._metrics = QFontMetricsF(made)
        self._widths: dict[str, float] = {}
        self.height = self._metrics.height()

    def width(self, text: str) -> float:
        """Of one line. Remembered: the same words are measured again with every frame."""
        known = self._widths.get(text)
        if known is None:
            if len(self._widths) > 512:
                self._widths.clear()
            known = self._widths[text] = self._metrics.horizontalAdvance(text)
        return known

    def shortened(self, text: str, room: float) -> str:
        """``text``, or its beginning and an ellipsis where it is wider than ``room``."""
        if self.width(text) <= room:
            return text
        return self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)

    def shortened_middle(self, text: str, room: float) -> str:
        """For paths, whose ends tell most."""
        if self.width(text) <= room:
            return text
        return self._metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, room)


class Typeset:
    """The types of one widget, made from its font. ``line`` is the height of a label line."""

    def __init__(self, base: QFont) -> None:
        self.title = Type(font(FontRole.TITLE, base))
        self.body = Type(font(FontRole.BODY, base))
        self.label = Type(font(FontRole.LABEL, base))
        self.label_bold = Type(_bold(font(FontRole.LABEL, base)))
        self.tick = Type(font(FontRole.TICK, base))
        self.tick_bold = Type(_bold(font(FontRole.TICK, base)))
        self.figure = Type(font(FontRole.FIGURE, base))
        self.line = self.label.height


def _bold(made: QFont) -> QFont:
    made.setWeight(QFont.Weight.DemiBold)
    return made


def write(
    painter: QPainter,
    rect: QRectF,
    text: str,
    kind: Type,
    color: QColor,
    *,
    align: Qt.AlignmentFlag = LEFT,
) -> None:
    """One line of text in ``rect``, shortened to fit."""
    painter.setFont(kind.font)
    painter.setPen(color)
    painter.drawText(rect, align, kind.shortened(text, rect.width()))
