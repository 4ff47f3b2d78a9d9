"""Languages: which there are, how one is switched on and off, and the mark that Linguist looks for in tables."""

from __future__ import annotations

from importlib import resources
from typing import Final

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

ENGLISH: Final = "en"
CHINESE: Final = "zh_CN"
SYSTEM: Final = "system"
# Each language by its own name, as every language menu should.
LANGUAGES: Final = {ENGLISH: "English", CHINESE: "简体中文"}


def QT_TRANSLATE_NOOP(context: str, text: str) -> str:  # the name is what lupdate looks for
    """Mark ``text`` for lupdate and give it back; PySide's own is typed ``object``."""
    del context
    return text


def resolve_language(wanted: str) -> str:
    """``wanted`` when there is such a language, else the system's, else English."""
    if wanted in LANGUAGES:
        return wanted
    return CHINESE if QLocale.system().language() is QLocale.Language.Chinese else ENGLISH


def translation_path(language: str) -> str:
    """Where the compiled texts of a language lie. Empty for English, which needs none."""
    if language == ENGLISH:
        return ""
    return str(resources.files("desktop_app.resources").joinpath("translations", f"floodmark_{language}.qm"))


class Translators:
    """The translators of one application: ours and Qt's own, exchanged together."""

    def __init__(self, app: QCoreApplication) -> None:
        self._app = app
        self._installed: list[QTranslator] = []
        self.language = ENGLISH

    def use(self, language: str) -> str:
        """Switch to ``language`` (or what ``resolve_language`` makes of it). Widgets get ``LanguageChange``."""
        language = resolve_language(language)
        self.clear()
        qt_folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
        if language != ENGLISH:
            self.install(f"{qt_folder}/qtbase_{language}.qm")
            self.install(translation_path(language))
        self.language = language
        return language

    def install(self, path: str) -> bool:
        """Add one compiled file; ``False`` when it cannot be read."""
        translator = QTranslator(self._app)
        if not translator.load(path):
            translator.deleteLater()
            return False
        self._app.installTranslator(translator)
        self._installed.append(translator)
        return True

    def clear(self) -> None:
        """Back to the source texts."""
        while self._installed:
            translator = self._installed.pop()
            self._app.removeTranslator(translator)
            translator.deleteLater()
        self.language = ENGLISH
