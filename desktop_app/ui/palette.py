"""The command palette: every command that can be chosen now, found by a few of its letters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QAbstractListModel, QEvent, QModelIndex, QObject, QPersistentModelIndex, QPoint, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QDialog,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from desktop_app.ui import icons
from desktop_app.ui.actions import Actions, shortcut_text
from desktop_app.ui.commands import COMMANDS, Command, Menu, menu_title
from desktop_app.ui.labels import Label, type_scale
from desktop_app.ui.theme import FontRole, Theme, color

_WIDTH: Final = 480
_ROW_HEIGHT: Final = 32
_ROWS: Final = 10
_Index = QModelIndex | QPersistentModelIndex


def match_score(query: str, text: str) -> int | None:
    """How well ``query`` is found in ``text``: higher is better, ``None`` is not at all.

    Best is the beginning of the text, then of a word, then the inside of a word, then the first letters of words: so
    ``sap`` finds "Save and pause". Letters strewn about the text are no match. Shorter texts win.
    """
    wanted, folded = " ".join(query.casefold().split()), text.casefold()
    places = [place for place in range(len(folded)) if folded.startswith(wanted, place)]
    if places:
        rank = 4 if places[0] == 0 else 3 if any(_starts_word(folded, place) for place in places) else 2
    elif _is_made_of_starts(wanted.replace(" ", ""), folded.split()):
        rank = 1
    else:
        return None
    return rank * 1000 - len(folded)


def _is_made_of_starts(letters: str, words: list[str]) -> bool:
    """Whether ``letters`` are beginnings of ``words``, in their order; words may be left out."""
    if not letters:
        return True
    for index, word in enumerate(words):
        shared = (count for count in range(len(letters), 0, -1) if word.startswith(letters[:count]))
        if any(_is_made_of_starts(letters[count:], words[index + 1 :]) for count in shared):
            return True
    return False


def _starts_word(text: str, place: int) -> bool:
    return place == 0 or not text[place - 1].isalnum()


def find_commands(query: str, commands: list[Command]) -> list[Command]:
    """The commands that match, best first; all of them in the order of the table for an empty query."""
    scored = []
    for order, command in enumerate(commands):
        # The English text is matched too: fingers remember it in every language.
        scores = [match_score(query, text) for text in (command.title, command.text, menu_title(command.menu))]
        known = [score for score in scores if score is not None]
        if known:
            scored.append((-max(known) if query.strip() else 0, order, command))
    return [command for _, _, command in sorted(scored, key=lambda entry: entry[:2])]


class CommandModel(QAbstractListModel):
    """The commands on show."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._commands: list[Command] = []

    def show_commands(self, commands: list[Command]) -> None:
        self.beginResetModel()
        self._commands = commands
        self.endResetModel()

    def command(self, row: int) -> Command | None:
        return self._commands[row] if 0 <= row < len(self._commands) else None

    def rowCount(self, parent: _Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._commands)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        command = self.command(index.row())
        if command is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{menu_title(command.menu)} · {command.title}"
        if role == Qt.ItemDataRole.UserRole:
            return command.id
        return None


class _RowDelegate(QStyledItemDelegate):
    """Icon, text, and the shortcut at the right."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        del index
        return QSize(_WIDTH // 2, max(_ROW_HEIGHT, option.fontMetrics.height() + 14))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        command = next((known for known in COMMANDS if known.id == index.data(Qt.ItemDataRole.UserRole)), None)
        if command is None:
            return
        painter.save()
        rect = option.rect.adjusted(2, 1, -2, -1)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color(self.theme.hover))
            painter.drawRoundedRect(rect, 6, 6)
        self._paint_icon(painter, command, rect.topLeft() + QPoint(10, (rect.height() - 16) // 2))
        inner = rect.adjusted(36, 0, -12, 0)
        aligned = Qt.AlignmentFlag.AlignVCenter
        painter.setPen(color(self.theme.muted))
        painter.drawText(inner, aligned | Qt.AlignmentFlag.AlignLeft, menu_title(command.menu))
        painter.drawText(inner, aligned | Qt.AlignmentFlag.AlignRight, shortcut_text(command.id))
        painter.setPen(color(self.theme.text))
        shift = 12 + max(option.fontMetrics.horizontalAdvance(menu_title(menu)) for menu in Menu)
        painter.drawText(inner.adjusted(shift, 0, 0, 0), aligned | Qt.AlignmentFlag.AlignLeft, command.title)
        painter.restore()

    def _paint_icon(self, painter: QPainter, command: Command, place: QPoint) -> None:
        if command.icon is not None:
            ratio = painter.device().devicePixelRatio()
            painter.drawPixmap(place, icons.pixmap(command.icon, self.theme, 16, ratio=ratio, color=self.theme.muted))


class CommandPalette(QDialog):
    """A search field over a list. Enter runs, Escape closes, the arrows move while one types."""

    def __init__(self, actions: Actions, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setObjectName("palette")
        self._actions = actions
        self.search = QLineEdit()
        self._model = CommandModel(self)
        self._list = QListView()
        self._delegate = _RowDelegate(theme, self)
        self._nothing = Label(role="muted", font=FontRole.BODY)
        self._build()
        self.retranslate()
        self.search.textChanged.connect(self._on_search_changed)
        self._list.clicked.connect(lambda _index: self._run_chosen())

    def _build(self) -> None:
        self._list.setModel(self._model)
        self._list.setItemDelegate(self._delegate)
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list.setMouseTracking(True)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.search.installEventFilter(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.setSpacing(8)
        layout.addWidget(self.search)
        layout.addWidget(self._nothing)
        layout.addWidget(self._list)

    def retranslate(self) -> None:
        self.search.setPlaceholderText(self.tr("Search commands"))
        self.search.setAccessibleName(self.tr("Search commands"))
        self._list.setAccessibleName(self.tr("Commands found"))
        self._nothing.setText(self.tr("No command has these letters."))

    def set_theme(self, theme: Theme) -> None:
        self._delegate.theme = theme

    def open_over(self, window: QWidget) -> None:
        """Show it empty, in the upper middle of ``window``."""
        self.search.clear()
        self._on_search_changed("")
        width = min(round(_WIDTH * self._scale()), window.width() - 32)
        rows = min(_ROWS, max(1, self._model.rowCount()))
        self.resize(width, self.search.sizeHint().height() + 32 + rows * round((_ROW_HEIGHT + 2) * self._scale()))
        self.move(window.mapToGlobal(QPoint((window.width() - width) // 2, 48)))
        self.show()
        self.search.setFocus()

    def shown_ids(self) -> list[str]:
        """The commands on the list, best first."""
        commands = (self._model.command(row) for row in range(self._model.rowCount()))
        return [command.id for command in commands if command is not None]

    def _scale(self) -> float:
        return type_scale()

    def _on_search_changed(self, query: str) -> None:
        available = [command for command in COMMANDS if self._can_run(command)]
        found = find_commands(query, available)
        self._model.show_commands(found)
        self._nothing.setVisible(not found)
        self._list.setVisible(bool(found))
        if found:
            self._list.setCurrentIndex(self._model.index(0))

    def _can_run(self, command: Command) -> bool:
        return command.id != "view.palette" and self._actions[command.id].isEnabled()

    def _run_chosen(self) -> None:
        command = self._model.command(self._list.currentIndex().row())
        self.close()
        if command is not None:
            self._actions.trigger(command.id)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.search and isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            handler = self._key_handler(event)
            if handler is not None:
                handler()
                return True
        return super().eventFilter(watched, event)

    def _key_handler(self, event: QKeyEvent) -> Callable[[], None] | None:
        key = event.key()
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            return self._run_chosen
        steps = {
            Qt.Key.Key_Down: 1,
            Qt.Key.Key_Up: -1,
            Qt.Key.Key_PageDown: _ROWS,
            Qt.Key.Key_PageUp: -_ROWS,
        }
        step = steps.get(Qt.Key(key))
        return None if step is None else lambda: self._move(step)

    def _move(self, step: int) -> None:
        count = self._model.rowCount()
        if count:
            row = self._list.currentIndex().row() + step
            row = row % count if abs(step) == 1 else min(max(row, 0), count - 1)
            self._list.setCurrentIndex(self._model.index(row))
