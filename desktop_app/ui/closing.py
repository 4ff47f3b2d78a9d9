"""The staged quit, as the window sees it: ask, stop, wait for the step without blocking, and say when it is done."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from desktop_app.services.facade import Workspace

POLL_MS: Final = 50
# The whole quit may take ten seconds (design.md §3); what the later stages need of it is theirs.
PATIENCE_S: Final = 6.0


class Stage(StrEnum):
    OPEN = "open"
    ASKING = "asking"
    STOPPING = "stopping"
    DONE = "done"


class Closing(QObject):
    """``begin`` may be called any number of times; ``finished`` comes once."""

    finished = Signal()

    def __init__(self, workspace: Workspace, window: QWidget, *, patience_s: float = PATIENCE_S) -> None:
        super().__init__(window)
        self._workspace = workspace
        self._window = window
        self._patience_s = patience_s
        self._deadline_s = 0.0
        self._question: QMessageBox | None = None
        self._poll = QTimer(self, interval=POLL_MS)
        self._poll.timeout.connect(self._on_poll)
        self.stage = Stage.OPEN

    def begin(self) -> None:
        """The user wants to leave. An active run is not stopped without a question."""
        if self.stage is not Stage.OPEN:
            if self._question is not None:
                self._question.raise_()
            return
        if self._workspace.run.get().state.active:
            self._ask()
        else:
            self._finish()

    def begin_without_question(self) -> None:
        """The system ends the session, or a time limit is over."""
        if self.stage in (Stage.OPEN, Stage.ASKING):
            self._stop_run()

    def _ask(self) -> None:
        self.stage = Stage.ASKING
        box = QMessageBox(self._window)
        box.setObjectName("quitQuestion")
        box.setIcon(QMessageBox.Icon.NoIcon)
        box.setWindowTitle("Floodmark")
        box.setText(self.tr("A run is active."))
        box.setInformativeText(
            self.tr("The step under way is finished and a checkpoint is saved, so that it can be taken up again.")
        )
        leave = box.addButton(self.tr("Stop and quit"), QMessageBox.ButtonRole.AcceptRole)
        stay = box.addButton(self.tr("Keep running"), QMessageBox.ButtonRole.RejectRole)
        leave.setObjectName("stopAndQuit")
        stay.setObjectName("keepRunning")
        box.setDefaultButton(stay)
        box.setEscapeButton(stay)
        box.finished.connect(lambda _result: self._on_answer(box.clickedButton() is leave))
        self._question = box
        box.open()

    def _on_answer(self, leave: bool) -> None:  # noqa: FBT001 - the answer to the question
        box, self._question = self._question, None
        if box is not None:
            box.deleteLater()
        if self.stage is not Stage.ASKING:
            return
        if leave:
            self._stop_run()
        else:
            self.stage = Stage.OPEN

    def _stop_run(self) -> None:
        self.stage = Stage.STOPPING
        if self._question is not None:
            self._question.reject()
        if self._workspace.run.get().state.active:
            self._workspace.stop(save=True)
        self._deadline_s = time.monotonic() + self._patience_s
        self._poll.start()
        self._on_poll()

    def _on_poll(self) -> None:
        """The window goes on drawing meanwhile: the banner says which step it waits for."""
        if not self._workspace.run.get().state.active or time.monotonic() > self._deadline_s:
            self._finish()

    def _finish(self) -> None:
        self._poll.stop()
        if self.stage is not Stage.DONE:
            self.stage = Stage.DONE
            self.finished.emit()
