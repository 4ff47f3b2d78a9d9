"""Theme, size of type and language of the program, switched while it runs."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QWidget

from desktop_app.ui import theme as themes
from desktop_app.ui.i18n import Translators
from desktop_app.ui.labels import TYPE_SCALE_PROPERTY
from desktop_app.ui.theme import Theme, ThemeMode
from desktop_app.ui.window_style import window_style

PRESENTATION_SCALE: Final = 1.6  # design/README.md, States


class Appearance(QObject):
    """Dresses the application and ``window``. ``changed`` follows a new theme or size; a new language is announced by
    Qt itself, with ``LanguageChange``.

    Between making it and ``dress`` nothing has a style sheet: parts that are put together under one are polished
    again at every step, which costs more than all the rest of a window (0.5 s of 0.7 s).
    """

    changed = Signal()

    def __init__(self, app: QApplication, window: QWidget, *, mode: ThemeMode, language: str) -> None:
        super().__init__(window)
        self._app = app
        self._window = window
        self._translators = Translators(app)
        self.mode = mode
        self.scale = 1.0
        self.theme: Theme = themes.resolve_theme(mode)
        self.language = self._translators.use(language)
        app.setStyleSheet("")
        app.setPalette(themes.build_palette(self.theme))
        app.styleHints().colorSchemeChanged.connect(self._on_system_changed)

    def set_mode(self, mode: ThemeMode) -> None:
        self.mode = mode
        self._on_system_changed()

    def set_scale(self, scale: float) -> None:
        if scale != self.scale:
            self.scale = scale
            self.dress()
            self.changed.emit()

    def use_language(self, language: str) -> str:
        """Switch to ``language`` and say what it came to ("system" is one of them)."""
        self.language = self._translators.use(language)
        return self.language

    def install(self, path: str) -> bool:
        """Add the texts of one more compiled file: translators try theirs before it is shipped."""
        return self._translators.install(path)

    def undress(self) -> None:
        """The application as it was: for the next window."""
        self._translators.clear()

    def _on_system_changed(self) -> None:
        theme = themes.resolve_theme(self.mode)
        if theme != self.theme:
            self.theme = theme
            self.dress()
            self.changed.emit()

    def dress(self) -> None:
        """Put theme and size on. The old sheets go first: exchanging one for another takes four times as long."""
        self._window.setStyleSheet("")
        self._app.setStyleSheet("")
        self._app.setProperty(TYPE_SCALE_PROPERTY, self.scale)
        themes.apply(self._app, self.theme, font_scale=self.scale)
        self._window.setStyleSheet(window_style(self.theme, scale=self.scale))
