"""The list of demonstrations: what each shows, and a button that starts it."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QTimer
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from desktop_app.services.facade import Workspace
from desktop_app.services.scenarios import SCENARIOS
from desktop_app.ui.labels import Label, type_scale
from desktop_app.ui.texts import demos
from desktop_app.ui.theme import FontRole

_WIDTH: Final = 620
_HEIGHT: Final = 560
_POLL_MS: Final = 500  # whether the run is over and another may be started


class DemoRow(QFrame):
    """Title, description and command of one demonstration."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", True)
        self.name = name
        self.start = QPushButton()
        self._title = Label(font=FontRole.TITLE, wrap=True)
        self._description = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._command = Label(f"floodmark demo {name}", font=FontRole.LABEL, role="faint")
        self._command.setObjectName("code")
        words = QVBoxLayout()
        words.setSpacing(2)
        for label in (self._title, self._description, self._command):
            words.addWidget(label)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 10, 12, 10)
        row.setSpacing(16)
        row.addLayout(words, stretch=1)
        row.addWidget(self.start)
        self.retranslate()

    def retranslate(self) -> None:
        self._title.setText(demos.title(self.name))
        self._description.setText(demos.description(self.name))
        self._description.setVisible(bool(self._description.text()))
        self.start.setText(self.tr("Start"))
        self.start.setAccessibleName(self.tr("Start: {0}").format(demos.title(self.name)))


class DemosDialog(QDialog):
    """Closes itself when a demonstration has been started; while a run is active none can be."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._note = Label(role="muted", wrap=True)
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.rows = [DemoRow(name) for name in SCENARIOS]
        self._poll = QTimer(self, interval=_POLL_MS)
        self._poll.timeout.connect(self.refresh)
        self._build()
        self.retranslate()
        self._poll.start()

    def _build(self) -> None:
        content = QWidget()
        content.setObjectName("panelContent")
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 6, 0)
        column.setSpacing(8)
        for row in self.rows:
            row.start.clicked.connect(lambda _checked=False, name=row.name: self._on_start(name))
            column.addWidget(row)
        column.addStretch()
        area = QScrollArea()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setFocusPolicy(self._buttons.focusPolicy())
        area.setWidget(content)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 18, 16)
        layout.setSpacing(16)
        layout.addWidget(self._note)
        layout.addWidget(area, stretch=1)
        layout.addWidget(self._buttons)
        self._buttons.rejected.connect(self.reject)
        scale = type_scale()
        self.resize(round(_WIDTH * scale), round(_HEIGHT * scale))

    def refresh(self) -> None:
        active = self._workspace.run.get().state.active
        for row in self.rows:
            row.start.setEnabled(not active)
        self._note.setText(
            self.tr("A run is active. Stop it, then a demonstration can be started.")
            if active
            else self.tr(
                "Real trainings on small data, on a simulated card where there is no other. Each shows one thing."
            )
        )

    def _on_start(self, name: str) -> None:
        self._workspace.start_demo(name)
        self.accept()

    def done(self, result: int) -> None:
        self._poll.stop()
        super().done(result)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)

    def retranslate(self) -> None:
        self.setWindowTitle(self.tr("Demonstrations"))
        for row in self.rows:
            row.retranslate()
        close = self._buttons.button(QDialogButtonBox.StandardButton.Close)
        close.setText(self.tr("Close"))
        close.setIcon(QIcon())
        self.refresh()
