"""The list of fields as a model: groups with their rows, searched and without what is missing, changed in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from desktop_app.ui.gpu.field_groups import FACT
from desktop_app.ui.gpu.field_rows import Row
from desktop_app.ui.texts import gpu

ROW_ROLE: Final = Qt.ItemDataRole.UserRole + 1
Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True, slots=True)
class Heading:
    """A line above the rows of one group."""

    group: str


class FieldModel(QAbstractListModel):
    """Headings cannot be chosen. New values change their rows only; other rows rebuild the list."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[Row, ...] = ()
        self._lines: list[Row | Heading] = []
        self._query = ""
        self._only_there = False

    # -- what is on it --------------------------------------------------------------------------------------------

    def set_rows(self, rows: Sequence[Row]) -> bool:
        """Take new values; whether the list was rebuilt."""
        if tuple(rows) == self._rows:
            return False
        self._rows = tuple(rows)
        return self._follow()

    def set_query(self, query: str) -> None:
        self._query = query.casefold().strip()
        self._follow()

    def set_only_there(self, *, only: bool) -> None:
        self._only_there = only
        self._follow()

    def _follow(self) -> bool:
        wanted = self._wanted()
        if [_place(line) for line in wanted] != [_place(line) for line in self._lines]:
            self.beginResetModel()
            self._lines = wanted
            self.endResetModel()
            return True
        before, self._lines = self._lines, wanted
        for place, (old, new) in enumerate(zip(before, wanted, strict=True)):
            if old != new:
                index = self.index(place, 0)
                self.dataChanged.emit(index, index)
        return False

    def _wanted(self) -> list[Row | Heading]:
        lines: list[Row | Heading] = []
        group = ""
        for row in self._rows:
            if (row.there or not self._only_there) and self._matches(row):
                if row.group != group:
                    group = row.group
                    lines.append(Heading(group))
                lines.append(row)
        return lines

    def _matches(self, row: Row) -> bool:
        """By its name, its group, its value, or the name it has in files and in the code."""
        if not self._query:
            return True
        words = " ".join((row.name, gpu.group(row.group), row.value, row.key.removeprefix(FACT))).casefold()
        return all(part in words for part in self._query.split())

    # -- what others ask ------------------------------------------------------------------------------------------

    @property
    def rows(self) -> tuple[Row, ...]:
        """All of the card, shown or not."""
        return self._rows

    @property
    def shown(self) -> tuple[Row, ...]:
        return tuple(line for line in self._lines if isinstance(line, Row))

    def row_at(self, index: Index) -> Row | None:
        line = self._lines[index.row()] if index.isValid() and index.row() < len(self._lines) else None
        return line if isinstance(line, Row) else None

    def index_of(self, key: str) -> QModelIndex:
        """Where the row of ``key`` is; an invalid index when it is not on the list."""
        place = next((i for i, line in enumerate(self._lines) if isinstance(line, Row) and line.key == key), -1)
        return self.index(place, 0) if place >= 0 else QModelIndex()

    def as_text(self) -> str:
        """The rows on show, tab-separated, with an empty line and the name before each group."""
        lines: list[str] = []
        for line in self._lines:
            lines += ["", gpu.group(line.group)] if isinstance(line, Heading) else [as_line(line)]
        return "\n".join(lines).strip()

    # -- the model ------------------------------------------------------------------------------------------------

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - as Qt declares it
        return 0 if parent.isValid() else len(self._lines)

    def flags(self, index: Index) -> Qt.ItemFlag:
        return super().flags(index) if self.row_at(index) is not None else Qt.ItemFlag.NoItemFlags

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        line = self._lines[index.row()]
        if role == ROW_ROLE:
            return line
        if isinstance(line, Heading):
            return gpu.group(line.group) if role == Qt.ItemDataRole.DisplayRole else None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return f"{line.name}: {line.value}"
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleDescriptionRole):
            return "\n".join(part for part in (line.why, line.help) if part)
        return None


def as_line(row: Row) -> str:
    """``SM clock<tab>1,725 MHz``."""
    return f"{row.name}\t{row.value}"


def _place(line: Row | Heading) -> tuple[str, str]:
    return (line.group, line.key if isinstance(line, Row) else "")
