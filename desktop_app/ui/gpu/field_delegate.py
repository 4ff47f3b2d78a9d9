"""Paints the list of fields: headings, and rows of name and value."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from desktop_app.ui.brush import LEFT, RIGHT, Typeset, write
from desktop_app.ui.gpu.field_model import ROW_ROLE, Heading
from desktop_app.ui.gpu.field_rows import Row
from desktop_app.ui.theme import CONTROL_RADIUS, Theme, color

_PAD: Final = 12  # left and right of the text
_ROW: Final = 8  # pixels of air in a row, above and below together
_HEADING: Final = 18
_GAP: Final = 12  # between name and value
_NAME_SHARE: Final = 0.62  # the name gives way to the value beyond this share
_STRIPE: Final = 3


class FieldDelegate(QStyledItemDelegate):
    """Everything is painted here, so that eighty rows cost what the twenty on screen cost."""

    def __init__(self, theme: Theme, font: QFont, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._types = Typeset(font)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme

    def set_font(self, font: QFont) -> None:
        self._types = Typeset(font)

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        del option
        heading = isinstance(index.data(ROW_ROLE), Heading)
        air = _HEADING if heading and index.row() else _ROW
        return QSize(0, round(self._types.line) + air)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        line = index.data(ROW_ROLE)
        rect = QRectF(option.rect)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if isinstance(line, Heading):
            bottom = QRectF(
                rect.left() + _PAD, rect.bottom() - self._types.line - _ROW / 2, rect.width(), rect.height()
            )
            bottom.setBottom(rect.bottom() - _ROW / 2)
            write(painter, bottom, str(index.data()), self._types.label_bold, color(self._theme.text))
        else:
            self._row(painter, rect, option, line)
        painter.restore()

    def _row(self, painter: QPainter, rect: QRectF, option: QStyleOptionViewItem, row: Row) -> None:
        theme, types = self._theme, self._types
        state = option.state
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        if chosen or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color(theme.hover if chosen else theme.raised))
            painter.drawRoundedRect(rect.adjusted(4, 0, -4, 0), CONTROL_RADIUS, CONTROL_RADIUS)
        if chosen:
            painter.setBrush(color(theme.accent))
            painter.drawRoundedRect(QRectF(rect.left() + 4, rect.top() + 3, _STRIPE, rect.height() - 6), 1, 1)
        inner = rect.adjusted(_PAD, 0, -_PAD, 0)
        value_width = min(types.label.width(row.value) + 1, inner.width())
        name_width = min(types.label.width(row.name) + 1, inner.width() - value_width - _GAP)
        name_width = max(name_width, min(types.label.width(row.name) + 1, (1 - _NAME_SHARE) * inner.width()))
        value = QRectF(inner)
        value.setLeft(max(inner.right() - value_width, inner.left() + name_width + _GAP))
        name = QRectF(inner)
        name.setWidth(name_width)
        write(painter, name, row.name, types.label, color(theme.muted if not chosen else theme.text), align=LEFT)
        tone = row.tone or ("text" if row.there else "muted")
        write(painter, value, row.value, types.label, color(getattr(theme, tone)), align=RIGHT)
