"""The command table: complete, unique, reachable, handled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from desktop_app.core.steps import RunState
from desktop_app.ui.actions import tooltip
from desktop_app.ui.charts.time_axis import SPANS_S
from desktop_app.ui.commands import BY_ID, COMMANDS, Menu, Situation, When, can_choose
from desktop_app.ui.handlers import window_handlers
from desktop_app.ui.headline import HeadlineAction
from desktop_app.ui.i18n import Translators
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.palette import CommandPalette, find_commands, match_score
from desktop_app.ui.side_panel import Tab
from tests.ui.fake_workspace import FakeState, FakeWorkspace

MakeWindow = Callable[..., MainWindow]


def test_ids_and_shortcuts_are_unique() -> None:
    assert [name for name, count in Counter(command.id for command in COMMANDS).items() if count > 1] == []
    shortcuts = Counter(command.shortcut for command in COMMANDS if command.shortcut)
    assert [keys for keys, count in shortcuts.items() if count > 1] == []


# What a field of text takes for itself on Linux, Windows or macOS (qplatformtheme.cpp): no command would hear it.
EDITING_KEYS = frozenset("ACDEHKUVXYZ")


def test_no_shortcut_edits_text() -> None:
    plain = {command.shortcut.removeprefix("Ctrl+") for command in COMMANDS if command.shortcut.startswith("Ctrl+")}
    assert plain & EDITING_KEYS == set()


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.shortcut], ids=lambda found: found.id)
def test_shortcut_is_one_that_qt_understands(command: object) -> None:
    sequence = QKeySequence(command.shortcut)  # type: ignore[attr-defined]
    assert sequence.count() == 1
    assert sequence.toString(QKeySequence.SequenceFormat.PortableText) == command.shortcut  # type: ignore[attr-defined]


def test_every_command_is_handled_and_every_handler_is_a_command(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    assert set(window_handlers(make_window(workspace), workspace)) == set(BY_ID)


def test_banner_actions_are_commands() -> None:
    assert {action.value for action in HeadlineAction} - {""} <= set(BY_ID)


def test_every_command_is_in_a_menu(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.NOTHING))
    root = window.actions_.build_menu(window)
    submenus = [action.menu() for action in root.actions()]
    assert len(submenus) == len(Menu)
    listed = {
        action.objectName()
        for menu in submenus
        if isinstance(menu, QMenu)
        for action in menu.actions()
        if action.text()
    }
    assert listed == set(BY_ID) - {"view.menu"}
    root.deleteLater()


def test_menu_opens_by_keyboard(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeWorkspace(FakeState.NOTHING))
    window.actions_.trigger("view.menu")
    menu = window.header.findChild(QMenu)
    assert menu is not None
    qtbot.waitUntil(menu.isVisible)
    qtbot.keyClick(menu, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: window.header.findChild(QMenu) is None or not menu.isVisible())


def test_tooltip_names_the_shortcut() -> None:
    assert tooltip("run.pause") == "Pause  (F6)"
    assert tooltip("run.ignore") == "Ignore this warning"


@pytest.mark.parametrize(
    ("state", "choosable"),
    [
        (RunState.IDLE, {"run.start"}),
        (RunState.PREPARING, {"run.stop", "run.stop_without_saving"}),
        (RunState.RUNNING, {"run.pause", "run.stop", "run.stop_without_saving", "run.save", "run.save_and_pause"}),
        (RunState.PAUSED, {"run.resume", "run.stop", "run.stop_without_saving", "run.save"}),
        (RunState.STOPPING, set()),
        (RunState.FINISHED, {"run.start"}),
        (RunState.OUT_OF_MEMORY, {"run.start", "run.post_mortem"}),
    ],
)
def test_what_can_be_chosen(state: RunState, choosable: set[str]) -> None:
    found = {
        command.id
        for command in COMMANDS
        if command.menu is Menu.RUN and can_choose(command.when, Situation(run=state))
    }
    assert found == choosable


def test_invalid_form_cannot_be_started() -> None:
    assert not can_choose(When.READY, Situation(form_valid=False))


def test_shortcuts_work_in_the_window(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    window = make_window(workspace)
    window.activateWindow()
    qtbot.keyClick(window, Qt.Key.Key_F6)
    qtbot.waitUntil(lambda: bool(workspace.called("pause")))
    qtbot.keyClick(window, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: window.side_panel.tab is Tab.GPU)


def test_save_and_pause_saves_first(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    window = make_window(workspace)
    window.banner.command_chosen.emit("run.save_and_pause")
    assert [call[0] for call in workspace.calls if call[0] in ("save_checkpoint", "pause")] == [
        "save_checkpoint",
        "pause",
    ]


def test_why_opens_the_alerts_and_ignore_ignores(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    window = make_window(workspace)
    window.actions_.trigger("run.why")
    assert window.side_panel.tab is Tab.ALERTS
    window.actions_.trigger("run.ignore")
    assert workspace.called("ignore_alert") == [("ignore_alert", 1)]


def test_interrupted_run_is_taken_up_or_left(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.RESUME_OFFER)
    window = make_window(workspace)
    window.notices.command_chosen.emit("run.take_up")
    assert workspace.called("accept_resume_offer")
    window.refresh_texts()
    assert not window.notices.isVisible()
    assert not window.actions_["run.take_up"].isEnabled()


def test_next_card_goes_round(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.EIGHT_GPUS)
    workspace.set_run(state=RunState.FINISHED)
    window = make_window(workspace)
    uuids = [card.uuid for card in workspace.cards.get()]
    for expected in (*uuids[1:], uuids[0]):
        assert window.actions_.trigger("view.next_card")
        assert workspace.card_uuid.get() == expected


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("sap", "run.save_and_pause"),
        ("dark", "view.theme_dark"),
        ("quit", "file.quit"),
        ("gpu", "view.gpu"),
        ("简体", "view.language_zh_CN"),
    ],
)
def test_palette_finds_by_a_few_letters(query: str, first: str) -> None:
    assert find_commands(query, list(COMMANDS))[0].id == first


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("query", ["theme", "主题"])
def test_palette_finds_the_themes_and_nothing_else(
    qapp: object, translators: Translators, language: str, query: str
) -> None:
    translators.use(language)
    found = {command.id for command in find_commands(query, list(COMMANDS))}
    themes = {"view.theme_dark", "view.theme_light", "view.theme_system"}
    assert found == (themes if language == "zh_CN" or query == "theme" else set())


def test_palette_match() -> None:
    assert match_score("xyz", "Save and pause") is None
    assert match_score("theme", "Note the home") is None  # strewn letters
    texts = ("Save picture", "Leave, save", "Unsaved", "Stop at very end")
    scores = [match_score(query, text) for query, text in zip(("sav", "sav", "sav", "save"), texts, strict=True)]
    known = [score for score in scores if score is not None]
    assert len(known) == len(texts)
    assert known == sorted(known, reverse=True)


def test_span_commands_are_the_spans_of_the_charts(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.HEALTHY))
    names = [command.id for command in COMMANDS if command.id.startswith("view.span_")]
    chosen = []
    for name in names:
        window.actions_.trigger(name)
        stack = window.charts.stack
        assert stack is not None
        chosen.append(stack.span_s)
    assert tuple(chosen) == SPANS_S


def test_palette_runs_the_chosen_command(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeWorkspace(FakeState.HEALTHY))
    window.dialogs.open_palette()
    palette = window.findChild(CommandPalette)
    assert palette is not None
    qtbot.waitUntil(palette.isVisible)
    qtbot.keyClicks(palette.search, "alerts")
    qtbot.keyClick(palette.search, Qt.Key.Key_Down)
    qtbot.keyClick(palette.search, Qt.Key.Key_Up)
    qtbot.keyClick(palette.search, Qt.Key.Key_Return)
    assert window.side_panel.tab is Tab.ALERTS
    assert not palette.isVisible()


def test_palette_lists_only_what_can_be_chosen(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.NOTHING))
    window.dialogs.open_palette()
    palette = window.findChild(CommandPalette)
    assert palette is not None
    shown = palette.shown_ids()
    assert "run.start" in shown
    assert "run.pause" not in shown
    palette.close()
