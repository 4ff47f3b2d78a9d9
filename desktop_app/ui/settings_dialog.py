"""The few things one may set. Each takes effect at once; there is nothing to confirm."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from desktop_app.ui import i18n
from desktop_app.ui.form_editors import ComboBox
from desktop_app.ui.labels import ElidedLabel, Label
from desktop_app.ui.qt_settings import SAMPLING_RATES_HZ, Settings
from desktop_app.ui.texts import numbers
from desktop_app.ui.theme import ThemeMode


class SettingsDialog(QDialog):
    """``command_chosen`` carries the command that a choice stands for; ``sampling_chosen`` the rate in Hz;
    ``notices_changed`` follows a change of what is said outside the window."""

    command_chosen = Signal(str)
    sampling_chosen = Signal(float)
    notices_changed = Signal()

    def __init__(self, settings: Settings, *, folder: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._labels = [Label() for _ in range(5)]
        self._theme = ComboBox()
        self._language = ComboBox()
        self._sampling = ComboBox()
        self._tray = QCheckBox()
        self._notifications = QCheckBox()
        self._quiet = QCheckBox()
        self._sound = QCheckBox()
        self._folder = ElidedLabel(folder, role="muted")
        self._open = QPushButton()
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self._build()
        self._connect()
        self.retranslate()

    def _build(self) -> None:
        self.setMinimumWidth(440)
        for mode in ThemeMode:
            self._theme.addItem(mode.value, mode)
        self._language.addItem(i18n.SYSTEM, i18n.SYSTEM)
        for code, name in i18n.LANGUAGES.items():
            self._language.addItem(name, code)
        for rate in SAMPLING_RATES_HZ:
            self._sampling.addItem(numbers.with_unit(rate, "Hz"), rate)
        self._theme.setCurrentIndex(self._theme.findData(self._settings.theme))
        self._language.setCurrentIndex(self._language.findData(self._settings.language))
        self._sampling.setCurrentIndex(self._sampling.findData(self._settings.sampling_hz))
        folder_row = QHBoxLayout()
        folder_row.addWidget(self._folder, stretch=1)
        folder_row.addWidget(self._open)
        form = QFormLayout()
        form.setSpacing(12)
        for label, field in zip(self._labels, (self._theme, self._language, self._sampling), strict=False):
            label.setBuddy(field)
            form.addRow(label, field)
        form.addRow(self._labels[3], self._build_notices())
        form.addRow(self._labels[4], folder_row)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 24, 24, 16)
        layout.setSpacing(24)
        layout.addLayout(form)
        layout.addWidget(self._buttons)

    def _build_notices(self) -> QVBoxLayout:
        settings = self._settings
        column = QVBoxLayout()
        column.setSpacing(6)
        for box, checked in (
            (self._tray, settings.tray),
            (self._notifications, settings.notifications),
            (self._quiet, settings.quiet_in_front),
            (self._sound, settings.sound),
        ):
            box.setChecked(checked)
            column.addWidget(box)
        self._notifications.setEnabled(settings.tray)
        return column

    def _connect(self) -> None:
        self._theme.activated.connect(
            lambda _row: self.command_chosen.emit(f"view.theme_{ThemeMode(self._theme.currentData()).value}")
        )
        self._language.activated.connect(self._on_language)
        self._sampling.activated.connect(lambda _row: self.sampling_chosen.emit(self._sampling.currentData()))
        for box in (self._tray, self._notifications, self._quiet, self._sound):
            box.toggled.connect(lambda _checked: self._on_notices())
        self._open.clicked.connect(lambda: self.command_chosen.emit("file.open_sessions"))
        self._buttons.rejected.connect(self.reject)

    def _on_notices(self) -> None:
        settings = self._settings
        settings.tray = self._tray.isChecked()
        settings.notifications = self._notifications.isChecked()
        settings.quiet_in_front = self._quiet.isChecked()
        settings.sound = self._sound.isChecked()
        self._notifications.setEnabled(settings.tray)
        self.notices_changed.emit()

    def _on_language(self, _row: int) -> None:
        chosen = str(self._language.currentData())
        self._settings.language = chosen
        self.command_chosen.emit(f"view.language_{i18n.resolve_language(chosen)}")
        self._settings.language = chosen  # the command has written what "system" came to
        self.retranslate()

    def retranslate(self) -> None:
        self.setWindowTitle(self.tr("Settings"))
        texts = (
            self.tr("Theme"),
            self.tr("Language"),
            self.tr("Readings per second"),
            self.tr("Warnings and ends"),
            self.tr("Sessions are kept in"),
        )
        for label, text in zip(self._labels, texts, strict=True):
            label.setText(text)
        names = {
            ThemeMode.DARK: self.tr("dark"),
            ThemeMode.LIGHT: self.tr("light"),
            ThemeMode.SYSTEM: self.tr("as the system"),
        }
        for row in range(self._theme.count()):
            self._theme.setItemText(row, names[ThemeMode(self._theme.itemData(row))])
        self._language.setItemText(0, self.tr("as the system"))
        self._tray.setText(self.tr("Icon in the tray, where the desktop has one"))
        self._notifications.setText(self.tr("Desktop notifications"))
        self._quiet.setText(self.tr("Only while the window is not in front"))
        self._sound.setText(self.tr("A sound with every warning"))
        self._open.setText(self.tr("Open"))
        self._open.setAccessibleName(self.tr("Open the folder of sessions"))
        close = self._buttons.button(QDialogButtonBox.StandardButton.Close)
        close.setText(self.tr("Close"))
        close.setIcon(QIcon())
