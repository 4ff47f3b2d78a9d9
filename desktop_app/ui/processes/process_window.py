"""The process table in a window of its own, where all columns have room."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QTimer
from PySide6.QtWidgets import QDialog, QFrame, QVBoxLayout, QWidget

from desktop_app.services.facade import Workspace
from desktop_app.ui.appearance import Appearance
from desktop_app.ui.labels import Label, type_scale
from desktop_app.ui.processes.columns import WIDE
from desktop_app.ui.processes_panel import Memory, ProcessesPanel
from desktop_app.ui.tank_reader import selected_card
from desktop_app.ui.texts import cards
from desktop_app.ui.texts import processes as texts

_SIZE: Final = (1120, 560)
_REFRESH_MS: Final = 500  # as often as all texts of the window


class ProcessWindow(QDialog):
    """Not modal: it stays beside the main window while that is used."""

    def __init__(
        self, workspace: Workspace, appearance: Appearance, memory: Memory, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("processWindow")
        self.setSizeGripEnabled(True)
        self._workspace = workspace
        self.panel = ProcessesPanel(workspace, memory=memory, place="window", usual=WIDE)
        self._appearance = appearance
        appearance.changed.connect(self._on_appearance)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        frame = QFrame()
        frame.setProperty("panel", True)
        inside = QVBoxLayout(frame)
        inside.setContentsMargins(1, 1, 1, 1)
        inside.addWidget(self.panel)
        layout.addWidget(frame)
        self._timer = QTimer(self, interval=_REFRESH_MS)
        self._timer.timeout.connect(self.refresh)
        scale = type_scale()
        self.resize(round(_SIZE[0] * scale), round(_SIZE[1] * scale))
        self._on_appearance()
        self.refresh()
        self._timer.start()
        self.panel.filter.setFocus()

    def refresh(self) -> None:
        card = selected_card(self._workspace)
        self.setWindowTitle(texts.window_title("" if card is None else cards.chip(card, None)))
        self.panel.refresh()

    def _on_appearance(self) -> None:
        for label in self.findChildren(Label):
            label.apply_font()
        self.panel.set_theme(self._appearance.theme)

    def done(self, result: int) -> None:
        self._timer.stop()
        super().done(result)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange:
            self.panel.retranslate()
            self.refresh()
        super().changeEvent(event)
