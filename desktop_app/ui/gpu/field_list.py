"""The list of all fields with its search, its switch and its way into the clipboard."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from desktop_app.ui.gpu.field_delegate import FieldDelegate
from desktop_app.ui.gpu.field_model import FieldModel, as_line
from desktop_app.ui.gpu.field_rows import Row
from desktop_app.ui.labels import Label
from desktop_app.ui.texts import gpu
from desktop_app.ui.theme import FontRole, Theme


class FieldList(QFrame):
    """``chosen`` carries the key of the row that the keyboard or the mouse is on. Runs in: GUI thread."""

    chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", True)
        self.model = FieldModel(self)
        self._delegate = FieldDelegate(theme, self.font(), self)
        self.search = QLineEdit()
        self.view = QListView()
        self.only_there = QCheckBox()
        self.copy_button = QPushButton()
        self._note = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._count = Label(font=FontRole.LABEL, role="muted")
        self._key = ""
        self._build()
        self.retranslate()

    def _build(self) -> None:
        view = self.view
        view.setObjectName("fieldList")
        view.setModel(self.model)
        view.setItemDelegate(self._delegate)
        view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        view.setMouseTracking(True)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.installEventFilter(self)
        view.selectionModel().currentChanged.connect(self._on_current)
        self.search.setClearButtonEnabled(True)
        self.search.installEventFilter(self)
        self.search.textChanged.connect(self._on_query)
        self.only_there.toggled.connect(self._on_only_there)
        self.copy_button.clicked.connect(self.copy_all)
        self._note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._note.hide()
        tools = self._tools = QHBoxLayout()
        tools.setSpacing(8)
        tools.addWidget(self.search, stretch=1)
        tools.addWidget(self.copy_button)
        foot = self._foot = QHBoxLayout()
        foot.setSpacing(8)
        foot.addWidget(self.only_there)
        foot.addStretch(1)
        foot.addWidget(self._count)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 10, 1, 8)
        layout.setSpacing(8)
        for row in (tools, foot):
            row.setContentsMargins(12, 0, 12, 0)
        layout.addLayout(tools)
        layout.addWidget(view, stretch=1)
        layout.addWidget(self._note, stretch=1)
        layout.addLayout(foot)

    # -- what the page calls --------------------------------------------------------------------------------------

    def set_compact(self, *, compact: bool) -> None:
        """In a small window one line serves as two: what is below the list goes up to the search."""
        self._count.setVisible(not compact)
        into = self._tools if compact else self._foot
        into.insertWidget(1 if compact else 0, self.only_there)

    def set_rows(self, rows: Sequence[Row]) -> None:
        """New values. The row that was chosen stays chosen where it still is."""
        if self.model.set_rows(rows):
            self._choose_again()
        there = sum(row.there for row in self.model.rows)
        self._count.setText(gpu.counted(there, len(self.model.rows)))
        self._show_note()

    def choose(self, key: str) -> None:
        """Put the choice on a field; it stays where it is when the field is not on the list."""
        index = self.model.index_of(key)
        if index.isValid():
            self.view.setCurrentIndex(index)

    def go_to(self, key: str) -> None:
        """Put the choice on a field, and empty the search where it hides it."""
        if not self.model.index_of(key).isValid():
            self.search.clear()
            self.only_there.setChecked(False)
        self.choose(key)
        self.view.scrollTo(self.model.index_of(key))

    @property
    def key(self) -> str:
        """The field that was chosen last, empty before the first; it may be filtered out at the moment."""
        return self._key

    def copy_all(self) -> None:
        QGuiApplication.clipboard().setText(self.model.as_text())

    def copy_current(self) -> None:
        row = self.model.row_at(self.view.currentIndex())
        if row is not None:
            QGuiApplication.clipboard().setText(as_line(row))

    def retranslate(self) -> None:
        self.search.setPlaceholderText(gpu.search())
        self.search.setAccessibleName(gpu.search())
        self.view.setAccessibleName(gpu.list_name())
        self.only_there.setText(gpu.only_there())
        self.only_there.setToolTip(gpu.only_there_help())
        self.copy_button.setText(gpu.copy_all())
        self.copy_button.setToolTip(gpu.copy_all_help())
        self._show_note()
        self.view.viewport().update()

    def set_theme(self, theme: Theme) -> None:
        self._delegate.set_theme(theme)
        self.view.viewport().update()

    # -- choices --------------------------------------------------------------------------------------------------

    def _on_current(self, current: QModelIndex, previous: QModelIndex) -> None:
        del previous
        row = self.model.row_at(current)
        if row is not None and row.key != self._key:
            self._key = row.key
            self.chosen.emit(row.key)

    def _on_query(self, query: str) -> None:
        self.model.set_query(query)
        self._choose_again()
        self._show_note()

    def _on_only_there(self, only: bool) -> None:  # noqa: FBT001 - a slot
        self.model.set_only_there(only=only)
        self._choose_again()
        self._show_note()

    def _choose_again(self) -> None:
        index = self.model.index_of(self._key)
        if index.isValid():
            self.view.setCurrentIndex(index)
            self.view.scrollTo(index)

    def _show_note(self) -> None:
        empty = bool(self.model.rows) and not self.model.shown
        self._note.setText(gpu.nothing_found(self.search.text().strip()) if empty else "")
        self._note.setVisible(empty)
        self.view.setVisible(not empty)

    # -- events ---------------------------------------------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Copy in the list; from the search down into it, and Esc empties the search."""
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            if watched is self.view and event.matches(QKeySequence.StandardKey.Copy):
                self.copy_current()
                return True
            if watched is self.search and event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._go_to_list()
                return True
            if watched is self.search and event.key() == Qt.Key.Key_Escape and self.search.text():
                self.search.clear()
                return True
        return super().eventFilter(watched, event)

    def _go_to_list(self) -> None:
        self.view.setFocus(Qt.FocusReason.TabFocusReason)
        shown = self.model.shown
        if shown and self.model.row_at(self.view.currentIndex()) is None:
            self.choose(shown[0].key)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._delegate.set_font(self.font())
            self.view.doItemsLayout()
