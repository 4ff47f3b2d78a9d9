"""Finds texts that do not fit their widget, and widgets that do not fit their parent."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QCheckBox,
    QLabel,
    QPushButton,
    QScrollArea,
    QTabBar,
    QToolButton,
    QWidget,
)

from desktop_app.ui.header import CardChip, SearchButton
from desktop_app.ui.labels import ElidedLabel
from desktop_app.ui.lever_row import LeverButton

# These shorten their text by themselves and say all of it in their tooltip.
ELIDING = (CardChip, SearchButton, LeverButton)
# Fusion rounds hints up; a pixel is no letter.
TOLERANCE = 1


def clipped_texts(root: QWidget) -> list[str]:
    """One line per visible widget whose text needs more room than it has."""
    problems = []
    for widget in root.findChildren(QWidget):
        if not widget.isVisible() or widget.width() == 0:
            continue
        problem = _problem(widget)
        if problem:
            problems.append(f"{_place(widget)}: {problem}")
    return problems


def _problem(widget: QWidget) -> str | None:
    if isinstance(widget, ElidedLabel):
        return _elided_problem(widget)
    if isinstance(widget, QLabel):
        return _label_problem(widget) or _outside(widget)
    if isinstance(widget, ELIDING):
        return _outside(widget)
    if isinstance(widget, QPushButton | QToolButton | QCheckBox):
        return _button_problem(widget) or _outside(widget)
    if isinstance(widget, QTabBar):
        return _tab_problem(widget)
    if isinstance(widget, QScrollArea):
        return _scroll_problem(widget)
    return None


def _elided_problem(label: ElidedLabel) -> str | None:
    needed = label.fontMetrics().horizontalAdvance(label.text())
    if needed > label.contentsRect().width() + TOLERANCE and label.toolTip() != label.text() and not label.toolTip():
        return f"elided without a tooltip: {label.text()!r}"
    return None


def _label_problem(label: QLabel) -> str | None:
    if not label.text():
        return None
    if label.wordWrap():
        needed = label.heightForWidth(label.width())
        if needed > label.height() + TOLERANCE:
            return f"{label.text()!r} needs a height of {needed}, has {label.height()}"
        # Chinese breaks between any two characters.
        words = [word for word in label.text().split(" ") if word.isascii() or _is_pseudo(word)]
        longest = max((label.fontMetrics().horizontalAdvance(word) for word in words), default=0)
        if longest > label.contentsRect().width() + TOLERANCE and "/" not in label.text():
            return f"a word of {label.text()!r} needs {longest}, has {label.contentsRect().width()}"
        return None
    needed = label.sizeHint().width()
    if needed > label.width() + TOLERANCE:
        return f"{label.text()!r} needs a width of {needed}, has {label.width()}"
    return None


def _is_pseudo(word: str) -> bool:
    return all(ord(character) < 0x250 for character in word)


def _button_problem(button: QAbstractButton) -> str | None:
    hint = button.sizeHint()
    if button.text() and hint.width() > button.width() + TOLERANCE:
        return f"{button.text()!r} needs a width of {hint.width()}, has {button.width()}"
    if hint.height() > button.height() + TOLERANCE:
        return f"{button.text()!r} needs a height of {hint.height()}, has {button.height()}"
    return None


def _tab_problem(bar: QTabBar) -> str | None:
    for index in range(bar.count()):
        rect = bar.tabRect(index)
        if bar.isTabVisible(index) and bar.fontMetrics().horizontalAdvance(bar.tabText(index)) > rect.width():
            return f"tab {bar.tabText(index)!r} is cut"
    return None


def _scroll_problem(area: QScrollArea) -> str | None:
    """What cannot be scrolled to the side must not be wider than its window."""
    content = area.widget()
    scrolls = area.horizontalScrollBarPolicy() is not Qt.ScrollBarPolicy.ScrollBarAlwaysOff
    if content is None or scrolls or content.width() <= area.viewport().width() + TOLERANCE:
        return None
    return f"its content of {content.width()} is wider than its {area.viewport().width()}"


def _outside(widget: QWidget) -> str | None:
    """A widget that reaches out of its parent is cut there, unless the parent scrolls."""
    parent = widget.parentWidget()
    if parent is None or isinstance(parent.parentWidget(), QAbstractScrollArea) or isinstance(parent, QTabBar):
        return None
    rect = widget.geometry()
    if rect.right() > parent.width() or rect.bottom() > parent.height() or rect.left() < 0 or rect.top() < 0:
        return f"{rect} lies outside its parent of {parent.size()}"
    return None


def _place(widget: QWidget) -> str:
    names = []
    current: QWidget | None = widget
    while current is not None:
        names.append(current.objectName() or type(current).__name__)
        current = current.parentWidget()
    return "/".join(reversed(names[:4]))
