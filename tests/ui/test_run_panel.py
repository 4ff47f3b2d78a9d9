from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QPushButton
from pytestqt.qtbot import QtBot

from desktop_app.core.steps import RunState
from desktop_app.training.config import RunConfig
from desktop_app.ui.levers import LeverButton
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.run_panel import DEBOUNCE_MS
from tests.ui.fake_workspace import FakeState, FakeWorkspace

MakeWindow = Callable[..., MainWindow]


def batch_line(window: MainWindow) -> QLineEdit:
    line = window.side_panel.run.form.editor("batch_size").focus_widget
    assert isinstance(line, QLineEdit)
    return line


def test_estimate_is_asked_once_when_typing_pauses(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    window = make_window(workspace)
    line = batch_line(window)
    line.selectAll()
    qtbot.keyClicks(line, "128", delay=DEBOUNCE_MS // 10)
    assert not workspace.called("request_estimate")
    qtbot.waitUntil(lambda: len(workspace.called("request_estimate")) == 1)
    config = workspace.called("request_estimate")[0][1]
    assert isinstance(config, RunConfig)
    assert config.batch_size == 128


def test_wrong_value_is_not_estimated(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    window = make_window(workspace)
    line = batch_line(window)
    line.selectAll()
    qtbot.keyClicks(line, "0")
    assert not window.actions_["run.start"].isEnabled()
    qtbot.keyClick(line, Qt.Key.Key_Backspace)
    qtbot.keyClicks(line, "8")
    qtbot.waitUntil(lambda: len(workspace.called("request_estimate")) == 1)
    assert window.actions_["run.start"].isEnabled()


def test_start_starts_what_the_form_says(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.TOO_BIG)
    window = make_window(workspace)
    window.actions_.trigger("run.use_largest_batch")
    window.actions_.trigger("run.start")
    started = workspace.called("start")[0][1]
    assert isinstance(started, RunConfig)
    # 512 samples a step were asked for and 312 fit at once: two micro-steps come nearest.
    assert (started.batch_size, started.accumulation) == (312, 2)
    window.refresh_texts()
    assert window.side_panel.run.form.locked


def test_lever_changes_the_form_and_asks_again(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.TOO_BIG)
    window = make_window(workspace)
    levers = window.side_panel.run.findChildren(LeverButton)
    assert [button.lever.code for button in levers] == ["batch_accumulate", "bf16", "sgd", "no_foreach"]
    qtbot.mouseClick(levers[1], Qt.MouseButton.LeftButton)
    config = window.side_panel.run.form.config()
    assert config is not None
    assert config.precision == "bf16"
    assert workspace.called("request_estimate")[-1][1] == config


def test_levers_wait_for_the_end_of_the_run(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    window = make_window(workspace)
    assert not any(button.isEnabled() for button in window.side_panel.run.findChildren(LeverButton))
    workspace.set_run(state=RunState.STOPPED)
    window.refresh_texts()
    assert all(button.isEnabled() for button in window.side_panel.run.findChildren(LeverButton))


def test_run_started_elsewhere_brings_its_settings(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    window = make_window(workspace)
    workspace.run_config.set(RunConfig(name="from the command line", batch_size=7))
    window.refresh_texts()
    assert window.side_panel.run.form.config() == RunConfig(name="from the command line", batch_size=7)


def test_start_button_of_the_panel_follows_the_run(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    window = make_window(workspace)

    def shown() -> bool:
        buttons = window.side_panel.run.findChildren(QPushButton)
        return any(button.text() == "Start" and button.isVisible() for button in buttons)

    assert not shown()
    workspace.set_run(state=RunState.FINISHED)
    window.refresh_texts()
    assert shown()


def test_another_card_needs_another_estimate(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.EIGHT_GPUS)
    workspace.set_run(state=RunState.FINISHED)
    window = make_window(workspace)
    window.actions_.trigger("view.next_card")
    assert len(workspace.called("request_estimate")) == 1
