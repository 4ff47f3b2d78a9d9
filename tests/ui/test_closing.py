"""The staged quit: asked, waited for without blocking, said once."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from desktop_app.core.steps import RunState
from desktop_app.ui.closing import Closing, Stage
from desktop_app.ui.main_window import MainWindow
from tests.ui.fake_workspace import FakeState, FakeWorkspace

MakeWindow = Callable[..., MainWindow]


def question(window: QWidget) -> QMessageBox:
    box = window.findChild(QMessageBox, "quitQuestion")
    assert box is not None
    return box


def press(window: QWidget, qtbot: QtBot, name: str) -> None:
    button = question(window).findChild(QPushButton, name)
    assert button is not None
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


@pytest.mark.parametrize("state", [FakeState.NOTHING, FakeState.FINISHED, FakeState.OUT_OF_MEMORY])
def test_without_a_run_it_closes_at_once(make_window: MakeWindow, qtbot: QtBot, state: FakeState) -> None:
    window = make_window(FakeWorkspace(state))
    with qtbot.waitSignal(window.closing_finished):
        window.close()
    assert not window.isVisible()


def test_active_run_is_asked_about_and_may_go_on(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    window = make_window(workspace)
    window.close()
    assert window.isVisible()
    press(window, qtbot, "keepRunning")
    assert window.closing.stage is Stage.OPEN
    assert not workspace.called("stop")


def test_escape_keeps_the_run(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    window = make_window(workspace)
    window.close()
    qtbot.keyClick(question(window), Qt.Key.Key_Escape)
    assert window.closing.stage is Stage.OPEN
    assert not workspace.called("stop")


def test_stop_and_quit_waits_for_the_step_and_says_which(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    window = make_window(workspace)
    window.close()
    press(window, qtbot, "stopAndQuit")
    assert workspace.called("stop") == [("stop", True)]
    assert window.isVisible()
    qtbot.waitUntil(lambda: window.banner.headline.sentence == "Stopping: waits for step 1,681")
    with qtbot.waitSignal(window.closing_finished):
        workspace.set_run(state=RunState.STOPPED)
    assert not window.isVisible()


def test_second_request_to_close_asks_no_second_question(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeWorkspace(FakeState.HEALTHY))
    window.close()
    window.close()
    assert len(window.findChildren(QMessageBox, "quitQuestion")) == 1
    press(window, qtbot, "keepRunning")


def test_end_of_session_does_not_wait_for_an_answer(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    window = make_window(workspace)
    window.close()
    window.closing.begin_without_question()
    assert workspace.called("stop") == [("stop", True)]
    with qtbot.waitSignal(window.closing_finished):
        workspace.set_run(state=RunState.STOPPED)


def test_trainer_that_does_not_stop_is_waited_for_only_so_long(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    closing = Closing(FakeWorkspace(FakeState.HEALTHY), window, patience_s=0.1)
    started_s = time.monotonic()
    with qtbot.waitSignal(closing.finished, timeout=5000):
        closing.begin_without_question()
    assert time.monotonic() - started_s >= 0.1


def test_finished_comes_once(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    closing = Closing(FakeWorkspace(FakeState.NOTHING), window)
    heard: list[bool] = []
    closing.finished.connect(lambda: heard.append(True))
    closing.begin()
    closing.begin()
    closing.begin_without_question()
    assert heard == [True]


def test_geometry_is_kept(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeWorkspace(FakeState.NOTHING), width=1111, height=707)
    with qtbot.waitSignal(window.closing_finished):
        window.close()
    again = make_window(FakeWorkspace(FakeState.NOTHING), width=0, height=0)
    # Qt fits what it restores into the screen; the offscreen one is 800 wide.
    assert again.height() == 707
