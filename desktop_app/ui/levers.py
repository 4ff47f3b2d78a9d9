"""What would help: one row per change, with what it saves; a click puts it into the form."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QVBoxLayout, QWidget

from desktop_app.core.forecasts import Estimate
from desktop_app.training.config import RunConfig
from desktop_app.ui.labels import Divider, Label, clear_layout
from desktop_app.ui.lever_row import LeverButton, LeverRow
from desktop_app.ui.texts import levers as texts
from desktop_app.ui.theme import CONTROL_RADIUS, FontRole, Theme, color

# As many as one takes in at a glance; the others are behind a button.
_SHOWN_AT_FIRST: Final = 6
_PLACEHOLDERS: Final = 3


class Placeholder(QWidget):
    """A row to come: still, so that it costs nothing and draws no eye."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, 2 * self.fontMetrics().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color(self._theme.raised))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), CONTROL_RADIUS, CONTROL_RADIUS)
        painter.end()


def _matter(shown: tuple[Estimate, RunConfig] | None) -> object:
    """What the rows are made of: an answer that differs in its seconds only needs no other ones."""
    if shown is None:
        return None
    estimate, config = shown
    room = (estimate.capacity_bytes, estimate.others_bytes, estimate.device_peak_bytes, estimate.verdict)
    return [(lever.code, lever.saved_bytes, lever.device_peak_bytes) for lever in estimate.levers], room, config


class LeverList(QWidget):
    """All levers of an estimate. ``chosen`` carries the ``Lever``."""

    chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._heading = Label(font=FontRole.TITLE)
        self._note = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._state = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._busy = [Placeholder(theme) for _ in range(_PLACEHOLDERS)]
        self._more = QPushButton()
        self._shown: tuple[Estimate, RunConfig] | None = None
        self._pending = False
        self._locked = False
        self._whole = False
        self._rows = QVBoxLayout()
        self._rows.setSpacing(8)
        self._build()
        self.retranslate()

    def _build(self) -> None:
        self._more.setProperty("kind", "quiet")
        self._more.setObjectName("moreLevers")
        self._more.clicked.connect(self._on_more)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(Divider())
        layout.addWidget(self._heading)
        layout.addLayout(self._rows)
        layout.addWidget(self._state)
        for place in self._busy:
            layout.addWidget(place)
        layout.addWidget(self._more, alignment=Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self._note)

    def show_levers(self, estimate: Estimate | None, config: RunConfig | None, *, pending: bool = False) -> None:
        """The levers of an estimate of ``config``, in the order they came. ``pending``: more may come. Hidden when
        there are none and none will come."""
        shown = (estimate, config) if estimate is not None and config is not None and estimate.levers else None
        self.setVisible(shown is not None or pending)
        if pending != self._pending:
            self._pending = pending
            self._show_state()
        if _matter(shown) != _matter(self._shown):
            self._shown = shown
            self._rebuild()
        self._shown = shown

    def _show_state(self) -> None:
        """Still places for what is to come; one is enough below rows that are there."""
        self._state.setText(texts.working())
        self._state.setVisible(self._pending)
        known = self._shown is not None
        for number, place in enumerate(self._busy):
            place.setVisible(self._pending and (number == 0 or not known))

    def _rebuild(self) -> None:
        """New rows; what was opened and what had the keyboard stays so."""
        rows = [row for row in self.findChildren(LeverRow) if not row.isHidden()]
        opened = {row.button.text() for row in rows if row.button.isChecked()}
        focused = next((row.button.text() for row in rows if row.button.hasFocus()), None)
        clear_layout(self._rows)
        self._more.hide()
        self._show_state()
        if self._shown is None:
            return
        estimate, config = self._shown
        levers = estimate.levers if self._whole else estimate.levers[:_SHOWN_AT_FIRST]
        most = max(1, *(lever.saved_bytes for lever in estimate.levers))
        for lever in levers:
            share = max(lever.saved_bytes, 0) / most
            row = LeverRow(lever, estimate, config, share=share, theme=self._theme)
            row.button.set_locked(locked=self._locked)
            row.button.setChecked(row.button.text() in opened)
            row.chosen.connect(self.chosen)
            self._rows.addWidget(row)
            if row.button.text() == focused:
                row.button.setFocus()
        count = len(estimate.levers)
        self._more.setVisible(count > _SHOWN_AT_FIRST)
        self._more.setText(texts.show_fewer() if self._whole else texts.show_all(count))

    def _on_more(self) -> None:
        self._whole = not self._whole
        self._rebuild()

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
        self._show_state()
        self._rebuild()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for place in self._busy:
            place.set_theme(theme)
        self._rebuild()
