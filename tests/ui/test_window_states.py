"""Every state of the window renders without a clipped text, in every language, at the smallest size and a usual one."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtGui import QImage

from desktop_app.ui.alert_card import AlertCard
from desktop_app.ui.labels import Label
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.post_mortem import all_reports
from desktop_app.ui.side_panel import Tab
from desktop_app.ui.theme import ThemeMode
from tests.ui.clipping import clipped_texts
from tests.ui.fake_workspace import FakeState, FakeWorkspace

MakeWindow = Callable[..., MainWindow]
SIZES = ((1440, 900), (1024, 640))
# Thirty days take four seconds to make and look like any other run but for the axis, which test_charts looks at; one
# alert looks like the first of several.
NOT_DRAWN = {FakeState.LONG_RUN, FakeState.VALIDATION_AHEAD, FakeState.HOST_FULL}
STATES = [state for state in FakeState if state not in NOT_DRAWN]
# Longer texts in the states that have the most of them.
PSEUDO_STATES = [
    FakeState.LEAK,
    FakeState.TOO_BIG,
    FakeState.OUT_OF_MEMORY,
    FakeState.RESUME_OFFER,
    FakeState.NO_DRIVER,
    FakeState.SEVERAL_ALERTS,
    FakeState.RESCUED,
]


# The other pages depend on less; these states fill or empty them.
STATES_OF_ALL_PAGES = {
    FakeState.NOTHING,
    FakeState.LEAK,
    FakeState.EIGHT_GPUS,
    FakeState.NO_DRIVER,
    FakeState.LONG_NAMES,
}


def tabs_of(workspace: FakeWorkspace) -> set[Tab]:
    tabs = {Tab.RUN}
    if workspace.state in STATES_OF_ALL_PAGES:
        tabs |= {Tab.GPU, Tab.ALERTS, Tab.PROCESSES}
    if workspace.state is FakeState.SEVERAL_ALERTS:
        tabs.add(Tab.ALERTS)
    if all_reports(workspace.run.get()):
        tabs.add(Tab.POST_MORTEM)
    return tabs


def problems_of(window: MainWindow, workspace: FakeWorkspace) -> list[str]:
    """Clipped texts on every page at every size."""
    found = []
    for width, height in SIZES:
        window.resize(width, height)
        for tab in Tab:
            if tab not in tabs_of(workspace):
                continue
            window.side_panel.open_tab(tab)
            for card in window.side_panel.alerts.findChildren(AlertCard) if tab is Tab.ALERTS else ():
                card.unfold()
            for _ in range(3):
                QCoreApplication.processEvents()
            found += [f"{width}x{height} {tab.name}: {problem}" for problem in clipped_texts(window)]
    return found


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("state", STATES)
def test_state_shows_all_its_texts(make_window: MakeWindow, state: FakeState, language: str) -> None:
    workspace = FakeWorkspace(state)
    window = make_window(workspace, language=language)
    assert problems_of(window, workspace) == []


@pytest.mark.parametrize("state", PSEUDO_STATES)
def test_state_has_room_for_longer_texts(make_window: MakeWindow, pseudo_qm: str, state: FakeState) -> None:
    workspace = FakeWorkspace(state)
    window = make_window(workspace, theme=ThemeMode.LIGHT)
    assert window.appearance.install(pseudo_qm)
    QCoreApplication.processEvents()
    assert window.banner.headline.sentence.startswith("[")
    assert problems_of(window, workspace) == []


def test_presentation_enlarges_every_text(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.LEAK), width=1920, height=1080)
    sizes = {label: label.font().pointSizeF() for label in (window.banner.findChildren(Label))}
    window.toggle_presentation()
    assert not window.side_panel.isVisible()
    assert all(label.font().pointSizeF() == pytest.approx(1.6 * size) for label, size in sizes.items())
    window.toggle_presentation()
    assert window.side_panel.isVisible()
    assert all(label.font().pointSizeF() == pytest.approx(size) for label, size in sizes.items())


def test_closed_window_dies(make_window: MakeWindow) -> None:
    """Nothing may keep a window: not a lambda, not a signal of the application, not a cache."""
    window = make_window(FakeWorkspace(FakeState.EIGHT_GPUS))
    gone: list[bool] = []
    window.destroyed.connect(lambda: gone.append(True))
    window.pulse.stop()
    window.deleteLater()
    known = weakref.ref(window)
    make_window.windows.remove(window)  # type: ignore[attr-defined]
    del window
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()
    assert gone
    assert known() is None


def test_picture_is_written(make_window: MakeWindow, tmp_path: Path) -> None:
    window = make_window(FakeWorkspace(FakeState.LEAK), width=1024, height=640)
    assert window.grab_to(tmp_path / "window.png")
    picture = QImage(str(tmp_path / "window.png"))
    assert (picture.width(), picture.height()) == (1024, 640)
    assert not window.grab_to(tmp_path / "no" / "such" / "folder.png")
