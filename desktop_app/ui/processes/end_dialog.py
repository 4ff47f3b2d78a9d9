"""The question before a process is ended: which one, whose, on which card, and what is lost."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from desktop_app.core.telemetry import ProcessSample
from desktop_app.ui import icons
from desktop_app.ui.icons import IconName
from desktop_app.ui.labels import ElidedLabel, Label, type_scale
from desktop_app.ui.texts import processes as texts
from desktop_app.ui.theme import FontRole, Theme

_WIDTH: Final = 460
_ICON: Final = 20


class EndDialog(QDialog):
    """Accepted when the process shall end. What Enter does is to leave it alone."""

    def __init__(
        self, process: ProcessSample, *, card: str, force: bool, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("endDialog")
        self.process = process
        self.force = force
        self.setWindowTitle(texts.yes(force=force))
        self.setModal(True)
        question = Label(texts.question(process, force=force), font=FontRole.VERDICT, wrap=True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(16)
        layout.addWidget(question)
        layout.addLayout(self._facts(card))
        layout.addLayout(self._warning(theme))
        layout.addWidget(self._buttons())
        self.setMinimumWidth(round(_WIDTH * type_scale()))

    def _facts(self, card: str) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(1, 1)
        for row, (name, value) in enumerate(texts.facts(self.process, card)):
            text = ElidedLabel(value, mode=Qt.TextElideMode.ElideMiddle)
            text.setAccessibleName(f"{name}: {value}")
            grid.addWidget(Label(name, role="muted"), row, 0)
            grid.addWidget(text, row, 1)
        return grid

    def _warning(self, theme: Theme) -> QHBoxLayout:
        scale = type_scale()
        sign = QLabel()
        size = round(_ICON * scale)
        sign.setPixmap(icons.pixmap(IconName.WARNING, theme, size, ratio=self.devicePixelRatioF(), color=theme.warn))
        sign.setAlignment(Qt.AlignmentFlag.AlignTop)
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(sign)
        row.addWidget(Label(texts.warning(force=self.force), wrap=True), stretch=1)
        return row

    def _buttons(self) -> QDialogButtonBox:
        box = QDialogButtonBox()
        self.yes = QPushButton(texts.yes(force=self.force))
        self.yes.setProperty("kind", "danger")
        self.no = QPushButton(texts.no())
        for button in (self.yes, self.no):
            button.setIcon(QIcon())
        box.addButton(self.yes, QDialogButtonBox.ButtonRole.AcceptRole)
        box.addButton(self.no, QDialogButtonBox.ButtonRole.RejectRole)
        self.yes.setAutoDefault(False)
        self.no.setDefault(True)
        self.no.setFocus()
        box.accepted.connect(self.accept)
        box.rejected.connect(self.reject)
        return box
