"""The estimate in numbers: peaks as distributions, peaks by phase, and how it was made."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QGridLayout, QVBoxLayout, QWidget

from desktop_app.core.estimates import Quantiles
from desktop_app.core.forecasts import Estimate, Verdict
from desktop_app.ui.labels import Label
from desktop_app.ui.memory.phase_bars import PhaseBars
from desktop_app.ui.texts import memory as texts
from desktop_app.ui.texts import numbers
from desktop_app.ui.theme import FontRole, Theme

_QUANTILES: Final = ("P50", "P90", "P95")
_KINDS: Final = ("device", "reserved", "live")
_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class QuantileTable(QWidget):
    """Three kinds of memory by three quantiles."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._heading = Label(font=FontRole.TITLE)
        self._names = {kind: Label(font=FontRole.LABEL, role="" if kind == "device" else "muted") for kind in _KINDS}
        self._values = {
            (kind, which): Label(font=FontRole.LABEL, role="" if kind == "device" else "muted")
            for kind in _KINDS
            for which in _QUANTILES
        }
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(14)
        grid.setVerticalSpacing(4)
        grid.addWidget(self._heading, 0, 0)
        self._heads = {which: Label(which, font=FontRole.LABEL, role="muted") for which in _QUANTILES}
        for column, label in enumerate(self._heads.values(), start=1):
            label.setAlignment(_RIGHT)
            grid.addWidget(label, 0, column)
        for row, kind in enumerate(_KINDS, start=1):
            grid.addWidget(self._names[kind], row, 0)
            for column, which in enumerate(_QUANTILES, start=1):
                self._values[kind, which].setAlignment(_RIGHT)
                grid.addWidget(self._values[kind, which], row, column)
        grid.setColumnStretch(0, 1)
        grid.setRowStretch(len(_KINDS) + 1, 1)

    def show_estimate(self, estimate: Estimate | None) -> None:
        known = estimate is not None and estimate.verdict is not Verdict.CANNOT_SAY
        for kind in _KINDS:
            peak: Quantiles | None = getattr(estimate, f"{kind}_peak_bytes") if known else None
            for which in _QUANTILES:
                text = numbers.DASH if peak is None else numbers.size(getattr(peak, which.lower()))
                self._values[kind, which].setText(text)

    def retranslate(self) -> None:
        self._heading.setText(texts.peak_heading())
        for which, label in self._heads.items():
            label.setToolTip(texts.quantile_help(which))
        for kind, name in texts.kinds().items():
            self._names[kind].setText(name)
            self._names[kind].setToolTip(texts.kind_help(kind))
            for which in _QUANTILES:
                self._values[kind, which].setToolTip(texts.kind_help(kind))


class AnswerPanel(QWidget):
    """The three parts side by side, or below one another where there is little room."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._table = QuantileTable()
        self._phases_heading = Label(font=FontRole.TITLE)
        self._bars = PhaseBars(theme)
        self._how_heading = Label(font=FontRole.TITLE)
        self._how = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._kernels = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._guesses = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._warnings = Label(font=FontRole.LABEL, role="warn", wrap=True)
        self._estimate: Estimate | None = None
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(16, 12, 16, 12)
        self._row.setSpacing(24)
        self._row.addWidget(self._table)
        self._phases = _column(self._phases_heading, self._bars)
        self._row.addWidget(self._phases)
        self._row.addWidget(_column(self._how_heading, self._how, self._kernels, self._guesses, self._warnings))
        self._row.addStretch()
        self.set_stacked(stacked=False)
        self.retranslate()

    def show_estimate(self, estimate: Estimate | None) -> None:
        """Nothing changes for the same estimate."""
        if estimate is self._estimate:
            return
        self._estimate = estimate
        self._write()

    def _write(self) -> None:
        estimate = self._estimate
        self._table.show_estimate(estimate)
        self._bars.show_estimate(estimate)
        self._phases.setVisible(self._bars.has_phases)
        self._show(self._how, texts.how(estimate) if estimate is not None else "")
        self._show(self._kernels, texts.kernels(estimate) if estimate is not None else "")
        self._show(self._guesses, texts.guesses(estimate) if estimate is not None else "")
        warnings = texts.warnings(estimate) if estimate is not None else ()
        self._show(self._warnings, "\n".join(warnings))
        self._keep_height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._keep_height()

    def _keep_height(self) -> None:
        """Never lower than its sentences are at this width: the picture below gives way."""
        self.setMinimumHeight(max(0, self._row.heightForWidth(self.width())))

    def _show(self, label: Label, text: str) -> None:
        label.setText(text)
        label.setVisible(bool(text))

    def set_stacked(self, *, stacked: bool) -> None:
        """Below one another."""
        down, across = QBoxLayout.Direction.TopToBottom, QBoxLayout.Direction.LeftToRight
        self._row.setDirection(down if stacked else across)
        for place, share in enumerate((0, 0, 0, 1) if stacked else (5, 6, 5, 0)):
            self._row.setStretch(place, share)
        self._keep_height()

    def retranslate(self) -> None:
        self._phases_heading.setText(texts.phases_heading())
        for widget in (self._phases_heading, self._bars):
            widget.setToolTip(texts.phases_help())
        self._how_heading.setText(texts.how_heading())
        self._table.retranslate()
        self._write()

    def set_theme(self, theme: Theme) -> None:
        self._bars.set_theme(theme)


def _column(*widgets: QWidget) -> QWidget:
    holder = QWidget()
    layout = QVBoxLayout(holder)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(4)
    for widget in widgets:
        layout.addWidget(widget)
    layout.addStretch()
    return holder
