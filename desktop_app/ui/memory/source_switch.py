"""Which step is on show: that of the estimate, or one that the run was asked to write down."""

from __future__ import annotations

from enum import StrEnum

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QToolButton, QWidget

from desktop_app.services.facade import SnapshotState, SnapshotStatus, StepRecording


class Source(StrEnum):
    """Where a timeline comes from."""

    ESTIMATE = "estimate"
    RUN = "run"
    SNAPSHOT = "snapshot"


class SourceSwitch(QWidget):
    """Hidden while there is nothing to choose from. ``chosen`` carries a ``Source``; ``again``: another step."""

    chosen = Signal(object)
    again = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.source = Source.ESTIMATE
        self._group = QButtonGroup(self)
        self._buttons = {source: QToolButton() for source in Source}
        self._again = QToolButton()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(1)
        for source, button in self._buttons.items():
            button.setCheckable(True)
            self._group.addButton(button)
            button.clicked.connect(lambda _checked=False, source=source: self.choose(source))
        self._again.clicked.connect(self.again)
        for button in (*self._buttons.values(), self._again):
            button.setProperty("kind", "segment")
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            row.addWidget(button)
        self._buttons[self.source].setChecked(True)
        self.retranslate()
        self.show_sources(StepRecording(), SnapshotStatus(SnapshotState.NONE))

    def choose(self, source: Source) -> None:
        """Turn to ``source``."""
        self._buttons[source].setChecked(True)
        if source is not self.source:
            self.source = source
            self.chosen.emit(source)

    def show_sources(self, run: StepRecording, snapshot: SnapshotStatus) -> None:
        """What there is to choose from. Without a run that could be asked, and without a step of it, it is gone."""
        there = {
            Source.ESTIMATE: True,
            Source.RUN: run.possible or run.timeline is not None,
            Source.SNAPSHOT: snapshot.state is not SnapshotState.NONE,
        }
        self.setVisible(sum(there.values()) > 1)
        for source, button in self._buttons.items():
            button.setVisible(there[source])
        if not there[self.source]:
            self.source = Source.ESTIMATE
            self._buttons[self.source].setChecked(True)
        self._again.setVisible(self.source is Source.RUN and run.possible)
        self._again.setEnabled(not run.recording)

    def retranslate(self) -> None:
        self._buttons[Source.ESTIMATE].setText(self.tr("Estimate"))
        self._buttons[Source.RUN].setText(self.tr("This run"))
        self._buttons[Source.ESTIMATE].setToolTip(self.tr("The step that was traced before the run"))
        self._buttons[Source.RUN].setToolTip(self.tr("A step of the run, as it was"))
        self._buttons[Source.SNAPSHOT].setText(self.tr("Recording"))
        self._buttons[Source.SNAPSHOT].setToolTip(self.tr("The memory snapshot that was opened"))
        self._again.setText(self.tr("Again"))
        self._again.setToolTip(self.tr("Write down the next step of the run"))
        self._again.setAccessibleName(self.tr("Write down the next step of the run"))
