"""The largest blocks of a timeline as a table."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QCoreApplication, QModelIndex, QObject, QPersistentModelIndex, Qt

from desktop_app.core.estimates import Timeline
from desktop_app.core.steps import Category
from desktop_app.ui.memory.block_facts import BlockFacts, block_facts, largest_blocks
from desktop_app.ui.memory.canvas_texts import life
from desktop_app.ui.memory.colors import shade_color
from desktop_app.ui.memory.timeline_layout import Ints, block_shades
from desktop_app.ui.texts import memory as texts
from desktop_app.ui.texts import numbers
from desktop_app.ui.theme import DARK, Theme

MOST_BLOCKS: Final = 1000
Index = QModelIndex | QPersistentModelIndex


class Column(IntEnum):
    SIZE = 0
    OWNER = 1
    KIND = 2
    OP = 3
    LIFE = 4


class BlockModel(QAbstractTableModel):
    """Up to ``MOST_BLOCKS`` rows, the largest first."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = DARK
        self._blocks: list[int] = []
        self._facts: list[BlockFacts] = []
        self._shades: Ints | None = None

    def set_timeline(self, timeline: Timeline | None) -> None:
        self.beginResetModel()
        self._blocks = [] if timeline is None else largest_blocks(timeline, MOST_BLOCKS).tolist()
        self._shades = None if timeline is None else block_shades(timeline)
        self._facts = [] if timeline is None else [block_facts(timeline, block) for block in self._blocks]
        self.endResetModel()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme

    def block_at(self, row: int) -> int | None:
        return self._blocks[row] if 0 <= row < len(self._blocks) else None

    def row_of(self, block: int) -> int | None:
        return self._blocks.index(block) if block in self._blocks else None

    def widest_kind(self) -> str:
        """The longest name of a kind, for the width of its column."""
        return max((texts.block_kind(category.value) for category in Category), key=len)

    def line(self, row: int) -> str:
        """One row, tab-separated."""
        return "\t".join(self._text(self._facts[row], column) for column in Column)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - as Qt declares it
        return 0 if parent.isValid() else len(self._blocks)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(Column)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        facts, column = self._facts[index.row()], Column(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(facts, column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return "\n".join(self._text(facts, each) for each in Column)
        if role == Qt.ItemDataRole.DecorationRole and column is Column.KIND and self._shades is not None:
            return shade_color(self._theme, int(self._shades[self._blocks[index.row()]]))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if column is Column.SIZE else Qt.AlignmentFlag.AlignLeft
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        return None

    def _text(self, facts: BlockFacts, column: Column) -> str:
        words = {
            Column.SIZE: lambda: numbers.small_size(facts.size_bytes),
            Column.OWNER: lambda: texts.block_owner(facts.owner),
            Column.KIND: lambda: texts.block_kind(facts.category.value),
            Column.OP: lambda: facts.op,
            Column.LIFE: lambda: life(facts),
        }
        return words[column]()

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if section == Column.SIZE else Qt.AlignmentFlag.AlignLeft
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        names = texts.block_rows()
        titles = (names["size"], names["owner"], names["kind"], names["op"], names["life"])
        return titles[section]


def accessible_name() -> str:
    return QCoreApplication.translate("Memory", "Largest blocks")
