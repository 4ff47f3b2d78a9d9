from __future__ import annotations

import locale
import subprocess
import sys

import pytest
from PySide6.QtWidgets import QApplication

from desktop_app.ui.application import display_problem


@pytest.mark.parametrize(
    "environment", [{"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}, {"QT_QPA_PLATFORM": "offscreen"}]
)
def test_display_is_found(environment: dict[str, str]) -> None:
    assert display_problem(environment, platform="linux") is None


def test_missing_display_is_one_line_with_two_ways_out() -> None:
    line = display_problem({"DISPLAY": ""}, platform="linux")
    assert line is not None
    assert "\n" not in line
    assert "--headless" in line
    assert "QT_QPA_PLATFORM=offscreen" in line


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_other_systems_always_have_one(platform: str) -> None:
    assert display_problem({}, platform=platform) is None


def test_application_has_its_names(qapp: QApplication) -> None:
    assert qapp.applicationName() == "Floodmark"
    assert qapp.organizationName() == "floodmark"
    assert not qapp.windowIcon().isNull()
    assert not qapp.quitOnLastWindowClosed()


def test_numbers_are_read_with_a_point(qapp: QApplication) -> None:
    assert locale.localeconv()["decimal_point"] == "."


def test_window_needs_neither_torch_nor_pyqtgraph_to_be_made() -> None:
    """The first window may not wait for them: 1.3 s and 0.3 s of imports."""
    code = (
        "import sys, desktop_app.ui.main_window;"
        "sys.exit(', '.join({'torch', 'pyqtgraph', 'pynvml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr.strip() == ""
