"""The table itself: as wide as its words need, the rest for the name; scrolls sideways only where it must."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from desktop_app.core.telemetry import ProcessSample
from desktop_app.ui.processes.columns import SAMPLES, Column
from desktop_app.ui.processes.process_model import SORTED_UP, ProcessModel, ProcessOrder
from desktop_app.ui.texts import processes as texts

_PAD: Final = 20  # of a cell: 6 on either side by the style sheet, 3 of Qt's own, and a pixel for rounding
_ROW_AIR: Final = 8
_MOST_NAME: Final = 1.8  # of the sample of a name, before anything else is given room
_MOST_VALUE: Final = 1.6  # of the sample of a value


class ProcessTable(QTableView):
    """Shows a ``ProcessModel``. ``filter_wanted``: a slash was typed."""

    filter_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model_ = ProcessModel(self)
        self.order = ProcessOrder(self.model_, self)
        self._columns: tuple[Column, ...] = tuple(Column)
        self._widest: dict[Column, int] = {}
        self._build()

    def _build(self) -> None:
        self.setObjectName("processTable")
        self.setModel(self.order)
        self.setSortingEnabled(True)
        self.sortByColumn(Column.MEMORY, Qt.SortOrder.DescendingOrder)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setMinimumSectionSize(24)
        header.setTextElideMode(Qt.TextElideMode.ElideRight)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)

    # -- rows -----------------------------------------------------------------------------------------------------

    def show_processes(self, processes: Sequence[ProcessSample]) -> None:
        if self.model_.show_processes(processes):
            self.order.settle()
            self.fit()

    def current_process(self) -> ProcessSample | None:
        """The chosen one."""
        rows = self.selectionModel().selectedRows()
        return self.order.process_at(rows[0].row()) if rows else None

    def choose(self, pid: int) -> bool:
        """Select a process and bring it into sight; whether it is there."""
        row = self.model_.row_of(pid)
        index = self.order.mapFromSource(self.model_.index(-1 if row is None else row, Column.NAME))
        if row is None or not index.isValid():
            return False
        self.selectRow(index.row())
        self.scrollTo(index)
        return True

    def lines(self, *, only_chosen: bool) -> str:
        """Rows as on show, with a line of names above, cells parted by tabs: what spreadsheets take."""
        rows = [index.row() for index in self.selectionModel().selectedRows()] if only_chosen else None
        wanted = range(self.order.rowCount()) if rows is None else rows
        table = [[texts.column(column.key) for column in self._columns]] if rows is None else []
        for row in wanted:
            source = self.order.mapToSource(self.order.index(row, 0)).row()
            table.append([self.model_.cell(source, column).text for column in self._columns])
        return "\n".join("\t".join(_one_line(text) for text in line) for line in table)

    # -- columns --------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those on show."""
        return self._columns

    def set_columns(self, columns: tuple[Column, ...]) -> None:
        self._columns = columns
        for column in Column:
            self.setColumnHidden(column, column not in columns)
        if self.order.sortColumn() not in columns:
            fallback = Column.MEMORY if Column.MEMORY in columns else Column.NAME
            descending = fallback is Column.MEMORY
            self.sortByColumn(fallback, Qt.SortOrder.DescendingOrder if descending else Qt.SortOrder.AscendingOrder)
        self.refit()

    def refit(self) -> None:
        """Measure everything again: other columns, another language, larger type."""
        self._widest = {}
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + _ROW_AIR)
        self.fit()

    def fit(self) -> None:
        """Columns as wide as they have had to be; reasons are shortened first, then the name; then it scrolls."""
        widths = {column: self._widths(column) for column in self._columns}
        least = {column: pair[0] for column, pair in widths.items()}
        spare = self.viewport().width() - sum(least.values())
        for column in self._columns:  # the name comes first; whoever stands further left is written out first
            more = min(max(0, spare), widths[column][1] - least[column])
            spare -= more
            least[column] += more
        least[Column.NAME] += max(0, spare)
        for column, width in least.items():
            if self.columnWidth(column) != width:
                self.setColumnWidth(column, width)
        others = (column for column in self._columns if column is not Column.NAME)
        self.model_.set_brief(frozenset(column for column in others if self._reasons_width(column) > least[column]))

    def _reasons_width(self, column: Column) -> int:
        """What the longest reason in ``column`` needs."""
        longest = max((found.text for found in self.model_.cells(column) if found.why), key=len, default="")
        return self.fontMetrics().horizontalAdvance(longest) + _PAD if longest else 0

    def _widths(self, column: Column) -> tuple[int, int]:
        """Least and wanted width. Known values count for the least, reasons only for the wanted one."""
        advance = self.fontMetrics().horizontalAdvance
        title = advance(f"{texts.column(column.key)} {SORTED_UP}")
        sample = advance(SAMPLES[column])
        cells = self.model_.cells(column)
        known = advance(max((found.text for found in cells if found.key is not None), key=len, default=""))
        longest = advance(max((found.text for found in cells), key=len, default=""))
        if column is Column.NAME:
            least = max(title, sample)
            longest = min(longest, round(_MOST_NAME * sample))
        else:
            least = max(title, sample, min(known, round(_MOST_VALUE * sample)))
        widest = self._widest[column] = max(self._widest.get(column, 0), least, longest)
        return least + _PAD, widest + _PAD

    def rowsAboutToBeRemoved(self, parent: QModelIndex | QPersistentModelIndex, start: int, end: int) -> None:
        """Qt would choose a neighbour instead, and the next key could end somebody who was never chosen."""
        if start <= self.currentIndex().row() <= end:
            self.selectionModel().clear()
        super().rowsAboutToBeRemoved(parent, start, end)

    # -- events ---------------------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.text() == "/":
            self.filter_wanted.emit()
        else:
            super().keyPressEvent(event)


def _one_line(text: str) -> str:
    """No-break spaces are for the screen; tabs and line ends would make other cells."""
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\t", " ").replace("\n", " ")
