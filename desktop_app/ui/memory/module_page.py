"""The module tree with its search: which part of the model holds what at the peak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QItemSelection, QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QHeaderView, QLineEdit, QPushButton, QTreeView, QVBoxLayout, QWidget

from desktop_app.core.estimates import ModuleMemory
from desktop_app.ui.labels import Label
from desktop_app.ui.memory.module_delegate import ModuleDelegate
from desktop_app.ui.memory.module_model import Column, ModuleModel
from desktop_app.ui.texts import modules as texts
from desktop_app.ui.theme import FontRole, Theme

_EXPANDED_AT_MOST: Final = 300  # a search that finds more opens only what lies highest
_LARGE_SHARE: Final = 1 / 3
_NEARLY_ALL: Final = 0.9
_NARROW: Final = 560  # pixels; below, the parameters' column goes


class ModulePage(QWidget):
    """``chosen`` follows the selected module's path; ``None`` for the model itself or nothing."""

    chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = ModuleModel(self)
        self._delegate = ModuleDelegate(theme, self)
        self.search = QLineEdit()
        self.tree = QTreeView()
        self._largest = QPushButton()
        self._copy = QPushButton()
        self._note = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._hint = ""
        self._build()
        self._connect()
        self.retranslate()

    def _build(self) -> None:
        tree = self.tree
        tree.setObjectName("moduleTree")
        tree.setModel(self.model)
        tree.setItemDelegate(self._delegate)
        tree.setUniformRowHeights(True)
        tree.setAllColumnsShowFocus(True)
        tree.setSortingEnabled(True)
        tree.sortByColumn(Column.SIZE, Qt.SortOrder.DescendingOrder)
        tree.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        tree.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        tree.installEventFilter(self)
        header = tree.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(Column.NAME, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(Column.BAR, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(Column.SIZE, QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(Column.PARAMETERS, QHeaderView.ResizeMode.Fixed)
        self.search.setClearButtonEnabled(True)
        self.search.installEventFilter(self)
        self._tools = QWidget()
        row = QHBoxLayout(self._tools)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.search, stretch=1)
        row.addWidget(self._largest)
        row.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 12, 8)
        layout.setSpacing(8)
        layout.addWidget(self._tools)
        layout.addWidget(self._note)
        layout.addWidget(tree, stretch=1)

    def _connect(self) -> None:
        self.search.textChanged.connect(self._on_query)
        self._largest.clicked.connect(self.show_largest)
        self._copy.clicked.connect(self.copy_all)
        self.tree.selectionModel().selectionChanged.connect(self._on_selected)

    # -- what the page calls --------------------------------------------------------------------------------------

    def set_modules(self, modules: Sequence[ModuleMemory], *, hint: str = "") -> None:
        """Show the modules of another estimate, with search and branches as they were. ``hint``: why there are none."""
        self._hint = hint
        if modules is not self.model.modules:
            opened, current = self._opened(), self._current()
            self.model.set_modules(modules)
            self._delegate.most_bytes = max(1, self.model.most_bytes)
            self._reopen(opened, current)
        self._show_note()

    def show_largest(self) -> None:
        """Open the way down to where most of the bytes are, and go there."""
        path = self.model.largest_path(share=_LARGE_SHARE)
        for index in path[:-1]:
            self.tree.expand(index)
        if path:
            self.tree.setCurrentIndex(path[-1])
            self.tree.scrollTo(path[-1])
            self.tree.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def copy_all(self) -> None:
        """Every module as a table."""
        QGuiApplication.clipboard().setText(texts.as_table(self.model.modules))

    @property
    def chosen_path(self) -> str | None:
        """Of the selected module; ``None`` for the model itself or nothing."""
        selected = self.tree.selectionModel().selectedIndexes()
        module = self.model.module_at(selected[0]) if selected else None
        return (self.model.modules[module].path or None) if module is not None else None

    def clear_choice(self) -> None:
        self.tree.clearSelection()

    def retranslate(self) -> None:
        self.search.setPlaceholderText(self.tr("Search modules"))
        self.search.setAccessibleName(self.tr("Search modules"))
        self._largest.setText(self.tr("To the largest"))
        self._largest.setToolTip(self.tr("Open the way down to where most of the bytes are"))
        self._copy.setText(self.tr("Copy"))
        self._copy.setToolTip(self.tr("Copy all modules as a table"))
        self._copy.setAccessibleName(self.tr("Copy all modules as a table"))
        self.tree.setAccessibleName(self.tr("Modules"))
        self._show_note()
        self._fit()
        self.model.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(Column) - 1)

    def set_theme(self, theme: Theme) -> None:
        self._delegate.set_theme(theme)
        self.tree.viewport().update()

    # -- search and selection -------------------------------------------------------------------------------------

    def _on_query(self, query: str) -> None:
        matches = self.model.set_query(query)
        if query.strip():
            if matches <= _EXPANDED_AT_MOST:
                self.tree.expandAll()
            else:
                self.tree.expandToDepth(0)
        else:
            self._expand_plain()
        self._show_note()

    def _show_note(self) -> None:
        query = self.search.text().strip()
        if not self.model.modules:
            text = self._hint
        else:
            text = texts.found(self.model.set_query(query), query) if query else ""
        self._note.setText(text)
        self._note.setVisible(bool(text))
        has_any = bool(self.model.modules)
        self.tree.setVisible(has_any)
        self._tools.setVisible(has_any)
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        self._note.setAlignment(left if has_any else Qt.AlignmentFlag.AlignCenter)

    def _on_selected(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        del selected, deselected
        self.chosen.emit(self.chosen_path)

    def _expand_plain(self) -> None:
        """The model itself, and on as long as one part has nearly everything."""
        self.tree.expandToDepth(0)
        for index in self.model.largest_path(share=_NEARLY_ALL):
            self.tree.expand(index)

    def _current(self) -> str | None:
        module = self.model.module_at(self.tree.currentIndex())
        return self.model.modules[module].path if module is not None else None

    def _opened(self) -> set[str]:
        indexes = [(module.path, self.model.index_of(row)) for row, module in enumerate(self.model.modules)]
        return {path for path, index in indexes if index.isValid() and self.tree.isExpanded(index)}

    def _reopen(self, opened: set[str], current: str | None) -> None:
        """The same branches of the new tree: a form that is changed a little changes the tree a little."""
        self._expand_plain()
        for row, module in enumerate(self.model.modules):
            if module.path in opened:
                self.tree.expand(self.model.index_of(row))
            if current is not None and module.path == current:
                self.tree.setCurrentIndex(self.model.index_of(row))

    # -- events ---------------------------------------------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Copy in the tree; from the search down into the tree, and Esc empties it."""
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            if watched is self.tree and event.matches(QKeySequence.StandardKey.Copy):
                self._copy_current()
                return True
            if watched is self.search and event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.tree.setFocus(Qt.FocusReason.TabFocusReason)
                if not self.tree.currentIndex().isValid():
                    self.tree.setCurrentIndex(self.model.index(0, 0))
                return True
            if watched is self.search and event.key() == Qt.Key.Key_Escape and self.search.text():
                self.search.clear()
                return True
        return super().eventFilter(watched, event)

    def _copy_current(self) -> None:
        module = self.model.module_at(self.tree.currentIndex())
        if module is not None:
            QGuiApplication.clipboard().setText(texts.as_table([self.model.modules[module]]))

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._fit()

    def _fit(self) -> None:
        """Figures get what they need, name and bar share the rest; little room has no place for parameters."""
        metrics = self.tree.fontMetrics()
        narrow = self.width() < _NARROW * metrics.height() / 16
        self.tree.setColumnHidden(Column.PARAMETERS, narrow)
        for column, widest in ((Column.SIZE, "00.00 GiB"), (Column.PARAMETERS, "000.0 M")):
            title = str(self.model.headerData(column, Qt.Orientation.Horizontal))
            width = max(metrics.horizontalAdvance(widest), metrics.horizontalAdvance(title))
            self.tree.setColumnWidth(column, width + 34)
