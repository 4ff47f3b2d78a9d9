"""The peak of each phase as a bar: where in the step memory is highest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from desktop_app.core.forecasts import Estimate
from desktop_app.core.steps import Phase
from desktop_app.ui.brush import RIGHT, Typeset, write
from desktop_app.ui.texts import memory as texts
from desktop_app.ui.texts import numbers
from desktop_app.ui.theme import Theme, color

_ROW: Final = 1.45  # label lines
_BAR: Final = 0.5
_GAP: Final = 0.7
Span = tuple[int, int]  # P50 and P95


def phase_spans(estimate: Estimate) -> Mapping[Phase, Span]:
    """The device's peak in each phase, in the order of a step; P95 is P50 where only that is known."""
    known = {phase: (peaks.device.p50, peaks.device.p95) for phase, peaks in estimate.phase_peaks.items()}
    rest = {phase: (size, size) for phase, size in estimate.phases.items() if phase not in known}
    both = {**rest, **known}
    return {phase: both[phase] for phase in Phase if phase in both}


class PhaseBars(QWidget):
    """One row a phase: name, bar from nothing to P50 with a paler end at P95, and the number. The peak's is strong."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._types = Typeset(self.font())
        self._spans: Mapping[Phase, Span] = {}
        self._peak: Phase | None = None
        self._room_bytes = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_estimate(self, estimate: Estimate | None) -> None:
        spans = phase_spans(estimate) if estimate is not None else {}
        if len(spans) != len(self._spans):
            self.updateGeometry()
        self._spans = spans
        self._peak = max(spans, key=lambda phase: spans[phase][0]) if spans else None
        if estimate is not None and estimate.peak_phase in spans:
            self._peak = estimate.peak_phase
        self._room_bytes = estimate.capacity_bytes - estimate.others_bytes if estimate is not None else 0
        self.describe()
        self.update()

    @property
    def has_phases(self) -> bool:
        return bool(self._spans)

    def describe(self) -> None:
        self.setAccessibleName(texts.phases_heading())
        rows = [f"{texts.phase_name(phase)} {numbers.size(span[0])}" for phase, span in self._spans.items()]
        self.setAccessibleDescription(", ".join(rows))

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        rows = max(1, len(self._spans))
        return QSize(round(16 * self._types.line), round(rows * _ROW * self._types.line))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(11 * self._types.line), self.sizeHint().height())

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.FontChange:
            self._types = Typeset(self.font())
            self.updateGeometry()
        super().changeEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        if not self._spans:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        line, types = self._types.line, self._types
        names = max(types.label_bold.width(texts.phase_name(phase)) for phase in self._spans) + _GAP * line
        names = min(names, 0.42 * self.width())
        values = max(types.label_bold.width(numbers.size(span[0])) for span in self._spans.values()) + _GAP * line
        most = max(span[1] for span in self._spans.values())
        bar = QRectF(names, 0, max(4.0, self.width() - names - values), _BAR * line)
        for row, (phase, span) in enumerate(self._spans.items()):
            top = row * _ROW * line
            strong = phase is self._peak
            kind = types.label_bold if strong else types.label
            words = color(self._theme.text if strong else self._theme.muted)
            write(painter, QRectF(0, top, names - 0.3 * line, _ROW * line), texts.phase_name(phase), kind, words)
            place = QRectF(self.width() - values, top, values, _ROW * line)
            write(painter, place, numbers.size(span[0]), kind, words, align=RIGHT)
            self._bar(painter, bar.translated(0, top + (_ROW - _BAR) / 2 * line), span, most, strong=strong)
        painter.end()

    def _bar(self, painter: QPainter, rect: QRectF, span: Span, most: int, *, strong: bool) -> None:
        theme = self._theme
        tint = (
            theme.danger
            if span[0] > self._room_bytes > 0
            else theme.warn
            if span[1] > self._room_bytes > 0
            else theme.accent
        )
        painter.setPen(Qt.PenStyle.NoPen)
        radius = rect.height() / 2
        for size, alpha in ((span[1], 0.3), (span[0], 1.0 if strong else 0.6)):
            width = max(rect.height(), rect.width() * size / max(1, most))
            painter.setBrush(color(tint, alpha))
            painter.drawRoundedRect(QRectF(rect.left(), rect.top(), width, rect.height()), radius, radius)
