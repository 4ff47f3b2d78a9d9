"""One change that would help: a button, and for what the form cannot do the line to copy."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from desktop_app.core.forecasts import Estimate, Lever, Verdict
from desktop_app.training.config import RunConfig
from desktop_app.ui import theme as themes
from desktop_app.ui.brush import LEFT, RIGHT, Typeset, write
from desktop_app.ui.labels import Label
from desktop_app.ui.texts import levers as texts
from desktop_app.ui.theme import FontRole, Theme, color

_BAR_HEIGHT: Final = 4
_SIDE: Final = 10
_TOKENS: Final = {Verdict.FITS: "ok", Verdict.TIGHT: "warn", Verdict.DOES_NOT_FIT: "danger"}


class LeverButton(QPushButton):
    """Name and saving, below them the new peak with its verdict, and a bar of the saving's share of the largest one."""

    def __init__(self, lever: Lever, estimate: Estimate, config: RunConfig, *, share: float, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("lever")
        self.lever = lever
        self._share = share
        self._theme = theme
        self._saved = texts.saved(lever)
        self._outcome = texts.outcome(lever, estimate)
        self._token = _TOKENS[texts.verdict(lever, estimate)]
        self._applies = bool(lever.changes)
        self._types = Typeset(self.font())
        self.setText(texts.name(lever, config))
        self.setAccessibleName(f"{self.text()}, {self._saved}, {self._outcome}")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setCheckable(not self._applies)
        self._tip = texts.choose(lever, config)
        self.setToolTip(self._tip)

    def set_locked(self, *, locked: bool) -> None:
        """While a run is active the form takes no changes; lines to copy are there all the same."""
        locked = locked and self._applies
        self.setEnabled(not locked)
        self.setToolTip(texts.locked() if locked else self._tip)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.FontChange:
            self._types = Typeset(self.font())
        super().changeEvent(event)

    def sizeHint(self) -> QSize:
        return QSize(200, round(2.3 * self.fontMetrics().height()) + 14 + _BAR_HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        theme = self._theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        focused = self.hasFocus()
        painter.setPen(QPen(color(theme.accent), 2) if focused else Qt.PenStyle.NoPen)
        painter.setBrush(color(theme.hover if self.underMouse() and self.isEnabled() else theme.raised))
        painter.drawRoundedRect(whole, themes.CONTROL_RADIUS, themes.CONTROL_RADIUS)
        self._paint_bar(painter, whole)
        self._paint_words(painter)
        painter.end()

    def _paint_bar(self, painter: QPainter, whole: QRectF) -> None:
        bar = QRectF(whole.left(), whole.bottom() - _BAR_HEIGHT, whole.width() * self._share, _BAR_HEIGHT)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color(self._theme.accent))
        painter.drawRoundedRect(bar, _BAR_HEIGHT / 2, _BAR_HEIGHT / 2)

    def _paint_words(self, painter: QPainter) -> None:
        theme, types = self._theme, self._types
        inner = QRectF(self.rect()).adjusted(_SIDE, 5, -_SIDE, -_BAR_HEIGHT - 3)
        upper = QRectF(inner.left(), inner.top(), inner.width(), inner.height() / 2)
        lower = upper.translated(0, inner.height() / 2)
        strong = color(theme.text if self.isEnabled() else theme.muted)
        write(painter, upper, self._saved, types.title, color(theme.ok), align=RIGHT)
        upper.setRight(upper.right() - types.title.width(self._saved) - _SIDE)
        write(painter, upper, self.text(), types.label, strong, align=LEFT)
        mark = self._mark()
        write(painter, lower, mark, types.label, color(theme.muted), align=RIGHT)
        lower.setRight(lower.right() - types.label.width(mark) - _SIDE)
        dot = types.line * 0.42
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color(getattr(theme, self._token)))
        painter.drawEllipse(QRectF(lower.left(), lower.center().y() - dot / 2, dot, dot))
        write(painter, lower.adjusted(dot + 6, 0, 0, 0), self._outcome, types.label, color(theme.muted))

    def _mark(self) -> str:
        """Whether a click changes the form or opens something."""
        if self._applies:
            return ""
        return "▴" if self.isChecked() else "▾"


class CodeLine(QFrame):
    """What to write, and a button that copies it; ``advice`` over it unless it is empty."""

    def __init__(self, advice: str, line: str, copy: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("codeLine")
        self.line = line
        self.copied = QPushButton(copy)
        self.copied.setAccessibleName(f"{copy}: {line}")
        code = Label(_breakable(line), font=FontRole.LABEL, wrap=True)
        code.setObjectName("code")
        code.setAccessibleName(line)
        words = Label(advice, font=FontRole.LABEL, role="muted", wrap=True) if advice else code
        head = QHBoxLayout()
        head.setContentsMargins(0, 0, 0, 0)
        head.addWidget(words, stretch=1)
        head.addWidget(self.copied, alignment=Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(_SIDE, 6, _SIDE, 8)
        layout.setSpacing(4)
        layout.addLayout(head)
        if words is not code:
            layout.addWidget(code)
        self.copied.clicked.connect(lambda: QGuiApplication.clipboard().setText(line))


def _breakable(line: str) -> str:
    """Code may break after a dot, a bracket, a comma or an underscore; the clipboard gets it whole."""
    for sign in ".(,_=":
        line = line.replace(sign, sign + "\N{ZERO WIDTH SPACE}")
    return line


class LeverRow(QWidget):
    """``chosen`` carries a lever that changes the form."""

    chosen = Signal(object)

    def __init__(self, lever: Lever, estimate: Estimate, config: RunConfig, *, share: float, theme: Theme) -> None:
        super().__init__()
        self.button = LeverButton(lever, estimate, config, share=share, theme=theme)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self.button)
        if lever.changes:
            self.button.clicked.connect(lambda _checked=False: self.chosen.emit(lever))
            return
        self._code = CodeLine(texts.advice(lever), texts.line(lever, config), self.tr("Copy"))
        self._code.hide()
        layout.addWidget(self._code)
        self.button.toggled.connect(self._code.setVisible)
