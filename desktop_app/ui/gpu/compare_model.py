"""The cards of one job as a table, the slowest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from desktop_app.services.stragglers import Standing
from desktop_app.ui.texts import cards, numbers
from desktop_app.ui.texts import stragglers as texts
from desktop_app.ui.theme import Theme, color

Index = QModelIndex | QPersistentModelIndex


class Column(IntEnum):
    CARD = 0
    PACE = 1
    LOAD = 2
    POWER = 3
    CLOCK = 4
    TEMPERATURE = 5


FIELDS: Final = {
    Column.LOAD: "utilization_percent",
    Column.POWER: "power_w",
    Column.CLOCK: "sm_clock_mhz",
    Column.TEMPERATURE: "temperature_c",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A card by the name that it has in the window, and how it stands."""

    name: str
    standing: Standing


class CompareModel(QAbstractTableModel):
    """Changes in place while the same cards stand in the same order.

    Stacked, a row has two lines: the pace lies under the card's name, the difference under the value.
    """

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._lines: tuple[Line, ...] = ()
        self._stacked = False

    @property
    def stacked(self) -> bool:
        return self._stacked

    def set_stacked(self, *, stacked: bool) -> None:
        if stacked != self._stacked:
            self._stacked = stacked
            if self._lines:
                self.dataChanged.emit(self.index(0, 0), self.index(len(self._lines) - 1, len(Column) - 1))

    def set_lines(self, lines: Sequence[Line]) -> bool:
        """Take new lines; whether any is another one."""
        new = tuple(lines)
        if new == self._lines:
            return False
        if [line.name for line in new] == [line.name for line in self._lines]:
            self._lines = new
            self.dataChanged.emit(self.index(0, 0), self.index(len(new) - 1, len(Column) - 1))
            return True
        self.beginResetModel()
        self._lines = new
        self.endResetModel()
        return True

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme

    @property
    def lines(self) -> tuple[Line, ...]:
        return self._lines

    def as_text(self) -> str:
        """Titles and rows, tab-separated."""
        rows = [list(texts.columns()), *([cell(line, column) for column in Column] for line in self._lines)]
        return "\n".join("\t".join(row) for row in rows)

    # -- the model ------------------------------------------------------------------------------------------------

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - as Qt declares it
        return 0 if parent.isValid() else len(self._lines)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(Column)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        line, column = self._lines[index.row()], Column(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return stacked_cell(line, column) if self._stacked else cell(line, column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return cell(line, column)
        if role == Qt.ItemDataRole.ForegroundRole:
            pace = Column.CARD if self._stacked else Column.PACE
            if line.standing.cause is not None and column is pace:
                return color(self._theme.warn)
            return color(self._theme.text if column is not Column.PACE else self._theme.muted)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(Column(section))
        return texts.columns()[section] if role == Qt.ItemDataRole.DisplayRole else None


def _alignment(column: Column) -> int:
    side = Qt.AlignmentFlag.AlignRight if column in FIELDS else Qt.AlignmentFlag.AlignLeft
    return int(side | Qt.AlignmentFlag.AlignVCenter)


def cell(line: Line, column: Column) -> str:
    """``62 %  −35``: the mean, and the difference to the others in the same unit."""
    standing = line.standing
    if column is Column.CARD:
        return line.name
    if column is Column.PACE:
        return texts.keeps_pace() if standing.cause is None else texts.cause(standing.cause)
    field = FIELDS[column]
    own = standing.work.levels.get(field)
    if own is None:
        return numbers.DASH
    value = cards.with_unit(field, own.mean)
    difference = standing.difference(field)
    return value if difference is None else f"{value}  {signed(difference)}"


def stacked_cell(line: Line, column: Column) -> str:
    """A cell of two lines."""
    if column is Column.CARD:
        return f"{line.name}\n{cell(line, Column.PACE)}"
    value, _, difference = cell(line, column).partition("  ")
    return f"{value}\n{difference}"


def signed(value: float) -> str:
    """``+3``, ``−35``, ``±0``."""
    whole = round(value)
    if not whole:
        return "±0"
    return f"+{numbers.integer(whole)}" if whole > 0 else numbers.integer(whole)
