"""Every control can be reached by the keyboard and has a name for screen readers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QComboBox, QLineEdit, QWidget

import desktop_app.ui
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.side_panel import Tab
from tests.ui.fake_workspace import FakeState, FakeWorkspace

MakeWindow = Callable[..., MainWindow]
CONTROLS = (QAbstractButton, QComboBox, QLineEdit, QAbstractItemView)
UI_FOLDER = Path(desktop_app.ui.__file__).parent


def controls(window: QWidget) -> Iterator[QWidget]:
    """The visible ones that are not part of another control."""
    for widget in window.findChildren(QWidget):
        inner = isinstance(widget.parent(), QComboBox | QAbstractItemView) or widget.objectName().startswith("qt_")
        # The scroll arrows of a tab bar: the tabs themselves go by the arrow keys.
        arrow = type(widget.parent()).__name__ == "QTabBar"
        if isinstance(widget, CONTROLS) and widget.isVisible() and widget.isEnabled() and not inner and not arrow:
            yield widget


@pytest.mark.parametrize("state", [FakeState.LEAK, FakeState.TOO_BIG, FakeState.OUT_OF_MEMORY, FakeState.DISK_FULL])
def test_controls_have_names_and_take_the_focus(make_window: MakeWindow, state: FakeState) -> None:
    window = make_window(FakeWorkspace(state))
    window.side_panel.run.form.show_all(shown=True)
    for tab in Tab:
        window.side_panel.open_tab(tab)
        QCoreApplication.processEvents()
        for control in controls(window):
            described = f"{type(control).__name__} {control.objectName()} in {type(control.parent()).__name__}"
            named = control.accessibleName() or (control.text() if isinstance(control, QAbstractButton) else "")
            assert named, f"no name: {described}"
            assert control.focusPolicy() & Qt.FocusPolicy.TabFocus, f"not reached by Tab: {described} {named}"


def test_tab_key_goes_round_all_controls(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.TOO_BIG))
    expected = {id(control) for control in controls(window)}
    chain: set[int] = set()
    widget = window.nextInFocusChain()
    while widget is not window:
        chain.add(id(widget))
        widget = widget.nextInFocusChain()
    assert expected <= chain


def test_tank_and_banner_are_told_to_screen_readers(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.LEAK))
    assert window.banner.accessibleName().startswith("Out of memory likely at step 1,840")
    assert "Activations" in window.tank.accessibleDescription()


def test_no_signal_and_no_property_of_int() -> None:
    """``Signal(int)`` wraps at 2 GiB; bytes go as ``object``. Nobody needs an int signal here, so none is allowed."""
    found = []
    for path in sorted(UI_FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _name(node.func) in {"Signal", "Property", "Slot"}:
                kinds = [argument.id for argument in node.args if isinstance(argument, ast.Name)]
                if "int" in kinds:
                    found.append(f"{path.name}:{node.lineno}")
    assert found == []


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
