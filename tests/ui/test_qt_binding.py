"""Faults of the binding that would end the program; the pin in pyproject.toml keeps them away."""

from __future__ import annotations

import sys

from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot


def test_calls_without_a_result_keep_none_alive(qtbot: QtBot) -> None:
    """PySide6 6.12.0 on Python 3.11 loses a reference to None in most void calls and aborts after about 5,000."""
    label = QLabel()
    qtbot.addWidget(label)
    before = sys.getrefcount(None)
    for number in range(1000):
        label.setText(str(number))
    assert sys.getrefcount(None) - before > -100
