"""The cards: which number means which card, and every field of one of them with its value or its reason."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QFrame, QPushButton, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from desktop_app.core.telemetry import GPU_FIELDS, Card
from desktop_app.services.facade import Workspace
from desktop_app.ui.actions import tooltip
from desktop_app.ui.facts import FactList
from desktop_app.ui.labels import Divider, ElidedLabel, Label, clear_layout
from desktop_app.ui.tank_reader import selected_card
from desktop_app.ui.texts import cards, reasons, verdicts
from desktop_app.ui.theme import FontRole, Theme


class CardRow(QPushButton):
    """One card in the mapping: its name, and below it the index it has in torch, in NVML and on the bus."""

    def __init__(self, card: Card) -> None:
        super().__init__()
        self.setObjectName("cardRow")
        self.setCheckable(True)
        self.uuid = card.uuid
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._name = ElidedLabel(cards.chip(card, None), font=FontRole.BODY)
        self._mapping = ElidedLabel(cards.mapping(card), font=FontRole.LABEL, role="muted")
        self.setAccessibleName(f"{self._name.text()}, {self._mapping.text()}")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 6, 12, 6)
        layout.setSpacing(2)
        for label in (self._name, self._mapping):
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
            layout.addWidget(label)
        self.setMinimumHeight(layout.sizeHint().height())


class GpuPanel(QScrollArea):
    """``card_chosen`` carries the UUID of the card that the user wants to see, ``command_chosen`` a command."""

    card_chosen = Signal(str)
    command_chosen = Signal(str)

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._shown_cards: tuple[Card, ...] | None = None
        self._shown_card: Card | None = None
        self._selected: str | None = None
        self._clicked: str | None = None
        self._empty = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._heading = Label(font=FontRole.TITLE)
        self._rows = QVBoxLayout()
        self._group = QButtonGroup(self)
        self._readings = FactList(GPU_FIELDS)
        self._facts = FactList(cards.SHORT_FACTS)
        self._lines = (Divider(), Divider())
        self.more = QPushButton()
        self.more.clicked.connect(lambda: self.command_chosen.emit("view.gpu_page"))
        self._build()
        self.retranslate()

    def _build(self) -> None:
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        content = QWidget()
        content.setObjectName("panelContent")
        layout = QVBoxLayout(content)
        layout.setContentsMargins(16, 12, 16, 16)
        layout.setSpacing(12)
        self._rows.setSpacing(4)
        for widget in (self._empty, self._heading):
            layout.addWidget(widget)
        layout.addLayout(self._rows)
        for line, facts in zip(self._lines, (self._readings, self._facts), strict=True):
            layout.addWidget(line)
            layout.addWidget(facts)
            if facts is self._readings:
                layout.addWidget(self.more)
        layout.addStretch()
        self.setWidget(content)

    def refresh(self) -> None:
        known = self._workspace.cards.get()
        card = self._card()
        if known != self._shown_cards:
            self._rebuild(known)
        self._show_selected(card)
        for widget in (self._heading, self._readings, self._facts, self.more, *self._lines):
            widget.setVisible(card is not None)
        self._empty.setVisible(card is None)
        if card is None:
            self._show_nothing()
        else:
            self._show_readings(card)
            self._show_facts(card)

    def _card(self) -> Card | None:
        """The card that was clicked, until the window turns to another one."""
        selected = self._workspace.card_uuid.get()
        if selected != self._selected:
            self._selected, self._clicked = selected, None
        clicked = next((card for card in self._workspace.cards.get() if card.uuid == self._clicked), None)
        return clicked or selected_card(self._workspace)

    def _on_row_clicked(self, uuid: str) -> None:
        """While a run is bound to its card the others can be looked at all the same."""
        self._clicked = uuid
        self.card_chosen.emit(uuid)
        self.refresh()

    def _rebuild(self, known: tuple[Card, ...]) -> None:
        self._shown_cards = known
        clear_layout(self._rows)
        for card in known:
            row = CardRow(card)
            row.clicked.connect(lambda _checked=False, uuid=card.uuid: self._on_row_clicked(uuid))
            self._group.addButton(row)
            self._rows.addWidget(row)

    def _show_selected(self, card: Card | None) -> None:
        for button in self._group.buttons():
            if isinstance(button, CardRow) and card is not None and button.uuid == card.uuid:
                button.setChecked(True)

    def _show_nothing(self) -> None:
        telemetry = self._workspace.telemetry.get()
        why = "" if telemetry.reason is None else reasons.sentence(telemetry.reason)
        parts = (why, telemetry.detail, verdicts.no_card_help())
        self._empty.setText("\n\n".join(part for part in parts if part))

    def _show_readings(self, card: Card) -> None:
        readings = self._workspace.readings.get().get(card.uuid, {})
        for field in self._readings.keys:
            reading = readings.get(field)
            is_missing = reading is None or reading.value is None
            why = reasons.sentence(None if reading is None else reading.reason) if is_missing else ""
            self._readings.set_value(field, cards.reading_value(field, reading), missing=why)

    def _show_facts(self, card: Card) -> None:
        if card == self._shown_card:
            return
        self._shown_card = card
        for field in self._facts.keys:
            self._facts.set_value(field, cards.fact_value(card, field), missing=cards.missing_reason(card, field))

    def value(self, field: str) -> str:
        """What stands beside a reading."""
        return self._readings.value(field)

    def retranslate(self) -> None:
        self._shown_cards = self._shown_card = None
        self._heading.setText(self.tr("Cards"))
        self._readings.set_heading(self.tr("Now"))
        self._facts.set_heading(self.tr("The card"))
        self.more.setText(self.tr("All fields and their history"))
        self.more.setToolTip(tooltip("view.gpu_page"))
        for field in self._readings.keys:
            self._readings.set_name(field, cards.reading_name(field))
        for field in self._facts.keys:
            self._facts.set_name(field, cards.fact_name(field))
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        """Colours come from the style sheet."""
