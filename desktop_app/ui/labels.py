"""Small pieces every panel is built of: labels that keep their font role, elide with a tooltip, and dividing lines."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QLayout, QSizePolicy, QStyle, QStyleOption, QWidget

from desktop_app.ui import theme as themes
from desktop_app.ui.theme import FontRole

# Set on the application by whoever sets the size of its type.
TYPE_SCALE_PROPERTY: Final = "floodmark_type_scale"
# An elided label may shrink to this many average characters, never to nothing.
_LEAST_CHARACTERS: Final = 4


def type_scale() -> float:
    """How much larger than usual everything is shown: 1.6 in presentations. Icons and fixed sizes follow it."""
    app = QApplication.instance()
    found = None if app is None else app.property(TYPE_SCALE_PROPERTY)
    return found if isinstance(found, float) else 1.0


def restyle(widget: QWidget, **properties: object) -> None:
    """Set dynamic properties that the style sheet selects by, and have the style look again if one changed."""
    changed = False
    for name, value in properties.items():
        if widget.property(name) != value:
            widget.setProperty(name, value)
            changed = True
    if changed:
        widget.style().unpolish(widget)
        widget.style().polish(widget)


class Label(QLabel):
    """A label with a font role of the theme and a colour role of the style sheet. Follows large type."""

    def __init__(
        self,
        text: str = "",
        *,
        font: FontRole = FontRole.BODY,
        role: str = "",
        wrap: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(text, parent)
        self._font_role = font
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(wrap)
        if role:
            self.setProperty("role", role)
        self.apply_font()

    def set_role(self, role: str) -> None:
        """The colour: ``muted``, ``ok``, ``warn``, ``danger`` or empty for plain text."""
        restyle(self, role=role)

    def apply_font(self) -> None:
        """Take the size of the application's font, which presentations change."""
        self.setFont(themes.font(self._font_role))


class ElidedLabel(Label):
    """One line that ends in an ellipsis where room is short; the tooltip then has all of it."""

    def __init__(
        self,
        text: str = "",
        *,
        font: FontRole = FontRole.BODY,
        role: str = "",
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(text, font=font, role=role, parent=parent)
        self._mode = mode
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

    def minimumSizeHint(self) -> QSize:
        hint = super().minimumSizeHint()
        least = self.fontMetrics().averageCharWidth() * _LEAST_CHARACTERS
        return QSize(min(hint.width(), least), hint.height())

    def setText(self, text: str) -> None:
        super().setText(text)
        self._note_elision()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._note_elision()

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        painter = QPainter(self)
        option = QStyleOption()
        option.initFrom(self)
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_Widget, option, painter, self)
        self.style().drawItemText(
            painter,
            self._text_rect(),
            int(self.alignment()),
            self.palette(),
            self.isEnabled(),
            self._shown(),
            QPalette.ColorRole.WindowText,
        )

    def _text_rect(self) -> QRect:
        return self.contentsRect()

    def _shown(self) -> str:
        return self.fontMetrics().elidedText(self.text(), self._mode, self._text_rect().width())

    def _note_elision(self) -> None:
        self.setToolTip(self.text() if self._shown() != self.text() else "")


class Divider(QFrame):
    """A one-pixel line across."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("divider")
        self.setFixedHeight(1)


def clear_layout(layout: QLayout) -> None:
    """Remove and delete all widgets of a layout."""
    while (item := layout.takeAt(0)) is not None:
        widget = item.widget()
        if widget is not None:
            widget.hide()
            widget.deleteLater()
