from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray
from PySide6.QtWidgets import QComboBox, QDialog, QLabel
from pytestqt.qtbot import QtBot

from desktop_app.ui import i18n
from desktop_app.ui.about_dialog import AboutDialog
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.qt_settings import DEFAULT_SAMPLING_HZ, Settings
from desktop_app.ui.settings_dialog import SettingsDialog
from desktop_app.ui.theme import DARK, ThemeMode
from tests.ui.clipping import clipped_texts
from tests.ui.fake_workspace import FakeState, FakeWorkspace

MakeWindow = Callable[..., MainWindow]


def test_values_survive_a_restart_with_their_types(settings_path: Path) -> None:
    """INI files give back strings: "false" would be true."""
    first = Settings(settings_path)
    first.theme = ThemeMode.LIGHT
    first.language = i18n.CHINESE
    first.sampling_hz = 2.0
    first.side_panel = False
    first.geometry = QByteArray(b"\x00\x01\xff")
    first.last_folder = "/some/folder"
    assert first.sync()
    again = Settings(settings_path)
    assert (again.theme, again.language, again.sampling_hz) == (ThemeMode.LIGHT, i18n.CHINESE, 2.0)
    assert again.side_panel is False
    assert again.geometry.data() == b"\x00\x01\xff"
    assert again.last_folder == "/some/folder"


def test_defaults(settings_path: Path) -> None:
    settings = Settings(settings_path)
    assert (settings.theme, settings.language, settings.sampling_hz) == (
        ThemeMode.SYSTEM,
        i18n.SYSTEM,
        DEFAULT_SAMPLING_HZ,
    )
    assert settings.side_panel is True
    assert settings.geometry.isEmpty()


@pytest.mark.parametrize(
    "text", ["[window]\ntheme=pink\nlanguage=tlh\n[telemetry]\nsampling_hz=fast\n", "\x00\x01 no ini at all", ""]
)
def test_broken_file_reads_as_defaults(settings_path: Path, text: str) -> None:
    settings_path.write_text(text, encoding="utf-8")
    settings = Settings(settings_path)
    assert (settings.theme, settings.language, settings.sampling_hz) == (
        ThemeMode.SYSTEM,
        i18n.SYSTEM,
        DEFAULT_SAMPLING_HZ,
    )


def choose(box: QComboBox, value: object) -> None:
    box.setCurrentIndex(box.findData(value))
    box.activated.emit(box.currentIndex())


def test_dialog_takes_effect_at_once(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    window = make_window(workspace)
    window.dialogs.show_settings()
    dialog = window.findChild(SettingsDialog)
    assert dialog is not None
    theme, language, sampling = dialog.findChildren(QComboBox)
    choose(sampling, 10.0)
    assert workspace.called("set_sampling_hz") == [("set_sampling_hz", 10.0)]
    choose(theme, ThemeMode.LIGHT)
    assert window.appearance.mode is ThemeMode.LIGHT
    choose(language, i18n.CHINESE)
    qtbot.waitUntil(lambda: "主题" in [label.text() for label in dialog.findChildren(QLabel)])
    assert clipped_texts(dialog) == []
    choose(language, i18n.SYSTEM)
    assert window.settings.language == i18n.SYSTEM
    dialog.reject()


@pytest.mark.parametrize("language", [i18n.ENGLISH, i18n.CHINESE])
def test_dialogs_have_room_for_their_texts(
    qtbot: QtBot, translators: i18n.Translators, settings_path: Path, language: str
) -> None:
    translators.use(language)
    dialogs: list[QDialog] = [SettingsDialog(Settings(settings_path), folder="/" + "long/" * 30), AboutDialog(DARK)]
    for dialog in dialogs:
        qtbot.addWidget(dialog)
        with qtbot.waitExposed(dialog):
            dialog.show()
        assert clipped_texts(dialog) == []
