"""For every test with widgets: one application in a known language and theme, and no widget or timer left behind."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from desktop_app.ui import theme as themes
from desktop_app.ui.application import make_application
from desktop_app.ui.closing import Stage
from desktop_app.ui.i18n import Translators
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.qt_settings import Settings
from desktop_app.ui.theme import ThemeMode
from tests.ui.fake_workspace import FakeWorkspace
from tests.ui.pseudo_locale import compile_pseudo

# What Qt's offscreen platform says of every popup: it has no window manager to talk to.
HARMLESS_MESSAGES = r"This plugin does not support (propagateSizeHints|raise|grabbing the keyboard)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/ui" in item.path.as_posix():
            item.add_marker(pytest.mark.qt_log_ignore(HARMLESS_MESSAGES, extend=True))


@pytest.fixture(scope="session")
def qapp() -> QApplication:
    """The program's own application object, as pytest-qt's fixture of this name."""
    app = make_application(["floodmark-tests"])
    themes.apply(app, themes.DARK)
    return app


@pytest.fixture
def translators(qapp: QApplication) -> Iterator[Translators]:
    """Languages to switch between; English again afterwards."""
    made = Translators(qapp)
    yield made
    made.clear()


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail when a test leaves a top-level widget or a running timer."""
    if "qtbot" not in request.fixturenames:
        yield
        return
    app: QApplication = request.getfixturevalue("qapp")
    before = set(map(id, app.topLevelWidgets()))
    known_timers = set(map(id, _running_timers(app)))
    yield
    # pytest-qt has closed what was added to qtbot; here deletion is carried out.
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    widgets = [widget for widget in app.topLevelWidgets() if id(widget) not in before]
    assert not widgets, f"top-level widgets left: {widgets}"
    timers = [timer for timer in _running_timers(app) if id(timer) not in known_timers]
    assert not timers, f"timers left running: {timers}"


def _running_timers(app: QApplication) -> list[QTimer]:
    owners: list[QObject] = [app, *app.topLevelWidgets()]
    return [timer for owner in owners for timer in owner.findChildren(QTimer) if timer.isActive()]


@pytest.fixture
def show(qtbot: QtBot) -> Callable[..., QWidget]:
    """Register, size and show a widget, and wait until it is on the screen."""

    def shown(widget: QWidget, *, width: int = 0, height: int = 0) -> QWidget:
        qtbot.addWidget(widget)
        if width and height:
            widget.resize(width, height)
        with qtbot.waitExposed(widget):
            widget.show()
        QCoreApplication.processEvents()
        return widget

    return shown


@pytest.fixture
def make_window(qtbot: QtBot, tmp_path: Path) -> Iterator[Callable[..., MainWindow]]:
    """Windows over a workspace, closed without questions after the test."""
    windows: list[MainWindow] = []

    def made(
        workspace: FakeWorkspace,
        *,
        width: int = 1440,
        height: int = 900,
        theme: ThemeMode = ThemeMode.DARK,
        language: str = "en",
    ) -> MainWindow:
        settings = Settings(tmp_path / "window.ini")
        window = MainWindow(workspace, settings=settings, theme=theme, language=language)
        windows.append(window)
        if width and height:
            window.resize(width, height)
        with qtbot.waitExposed(window):
            window.show()
        window.charts.place()
        QCoreApplication.processEvents()
        return window

    made.windows = windows  # type: ignore[attr-defined]
    yield made
    for window in windows:
        window.closing.stage = Stage.DONE
        window.pulse.stop()
        window.close()
        window.appearance.undress()
        window.deleteLater()


@pytest.fixture(scope="session")
def pseudo_qm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The compiled pseudo-language."""
    return str(compile_pseudo(tmp_path_factory.mktemp("pseudo")))


@pytest.fixture
def settings_path(tmp_path: Path) -> Path:
    return tmp_path / "window.ini"
