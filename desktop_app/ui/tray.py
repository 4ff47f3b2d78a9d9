"""The icon in the desktop's tray: what the run is about, its commands, and notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from desktop_app.ui import icons
from desktop_app.ui.side_panel import Tab
from desktop_app.ui.texts import numbers
from desktop_app.ui.texts.announcements import Announcement

if TYPE_CHECKING:
    from desktop_app.ui.main_window import MainWindow

_COMMANDS: Final = ("run.pause", "run.resume", "run.save_and_pause", "run.stop")
# How long a notification stays where the desktop does not decide that itself.
_MESSAGE_MS: Final = 15_000


class Tray(Protocol):
    """What the announcer needs of it."""

    def say(self, what: Announcement) -> None: ...
    def set_tip(self, sentence: str) -> None: ...
    def retranslate(self) -> None: ...
    def close(self) -> None: ...


def open_tray(window: MainWindow) -> Tray | None:
    """The icon, shown; ``None`` where the desktop has no tray for it."""
    return TrayIcon(window) if QSystemTrayIcon.isSystemTrayAvailable() else None


class TrayIcon(QObject):
    """A click on it or on a notification brings the window to the front."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._tip = ""
        self._icon = QSystemTrayIcon(icons.app_icon(), self)
        self._menu = QMenu(window)
        self._show = self._menu.addAction("", self._raise)
        self._menu.addSeparator()
        for name in _COMMANDS:
            self._menu.addAction(window.actions_[name])
        self._menu.addSeparator()
        self._menu.addAction(window.actions_["file.quit"])
        self._icon.setContextMenu(self._menu)
        self._icon.activated.connect(self._on_activated)
        self._icon.messageClicked.connect(self._on_message_clicked)
        self.retranslate()
        self._icon.show()

    def say(self, what: Announcement) -> None:
        kind = QSystemTrayIcon.MessageIcon.Warning if what.loud else QSystemTrayIcon.MessageIcon.Information
        self._icon.showMessage(what.title, what.text, kind, _MESSAGE_MS)

    def set_tip(self, sentence: str) -> None:
        if sentence != self._tip:
            self._tip = sentence
            self._icon.setToolTip(f"Floodmark\n{sentence}".replace(numbers.NBSP, " "))

    def retranslate(self) -> None:
        self._show.setText(self.tr("Show the window"))

    def close(self) -> None:
        self._icon.hide()
        self._menu.deleteLater()
        self.deleteLater()

    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason is not QSystemTrayIcon.ActivationReason.Context:
            self._raise()

    def _on_message_clicked(self) -> None:
        self._raise()
        if self._window.actions_["run.why"].isEnabled():
            self._window.open_tab(Tab.ALERTS)

    def _raise(self) -> None:
        window = self._window
        if window.isMinimized():
            window.showNormal()
        window.show()
        window.raise_()
        window.activateWindow()
