"""The modules of a model as a tree for a view: searched and sorted without touching what is not on show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Final

from PySide6.QtCore import QAbstractItemModel, QCoreApplication, QModelIndex, QObject, QPersistentModelIndex, Qt

from desktop_app.core.estimates import ModuleMemory
from desktop_app.ui.texts import modules as texts
from desktop_app.ui.texts import numbers

Index = QModelIndex | QPersistentModelIndex
# What the delegate asks for: the ``ModuleMemory`` of a row.
MODULE_ROLE: Final = Qt.ItemDataRole.UserRole + 1
_NOBODY: Final = -1
# A style sheet draws the arrow of the sorted column over a title at the right: an em space leaves it room.
_ARROW_ROOM: Final = "\N{EM SPACE}"


class Column(IntEnum):
    NAME = 0
    BAR = 1
    SIZE = 2
    PARAMETERS = 3


_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT: Final = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class ModuleModel(QAbstractItemModel):
    """Rows are numbers of ``modules``; an index carries the number of its module."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._modules: Sequence[ModuleMemory] = ()
        self._parents: list[int] = []
        self._all: dict[int, list[int]] = {}  # children of each, in the order of the model
        self._shown: dict[int, list[int]] = {}  # those that match, sorted
        self._rows: list[int] = []  # place among its siblings on show
        self._query = ""
        self._matches = 0
        self._order: tuple[Column, Qt.SortOrder] = (Column.SIZE, Qt.SortOrder.DescendingOrder)

    # -- what the page calls --------------------------------------------------------------------------------------

    def set_modules(self, modules: Sequence[ModuleMemory]) -> None:
        """Parents come before their children; a module whose parent is missing hangs on the next one above."""
        self.beginResetModel()
        self._modules = modules
        self._parents, self._all = _family(modules)
        self._arrange()
        self.endResetModel()

    @property
    def modules(self) -> Sequence[ModuleMemory]:
        return self._modules

    @property
    def most_bytes(self) -> int:
        """What the longest bar stands for."""
        return max((self._modules[row].total_bytes for row in self._all.get(_NOBODY, [])), default=0)

    def set_query(self, query: str) -> int:
        """Show only what has ``query`` in its path or its class, and what leads there. How many match."""
        query = query.strip().casefold()
        if query != self._query:
            self.beginResetModel()
            self._query = query
            self._arrange()
            self.endResetModel()
        return self._matches

    def index_of(self, module: int) -> QModelIndex:
        """The index of a module; an invalid one while a search hides it."""
        place, shown = self._rows[module], self._shown.get(self._parents[module], ())
        if place < len(shown) and shown[place] == module:
            return self.createIndex(place, 0, module)
        return QModelIndex()

    def module_at(self, index: Index) -> int | None:
        return int(index.internalId()) if index.isValid() else None

    def largest_path(self, *, share: float) -> list[QModelIndex]:
        """From the root down to where the bytes are: as long as one child has this share of its parent's."""
        path: list[QModelIndex] = []
        known = self._shown.get(_NOBODY, [])
        least = 0
        while known:
            largest = max(known, key=lambda row: self._modules[row].total_bytes)
            if self._modules[largest].total_bytes < least:
                break
            path.append(self.index_of(largest))
            known = self._shown.get(largest, [])
            least = max(1, int(share * self._modules[largest].total_bytes))
        return path

    # -- arranging ------------------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        kept = self._kept()
        key = self._sort_key()
        column, order = self._order
        self._shown = {}
        self._rows = [0] * len(self._modules)
        for parent, children in self._all.items():
            shown = [row for row in children if kept is None or kept[row]]
            if column is not Column.NAME or order is Qt.SortOrder.DescendingOrder:
                shown.sort(key=key, reverse=order is Qt.SortOrder.DescendingOrder)
            self._shown[parent] = shown
            for place, row in enumerate(shown):
                self._rows[row] = place

    def _kept(self) -> list[bool] | None:
        """Which modules are on show; ``None``: all of them."""
        self._matches = len(self._modules)
        if not self._query:
            return None
        kept = [
            self._query in module.path.casefold() or self._query in module.kind.casefold() for module in self._modules
        ]
        self._matches = sum(kept)
        for row in range(len(kept) - 1, -1, -1):  # parents come first, so a child is seen before its parent
            if kept[row] and self._parents[row] != _NOBODY:
                kept[self._parents[row]] = True
        return kept

    def _sort_key(self) -> Callable[[int], Any]:
        column, modules = self._order[0], self._modules
        if column is Column.NAME:
            return lambda row: row  # the order of the model
        if column is Column.PARAMETERS:
            return lambda row: modules[row].parameters
        return lambda row: modules[row].total_bytes

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        if (Column(column), order) == self._order:
            return
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        self._order = (Column(column), order)
        self._arrange()
        after = [
            self.createIndex(self._rows[known.internalId()], known.column(), known.internalId()) for known in before
        ]
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()

    # -- what Qt calls --------------------------------------------------------------------------------------------

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - as Qt declares it
        if parent.column() > 0:
            return 0
        return len(self._shown.get(int(parent.internalId()) if parent.isValid() else _NOBODY, ()))

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        del parent
        return len(Column)

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008
        shown = self._shown.get(int(parent.internalId()) if parent.isValid() else _NOBODY, ())
        return self.createIndex(row, column, shown[row]) if 0 <= row < len(shown) else QModelIndex()

    def parent(self, child: Index | None = None) -> Any:  # Qt has two of this name
        if child is None:
            return super().parent()
        row = self._parents[int(child.internalId())] if child.isValid() else _NOBODY
        return QModelIndex() if row == _NOBODY else self.createIndex(self._rows[row], 0, row)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        module = self._modules[int(index.internalId())]
        column = Column(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(module, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(_RIGHT if column in (Column.SIZE, Column.PARAMETERS) else _LEFT)
        if role == Qt.ItemDataRole.ToolTipRole:
            return texts.tooltip(module)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return texts.described(module) if column is Column.NAME else self._text(module, column)
        return module if role == MODULE_ROLE else None

    def _text(self, module: ModuleMemory, column: Column) -> str:
        if column is Column.NAME:
            return texts.short_name(module)
        if column is Column.SIZE:
            return numbers.small_size(module.total_bytes)
        return texts.count(module.parameters) if column is Column.PARAMETERS else ""

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(_RIGHT if section in (Column.SIZE, Column.PARAMETERS) else _LEFT)
        titles = (
            QCoreApplication.translate("Modules", "Module"),
            QCoreApplication.translate("Modules", "At the peak"),
            QCoreApplication.translate("Modules", "Size") + _ARROW_ROOM,
            QCoreApplication.translate("Modules", "Parameters") + _ARROW_ROOM,
        )
        return titles[section] if role == Qt.ItemDataRole.DisplayRole else None


def _family(modules: Sequence[ModuleMemory]) -> tuple[list[int], dict[int, list[int]]]:
    """The parent of each, and the children of each."""
    places: dict[str, int] = {}
    parents: list[int] = []
    children: dict[int, list[int]] = {}
    for row, module in enumerate(modules):
        parent = _NOBODY
        path = module.path
        while path and parent == _NOBODY:
            path = path.rpartition(".")[0]
            parent = places.get(path, _NOBODY)
        places[module.path] = row
        parents.append(parent)
        children.setdefault(parent, []).append(row)
    return parents, children
