"""The processes on a card: a filter, the table, and a line that says how many there are or what came of ending one."""

from __future__ import annotations

from typing import Final, Protocol

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QMenu, QPushButton, QToolButton, QVBoxLayout, QWidget

from desktop_app.core.telemetry import Card, ProcessSample
from desktop_app.services.facade import Workspace
from desktop_app.ui import icons
from desktop_app.ui.icons import IconName
from desktop_app.ui.labels import Label
from desktop_app.ui.processes.columns import NARROW, Column, from_keys
from desktop_app.ui.processes.ending import Ending, why_not
from desktop_app.ui.processes.process_table import ProcessTable
from desktop_app.ui.tank_reader import lost_reason, selected_card
from desktop_app.ui.texts import processes as texts
from desktop_app.ui.texts import reasons
from desktop_app.ui.theme import DARK, FontRole, Theme

_NO_COLUMNS: Final[tuple[str, ...]] = ()


class Memory(Protocol):
    """Where the choice of columns is kept."""

    def process_columns(self, place: str) -> tuple[str, ...]: ...
    def set_process_columns(self, place: str, columns: tuple[str, ...]) -> None: ...


class Forgetful:
    """Keeps nothing."""

    def process_columns(self, place: str) -> tuple[str, ...]:
        del place
        return _NO_COLUMNS

    def set_process_columns(self, place: str, columns: tuple[str, ...]) -> None:
        """Forgotten."""


class ProcessesPanel(QWidget):
    """``usual``: the columns at first; ``place``: under what name others are remembered in ``memory``."""

    window_wanted = Signal()

    def __init__(
        self,
        workspace: Workspace,
        parent: QWidget | None = None,
        *,
        memory: Memory | None = None,
        place: str = "dock",
        usual: tuple[Column, ...] = NARROW,
    ) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._memory = memory or Forgetful()
        self._place = place
        self._usual = usual
        self._card: Card | None = None
        self._theme = DARK
        self.table = ProcessTable()
        self.filter = QLineEdit()
        self.more = QToolButton()
        self.ending = Ending(workspace, self, DARK)
        self._empty = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._foot = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._force = QPushButton()
        self._said = ""
        self._actions = {name: QAction(self) for name in ("copy_row", "copy_all", "copy_command", "end", "force")}
        self._build()
        self.table.set_columns(from_keys(self._memory.process_columns(place), usual))
        self.retranslate()

    def _build(self) -> None:
        self.filter.setClearButtonEnabled(True)
        self.filter.installEventFilter(self)
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more.setObjectName("processMore")
        head = QHBoxLayout()
        head.setContentsMargins(8, 0, 8, 0)
        head.setSpacing(8)
        head.addWidget(self.filter, stretch=1)
        head.addWidget(self.more)
        foot = QHBoxLayout()
        foot.setContentsMargins(8, 0, 8, 0)
        foot.setSpacing(8)
        foot.addWidget(self._foot, stretch=1)
        foot.addWidget(self._force)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 8, 4, 8)
        layout.setSpacing(6)
        layout.addLayout(head)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._empty, stretch=1)
        layout.addWidget(self.table, stretch=1)
        layout.addLayout(foot)
        self._connect()

    def _connect(self) -> None:
        self.filter.textChanged.connect(self._on_filter)
        table = self.table
        table.filter_wanted.connect(lambda: self.filter.setFocus(Qt.FocusReason.ShortcutFocusReason))
        table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        table.customContextMenuRequested.connect(self._on_context_menu)
        table.horizontalHeader().customContextMenuRequested.connect(self._on_header_menu)
        table.selectionModel().selectionChanged.connect(self._show_actions)
        self.ending.said.connect(self._on_said)
        self._force.clicked.connect(self.force_refused)
        menu = QMenu(self)
        menu.aboutToShow.connect(lambda: self._fill(menu))
        self.more.setMenu(menu)
        handlers = {
            "copy_row": (self.copy_row, QKeySequence(QKeySequence.StandardKey.Copy)),
            "copy_all": (self.copy_all, QKeySequence("Ctrl+Shift+C")),
            "copy_command": (self.copy_command, None),
            "end": (self.end_chosen, QKeySequence("Del")),
            "force": (self.force_chosen, QKeySequence("Shift+Del")),
        }
        for name, (handler, keys) in handlers.items():
            action = self._actions[name]
            action.triggered.connect(lambda _checked=False, handler=handler: handler())
            if keys is not None:
                action.setShortcut(keys)
                action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            table.addAction(action)

    # -- keeping fresh ----------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        self._card = selected_card(self._workspace)
        card = self._card
        processes = self._workspace.processes.get().get(card.uuid, ()) if card is not None else ()
        self.table.show_processes(processes)
        self.ending.refresh()
        self._show_state()

    def _show_state(self) -> None:
        any_here, shown = bool(self.table.model_.rowCount()), self.table.order.rowCount()
        self._empty.setText(texts.no_match() if any_here else self._why_nobody())
        self._empty.setVisible(not shown)
        self.table.setVisible(bool(shown))
        self.filter.setEnabled(any_here or bool(self.filter.text()))
        self._show_foot()
        self._show_actions()

    def _why_nobody(self) -> str:
        """A card that cannot be read may well be in use."""
        lost = lost_reason(self._workspace, self._card)
        return texts.nobody() if lost is None else reasons.sentence(lost)

    def _show_foot(self) -> None:
        processes = [self.table.order.process_at(row) for row in range(self.table.order.rowCount())]
        sizes = [process.memory_bytes for process in processes]
        known = [size for size in sizes if size is not None]
        whole = self.table.model_.rowCount()
        total = sum(known) if sizes and len(known) == len(sizes) else None
        self._foot.setText(self._said or (texts.count(len(sizes), whole, total) if whole else ""))
        self._foot.set_role("" if self._said else "muted")
        self._force.setVisible(bool(self._said) and self.ending.offers_force)

    def _show_actions(self) -> None:
        process = self.table.current_process()
        reason = why_not(process, read_only=self._workspace.read_only)
        self._actions["copy_row"].setEnabled(process is not None)
        self._actions["copy_command"].setEnabled(process is not None and process.command is not None)
        self._actions["copy_all"].setEnabled(self.table.order.rowCount() > 0)
        for name in ("end", "force"):
            self._actions[name].setEnabled(not reason)
            self._actions[name].setToolTip(reason)
        title = texts.end()
        if reason and process is not None:
            title = f"{title}  ({reason.rstrip('.。')})"  # menus show no tooltip to those who use keys
        self._actions["end"].setText(title)
        forced = process is not None and self.ending.can_force(process)
        self._actions["force"].setVisible(forced and not reason)

    # -- choosing and copying -----------------------------------------------------------------------------------------

    def choose(self, pid: int) -> None:
        """Select a process and bring it into sight."""
        self.refresh()
        if not self.table.choose(pid) and self.filter.text():
            self.filter.clear()
            self.table.choose(pid)
        self.table.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def chosen(self) -> ProcessSample | None:
        return self.table.current_process()

    def copy_row(self) -> None:
        QGuiApplication.clipboard().setText(self.table.lines(only_chosen=True))

    def copy_all(self) -> None:
        QGuiApplication.clipboard().setText(self.table.lines(only_chosen=False))

    def copy_command(self) -> None:
        process = self.chosen()
        if process is not None and process.command is not None:
            QGuiApplication.clipboard().setText(process.command)

    # -- ending -----------------------------------------------------------------------------------------------------

    @property
    def can_end(self) -> bool:
        return not why_not(self.chosen(), read_only=self._workspace.read_only)

    def end_chosen(self) -> None:
        """Ask whether the chosen process shall end."""
        process = self.chosen()
        if process is not None and self._card is not None:
            self.ending.ask(process, self._card)

    def force_chosen(self) -> None:
        process = self.chosen()
        if process is not None and self._card is not None and self.ending.can_force(process):
            self.ending.ask(process, self._card, force=True)

    def force_refused(self) -> None:
        if self._card is not None:
            self.ending.force(self._card)

    def _on_said(self, text: str) -> None:
        self._said = text
        self._show_foot()
        self._show_actions()

    # -- menus and the filter -----------------------------------------------------------------------------------------

    def _on_filter(self, text: str) -> None:
        self.table.order.set_filter(text)
        self._show_state()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Escape empties the filter, the arrow down goes to the table."""
        if watched is self.filter and isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Escape and self.filter.text():
                self.filter.clear()
                return True
            if event.key() == Qt.Key.Key_Down and self.table.isVisible():
                self.table.setFocus(Qt.FocusReason.TabFocusReason)
                if self.chosen() is None:
                    self.table.selectRow(0)
                return True
        return super().eventFilter(watched, event)

    def _on_context_menu(self, position: QPoint) -> None:
        self._open(self._row_menu(), self.table.viewport().mapToGlobal(position))

    def _on_header_menu(self, position: QPoint) -> None:
        menu = QMenu(self)
        self._add_columns(menu)
        self._open(menu, self.table.horizontalHeader().mapToGlobal(position))

    def _open(self, menu: QMenu, where: QPoint) -> None:
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(where)

    def _row_menu(self) -> QMenu:
        menu = QMenu(self)
        self._add_row_actions(menu)
        return menu

    def _add_row_actions(self, menu: QMenu) -> None:
        self._show_actions()
        for name in ("copy_row", "copy_command", "copy_all"):
            menu.addAction(self._actions[name])
        menu.addSeparator()
        for name in ("end", "force"):
            menu.addAction(self._actions[name])

    def _fill(self, menu: QMenu) -> None:
        """The menu of the button: everything, for those who use keys."""
        menu.clear()
        self._add_row_actions(menu)
        menu.addSeparator()
        columns = menu.addMenu(texts.columns())
        self._add_columns(columns)
        if self._place == "dock":
            menu.addAction(texts.in_a_window(), self.window_wanted.emit)

    def _add_columns(self, menu: QMenu) -> None:
        for column in Column:
            action = menu.addAction(texts.column(column.key))
            action.setObjectName(column.key)
            action.setCheckable(True)
            action.setChecked(column in self.table.columns)
            action.setEnabled(column is not Column.NAME)
            action.toggled.connect(lambda checked, column=column: self._show_column(column, shown=checked))
        menu.addSeparator()
        menu.addAction(texts.usual_columns(), lambda: self._set_columns(self._usual))

    def _show_column(self, column: Column, *, shown: bool) -> None:
        wanted = set(self.table.columns) | {column} if shown else set(self.table.columns) - {column}
        self._set_columns(tuple(sorted(wanted)))

    def _set_columns(self, columns: tuple[Column, ...]) -> None:
        self.table.set_columns(columns)
        self._memory.set_process_columns(self._place, tuple(column.key for column in columns))

    # -- look ---------------------------------------------------------------------------------------------------------

    def retranslate(self) -> None:
        self.table.setAccessibleName(texts.accessible_name())
        self.filter.setPlaceholderText(texts.filter_hint())
        self.filter.setAccessibleName(texts.filter_name())
        self.filter.setToolTip(texts.filter_name())
        self.more.setToolTip(texts.more())
        self.more.setAccessibleName(texts.more())
        self._empty.setContentsMargins(8, 4, 8, 4)
        self._force.setText(texts.end_by_force())
        for name in ("copy_row", "copy_all", "copy_command", "force"):
            word = {
                "copy_row": texts.copy_row,
                "copy_all": texts.copy_all,
                "copy_command": texts.copy_command,
                "force": texts.end_by_force,
            }[name]
            self._actions[name].setText(word())
        self.table.model_.retranslate()
        self.table.refit()
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        self._theme = self.ending.theme = theme
        self.more.setIcon(icons.icon(IconName.LIST, theme))
        self.table.model_.set_look(theme, self.table.font())
        self.table.refit()
        self.table.viewport().update()
