"""A two-column list of names and values, missing ones with their reason; built once, then only texts change."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from desktop_app.ui.labels import ElidedLabel, Label
from desktop_app.ui.theme import FontRole


class FactList(QWidget):
    """Rows of name and value under one heading."""

    def __init__(self, keys: Iterable[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._heading = Label(font=FontRole.TITLE)
        self._names: dict[str, Label] = {}
        self._values: dict[str, ElidedLabel] = {}
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        grid.addWidget(self._heading, 0, 0, 1, 2)
        for row, key in enumerate(keys, start=1):
            self._add_row(grid, row, key)

    def _add_row(self, grid: QGridLayout, row: int, key: str) -> None:
        name = Label(font=FontRole.LABEL, role="muted")
        value = ElidedLabel(font=FontRole.LABEL)
        value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        grid.addWidget(name, row, 0)
        grid.addWidget(value, row, 1, Qt.AlignmentFlag.AlignRight)
        self._names[key], self._values[key] = name, value

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._names)

    def set_heading(self, text: str) -> None:
        self._heading.setText(text)

    def set_name(self, key: str, text: str) -> None:
        self._names[key].setText(text)
        self._values[key].setAccessibleName(text)

    def set_value(self, key: str, text: str, *, missing: str = "") -> None:
        """``missing`` is the sentence that says why there is no value; empty when there is one."""
        label = self._values[key]
        label.setText(text)
        label.set_role("muted" if missing else "")
        if missing:
            label.setToolTip(missing)

    def value(self, key: str) -> str:
        return self._values[key].text()
