"""Who made it, under which licence, and whose data it learns from."""

from __future__ import annotations

from importlib import metadata

from PySide6.QtCore import Qt, qVersion
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QVBoxLayout, QWidget

from desktop_app.ui import icons
from desktop_app.ui.icons import IconName
from desktop_app.ui.labels import Label
from desktop_app.ui.theme import FontRole, Theme

_LOGO_SIZE = 64


class AboutDialog(QDialog):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("About Floodmark"))
        logo = QLabel()
        ratio = self.devicePixelRatioF()
        logo.setPixmap(icons.pixmap(IconName.LOGO, theme, _LOGO_SIZE, ratio=ratio))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(32, 24, 32, 16)
        layout.setSpacing(12)
        layout.addWidget(logo)
        layout.addWidget(Label(self.tr("Floodmark {0}").format(_version()), font=FontRole.FIGURE))
        for text in self._paragraphs():
            label = Label(text, role="muted", wrap=True)
            label.setMinimumWidth(380)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            layout.addWidget(label)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        close = buttons.button(QDialogButtonBox.StandardButton.Close)
        close.setText(self.tr("Close"))
        close.setIcon(QIcon())
        buttons.rejected.connect(self.reject)
        layout.addWidget(buttons)

    def _paragraphs(self) -> tuple[str, ...]:
        return (
            self.tr("Trains on your own card, watches it, and says that memory will run out before it does."),
            self.tr("Apache License 2.0. No warranty."),
            self.tr("The built-in pictures of cats and dogs come from the package animal-shape-mnist (MIT licence)."),
            self.tr("Made with Qt {0} for Python (LGPL 3), pyqtgraph, PyTorch and NVIDIA's NVML.").format(qVersion()),
        )


def _version() -> str:
    try:
        return metadata.version("floodmark")
    except metadata.PackageNotFoundError:
        return ""
