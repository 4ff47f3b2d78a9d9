"""Icons: small drawings in one colour, tinted by the theme, and the mark of the program."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from importlib import resources
from typing import Final

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from desktop_app.ui.theme import Theme

# Drawn once at each: a button asks for 16 to 24 pixels at scales 1 to 3.
SIZES: Final = (16, 20, 24, 32, 40, 48, 64, 72)
APP_SIZES: Final = (16, 24, 32, 48, 64, 128, 256)
_CURRENT: Final = b"currentColor"
# The colours that the mark is drawn in, and the theme's that take their place.
_MARK_FLOOD: Final = b"#FF6B6B"
_MARK_WAVE: Final = b"#4CC2FF"


class IconName(StrEnum):
    """The drawings in ``resources/icons``, by file name."""

    PAUSE = "pause"
    STOP = "stop"
    PLAY = "play"
    SAVE = "save"
    RESUME = "resume"
    WARNING = "warning"
    ERROR = "error"
    INFO = "info"
    OK = "ok"
    CHECK = "check"
    CLOSE = "close"
    SEARCH = "search"
    SETTINGS = "settings"
    CARD = "card"
    CHART = "chart"
    LIST = "list"
    CLOCK = "clock"
    FOLDER = "folder"
    LIVE = "live"
    SUN = "sun"
    MOON = "moon"
    LANGUAGE = "language"
    COMMAND = "command"
    PRESENT = "present"
    HELP = "help"
    LOGO = "floodmark"


def icon(name: IconName, theme: Theme, *, color: str | None = None) -> QIcon:
    """One icon in ``color`` (the theme's text colour unless given) and, when disabled, in the theme's faint colour."""
    return _icon(name, theme, color or theme.text)


@lru_cache(maxsize=256)
def _icon(name: IconName, theme: Theme, color: str) -> QIcon:
    made = QIcon()
    for size in SIZES:
        made.addPixmap(pixmap(name, theme, size, color=color))
        made.addPixmap(pixmap(name, theme, size, color=theme.faint), QIcon.Mode.Disabled)
    return made


def pixmap(name: IconName, theme: Theme, size: int, *, ratio: float = 1.0, color: str | None = None) -> QPixmap:
    """One drawing ``size`` logical pixels wide, for a screen of ``ratio`` device pixels to each."""
    drawing = _source(name.value).replace(_CURRENT, (color or theme.text).encode())
    if name is IconName.LOGO:
        drawing = drawing.replace(_MARK_FLOOD, theme.danger.encode()).replace(_MARK_WAVE, theme.accent.encode())
    return _drawn(drawing, size, ratio)


def app_icon() -> QIcon:
    """The program's own icon, for windows and the tray."""
    made = QIcon()
    for size in APP_SIZES:
        made.addPixmap(_drawn(_source("floodmark-app"), size, 1.0))
    return made


@lru_cache(maxsize=64)
def _source(name: str) -> bytes:
    return resources.files("desktop_app.resources").joinpath("icons", f"{name}.svg").read_bytes()


def _drawn(drawing: bytes, size: int, ratio: float) -> QPixmap:
    made = QPixmap(QSize(size, size) * ratio)
    made.setDevicePixelRatio(ratio)
    made.fill(Qt.GlobalColor.transparent)
    painter = QPainter(made)
    QSvgRenderer(QByteArray(drawing)).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return made
