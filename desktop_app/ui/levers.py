"""What would help: one row per change, with what it saves; a click puts it into the form."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QVBoxLayout, QWidget

from desktop_app.core.forecasts import Lever
from desktop_app.training.config import RunConfig
from desktop_app.ui import theme as themes
from desktop_app.ui.labels import Divider, Label, clear_layout
from desktop_app.ui.texts import levers as texts
from desktop_app.ui.theme import FontRole, Theme, color

_BAR_HEIGHT: Final = 4
_SIDE: Final = 10


class LeverButton(QPushButton):
    """Name at the left, saving at the right, and a bar of the saving's share of the largest one."""

    def __init__(self, lever: Lever, config: RunConfig, *, share: float, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("lever")
        self.lever = lever
        self._share = share
        self._theme = theme
        self._saved = texts.saved(lever)
        self.setText(texts.name(lever, config))
        self.setAccessibleName(f"{self.text()}, {self._saved}")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._tip = texts.choose(lever, config)
        self.setToolTip(self._tip)

    def set_locked(self, *, locked: bool) -> None:
        self.setEnabled(not locked)
        self.setToolTip(texts.locked() if locked else self._tip)

    def sizeHint(self) -> QSize:
        return QSize(200, self.fontMetrics().height() + 20)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        theme = self._theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.setPen(color(theme.accent) if self.hasFocus() else Qt.PenStyle.NoPen)
        painter.setBrush(color(theme.hover if self.underMouse() and self.isEnabled() else theme.raised))
        painter.drawRoundedRect(whole, themes.CONTROL_RADIUS, themes.CONTROL_RADIUS)
        self._paint_bar(painter, whole)
        self._paint_words(painter)

    def _paint_bar(self, painter: QPainter, whole: QRectF) -> None:
        bar = QRectF(whole.left(), whole.bottom() - _BAR_HEIGHT, whole.width() * self._share, _BAR_HEIGHT)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color(self._theme.accent))
        painter.drawRoundedRect(bar, _BAR_HEIGHT / 2, _BAR_HEIGHT / 2)

    def _paint_words(self, painter: QPainter) -> None:
        inner = self.rect().adjusted(_SIDE, 0, -_SIDE, -_BAR_HEIGHT)
        aligned = Qt.AlignmentFlag.AlignVCenter
        saved_font = themes.font(FontRole.TITLE)
        painter.setFont(saved_font)
        painter.setPen(color(self._theme.ok))
        painter.drawText(inner, aligned | Qt.AlignmentFlag.AlignRight, self._saved)
        room = inner.width() - painter.fontMetrics().horizontalAdvance(self._saved) - _SIDE
        painter.setFont(themes.font(FontRole.LABEL))
        painter.setPen(color(self._theme.text))
        text = painter.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, room)
        painter.drawText(inner, aligned | Qt.AlignmentFlag.AlignLeft, text)


class LeverList(QWidget):
    """All levers of an estimate. ``chosen`` carries the ``Lever``."""

    chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._heading = Label(font=FontRole.TITLE)
        self._note = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._shown: tuple[tuple[Lever, ...], RunConfig] | None = None
        self._locked = False
        self._rows = QVBoxLayout()
        self._rows.setSpacing(8)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(Divider())
        layout.addWidget(self._heading)
        layout.addLayout(self._rows)
        layout.addWidget(self._note)
        self.retranslate()

    def show_levers(self, levers: tuple[Lever, ...], config: RunConfig | None) -> None:
        """The levers of an estimate of ``config``, in the order they came; hidden when there are none."""
        self.setVisible(bool(levers))
        if config is None or not levers or self._shown == (levers, config):
            return
        self._shown = (levers, config)
        clear_layout(self._rows)
        most = max(max(lever.saved_bytes for lever in levers), 1)
        for lever in levers:
            button = LeverButton(lever, config, share=max(lever.saved_bytes, 0) / most, theme=self._theme)
            button.set_locked(locked=self._locked)
            button.clicked.connect(lambda _checked=False, lever=lever: self.chosen.emit(lever))
            self._rows.addWidget(button)

    def set_leak(self, *, leaking: bool) -> None:
        """Say that no lever helps against a leak."""
        self._note.setVisible(leaking)

    def set_locked(self, *, locked: bool) -> None:
        self._locked = locked
        for button in self.findChildren(LeverButton):
            button.set_locked(locked=locked)

    def retranslate(self) -> None:
        self._heading.setText(self.tr("What would help"))
        self._note.setText(texts.no_help_against_leak())
        self._rebuild()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._rebuild()

    def _rebuild(self) -> None:
        shown, self._shown = self._shown, None
        if shown is not None:
            self.show_levers(*shown)
