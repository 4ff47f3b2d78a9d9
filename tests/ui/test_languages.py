"""Language and theme change while the window lives, and every part follows."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QToolButton
from pytestqt.qtbot import QtBot

from desktop_app.ui import i18n
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.qt_settings import Settings
from desktop_app.ui.side_panel import Tab
from desktop_app.ui.theme import DARK, LIGHT, ThemeMode
from tests.ui.fake_workspace import FakeState, FakeWorkspace

MakeWindow = Callable[..., MainWindow]
# What stays as it is in Chinese: names of products, models, numbers and units.
NOT_CHINESE = re.compile(
    r"Floodmark|English|PCIe|CUDA|AdamW|fp32|bf16|SGD|CPU|GPU|GTX|GeForce|GiB|MiB|Hz|kWh|PID|UUID|VBIOS|Turing|CNN|torch|NVML|ZeRO|LoRA|FSDP"
)
WORD = re.compile(r"[A-Za-z]{4,}")


def texts(window: MainWindow) -> list[str]:
    QCoreApplication.processEvents()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    # Lines of code are the same everywhere.
    shown = [widget.text() for widget in window.findChildren(QLabel) if widget.objectName() != "code"]
    return shown + [widget.text() for widget in window.findChildren(QAbstractButton)]


def test_switch_to_chinese_leaves_no_english_behind(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.LEAK))
    window.set_language(i18n.CHINESE)
    QCoreApplication.processEvents()
    for tab in (Tab.RUN, Tab.GPU, Tab.ALERTS, Tab.PROCESSES):
        window.side_panel.open_tab(tab)
        left = [text for text in texts(window) if WORD.search(NOT_CHINESE.sub("", text.replace("cats-dogs", "")))]
        left = [text for text in left if "foreach" not in text and "bfloat16" not in text and "loss" not in text]
        left = [text for text in left if not text.startswith("GPU-")]
        assert left == [], tab


def test_switch_back_restores_every_text(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.LEAK))
    window.pulse.stop()  # its frame time would change meanwhile
    window.pulse.beat()
    window.refresh_texts()
    before = texts(window)
    window.set_language(i18n.CHINESE)
    QCoreApplication.processEvents()
    assert texts(window) != before
    window.set_language(i18n.ENGLISH)
    QCoreApplication.processEvents()
    assert sorted(texts(window)) == sorted(before)


def test_banner_speaks_chinese(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.LEAK), language=i18n.CHINESE)
    sentence = window.banner.headline.sentence.replace("\N{NO-BREAK SPACE}", " ")
    assert sentence == "预计到第 1,840 步显存不足，约 3 分 20 秒后（2:50 至 4:10，把握八成）"


def test_language_switch_in_the_status_bar(make_window: MakeWindow, qtbot: QtBot, settings_path: object) -> None:
    window = make_window(FakeWorkspace(FakeState.NOTHING))
    chinese = next(button for button in window.status.findChildren(QToolButton) if button.text() == "简体中文")
    qtbot.mouseClick(chinese, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.banner.headline.sentence == "尚未训练，这是您的显卡")
    assert chinese.isChecked()


def test_qts_own_texts_follow(qapp: QApplication, translators: i18n.Translators) -> None:
    assert translators.use(i18n.CHINESE) == i18n.CHINESE
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "取消"
    translators.use(i18n.ENGLISH)
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "Cancel"


def test_unknown_language_is_the_systems_or_english() -> None:
    assert i18n.resolve_language("tlh") in i18n.LANGUAGES
    assert i18n.resolve_language(i18n.SYSTEM) in i18n.LANGUAGES


def test_translator_says_when_a_file_cannot_be_read(translators: i18n.Translators) -> None:
    assert not translators.install("/no/such/file.qm")


def test_theme_changes_live_and_is_kept(make_window: MakeWindow, qapp: QApplication) -> None:
    window = make_window(FakeWorkspace(FakeState.LEAK))
    assert window.appearance.theme == DARK
    window.actions_.trigger("view.theme_light")
    assert window.appearance.theme == LIGHT
    assert qapp.palette().window().color().name().upper() == LIGHT.window
    assert window.actions_["view.theme_light"].isChecked()
    assert not window.actions_["view.theme_dark"].isChecked()


def test_choices_reach_the_settings(make_window: MakeWindow, settings_path: object) -> None:
    window = make_window(FakeWorkspace(FakeState.NOTHING))
    window.set_theme_mode(ThemeMode.LIGHT)
    window.set_language(i18n.CHINESE)
    window.toggle_side_panel()
    assert (window.settings.theme, window.settings.language) == (ThemeMode.LIGHT, i18n.CHINESE)
    assert not window.settings.side_panel
    assert isinstance(window.settings, Settings)


@pytest.mark.parametrize("tab", list(Tab)[:4])
def test_hidden_panel_comes_back_with_its_page(make_window: MakeWindow, tab: Tab) -> None:
    window = make_window(FakeWorkspace(FakeState.LEAK))
    window.toggle_side_panel()
    window.open_tab(tab)
    assert window.side_panel.isVisible()
    assert window.side_panel.tab is tab
