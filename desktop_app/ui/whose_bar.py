"""A bar of whose memory it was, and its key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QVBoxLayout, QWidget

from desktop_app.ui.labels import Label, type_scale
from desktop_app.ui.texts import numbers, oom_words
from desktop_app.ui.theme import FontRole, Theme, color

_HEIGHT: Final = 22
_RADIUS: Final = 6.0
_SWATCH: Final = 10
_GAP: Final = 1.0
# From the left; the colours are those of the tank.
_TOKENS: Final = {
    "allocated": "tank_activations",
    "private_pools": "tank_workspace",
    "idle": "tank_parameters",
    "outside": "tank_context",
    "others": "warn",
    "free": "",
}


class StackedBar(QWidget):
    """Parts beside each other; one without a colour of its own is an empty outline."""

    def __init__(self, shares: Mapping[str, int], theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shares = shares
        self._theme = theme
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(
            ", ".join(f"{oom_words.share(name)} {numbers.size(size)}" for name, size in shares.items())
        )

    def sizeHint(self) -> QSize:
        return QSize(240, round(_HEIGHT * type_scale()))

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        frame = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        outline = QPainterPath()
        outline.addRoundedRect(frame, _RADIUS, _RADIUS)
        painter.fillPath(outline, color(self._theme.sunken))
        painter.setClipPath(outline)
        left, whole = frame.left(), sum(self._shares.values()) or 1
        for name, size in self._shares.items():
            width = frame.width() * size / whole
            token = _TOKENS.get(name, "")
            if token:
                part = QRectF(left, frame.top(), max(width - _GAP, 1.0), frame.height())
                painter.fillRect(part, color(getattr(self._theme, token)))
            left += width
        painter.setClipping(False)
        painter.setPen(QPen(color(self._theme.line), 1))
        painter.drawPath(outline)


class _Swatch(QWidget):
    def __init__(self, tint: str, theme: Theme) -> None:
        super().__init__()
        self._tint = tint
        self._theme = theme
        size = round(_SWATCH * type_scale())
        self.setFixedSize(size, size)

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(color(self._theme.line), 1) if not self._tint else Qt.PenStyle.NoPen)
        painter.setBrush(color(self._tint) if self._tint else color(self._theme.sunken))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 2, 2)


class WhoseBar(QWidget):
    """``shares`` are bytes by holder, in the names of ``memory.oom_verdict``."""

    def __init__(self, shares: Mapping[str, int], theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        known = {name: shares[name] for name in _TOKENS if shares.get(name, 0) > 0}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(StackedBar(known, theme))
        grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(3)
        grid.setColumnStretch(1, 1)
        for row, (name, size) in enumerate(known.items()):
            token = _TOKENS[name]
            grid.addWidget(_Swatch(getattr(theme, token) if token else "", theme), row, 0)
            grid.addWidget(Label(oom_words.share(name), font=FontRole.LABEL, wrap=True), row, 1)
            held = Label(numbers.size(size), font=FontRole.LABEL, role="muted")
            grid.addWidget(held, row, 2, Qt.AlignmentFlag.AlignRight)
        layout.addLayout(grid)
