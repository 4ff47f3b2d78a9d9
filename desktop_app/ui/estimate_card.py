"""The estimate in the side panel: the verdict, how sure it is, the largest batch with a button, and the way to more."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from desktop_app.core.forecasts import Estimate, Verdict
from desktop_app.services.facade import EstimateState, EstimateStatus
from desktop_app.training.config import RunConfig
from desktop_app.ui.answers import answer_of
from desktop_app.ui.headline import Band, estimate_headline
from desktop_app.ui.labels import Label
from desktop_app.ui.texts import errors, memory, numbers, verdicts
from desktop_app.ui.theme import FontRole

_ROLES: Final = {Band.OK: "ok", Band.WARN: "warn", Band.DANGER: "danger", Band.NEUTRAL: "muted"}


class EstimateCard(QWidget):
    """``batch_wanted``: the largest batch shall go into the form; ``more_wanted``: the memory page."""

    batch_wanted = Signal()
    more_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._verdict = Label(font=FontRole.LABEL, wrap=True)
        self._certainty = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._batch = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._use = QPushButton()
        self._more = QPushButton()
        self._largest: int | None = None
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self._batch, stretch=1)
        row.addWidget(self._use)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addWidget(self._verdict)
        layout.addWidget(self._certainty)
        layout.addLayout(row)
        self._more.setProperty("kind", "quiet")
        self._more.setObjectName("memoryPage")
        layout.addWidget(self._more, alignment=Qt.AlignmentFlag.AlignLeft)
        self._use.clicked.connect(self.batch_wanted)
        self._more.clicked.connect(self.more_wanted)
        self.retranslate()

    def show_status(self, status: EstimateStatus, form: RunConfig | None) -> None:
        """The newest answer; while a newer one is under way, that it is. ``form``: what the form says now."""
        estimate = answer_of(status)
        if status.state is EstimateState.FAILED:
            self._say(errors.text(status.error_code, status.error), "warn")
        elif estimate is None:
            self._say(verdicts.estimating(), "muted")
        else:
            headline = estimate_headline(estimate)
            self._say(verdicts.with_stop(headline.sentence), _ROLES[headline.band])
        self._show_certainty(estimate)
        self._show_batch(estimate, form)
        self._more.setVisible(estimate is not None)

    def _say(self, text: str, role: str) -> None:
        self._verdict.set_role(role)
        self._verdict.setText(text)

    def _show_certainty(self, estimate: Estimate | None) -> None:
        text = ""
        if estimate is not None:
            cannot = estimate.verdict is Verdict.CANNOT_SAY
            text = verdicts.cannot_say_help(estimate) if cannot else memory.fits_probability(estimate)
        self._certainty.setText(text)
        self._certainty.setVisible(bool(text))

    def _show_batch(self, estimate: Estimate | None, form: RunConfig | None) -> None:
        known = estimate is not None and estimate.verdict is not Verdict.CANNOT_SAY
        self._batch.setText(verdicts.largest_batch(estimate) if estimate is not None and known else "")
        self._batch.setVisible(known)
        self._largest = estimate.largest_batch if estimate is not None and known else None
        usable = self._largest is not None and form is not None and form.batch_size != self._largest
        self._use.setVisible(usable)
        self._name_use()

    def _name_use(self) -> None:
        if self._largest is not None:
            self._use.setText(self.tr("Use {0}").format(numbers.integer(self._largest)))

    def retranslate(self) -> None:
        self._more.setText(self.tr("Show where it goes") + "  ›")
        self._use.setAccessibleName(self.tr("Use the largest batch that fits"))
        self._name_use()
