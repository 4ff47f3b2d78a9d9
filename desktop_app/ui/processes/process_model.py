"""Rows of the process table, and their order: one row per process for as long as it lives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, QSortFilterProxyModel, Qt
from PySide6.QtGui import QColor, QFont

from desktop_app.core.telemetry import ProcessSample
from desktop_app.ui.processes.columns import DESCENDING_FIRST, LEFT_ALIGNED, Cell, Column, cell
from desktop_app.ui.texts import processes as texts
from desktop_app.ui.theme import Theme, color

# In the words of the header: the style's own arrow would lie over names that are written to the right.
SORTED_UP: Final = "\N{BLACK UP-POINTING SMALL TRIANGLE}"
SORTED_DOWN: Final = "\N{BLACK DOWN-POINTING SMALL TRIANGLE}"
_Index = QModelIndex | QPersistentModelIndex
_Identity = tuple[int, int | None, int]  # pid, slice, and a count: a driver may list one twice


def _identities(processes: Iterable[ProcessSample]) -> list[_Identity]:
    seen: Counter[tuple[int, int | None]] = Counter()
    found = []
    for process in processes:
        pair = (process.pid, process.gpu_instance)
        found.append((*pair, seen[pair]))
        seen[pair] += 1
    return found


class ProcessModel(QAbstractTableModel):
    """Processes of one card, newest last. A refresh changes only the cells that are different."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._identities: list[_Identity] = []
        self._rows: list[tuple[ProcessSample, tuple[Cell, ...]]] = []
        self._brief: frozenset[Column] = frozenset()
        self._muted = QColor()
        self._bold = QFont()

    def show_processes(self, processes: Sequence[ProcessSample]) -> bool:
        """Take what is on the card now; whether anything is different."""
        wanted = dict(zip(_identities(processes), processes, strict=True))
        gone = [row for row, identity in enumerate(self._identities) if identity not in wanted]
        for row in reversed(gone):
            self.beginRemoveRows(QModelIndex(), row, row)
            del self._identities[row], self._rows[row]
            self.endRemoveRows()
        changed = [self._update(row, wanted.pop(identity)) for row, identity in enumerate(self._identities)]
        if wanted:
            first = len(self._rows)
            self.beginInsertRows(QModelIndex(), first, first + len(wanted) - 1)
            self._identities += wanted
            self._rows += [(process, _cells(process)) for process in wanted.values()]
            self.endInsertRows()
        return bool(gone or wanted) or any(changed)

    def _update(self, row: int, process: ProcessSample) -> bool:
        old_process, old_cells = self._rows[row]
        if process == old_process:
            return False
        cells = _cells(process)
        self._rows[row] = (process, cells)
        different = [column for column in Column if cells[column] != old_cells[column]]
        if different:
            self.dataChanged.emit(self.index(row, min(different)), self.index(row, max(different)))
        return bool(different)

    @property
    def processes(self) -> list[ProcessSample]:
        return [process for process, _ in self._rows]

    def process(self, row: int) -> ProcessSample:
        return self._rows[row][0]

    def cell(self, row: int, column: int) -> Cell:
        return self._rows[row][1][column]

    def cells(self, column: int) -> list[Cell]:
        return [cells[column] for _, cells in self._rows]

    def row_of(self, pid: int) -> int | None:
        """Where a process stands; ``None`` when it is not on the card."""
        return next((row for row, (process, _) in enumerate(self._rows) if process.pid == pid), None)

    def set_brief(self, columns: frozenset[Column]) -> None:
        """Columns that have no room for a reason: it is then in the tooltip alone."""
        if columns != self._brief:
            self._brief = columns
            self._all_changed()

    def set_look(self, theme: Theme, font: QFont) -> None:
        """``font``: of the table; this program's own process is written in a stronger one."""
        self._muted = color(theme.muted)
        self._bold = QFont(font)
        self._bold.setWeight(QFont.Weight.DemiBold)

    # -- what Qt asks ---------------------------------------------------------------------------------------------

    def rowCount(self, parent: _Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(Column)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return texts.column(Column(section).key)
        if role == Qt.ItemDataRole.ToolTipRole:
            return texts.meaning(Column(section).key)
        if role == Qt.ItemDataRole.InitialSortOrderRole:
            order = Qt.SortOrder.DescendingOrder if section in DESCENDING_FIRST else Qt.SortOrder.AscendingOrder
            return order.value
        return _alignment(section) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        process, cells = self._rows[index.row()]
        found = cells[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return texts.absent() if found.why and Column(index.column()) in self._brief else found.text
        if role == Qt.ItemDataRole.ForegroundRole:
            return self._muted if found.key is None else None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(index.column())
        if role == Qt.ItemDataRole.FontRole:
            return self._bold if process.own and index.column() == Column.NAME else None
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{found.text}\n{found.why}" if found.why else texts.details(process)
        return None

    def retranslate(self) -> None:
        self._rows = [(process, _cells(process)) for process, _ in self._rows]
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(Column) - 1)
        self._all_changed()

    def _all_changed(self) -> None:
        if self._rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._rows) - 1, len(Column) - 1))


def _cells(process: ProcessSample) -> tuple[Cell, ...]:
    return tuple(cell(process, column) for column in Column)


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignLeft if column in LEFT_ALIGNED else Qt.AlignmentFlag.AlignRight
    return side | Qt.AlignmentFlag.AlignVCenter


class ProcessOrder(QSortFilterProxyModel):
    """The rows on show, in order: by values and not by texts, of any length; what is not known comes last.

    Sorted by ranks that Python has made: a comparison of two rows is then one of two small numbers. Sorting happens
    only when the order on show is no longer right, because it makes the view lay out everything anew.
    """

    def __init__(self, model: ProcessModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._words: tuple[str, ...] = ()
        self._ranks: list[int] = []
        self.setDynamicSortFilter(False)
        self.setSourceModel(model)

    @property
    def model(self) -> ProcessModel:
        return self._model

    def set_filter(self, text: str) -> None:
        """Only processes that have every word of ``text`` in name, pid, user or command."""
        words = tuple(text.casefold().split())
        if words != self._words:
            self._words = words
            self._filter_again()
            self.settle()  # rows that come back are put at the end

    def _filter_again(self) -> None:
        if hasattr(self, "endFilterChange"):  # Qt 6.10 and newer, where the other one is deprecated
            self.beginFilterChange()
            self.endFilterChange(QSortFilterProxyModel.Direction.Rows)
        else:
            self.invalidateRowsFilter()

    def settle(self) -> None:
        """After the rows have changed: filter and sort again where what is on show is no longer right."""
        if self._words:
            self._filter_again()  # a command may have become known
        shown = [self.mapToSource(self.index(row, 0)).row() for row in range(self.rowCount())]
        ranks = self._rank()
        in_order = [ranks[row] for row in shown]
        if in_order != sorted(in_order):
            self.sort(self.sortColumn(), self.sortOrder())

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._ranks = self._rank(column, descending=order is Qt.SortOrder.DescendingOrder)
        if order is Qt.SortOrder.DescendingOrder:
            self._ranks = [-rank for rank in self._ranks]  # Qt turns the comparison round
        super().sort(column, order)

    def _rank(self, column: int | None = None, *, descending: bool | None = None) -> list[int]:
        """The place of every row of the model, from the top."""
        column = self.sortColumn() if column is None else column
        if descending is None:
            descending = self.sortOrder() is Qt.SortOrder.DescendingOrder
        rows = sorted(range(self._model.rowCount()), key=lambda row: self._model.process(row).pid)
        if column >= 0:
            keys = [found.key for found in self._model.cells(column)]
            known = [row for row in rows if keys[row] is not None]
            known.sort(key=lambda row: keys[row], reverse=descending)  # type: ignore[arg-type, return-value]
            rows = known + [row for row in rows if keys[row] is None]
        ranks = [0] * len(rows)
        for rank, row in enumerate(rows):
            ranks[row] = rank
        return ranks

    def process_at(self, row: int) -> ProcessSample:
        """The process in ``row`` of what is on show."""
        return self._model.process(self.mapToSource(self.index(row, 0)).row())

    # -- what Qt asks ---------------------------------------------------------------------------------------------

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        found = self._model.headerData(section, orientation, role)
        if role == Qt.ItemDataRole.DisplayRole and section == self.sortColumn():
            return f"{found} {SORTED_DOWN if self.sortOrder() is Qt.SortOrder.DescendingOrder else SORTED_UP}"
        return found

    def lessThan(self, left: _Index, right: _Index) -> bool:
        # Rows that have just come have no rank: they go to the end, until ``settle``.
        last = len(self._ranks)
        ranks = [self._ranks[index.row()] if index.row() < last else last for index in (left, right)]
        return ranks[0] < ranks[1]

    def filterAcceptsRow(self, source_row: int, source_parent: _Index) -> bool:
        del source_parent
        if not self._words:
            return True
        process = self._model.process(source_row)
        parts = (texts.name(process), str(process.pid), process.user or "", process.command or "")
        text = "\n".join(parts).casefold()
        return all(word in text for word in self._words)
