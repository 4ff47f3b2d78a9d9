"""One editor per kind of field: reads, writes and judges one value of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, cast

from PySide6.QtCore import QObject, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QCompleter,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from desktop_app.core.errors import ConfigError
from desktop_app.core.telemetry import Card
from desktop_app.training.config import FieldKind, FieldSpec, RunConfig
from desktop_app.ui import icons
from desktop_app.ui.icons import IconName
from desktop_app.ui.labels import restyle
from desktop_app.ui.texts import cards as card_texts
from desktop_app.ui.texts import fields
from desktop_app.ui.theme import Theme

# What stands in an editor that cannot be read as a value of its kind.
UNREADABLE: Final = object()
# A line edit indents its text by two pixels more than a list does; in one column that shows.
_TEXT_MARGINS: Final = (-2, 0, 0, 0)
_LEAST_WIDTH: Final = 96
_DEVICES: Final = ("auto", "cpu", "simulated")


class ComboBox(QComboBox):
    """A list that the mouse wheel scrolls past and that never asks for more width than it gets."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(3)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class FieldEditor(QObject):
    """The editor of one field. ``changed`` follows every keystroke, never ``set_value``."""

    changed = Signal()
    repeats_value = False  # in the tooltip: it may be longer than the field

    def __init__(self, spec: FieldSpec, parent: QObject) -> None:
        super().__init__(parent)
        self.spec = spec
        self.widget: QWidget = self._make()
        self.widget.setMinimumWidth(_LEAST_WIDTH)

    def _make(self) -> QWidget:
        raise NotImplementedError

    def value(self) -> object:
        """The value, ``None`` for "not set", or ``UNREADABLE``."""
        raise NotImplementedError

    def set_value(self, value: object) -> None:
        raise NotImplementedError

    @property
    def focus_widget(self) -> QWidget:
        """What takes the focus and shows the error."""
        return self.widget

    def problem(self) -> str | None:
        """What the field takes, when what stands in it is something else."""
        value = self.value()
        if value == self.spec.default and type(value) is type(self.spec.default):
            return None
        return (
            None if value is not UNREADABLE and _is_allowed(self.spec.name, value) else fields.expected(self.spec.name)
        )

    def show_problem(self, problem: str | None) -> None:
        restyle(self.focus_widget, invalid=problem is not None)
        self.focus_widget.setToolTip(problem or self._about())

    def _about(self) -> str:
        """What the field is, after a value that may be longer than the field."""
        value = self.value() if self.repeats_value else None
        return "\n".join((*([str(value)] if value else []), fields.explanation(self.spec.name)))

    def retranslate(self) -> None:
        self.focus_widget.setAccessibleName(fields.name(self.spec.name))
        self.focus_widget.setAccessibleDescription(fields.explanation(self.spec.name))
        self.focus_widget.setToolTip(self._about())

    def set_theme(self, theme: Theme) -> None:
        """Most editors have no icon of their own."""


class TextEditor(FieldEditor):
    """Plain text; empty means "not set" where that is allowed."""

    repeats_value = True

    def _make(self) -> QWidget:
        self._line = QLineEdit()
        self._line.setTextMargins(*_TEXT_MARGINS)
        self._line.textEdited.connect(lambda _text: self.changed.emit())
        return self._line

    def value(self) -> object:
        text = self._line.text().strip()
        return None if self.spec.optional and not text else text

    def set_value(self, value: object) -> None:
        self._line.setText("" if value is None else str(value))
        self._line.setCursorPosition(0)

    def retranslate(self) -> None:
        super().retranslate()
        self._line.setPlaceholderText(fields.not_set() if self.spec.optional else "")


class NumberEditor(TextEditor):
    """A whole number or a number, written as one types it: ``64``, ``0.003``, ``3e-3``."""

    repeats_value = False

    def value(self) -> object:
        text = self._line.text().strip().replace("\N{NO-BREAK SPACE}", "")
        if not text:
            return None if self.spec.optional else UNREADABLE
        try:
            return int(text) if self.spec.kind is FieldKind.INTEGER else float(text)
        except ValueError:
            return UNREADABLE

    def set_value(self, value: object) -> None:
        text = f"{value:g}" if isinstance(value, float) else str(value)
        super().set_value(None if value is None else text)

    def retranslate(self) -> None:
        super().retranslate()
        unit = fields.unit(self.spec)
        if unit:
            name = f"{fields.name(self.spec.name)} ({unit})"
            self._line.setAccessibleName(name)


class FlagEditor(FieldEditor):
    """Yes or no."""

    def _make(self) -> QWidget:
        self._box = QCheckBox()
        self._box.clicked.connect(lambda _checked: self.changed.emit())
        return self._box

    def value(self) -> object:
        return self._box.isChecked()

    def set_value(self, value: object) -> None:
        self._box.setChecked(bool(value))


class ChoiceEditor(FieldEditor):
    """One of a few values, listed in words."""

    def _make(self) -> QWidget:
        self._box = ComboBox()
        for choice in self.spec.choices:
            self._box.addItem(choice, choice)
        self._box.activated.connect(lambda _index: self.changed.emit())
        return self._box

    def value(self) -> object:
        return self._box.currentData()

    def set_value(self, value: object) -> None:
        self._box.setCurrentIndex(self._box.findData(value))

    def retranslate(self) -> None:
        super().retranslate()
        for row in range(self._box.count()):
            self._box.setItemText(row, fields.choice(self.spec.name, str(self._box.itemData(row))))


class DeviceEditor(ChoiceEditor):
    """Automatic, CPU, a simulated card, or one of the real cards that CUDA can see."""

    def _make(self) -> QWidget:
        widget = super()._make()
        self._cards: tuple[Card, ...] = ()
        self._fill(None)
        return widget

    def set_cards(self, cards: Iterable[Card]) -> None:
        """Offer each real card by the index that CUDA gives it."""
        known = tuple(card for card in cards if not card.simulated)
        if known != self._cards:
            self._cards = known
            self._fill(self.value())
            self.retranslate()

    def set_value(self, value: object) -> None:
        if self._box.findData(value) < 0:
            self._box.addItem(str(value), value)
        super().set_value(value)

    def _fill(self, value: object) -> None:
        with QSignalBlocker(self._box):
            self._box.clear()
            for device in (*_DEVICES, *self._card_devices()):
                self._box.addItem(device, device)
            if value is not None:
                self.set_value(value)

    def _card_devices(self) -> dict[str, str]:
        """``cuda:N`` and the name of each card."""
        named = {}
        for card in self._cards:
            index = card.nvml_index if card.torch_index is None else card.torch_index
            named[f"cuda:{index}"] = card_texts.chip(card, None)
        return named

    def retranslate(self) -> None:
        super().retranslate()
        named = self._card_devices()
        for row in range(self._box.count()):
            device = str(self._box.itemData(row))
            if device in named:
                self._box.setItemText(row, named[device])


class PathEditor(FieldEditor):
    """A built-in name or a folder, typed or chosen."""

    repeats_value = True

    def _make(self) -> QWidget:
        self._box = ComboBox()
        self._box.setEditable(True)
        line = self._box.lineEdit()
        if line is not None:
            line.setTextMargins(*_TEXT_MARGINS)
        self._box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        for choice in self.spec.choices:
            self._box.addItem(choice, choice)
        self._box.editTextChanged.connect(self._on_text_changed)
        self._folder = QToolButton()
        self._folder.clicked.connect(self._choose_folder)
        self._quiet = False
        widget = QWidget()
        layout = QHBoxLayout(widget)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self._box, stretch=1)
        layout.addWidget(self._folder)
        widget.setFocusProxy(self._box)
        return widget

    @property
    def focus_widget(self) -> QWidget:
        return self._box

    def _on_text_changed(self, _text: str) -> None:
        if not self._quiet:
            self.changed.emit()

    def _choose_folder(self) -> None:
        start = str(self.value() or "")
        dialog = QFileDialog(self.widget.window(), fields.name(self.spec.name), start)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self._box.setEditText)
        dialog.open()

    def value(self) -> object:
        text = self._box.currentText().strip()
        return None if self.spec.optional and not text else text

    def set_value(self, value: object) -> None:
        self._quiet = True
        self._box.setEditText("" if value is None else str(value))
        self._quiet = False
        line = self._box.lineEdit()
        if line is not None:
            # Of a long path the last folders say most.
            line.setCursorPosition(len(line.text()) if "/" in line.text() else 0)

    def retranslate(self) -> None:
        super().retranslate()
        self._folder.setToolTip(self.tr("Choose a folder"))
        self._folder.setAccessibleName(self.tr("Choose a folder"))
        line = self._box.lineEdit()
        if line is not None:
            line.setPlaceholderText(fields.not_set() if self.spec.optional else "")

    def set_theme(self, theme: Theme) -> None:
        self._folder.setIcon(icons.icon(IconName.FOLDER, theme))


class CardEditor(TextEditor):
    """The name of a catalogue card, completed as one types."""

    def _make(self) -> QWidget:
        widget = super()._make()
        self._line.textEdited.connect(self._complete)
        return widget

    def _complete(self, _text: str) -> None:
        """Reads the catalogue at the first letter."""
        if self._line.completer() is not None:
            return
        from desktop_app.telemetry.catalogue import load_catalogue

        completer = QCompleter([card.name for card in load_catalogue()], self._line)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        completer.activated.connect(lambda _text: self.changed.emit())
        self._line.setCompleter(completer)


@lru_cache(maxsize=256, typed=True)
def _is_allowed(field: str, value: object) -> bool:
    """Whether a run takes ``value``; the config itself is asked, so that form and file agree."""
    try:
        dataclasses.replace(RunConfig(), **cast("dict[str, Any]", {field: value}))
    except ConfigError:
        return False
    return True


_BY_KIND: Final[dict[FieldKind, type[FieldEditor]]] = {
    FieldKind.TEXT: TextEditor,
    FieldKind.INTEGER: NumberEditor,
    FieldKind.NUMBER: NumberEditor,
    FieldKind.FLAG: FlagEditor,
    FieldKind.CHOICE: ChoiceEditor,
    FieldKind.PATH: PathEditor,
    FieldKind.DEVICE: DeviceEditor,
}


def make_editor(spec: FieldSpec, parent: QObject) -> FieldEditor:
    """The editor for a row of ``training.config.FIELDS``."""
    kind = CardEditor if spec.name == "card" else _BY_KIND[spec.kind]
    return kind(spec, parent)
