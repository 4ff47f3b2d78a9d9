"""Commands that ask for a file: run files, pictures of the window, the folder of sessions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from desktop_app.core.errors import FloodmarkError
from desktop_app.services.locations import sessions_folder
from desktop_app.training.config import config_to_toml, load_config
from desktop_app.ui.qt_settings import Settings
from desktop_app.ui.run_panel import RunPanel
from desktop_app.ui.texts import errors


class Files(QObject):
    """Asks, reads and writes; what cannot be done is said in one line."""

    def __init__(
        self, window: QWidget, run_panel: RunPanel, settings: Settings, *, grab_to: Callable[[Path], bool]
    ) -> None:
        super().__init__(window)
        self._window = window
        self._run_panel = run_panel
        self._settings = settings
        self._grab_to = grab_to

    def open_run(self) -> None:
        dialog = self._dialog(self.tr("Open run file"), self.tr("Run files (*.toml)"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self.read_run)
        dialog.open()

    def open_snapshot(self, use: Callable[[str], None]) -> None:
        """A pickle of ``torch.cuda.memory._dump_snapshot``; only plain data is taken from it."""
        dialog = self._dialog(self.tr("Open memory snapshot"), self.tr("Memory snapshots (*.pickle *.pkl)"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self._remember_folder)
        dialog.fileSelected.connect(use)
        dialog.open()

    def _remember_folder(self, path: str) -> None:
        self._settings.last_folder = str(Path(path).parent)

    def save_run(self) -> None:
        self._ask_where(self.tr("Save run file"), self.tr("Run files (*.toml)"), "toml", self.write_run)

    def save_picture(self) -> None:
        self._ask_where(self.tr("Save picture of the window"), self.tr("Pictures (*.png)"), "png", self.write_picture)

    def open_sessions(self) -> None:
        """Show the folder in the system's file manager."""
        folder = sessions_folder()
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))):
            self._say(self.tr("The folder cannot be opened from here: {0}").format(folder))

    def read_run(self, path: str) -> None:
        self._settings.last_folder = str(Path(path).parent)
        try:
            self._run_panel.show_config(load_config(Path(path)))
        except FloodmarkError as error:
            self._say(errors.text(error.code, error.message))

    def write_run(self, path: str) -> None:
        config = self._run_panel.form.config()
        if config is None:
            self._say(self.tr("A field of the form is not valid yet; it is marked."))
            return
        self._write(Path(path), config_to_toml(config))

    def write_picture(self, path: str) -> None:
        self._settings.last_folder = str(Path(path).parent)
        if not self._grab_to(Path(path)):
            self._say(self.tr("The picture cannot be written to {0}.").format(path))

    def _write(self, path: Path, text: str) -> None:
        self._settings.last_folder = str(path.parent)
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            self._say(self.tr("{0} cannot be written: {1}").format(path, error.strerror or error))

    def _ask_where(self, title: str, kinds: str, suffix: str, use: Callable[[str], None]) -> None:
        dialog = self._dialog(title, kinds)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(suffix)
        dialog.fileSelected.connect(use)
        dialog.open()

    def _dialog(self, title: str, kinds: str) -> QFileDialog:
        dialog = QFileDialog(self._window, title, self._settings.last_folder, kinds)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return dialog

    def _say(self, text: str) -> None:
        box = QMessageBox(self._window)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setWindowTitle("Floodmark")
        box.setText(text)
        box.addButton(self.tr("Close"), QMessageBox.ButtonRole.AcceptRole)
        box.open()
