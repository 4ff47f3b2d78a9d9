"""What the window remembers, in one INI file. INI gives back strings after a restart, so every read names its type."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QByteArray, QSettings

from desktop_app.ui import i18n
from desktop_app.ui.charts.load import Load
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.theme import ThemeMode

# The rates on offer: 5 Hz is the design's default, 10 Hz the fastest that the fast lane keeps without late ticks.
SAMPLING_RATES_HZ: Final = (1.0, 2.0, 5.0, 10.0)
DEFAULT_SAMPLING_HZ: Final = 5.0


class Settings:
    """Typed access to one settings file. A broken or missing value reads as its default."""

    def __init__(self, path: Path) -> None:
        self._store = QSettings(str(path), QSettings.Format.IniFormat)

    @property
    def theme(self) -> ThemeMode:
        try:
            return ThemeMode(self._text("window/theme", ThemeMode.SYSTEM.value))
        except ValueError:
            return ThemeMode.SYSTEM

    @theme.setter
    def theme(self, mode: ThemeMode) -> None:
        self._store.setValue("window/theme", mode.value)

    @property
    def language(self) -> str:
        """A language code or ``i18n.SYSTEM``."""
        found = self._text("window/language", i18n.SYSTEM)
        return found if found in i18n.LANGUAGES else i18n.SYSTEM

    @language.setter
    def language(self, language: str) -> None:
        self._store.setValue("window/language", language)

    @property
    def sampling_hz(self) -> float:
        found = self._number("telemetry/sampling_hz", DEFAULT_SAMPLING_HZ)
        return found if found in SAMPLING_RATES_HZ else DEFAULT_SAMPLING_HZ

    @sampling_hz.setter
    def sampling_hz(self, hz: float) -> None:
        self._store.setValue("telemetry/sampling_hz", hz)

    @property
    def side_panel(self) -> bool:
        return self._flag("window/side_panel")

    @side_panel.setter
    def side_panel(self, shown: bool) -> None:
        self._store.setValue("window/side_panel", shown)

    @property
    def load(self) -> Load:
        """What the panel of utilisation shows."""
        try:
            return Load(self._text("charts/load", Load.UTILIZATION.value))
        except ValueError:
            return Load.UTILIZATION

    @load.setter
    def load(self, load: Load) -> None:
        self._store.setValue("charts/load", load.value)

    @property
    def shades(self) -> frozenset[Throttle]:
        """What is shaded: time slowed by heat. A card at its power limit is well, and shaded if asked."""
        return frozenset(
            cause for cause in Throttle if self._flag(f"charts/shade_{cause.value}", default=cause is Throttle.HEAT)
        )

    @shades.setter
    def shades(self, causes: frozenset[Throttle]) -> None:
        for cause in Throttle:
            self._store.setValue(f"charts/shade_{cause.value}", cause in causes)

    @property
    def tray(self) -> bool:
        """Whether an icon is shown in the desktop's tray; notifications come from there."""
        return self._flag("notices/tray")

    @tray.setter
    def tray(self, shown: bool) -> None:
        self._store.setValue("notices/tray", shown)

    @property
    def notifications(self) -> bool:
        return self._flag("notices/notifications")

    @notifications.setter
    def notifications(self, wanted: bool) -> None:
        self._store.setValue("notices/notifications", wanted)

    @property
    def quiet_in_front(self) -> bool:
        """Whether nothing is announced while the window is in front."""
        return self._flag("notices/quiet_in_front")

    @quiet_in_front.setter
    def quiet_in_front(self, quiet: bool) -> None:
        self._store.setValue("notices/quiet_in_front", quiet)

    @property
    def sound(self) -> bool:
        return self._flag("notices/sound", default=False)

    @sound.setter
    def sound(self, wanted: bool) -> None:
        self._store.setValue("notices/sound", wanted)

    @property
    def geometry(self) -> QByteArray:
        return self._bytes("window/geometry")

    @geometry.setter
    def geometry(self, state: QByteArray) -> None:
        self._store.setValue("window/geometry", state)

    def process_columns(self, place: str) -> tuple[str, ...]:
        """Names of the columns of the process table in ``place``; empty where none were chosen."""
        return tuple(filter(None, self._text(f"processes/columns_{place}", "").split(" ")))

    def set_process_columns(self, place: str, columns: tuple[str, ...]) -> None:
        self._store.setValue(f"processes/columns_{place}", " ".join(columns))

    @property
    def last_folder(self) -> str:
        """Where the last file was opened or saved."""
        return self._text("files/last_folder", "")

    @last_folder.setter
    def last_folder(self, folder: str) -> None:
        self._store.setValue("files/last_folder", folder)

    def sync(self) -> bool:
        """Write now. ``False`` when the file cannot be written."""
        self._store.sync()
        return self._store.status() is QSettings.Status.NoError

    def _flag(self, key: str, *, default: bool = True) -> bool:
        return bool(self._store.value(key, defaultValue=default, type=bool))

    def _text(self, key: str, default: str) -> str:
        return str(self._store.value(key, defaultValue=default, type=str))

    def _number(self, key: str, default: float) -> float:
        try:
            found = self._store.value(key, defaultValue=default, type=float)
        except (TypeError, ValueError):
            return default
        return found if isinstance(found, float) else default

    def _bytes(self, key: str) -> QByteArray:
        found = self._store.value(key, defaultValue=QByteArray(), type=QByteArray)
        return found if isinstance(found, QByteArray) else QByteArray()
