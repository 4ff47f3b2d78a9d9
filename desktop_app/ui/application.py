"""The one ``QApplication``, made the same way for the program, the screenshots and the tests of the whole window."""

from __future__ import annotations

import locale
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QStyleFactory

from desktop_app.ui import icons

ORGANIZATION: Final = "floodmark"
APPLICATION: Final = "Floodmark"
_DISPLAY_VARIABLES: Final = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


def display_problem(environment: Mapping[str, str] | None = None, *, platform: str = sys.platform) -> str | None:
    """Why no window can be opened here, in one line; ``None`` when one can. Asked before ``QApplication`` is made,
    because Qt ends the process when it finds no display.
    """
    known = os.environ if environment is None else environment
    if not platform.startswith("linux") or any(known.get(name) for name in _DISPLAY_VARIABLES):
        return None
    return (
        "No display was found (DISPLAY and WAYLAND_DISPLAY are empty). Add --headless to run without a window, "
        "or set QT_QPA_PLATFORM=offscreen to draw it unseen."
    )


def make_application(argv: Sequence[str]) -> QApplication:
    """The application object: Fusion, names, icon, and numbers that are read and written with a point.

    Qt sets the C locale from the environment on the way; a comma would break every ``strtod`` below Python.
    """
    QGuiApplication.setHighDpiScaleFactorRoundingPolicy(Qt.HighDpiScaleFactorRoundingPolicy.PassThrough)
    QCoreApplication.setOrganizationName(ORGANIZATION)
    QCoreApplication.setApplicationName(APPLICATION)
    QGuiApplication.setApplicationDisplayName(APPLICATION)
    QGuiApplication.setDesktopFileName(ORGANIZATION)
    app = QApplication(list(argv))
    locale.setlocale(locale.LC_NUMERIC, "C")
    app.setStyle(QStyleFactory.create("Fusion"))
    app.setWindowIcon(icons.app_icon())
    app.setQuitOnLastWindowClosed(False)  # the staged quit ends the program, not the window
    return app
