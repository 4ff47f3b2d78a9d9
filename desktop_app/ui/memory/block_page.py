"""The largest blocks: what the mouse finds in the timeline, for the keyboard."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QModelIndex, QObject, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QVBoxLayout, QWidget

from desktop_app.core.estimates import Timeline
from desktop_app.ui.labels import Label
from desktop_app.ui.memory.block_model import BlockModel, Column, accessible_name
from desktop_app.ui.theme import FontRole, Theme

_NARROW: Final = 560
_SWATCH: Final = 10
_SHARES: Final = {Column.OP: 0.24, Column.LIFE: 0.36}  # of what size and kind leave; the owner has the rest


class BlockPage(QWidget):
    """``chosen`` carries the number of the block whose row is entered."""

    chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = BlockModel(self)
        self.model.set_theme(theme)
        self.table = QTableView()
        self._note = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._timeline: Timeline | None = None
        self._following = False
        self._build()
        self.retranslate()

    def _build(self) -> None:
        table = self.table
        table.setObjectName("blockTable")
        table.setModel(self.model)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.setIconSize(QSize(_SWATCH, _SWATCH))
        self._note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        table.setTabKeyNavigation(False)
        table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        table.verticalHeader().hide()
        table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(Column.OWNER, QHeaderView.ResizeMode.Stretch)
        table.installEventFilter(self)
        table.selectionModel().currentRowChanged.connect(self._on_row)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 12, 8)
        layout.setSpacing(8)
        layout.addWidget(self._note)
        layout.addWidget(table, stretch=1)

    def set_timeline(self, timeline: Timeline | None, *, hint: str = "") -> None:
        if timeline is not self._timeline:
            self._timeline = timeline
            self._following = True
            self.model.set_timeline(timeline)
            self._following = False
        self._note.setText(hint)
        self._note.setVisible(timeline is None)
        self.table.setVisible(timeline is not None)

    def follow(self, block: int | None) -> None:
        """Another place has pinned ``block``: show its row, if it is among the largest."""
        row = self.model.row_of(block) if block is not None else None
        self._following = True
        if row is None:
            self.table.clearSelection()
        else:
            self.table.selectRow(row)
        self._following = False

    def _on_row(self, current: QModelIndex, previous: QModelIndex) -> None:
        del previous
        block = self.model.block_at(current.row())
        if block is not None and not self._following:
            self.chosen.emit(block)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.table and isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            row = self.table.currentIndex().row()
            if event.matches(QKeySequence.StandardKey.Copy) and row >= 0:
                QGuiApplication.clipboard().setText(self.model.line(row))
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
                self.chosen.emit(self.model.block_at(row))
                return True
        return super().eventFilter(watched, event)

    def retranslate(self) -> None:
        self.table.setAccessibleName(accessible_name())
        self.model.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(Column) - 1)
        self._fit()
        self.table.viewport().update()

    def set_theme(self, theme: Theme) -> None:
        self.model.set_theme(theme)
        self._fit()
        self.table.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        metrics = self.table.fontMetrics()
        self.table.verticalHeader().setDefaultSectionSize(metrics.height() + 8)
        narrow = self.width() < _NARROW * metrics.height() / 16
        self.table.setColumnHidden(Column.OP, narrow)
        self.table.setColumnHidden(Column.LIFE, narrow)
        texts = [str(self.model.headerData(column, Qt.Orientation.Horizontal)) for column in Column]
        kinds = (self.model.widest_kind(), texts[Column.KIND])
        widths = {Column.SIZE: ("0,000 MiB", texts[Column.SIZE]), Column.KIND: kinds}
        for column, samples in widths.items():
            widest = max(metrics.horizontalAdvance(text) for text in samples)
            self.table.setColumnWidth(column, widest + (44 if column is Column.KIND else 24))
        free = self.table.width() - self.table.columnWidth(Column.SIZE) - self.table.columnWidth(Column.KIND)
        for column, share in _SHARES.items():
            self.table.setColumnWidth(column, round(share * max(0, free)))
