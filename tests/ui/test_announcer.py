"""What is said outside the window, when, and when not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtWidgets import QSystemTrayIcon, QWidget

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import RunState
from desktop_app.ui.announcer import Announcer
from desktop_app.ui.headline import current_headline
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.qt_settings import Settings
from desktop_app.ui.settings_dialog import SettingsDialog
from desktop_app.ui.texts.announcements import Announcement
from desktop_app.ui.tray import TrayIcon, open_tray
from tests.ui.fake_data import oom_report, rescues
from tests.ui.fake_forecasts import alert_of
from tests.ui.fake_workspace import FakeState, FakeWorkspace

MakeWindow = Callable[..., MainWindow]


class FakeTray:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.said: list[Announcement] = []
        self.tip = ""
        self.closed = False

    def say(self, what: Announcement) -> None:
        self.said.append(what)

    def set_tip(self, sentence: str) -> None:
        self.tip = sentence

    def retranslate(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class PlainWindow(QWidget):
    """As much of a window as the announcer looks at: a whole one takes ten times as long to make."""

    def __init__(self, workspace: FakeWorkspace, settings_path: Path) -> None:
        super().__init__()
        self.settings = Settings(settings_path)
        self.banner = SimpleNamespace(headline=current_headline(workspace))


class Stand:
    """An announcer whose tray and bell are counted."""

    def __init__(self, window: PlainWindow, workspace: FakeWorkspace) -> None:
        self.workspace = workspace
        self.window = window
        self.tray = FakeTray()
        self.trays: list[FakeTray] = []
        self.beeps = 0
        self.window.settings.quiet_in_front = False
        self.announcer = Announcer(workspace, window, make_tray=self._make_tray, beep=self._beep)  # type: ignore[arg-type]
        self.announcer.refresh()

    def _make_tray(self, _window: object) -> FakeTray:
        self.trays.append(self.tray)
        return self.tray

    def _beep(self) -> None:
        self.beeps += 1

    def news(self) -> list[Announcement]:
        """What has been said since the last call."""
        self.announcer.refresh()
        said, self.tray.said = self.tray.said, []
        return said


@pytest.fixture
def stand(show: Callable[..., QWidget], settings_path: Path) -> Stand:
    workspace = FakeWorkspace(FakeState.FIRST_SECOND)
    window = PlainWindow(workspace, settings_path)
    show(window)
    made = Stand(window, workspace)
    made.news()
    return made


def test_an_alert_is_said_once_and_again_when_it_grows_worse(stand: Stand) -> None:
    alert = alert_of(Cause.LEAK, 700.0)
    stand.workspace.alerts.set((alert,))
    (said,) = stand.news()
    assert said.title == "Out of memory likely at step 1,840, in about 3 min 20 s  (2:50 to 4:10, 8 of 10)"
    assert said.text.startswith("Memory that is never freed")
    assert said.loud
    assert stand.news() == []
    stand.workspace.alerts.set((dataclasses.replace(alert, severity=AlertSeverity.IMMINENT),))
    (said,) = stand.news()
    assert said.title.startswith("Imminent: Out of memory likely")


def test_a_watch_an_end_and_what_is_ignored_are_not_said(stand: Stand) -> None:
    alert = alert_of(Cause.LEAK, 700.0)
    stand.workspace.alerts.set((dataclasses.replace(alert, severity=AlertSeverity.WATCH),))
    assert stand.news() == []
    stand.workspace.ignore_alert(alert.alert_id)
    stand.workspace.alerts.set((alert,))
    assert stand.news() == []
    stand.workspace.alerts.set((dataclasses.replace(alert, alert_id=7, cleared_t_s=701.0),))
    assert stand.news() == []


def test_the_same_number_in_another_run_is_another_alert(stand: Stand) -> None:
    stand.workspace.alerts.set((alert_of(Cause.LEAK, 700.0),))
    assert len(stand.news()) == 1
    stand.workspace.set_run(started_t_s=800.0)
    assert len(stand.news()) == 1


def test_rescue_and_ends_are_said(stand: Stand) -> None:
    stand.workspace.set_run(rescues=rescues(720.0)[:1], batch_size=32, accumulation=2)
    (said,) = stand.news()
    assert said.title == "Out of memory at step 1,440; goes on with micro-batch 32 × 2"
    stand.workspace.set_run(rescues=rescues(720.0), batch_size=16, accumulation=4)
    assert [said.title for said in stand.news()] == ["Out of memory at step 1,664; goes on with micro-batch 16 × 4"]
    stand.workspace.set_run(state=RunState.OUT_OF_MEMORY, oom=oom_report(730.0))
    (said,) = stand.news()
    assert said.title == "Out of memory at step 1,840, in the backward pass"
    stand.workspace.set_run(state=RunState.PREPARING, oom=None, rescues=())
    assert stand.news() == []
    stand.workspace.set_run(state=RunState.FINISHED, ended_t_s=740.0, accuracy_best=0.941)
    (said,) = stand.news()
    assert said.title.startswith("Finished: 94.1 %")
    assert not said.loud


def test_who_stops_a_run_need_not_be_told(stand: Stand) -> None:
    stand.workspace.set_run(state=RunState.STOPPED, ended_t_s=740.0)
    assert stand.news() == []


def test_tip_is_the_verdict(stand: Stand) -> None:
    assert stand.tray.tip == stand.window.banner.headline.sentence


def test_sound_and_notification_can_be_had_apart(stand: Stand) -> None:
    settings, workspace = stand.window.settings, stand.workspace
    workspace.alerts.set((alert_of(Cause.LEAK, 700.0),))
    assert (len(stand.news()), stand.beeps) == (1, 0)  # a sound is not wanted unless asked for
    settings.sound, settings.notifications = True, False
    workspace.alerts.set((alert_of(Cause.NEIGHBOUR, 700.0, alert_id=2),))
    assert (stand.news(), stand.beeps) == ([], 1)
    workspace.set_run(state=RunState.FINISHED, ended_t_s=740.0)
    assert (stand.news(), stand.beeps) == ([], 1)  # an end is no warning


def test_nothing_is_said_to_who_looks_at_it(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand.window, "isActiveWindow", lambda: True)
    stand.window.settings.quiet_in_front = True
    stand.workspace.alerts.set((alert_of(Cause.LEAK, 700.0),))
    assert stand.news() == []
    monkeypatch.setattr(stand.window, "isActiveWindow", lambda: False)
    assert stand.news() == []  # it has been seen
    stand.workspace.alerts.set((alert_of(Cause.LEAK, 700.0, severity=AlertSeverity.IMMINENT),))
    assert len(stand.news()) == 1


def test_tray_follows_its_setting(stand: Stand) -> None:
    stand.window.settings.tray = False
    stand.announcer.follow_settings()
    assert stand.tray.closed
    stand.workspace.alerts.set((alert_of(Cause.LEAK, 700.0),))
    assert stand.news() == []
    stand.window.settings.tray = True
    stand.announcer.follow_settings()
    assert len(stand.trays) == 2


def test_settings_are_four_ticks(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.NOTHING))
    window.dialogs.show_settings()
    dialog = window.findChild(SettingsDialog)
    assert dialog is not None
    changes: list[bool] = []
    dialog.notices_changed.connect(lambda: changes.append(True))
    settings = window.settings
    assert (settings.tray, settings.notifications, settings.quiet_in_front, settings.sound) == (True, True, True, False)
    for box in (dialog._tray, dialog._notifications, dialog._quiet, dialog._sound):
        if box.isEnabled():
            box.click()
    assert (settings.tray, settings.quiet_in_front, settings.sound) == (False, False, True)
    assert not dialog._notifications.isEnabled()
    assert changes
    dialog.reject()


def test_without_a_tray_there_is_none_and_no_error(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.LEAK))
    assert not QSystemTrayIcon.isSystemTrayAvailable()  # the offscreen platform has none
    assert open_tray(window) is None


# The offscreen platform lacks a signal that the icon listens to.
@pytest.mark.qt_log_ignore("systemTrayWindowChanged|does not support raise")
def test_icon_has_the_run_s_commands_and_leads_back(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.LEAK))
    tray = TrayIcon(window)
    menu = tray._icon.contextMenu()
    titles = [action.text() for action in menu.actions() if action.text()]
    assert titles == ["Show the window", "Pause", "Resume", "Save and pause", "Stop", "Quit"]
    tray.set_tip("All is well")
    tray.say(Announcement("title", "text"))
    window.showMinimized()
    menu.actions()[0].trigger()
    assert not window.isMinimized()
    tray.close()
