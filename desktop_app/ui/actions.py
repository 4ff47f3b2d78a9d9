"""From the command table to ``QAction``s: shortcuts, menus, tooltips, and what can be chosen now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from desktop_app.ui import icons
from desktop_app.ui.commands import BY_ID, COMMANDS, Menu, Situation, can_choose, menu_title
from desktop_app.ui.theme import Theme

Handlers = Mapping[str, Callable[[], object]]

# Shown beside commands that are marked when they are on.
_NATIVE: Final = QKeySequence.SequenceFormat.NativeText


class Actions:
    """One ``QAction`` per command, owned by ``window``, which thereby has all shortcuts."""

    def __init__(self, window: QWidget, handlers: Handlers) -> None:
        self._window = window
        self._theme: Theme | None = None
        self._actions: dict[str, QAction] = {}
        self._groups: dict[str, QActionGroup] = {}
        for command in COMMANDS:
            self._actions[command.id] = self._make(command.id, handlers[command.id])
        self.retranslate()

    def __getitem__(self, command_id: str) -> QAction:
        return self._actions[command_id]

    def _make(self, command_id: str, handler: Callable[[], object]) -> QAction:
        command = BY_ID[command_id]
        action = QAction(self._window)
        action.setObjectName(command_id)
        action.setCheckable(command.checkable)
        if command.shortcut:
            action.setShortcut(QKeySequence(command.shortcut))
        if command.group:
            self._group(command.group).addAction(action)
        action.triggered.connect(lambda _checked=False: handler())
        self._window.addAction(action)
        return action

    def _group(self, name: str) -> QActionGroup:
        if name not in self._groups:
            self._groups[name] = QActionGroup(self._window)
        return self._groups[name]

    def retranslate(self) -> None:
        for command_id, action in self._actions.items():
            title = BY_ID[command_id].title
            action.setText(title)
            action.setToolTip(tooltip(command_id))

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme

    def set_situation(self, situation: Situation) -> None:
        """Only what makes sense now can be chosen."""
        for command_id, action in self._actions.items():
            enabled = can_choose(BY_ID[command_id].when, situation)
            if action.isEnabled() != enabled:
                action.setEnabled(enabled)

    def check(self, command_id: str, checked: bool) -> None:  # noqa: FBT001 - mirrors QAction.setChecked
        self._actions[command_id].setChecked(checked)

    def trigger(self, command_id: str) -> bool:
        """Run a command if it can be chosen now."""
        action = self._actions[command_id]
        if action.isEnabled():
            action.trigger()
        return action.isEnabled()

    def build_menu(self, parent: QWidget) -> QMenu:
        """All commands in their menus, as one menu behind a button."""
        self._show_icons()
        root = QMenu(parent)
        for menu in Menu:
            root.addMenu(self._build_submenu(menu, root))
        return root

    def _show_icons(self) -> None:
        """Drawn when a menu wants them, not before the first window."""
        for command_id, action in self._actions.items():
            name = BY_ID[command_id].icon
            if name is not None and self._theme is not None:
                action.setIcon(icons.icon(name, self._theme))

    def _build_submenu(self, menu: Menu, root: QMenu) -> QMenu:
        made = QMenu(menu_title(menu), root)
        section = 0
        for command in COMMANDS:
            if command.menu is not menu or command.id == "view.menu":
                continue
            if command.section != section:
                made.addSeparator()
                section = command.section
            made.addAction(self._actions[command.id])
        return made


def shortcut_text(command_id: str) -> str:
    """``Ctrl+Shift+P`` as this system writes it; empty when there is none."""
    return QKeySequence(BY_ID[command_id].shortcut).toString(_NATIVE)


def tooltip(command_id: str) -> str:
    """``Pause  F6``."""
    shortcut = shortcut_text(command_id)
    title = BY_ID[command_id].title
    return f"{title}  ({shortcut})" if shortcut else title
