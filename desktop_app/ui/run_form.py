"""The form of a run, generated from ``training.config.FIELDS``: a few rows at once, the others behind a button."""

from __future__ import annotations

from typing import Any, Final, cast

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QPushButton, QVBoxLayout, QWidget

from desktop_app.core.errors import ConfigError
from desktop_app.core.telemetry import Card
from desktop_app.training.config import FIELDS, FieldGroup, FieldSpec, RunConfig, field_spec
from desktop_app.ui.form_editors import DeviceEditor, FieldEditor, make_editor
from desktop_app.ui.labels import Divider, Label
from desktop_app.ui.texts import fields
from desktop_app.ui.theme import FontRole, Theme

# What one looks at before every run, in the order of the design picture, and the rules; all else is behind
# "All settings".
ESSENTIAL: Final = (
    "recipe",
    "data",
    "model",
    "batch_size",
    "precision",
    "optimizer",
    "learning_rate",
    "epochs",
    "device",
    "card",
    "on_alert",
    "on_oom",
)
_LABEL_WIDTH: Final = 96


class FormRow:
    """Label, editor and the line that says what is wrong."""

    def __init__(self, spec: FieldSpec, parent: QWidget) -> None:
        self.spec = spec
        self.editor: FieldEditor = make_editor(spec, parent)
        self.label = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self.label.setBuddy(self.editor.focus_widget)
        self.problem = Label(font=FontRole.LABEL, role="danger", wrap=True)
        self.problem.hide()

    def add_to(self, grid: QGridLayout) -> None:
        row = grid.rowCount()
        grid.addWidget(self.label, row, 0)
        grid.addWidget(self.editor.widget, row, 1)
        grid.addWidget(self.problem, row + 1, 0, 1, 2)

    def judge(self) -> bool:
        """Show what is wrong with the value; ``True`` when nothing is."""
        problem = self.editor.problem()
        self.problem.setText(problem or "")
        self.problem.setVisible(problem is not None and not self.label.isHidden())
        self.editor.show_problem(problem)
        return problem is None

    def set_visible(self, *, visible: bool) -> None:
        self.label.setVisible(visible)
        self.editor.widget.setVisible(visible)
        if not visible:
            self.problem.hide()

    def retranslate(self) -> None:
        unit = fields.unit(self.spec)
        name = fields.name(self.spec.name)
        self.label.setText(f"{name} ({unit})" if unit else name)
        self.editor.retranslate()
        self.judge()


class RunForm(QWidget):
    """``edited`` follows every change by the user; ``config()`` is ``None`` while something is wrong."""

    edited = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("runForm")
        self._locked = False
        self._rows = {spec.name: FormRow(spec, self) for spec in FIELDS}
        self._headings: dict[FieldGroup, Label] = {}
        self._more = QPushButton()
        self._rest = QWidget()
        self._build()
        self.set_theme(theme)
        self.retranslate()
        self.set_config(RunConfig())

    def _build(self) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addLayout(self._grid([field_spec(name) for name in ESSENTIAL]))
        self._more.setCheckable(True)
        self._more.setProperty("kind", "quiet")
        self._more.setObjectName("moreSettings")
        self._more.toggled.connect(self._show_rest)
        layout.addWidget(self._more, alignment=Qt.AlignmentFlag.AlignLeft)
        self._build_rest()
        layout.addWidget(self._rest)
        for row in self._rows.values():
            row.editor.changed.connect(self._on_edited)
        self._show_rest(False)

    def _grid(self, specs: list[FieldSpec]) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(6)
        grid.setColumnMinimumWidth(0, _LABEL_WIDTH)
        grid.setColumnStretch(1, 1)
        for spec in specs:
            self._rows[spec.name].add_to(grid)
        return grid

    def _build_rest(self) -> None:
        rest = QVBoxLayout(self._rest)
        rest.setContentsMargins(0, 0, 0, 0)
        rest.setSpacing(8)
        for group in FieldGroup:
            specs = [spec for spec in FIELDS if spec.group is group and spec.name not in ESSENTIAL]
            if not specs:
                continue
            self._headings[group] = Label(font=FontRole.TITLE)
            rest.addWidget(Divider())
            rest.addWidget(self._headings[group])
            rest.addLayout(self._grid(sorted(specs, key=lambda spec: spec.advanced)))

    def _show_rest(self, shown: bool) -> None:  # noqa: FBT001 - a slot of toggled(bool)
        self._rest.setVisible(shown)
        self._name_more()

    def _name_more(self) -> None:
        mark = "▾" if self._more.isChecked() else "▸"
        self._more.setText(f"{mark}  {self.tr('All settings')}")
        self._more.setAccessibleName(self.tr("All settings"))

    def _on_edited(self) -> None:
        self._judge()
        self.edited.emit()

    def _judge(self) -> bool:
        self._rows["card"].set_visible(visible=self._rows["device"].editor.value() in ("simulated", "auto"))
        valid = [row.judge() for row in self._rows.values()]
        if not all(valid) and self._has_hidden_problem():
            self._more.setChecked(True)
        return all(valid)

    def _has_hidden_problem(self) -> bool:
        return any(row.editor.problem() for name, row in self._rows.items() if name not in ESSENTIAL)

    def config(self) -> RunConfig | None:
        """What the form says, or ``None`` while a field is wrong."""
        values = {name: row.editor.value() for name, row in self._rows.items()}
        try:
            return RunConfig(**cast("dict[str, Any]", values))
        except ConfigError:
            return None

    def set_config(self, config: RunConfig) -> None:
        """Show ``config``; emits nothing."""
        for name, row in self._rows.items():
            row.editor.set_value(getattr(config, name))
        self._judge()

    def set_cards(self, cards: tuple[Card, ...]) -> None:
        editor = self._rows["device"].editor
        assert isinstance(editor, DeviceEditor)
        editor.set_cards(cards)

    def set_locked(self, *, locked: bool) -> None:
        """While a run is active its settings are shown and cannot be changed."""
        if locked != self._locked:
            self._locked = locked
            for row in self._rows.values():
                row.editor.widget.setEnabled(not locked)

    @property
    def locked(self) -> bool:
        return self._locked

    def editor(self, field: str) -> FieldEditor:
        return self._rows[field].editor

    def problem(self, field: str) -> str:
        """The line under a field; empty when all is well."""
        return self._rows[field].problem.text()

    def show_all(self, *, shown: bool) -> None:
        self._more.setChecked(shown)

    def retranslate(self) -> None:
        self._name_more()
        for group, heading in self._headings.items():
            heading.setText(fields.group(group))
        for row in self._rows.values():
            row.retranslate()

    def set_theme(self, theme: Theme) -> None:
        for row in self._rows.values():
            row.editor.set_theme(theme)
