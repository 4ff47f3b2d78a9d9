"""The processes on a card, in a table that sorts sizes as numbers of any length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QVBoxLayout, QWidget

from desktop_app.core.telemetry import ProcessSample
from desktop_app.services.facade import Workspace
from desktop_app.ui.labels import Label
from desktop_app.ui.tank_reader import selected_card
from desktop_app.ui.texts import processes as texts
from desktop_app.ui.theme import FontRole, Theme

NAME, PID, MEMORY = range(3)
_COLUMNS: Final = 3
_Index = QModelIndex | QPersistentModelIndex
_Key = tuple[int, int | str]

# Sorted here and not by a proxy: a proxy compares numbers as 32-bit or by their text, and bytes have more digits.
_KEYS: Final[dict[int, Callable[[ProcessSample], _Key]]] = {
    NAME: lambda process: (0, process.name.casefold()),
    PID: lambda process: (0, process.pid),
    MEMORY: lambda process: (0, -1) if process.memory_bytes is None else (1, process.memory_bytes),
}


class ProcessModel(QAbstractTableModel):
    """Processes of one card in the order the user chose; largest memory first at the start."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._processes: list[ProcessSample] = []
        self._column, self._order = MEMORY, Qt.SortOrder.DescendingOrder

    def show_processes(self, processes: tuple[ProcessSample, ...]) -> None:
        """Replace the rows; the selection stays at its row when nothing came or went."""
        ordered = self._sorted(processes)
        if ordered == self._processes:
            return
        if len(ordered) != len(self._processes):
            self.beginResetModel()
            self._processes = ordered
            self.endResetModel()
        else:
            self._processes = ordered
            self.dataChanged.emit(self.index(0, 0), self.index(len(ordered) - 1, _COLUMNS - 1))

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._column, self._order = column, order
        self.layoutAboutToBeChanged.emit()
        self._processes = self._sorted(tuple(self._processes))
        self.layoutChanged.emit()

    def _sorted(self, processes: tuple[ProcessSample, ...]) -> list[ProcessSample]:
        descending = self._order is Qt.SortOrder.DescendingOrder
        by_pid = sorted(processes, key=lambda process: process.pid)
        return sorted(by_pid, key=_KEYS[self._column], reverse=descending)

    def process(self, row: int) -> ProcessSample:
        return self._processes[row]

    def row_of(self, pid: int) -> int | None:
        """Where a process stands now; ``None`` when it is not on the card."""
        return next((row for row, process in enumerate(self._processes) if process.pid == pid), None)

    def rowCount(self, parent: _Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._processes)

    def columnCount(self, parent: _Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else _COLUMNS

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return texts.column(section)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        process = self._processes[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return texts.cell(process, index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            return texts.details(process)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(index.column())
        return None

    def retranslate(self) -> None:
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, _COLUMNS - 1)
        if self._processes:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._processes) - 1, _COLUMNS - 1))


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in (PID, MEMORY) else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


class ProcessesPanel(QWidget):
    """The table, or a line that says why it is empty."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self.model = ProcessModel(self)
        self._table = QTableView()
        self._empty = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._build()
        self.retranslate()

    def _build(self) -> None:
        table = self._table
        table.setObjectName("processTable")
        table.setModel(self.model)
        table.setSortingEnabled(True)
        table.sortByColumn(MEMORY, Qt.SortOrder.DescendingOrder)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setTabKeyNavigation(False)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.verticalHeader().hide()
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(44)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.addWidget(self._empty, alignment=Qt.AlignmentFlag.AlignTop)
        layout.addWidget(table)

    def refresh(self) -> None:
        card = selected_card(self._workspace)
        processes = self._workspace.processes.get().get(card.uuid, ()) if card is not None else ()
        self.model.show_processes(processes)
        self._empty.setVisible(not processes)
        self._table.setVisible(bool(processes))

    def choose(self, pid: int) -> None:
        """Select a process and bring it into sight."""
        self.refresh()
        row = self.model.row_of(pid)
        if row is not None:
            self._table.selectRow(row)
            self._table.scrollTo(self.model.index(row, NAME))
            self._table.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def selected(self) -> list[QModelIndex]:
        """The chosen row, if any."""
        return self._table.selectionModel().selectedRows()

    def retranslate(self) -> None:
        self._table.setAccessibleName(self.tr("Processes on the card"))
        self._empty.setText(self.tr("No process uses the card, or the driver lists none."))
        self._empty.setContentsMargins(8, 4, 8, 4)
        self.model.retranslate()
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        """Colours come from the style sheet."""
