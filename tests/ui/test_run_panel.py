from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLineEdit, QPushButton
from pytestqt.qtbot import QtBot

from desktop_app.core.forecasts import Lever, Verdict
from desktop_app.core.steps import RunState
from desktop_app.core.units import GIB, MIB
from desktop_app.training.config import RunConfig
from desktop_app.ui import i18n
from desktop_app.ui.i18n import Translators
from desktop_app.ui.lever_row import CodeLine, LeverButton
from desktop_app.ui.levers import Placeholder
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.run_panel import DEBOUNCE_MS
from desktop_app.ui.texts import levers as texts
from tests.ui.fake_forecasts import LEVERS, ready_estimate
from tests.ui.fake_workspace import FakeState, FakeWorkspace

MakeWindow = Callable[..., MainWindow]


LEVER_CODES = (
    "batch_accumulate",
    "bf16",
    "fp16",
    "pure_bf16",
    "checkpoint_full",
    "checkpoint_every_2",
    "checkpoint_every_3",
    "no_foreach",
    "fused",
    "adam8bit",
    "adafactor",
    "sgd",
    "freeze_backbone",
    "lora_8",
    "clear_gradients",
    "flash",
    "efficient",
    "channels_last",
    "expandable_segments",
    "zero1",
    "zero2",
    "zero3",
)


def levers_of(window: MainWindow) -> list[LeverButton]:
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return window.side_panel.run.findChildren(LeverButton)


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
    assert [button.lever.code for button in levers[:4]] == ["batch_accumulate", "bf16", "sgd", "no_foreach"]
    qtbot.mouseClick(levers[1], Qt.MouseButton.LeftButton)
    config = window.side_panel.run.form.config()
    assert config is not None
    assert config.precision == "bf16"
    assert workspace.called("request_estimate")[-1][1] == config


def test_levers_wait_for_the_end_of_the_run(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    window = make_window(workspace)
    levers = window.side_panel.run.findChildren(LeverButton)
    # What changes the form waits; lines for one's own code can be read and copied all the same.
    assert {button.lever.code for button in levers if button.isEnabled()} == {"checkpoint_full", "expandable_segments"}
    workspace.set_run(state=RunState.STOPPED)
    window.refresh_texts()
    assert all(button.isEnabled() for button in window.side_panel.run.findChildren(LeverButton))


def test_lever_that_the_form_has_not_shows_a_line_to_copy(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.TOO_BIG)
    window = make_window(workspace)
    before = window.side_panel.run.form.config()
    button = next(each for each in levers_of(window) if each.lever.code == "checkpoint_full")
    code = button.parentWidget().findChild(CodeLine)
    assert code is not None
    assert not code.isVisible()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert code.isVisible()
    assert window.side_panel.run.form.config() == before
    qtbot.mouseClick(code.copied, Qt.MouseButton.LeftButton)
    line = QGuiApplication.clipboard().text()
    assert line == "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert not code.isVisible()


def test_levers_beyond_the_first_are_behind_a_button(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.TOO_BIG)
    window = make_window(workspace)
    assert len(levers_of(window)) == 6
    more = window.side_panel.run.findChild(QPushButton, "moreLevers")
    assert more is not None
    assert more.text() == "Show all 8"
    more.click()
    assert [button.lever.code for button in levers_of(window)] == [lever.code for lever in LEVERS]
    more.click()
    assert len(levers_of(window)) == 6


def test_levers_that_are_still_worked_out_leave_a_quiet_place(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.TOO_BIG)
    known = workspace.estimate.get()
    assert known.estimate is not None
    bare = dataclasses.replace(known.estimate, levers=())
    workspace.estimate.set(dataclasses.replace(known, estimate=bare, levers_pending=True))
    window = make_window(workspace)
    assert sum(place.isVisible() for place in window.side_panel.run.findChildren(Placeholder)) == 3
    workspace.estimate.set(known)
    window.refresh_texts()
    assert not any(place.isVisible() for place in window.side_panel.run.findChildren(Placeholder))
    assert levers_of(window)
    workspace.estimate.set(dataclasses.replace(known, estimate=bare))  # nothing helps, and that is final
    window.refresh_texts()
    assert not levers_of(window)


def test_largest_batch_is_one_click_away(make_window: MakeWindow, qtbot: QtBot) -> None:
    """Also when the form's batch fits and a larger one would as well."""
    workspace = FakeWorkspace(FakeState.HEALTHY)
    workspace.set_run(state=RunState.FINISHED)
    window = make_window(workspace)
    use = next(button for button in window.side_panel.run.findChildren(QPushButton) if button.text() == "Use 88")
    qtbot.mouseClick(use, Qt.MouseButton.LeftButton)
    config = window.side_panel.run.form.config()
    assert config is not None
    assert (config.batch_size, config.accumulation) == (88, 1)
    window.refresh_texts()
    assert not use.isVisible()


@pytest.mark.parametrize("code", LEVER_CODES)
def test_every_lever_has_a_name_and_a_line_in_every_language(translators: Translators, code: str) -> None:
    settings = {"lora_rank": 8, "world_size": 4, "accumulation": 2, "batch_size": 32}
    lever = Lever(code, {}, MIB, GIB, settings)
    config = RunConfig(optimizer="adamw")
    names = set()
    for language in i18n.LANGUAGES:
        translators.use(language)
        name = texts.name(lever, config)
        assert "{" not in name
        assert name != code
        names.add(name)
    assert len(names) == len(i18n.LANGUAGES)
    line = texts.line(lever, config)
    assert line
    assert not re.search(r"\{\w*\}", line)
    if line.startswith("with "):
        line += "\n    pass"
    if code != "expandable_segments":
        ast.parse(line)


def test_outcome_of_a_lever_keeps_the_spread_of_the_estimate() -> None:
    estimate = dataclasses.replace(ready_estimate(), capacity_bytes=4 * GIB, others_bytes=0)
    spread = estimate.device_peak_bytes.p95 / estimate.device_peak_bytes.p50
    judged = {
        Verdict.FITS: int(4 * GIB / spread),
        Verdict.TIGHT: 4 * GIB,
        Verdict.DOES_NOT_FIT: 4 * GIB + 1,
    }
    for verdict, peak_bytes in judged.items():
        assert texts.verdict(Lever("bf16", {}, MIB, peak_bytes), estimate) is verdict


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
