"""Paints a row of the module tree: the class after the name, and a bar of what it holds."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from desktop_app.core.estimates import ModuleMemory
from desktop_app.ui.memory.colors import kind_color
from desktop_app.ui.memory.module_model import MODULE_ROLE, Column
from desktop_app.ui.texts import modules as texts
from desktop_app.ui.theme import Theme, color

_PAD: Final = 6
_GAP: Final = 8
_BAR_SHARE: Final = 0.42  # of the row's height


class ModuleDelegate(QStyledItemDelegate):
    """``most_bytes``: what a bar across the whole column stands for."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.most_bytes = 1

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        hint = super().sizeHint(option, index)
        return QSize(hint.width(), option.fontMetrics.height() + 8)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        module = index.data(MODULE_ROLE)
        super().paint(painter, option, index)
        rect: QRect = option.rect
        if index.column() == Column.BAR:
            self._bar(painter, QRectF(rect), module)
        elif index.column() == Column.NAME and module.path:
            self._kind(painter, option, rect, module)

    def _kind(self, painter: QPainter, option: QStyleOptionViewItem, rect: QRect, module: ModuleMemory) -> None:
        metrics = option.fontMetrics
        used = metrics.horizontalAdvance(texts.short_name(module)) + _PAD + _GAP
        room = rect.adjusted(used, 0, -_PAD, 0)
        if room.width() < 4 * metrics.averageCharWidth():
            return
        painter.save()
        painter.setFont(option.font)
        painter.setPen(color(self._theme.muted))
        text = metrics.elidedText(module.kind, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
        painter.restore()

    def _bar(self, painter: QPainter, rect: QRectF, module: ModuleMemory) -> None:
        height = round(_BAR_SHARE * rect.height())
        top = rect.top() + (rect.height() - height) / 2
        room = rect.adjusted(_PAD, 0, -_PAD, 0)
        scale = room.width() / max(1, self.most_bytes)
        left = room.left()
        painter.save()
        for category, size in texts.shares(module):
            width = size * scale
            painter.fillRect(QRectF(left, top, max(width, 0.5), height), kind_color(self._theme, category))
            left += width
        painter.restore()
