"""Says outside the window what must not be missed: a desktop notification, and a beep if wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from desktop_app.core.forecasts import AlertSeverity
from desktop_app.services.facade import Workspace
from desktop_app.ui.texts import announcements
from desktop_app.ui.texts.announcements import Announcement
from desktop_app.ui.tray import Tray, open_tray

if TYPE_CHECKING:
    from desktop_app.ui.main_window import MainWindow

_LOUD: Final = frozenset({AlertSeverity.LIKELY, AlertSeverity.IMMINENT})


class Announcer(QObject):
    """Compares what the workspace says with what was announced. Runs in: GUI thread.

    ``make_tray`` returns ``None`` where the desktop has no tray; then there is only the sound. Nothing in here waits.
    """

    def __init__(
        self,
        workspace: Workspace,
        window: MainWindow,
        *,
        make_tray: Callable[[MainWindow], Tray | None] = open_tray,
        beep: Callable[[], None] = QApplication.beep,
    ) -> None:
        super().__init__(window)
        self._workspace = workspace
        self._window = window
        self._make_tray = make_tray
        self._beep = beep
        self._tray: Tray | None = None
        self._began = False
        self._run_began_s: float | None = None
        self._said: set[object] = set()
        self._rescues = 0
        self._was_active = False

    def refresh(self) -> None:
        """Announce what is new. Cheap: a few cells."""
        if not self._began:
            if not self._window.isVisible():  # asking for a tray may take a moment: not before the first window
                return
            self._began = True
            self.follow_settings()
        if self._tray is not None:
            self._tray.set_tip(self._window.banner.headline.sentence)
        for announcement in self._news():
            self._announce(announcement)

    def follow_settings(self) -> None:
        """Show or hide the icon in the tray, as the settings say now."""
        wanted = self._window.settings.tray
        if wanted and self._tray is None:
            self._tray = self._make_tray(self._window)
        elif not wanted and self._tray is not None:
            self._tray.close()
            self._tray = None

    def retranslate(self) -> None:
        if self._tray is not None:
            self._tray.retranslate()

    def end(self) -> None:
        """The window closes."""
        if self._tray is not None:
            self._tray.close()
            self._tray = None

    def _announce(self, what: Announcement) -> None:
        settings = self._window.settings
        in_front = self._window.isActiveWindow() and not self._window.isMinimized()
        if in_front and settings.quiet_in_front:
            return
        if settings.notifications and self._tray is not None:
            self._tray.say(what)
        if settings.sound and what.loud:
            self._beep()

    def _news(self) -> list[Announcement]:
        status = self._workspace.run.get()
        if status.started_t_s != self._run_began_s:
            self._run_began_s = status.started_t_s
            self._said.clear()
            self._rescues = 0
        found = self._new_alerts() if status.state.active else []
        found += [announcements.of_rescue(status, report) for report in status.rescues[self._rescues :]]
        self._rescues = len(status.rescues)
        if self._was_active and not status.state.active:
            end = announcements.of_end(status)
            found += [end] if end is not None else []
        self._was_active = status.state.active
        return found

    def _new_alerts(self) -> list[Announcement]:
        """Alerts, and raises of their severity, that were not announced in this run."""
        forecast, ignored = self._workspace.forecast.get(), self._workspace.ignored_alerts.get()
        found = []
        for alert in self._workspace.alerts.get():
            key = (alert.alert_id, alert.severity)
            if alert.severity in _LOUD and alert.cleared_t_s is None and key not in self._said:
                self._said.add(key)
                if alert.alert_id not in ignored:
                    found.append(announcements.of_alert(alert, forecast))
        return found
