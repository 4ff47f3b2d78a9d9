"""The windows over the window: palette, settings, demonstrations, explained errors, about. Each lives while open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QDialog

from desktop_app.services.facade import Workspace
from desktop_app.ui.about_dialog import AboutDialog
from desktop_app.ui.palette import CommandPalette
from desktop_app.ui.settings_dialog import SettingsDialog

if TYPE_CHECKING:
    from desktop_app.ui.main_window import MainWindow


class Dialogs(QObject):
    """Opens them over ``window``, never two of one kind that one could confuse."""

    def __init__(self, window: MainWindow, workspace: Workspace) -> None:
        super().__init__(window)
        self._window = window
        self._workspace = workspace

    def open_palette(self) -> None:
        window = self._window
        palette = CommandPalette(window.actions_, window.appearance.theme, window)
        palette.finished.connect(palette.deleteLater)
        palette.open_over(window)

    def show_settings(self) -> None:
        from desktop_app.services.locations import sessions_folder

        window = self._window
        dialog = SettingsDialog(window.settings, folder=str(sessions_folder()), parent=window)
        dialog.command_chosen.connect(window.actions_.trigger)
        dialog.sampling_chosen.connect(self._set_sampling)
        dialog.notices_changed.connect(window.announcer.follow_settings)
        self._open(dialog)

    def _set_sampling(self, hz: float) -> None:
        self._window.settings.sampling_hz = hz
        self._workspace.set_sampling_hz(hz)

    def show_about(self) -> None:
        self._open(AboutDialog(self._window.appearance.theme, self._window))

    def show_demos(self) -> None:
        from desktop_app.ui.demos_dialog import DemosDialog

        dialog = DemosDialog(self._workspace, parent=self._window)
        self._open(dialog)

    def show_processes(self) -> None:
        """The process table in a window of its own, beside this one."""
        from desktop_app.ui.processes.process_window import ProcessWindow

        window = self._window
        dialog = window.findChild(ProcessWindow)
        if dialog is None:
            dialog = ProcessWindow(self._workspace, window.appearance, window.settings, window)
            dialog.finished.connect(dialog.deleteLater)
        dialog.show()
        dialog.raise_()

    def explain(self, text: str = "", *, path: Path | None = None) -> None:
        """Explain an out-of-memory message: of the clipboard's owner, of ``text``, or of the file at ``path``."""
        from desktop_app.ui.explain_dialog import ExplainDialog

        dialog = self._window.findChild(ExplainDialog)
        if dialog is None:
            dialog = ExplainDialog(self._window.appearance.theme, self._window)
            self._open(dialog)
        if path is not None:
            dialog.read_file(path)
        elif text:
            dialog.show_text(text)
        dialog.raise_()

    def _open(self, dialog: QDialog) -> None:
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
