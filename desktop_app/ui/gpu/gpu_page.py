"""The GPU page: every field of one card with its history, all cards side by side, and which of them lags."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QStackedWidget,
    QTabBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from desktop_app.core.events import Event
from desktop_app.core.telemetry import Card
from desktop_app.services.facade import Workspace
from desktop_app.ui import icons
from desktop_app.ui.actions import tooltip
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.commands import BY_ID
from desktop_app.ui.gpu.card_grid import CardGrid
from desktop_app.ui.gpu.compare_page import ComparePage
from desktop_app.ui.gpu.field_list import FieldList
from desktop_app.ui.gpu.field_panel import FieldPanel, inset
from desktop_app.ui.gpu.field_rows import CardNews, Row, rows_of, xid_events
from desktop_app.ui.gpu.field_series import Series, series_of
from desktop_app.ui.gpu.tile_reader import instance_samples
from desktop_app.ui.icons import IconName
from desktop_app.ui.labels import Label, type_scale
from desktop_app.ui.parts import GpuPart
from desktop_app.ui.tank_reader import lost_reason, selected_card
from desktop_app.ui.texts import cards, gpu, reasons, verdicts
from desktop_app.ui.theme import FontRole, Theme

_SPACING: Final = 8
_ICON: Final = 16
_LEAST_CHOICE: Final = 110
_MOST_XIDS: Final = 1000  # remembered; a card that falls apart reports thousands
_FIRST_FIELD: Final = "utilization_percent"


class GpuPage(QWidget):
    """``left``: back to the curves is wanted; ``card_chosen`` carries a UUID. Only the part on show works.

    The window calls ``refresh`` (10 Hz) and ``refresh_texts`` (2 Hz) while the page is on show. Runs in: GUI thread.
    """

    left = Signal()
    card_chosen = Signal(str)
    chart_menu_wanted = Signal(str, QPoint)  # key of the panel, and where on the screen

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._theme = theme
        self._compact = False
        self._clicked: str | None = None
        self._selected: str | None = None
        self._listed: tuple[Card, ...] = ()
        self._seen_events = 0
        self._events: tuple[Event, ...] = ()
        self._title = Label(font=FontRole.TITLE)
        self.tabs = QTabBar()
        self._state = Label(font=FontRole.LABEL, role="danger")
        self.choice = QComboBox()
        self._back = QToolButton()
        self._stack = QStackedWidget()
        self._fields_part = QWidget()
        self._empty_card = QFrame()
        self._empty_part = inset(self._empty_card)
        self._empty = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self.fields = FieldList(theme)
        self.detail = FieldPanel(workspace, theme)
        self.grid = CardGrid(workspace, theme)
        self.comparison = ComparePage(workspace, theme)
        self._build()
        self._connect()
        self.set_theme(theme)
        self.retranslate()

    def _build(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(6, 2, 4, 0)
        head.setSpacing(10)
        self.tabs.setObjectName("gpuTabs")
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        self.tabs.setUsesScrollButtons(False)  # where room is short the choice of the card gives way
        for _ in GpuPart:
            self.tabs.addTab("")
        self.choice.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.choice.setMinimumContentsLength(gpu.SHORT_NAME)
        self.choice.setMinimumWidth(_LEAST_CHOICE)
        head.addWidget(self._title)
        head.addWidget(self.tabs)
        head.addStretch(1)
        head.addWidget(self._state)
        head.addWidget(self.choice)
        head.addWidget(self._back)
        self._columns = QBoxLayout(QBoxLayout.Direction.LeftToRight, self._fields_part)
        self._columns.setContentsMargins(0, 0, 0, 0)
        self._columns.setSpacing(_SPACING)
        self._columns.addWidget(inset(self.fields), stretch=5)
        self._columns.addWidget(self.detail, stretch=6)
        self._empty_card.setProperty("panel", True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        inner = QVBoxLayout(self._empty_card)
        inner.setContentsMargins(24, 24, 24, 24)
        inner.addWidget(self._empty)
        for part in (self._fields_part, inset(self.grid), inset(self.comparison)):
            self._stack.addWidget(part)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(_SPACING)
        layout.addLayout(head)
        layout.addWidget(self._stack, stretch=1)
        layout.addWidget(self._empty_part, stretch=1)

    def _connect(self) -> None:
        self._back.clicked.connect(self.left)
        self.tabs.currentChanged.connect(self._on_tab)
        self.choice.activated.connect(self._on_choice)
        self.fields.chosen.connect(lambda _key: self._show_field())
        self.grid.card_chosen.connect(self._on_tile)
        self.detail.wanted.connect(self.fields.go_to)
        self.detail.chart.menu_wanted.connect(self.chart_menu_wanted)

    # -- what the window calls ------------------------------------------------------------------------------------

    @property
    def part(self) -> GpuPart:
        return GpuPart(self.tabs.currentIndex())

    @property
    def card(self) -> Card | None:
        """The card that was clicked, until the window turns to another one."""
        selected = self._workspace.card_uuid.get()
        if selected != self._selected:
            self._selected, self._clicked = selected, None
        clicked = next((card for card in self._workspace.cards.get() if card.uuid == self._clicked), None)
        return clicked or selected_card(self._workspace)

    def refresh(self) -> None:
        """One frame of the history, if it is on show."""
        if self.part is GpuPart.FIELDS and self.isVisible():
            self.detail.refresh()

    def refresh_texts(self) -> None:
        """New values in the part on show. Does nothing while nobody can see it."""
        if not self.isVisible():
            return
        card = self.card
        self._show_card(card)
        if card is None:
            return
        if self.part is GpuPart.FIELDS:
            self._show_fields(card)
        elif self.part is GpuPart.CARDS:
            self.grid.refresh(card.uuid)
        else:
            self.comparison.refresh()

    def open_part(self, part: GpuPart) -> None:
        """Bring a part on show, and the keyboard to it."""
        self.tabs.setCurrentIndex(part)
        self.refresh_texts()
        if self.card is None:
            self.tabs.setFocus(Qt.FocusReason.ShortcutFocusReason)
        elif part is GpuPart.FIELDS:
            self.fields.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        elif part is GpuPart.CARDS:
            chosen = next((tile for tile in self.grid.tiles if tile.isChecked()), None)
            (chosen or self.tabs).setFocus(Qt.FocusReason.ShortcutFocusReason)
        else:
            self.tabs.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def set_compact(self, *, compact: bool) -> None:
        """In a small window the history stands above the list, and the title gives way to the tabs."""
        self._compact = compact
        down, right = QBoxLayout.Direction.BottomToTop, QBoxLayout.Direction.LeftToRight
        self._columns.setDirection(down if compact else right)
        self._title.setVisible(not compact)
        self._columns.setStretch(0, 8 if compact else 5)
        self._columns.setStretch(1, 4 if compact else 6)
        self.fields.set_compact(compact=compact)
        self.detail.set_compact(compact=compact)

    def set_shades(self, causes: frozenset[Throttle]) -> None:
        """Shade the time in which one of ``causes`` held the card back."""
        self.detail.chart.set_shades(causes)

    def retranslate(self) -> None:
        self._title.setText(gpu.title())
        for part, name in zip(GpuPart, gpu.parts(), strict=True):
            self.tabs.setTabText(part, name)
        self.tabs.setAccessibleName(gpu.parts_name())
        self.choice.setAccessibleName(gpu.card_choice())
        self._back.setAccessibleName(BY_ID["view.curves"].title)
        self._back.setToolTip(tooltip("view.curves"))
        for piece in (self.fields, self.detail, self.grid, self.comparison):
            piece.retranslate()
        self._listed = ()
        self.refresh_texts()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._back.setIcon(icons.icon(IconName.CLOSE, theme))
        self._back.setIconSize(QSize(1, 1) * round(_ICON * type_scale()))
        self._back.setProperty("kind", "quiet")
        for piece in (self.fields, self.detail, self.grid, self.comparison):
            piece.set_theme(theme)

    # -- showing --------------------------------------------------------------------------------------------------

    def _show_card(self, card: Card | None) -> None:
        known = self._workspace.cards.get()
        if known != self._listed:
            self._listed = known
            self.choice.clear()
            for place, each in enumerate(known):
                self.choice.addItem(gpu.short_name(each), each.uuid)
                self.choice.setItemData(place, cards.chip(each, None), Qt.ItemDataRole.ToolTipRole)
        if card is not None:
            place = self.choice.findData(card.uuid)
            if place != self.choice.currentIndex():
                self.choice.setCurrentIndex(place)
        lost = lost_reason(self._workspace, card) if card is not None else None
        self._state.setText("" if lost is None else reasons.short(lost))
        self._state.setToolTip("" if lost is None else reasons.sentence(lost))
        self._state.setVisible(lost is not None)
        self.choice.setVisible(len(known) > 1 and self.part is GpuPart.FIELDS and self._has_room_for_choice())
        self.tabs.setTabVisible(GpuPart.COMPARE, len(known) > 1)
        self._stack.setVisible(card is not None)
        self._empty_part.setVisible(card is None)
        if card is None:
            self._empty.setText(self._nothing())

    def _has_room_for_choice(self) -> bool:
        """Beside the tabs. Without it the header of the window and the tiles still choose."""
        taken = self.tabs.sizeHint().width() + self._back.sizeHint().width() + 4 * _SPACING
        return self.width() - taken >= _LEAST_CHOICE * type_scale()

    def _nothing(self) -> str:
        telemetry = self._workspace.telemetry.get()
        why = "" if telemetry.reason is None else reasons.sentence(telemetry.reason)
        return "\n\n".join(part for part in (why, telemetry.detail, verdicts.no_card_help()) if part)

    def _show_fields(self, card: Card) -> None:
        self.fields.set_rows(rows_of(self._news(card)))
        if not self.fields.key:
            self.fields.choose(_FIRST_FIELD)
        self._show_field()
        self.detail.refresh_texts()

    def _news(self, card: Card) -> CardNews:
        workspace = self._workspace
        if workspace.events.seq != self._seen_events:
            new, self._seen_events = workspace.events.since(self._seen_events)
            self._events = (*self._events, *xid_events(new))[-_MOST_XIDS:]
        return CardNews(
            card=card,
            readings=workspace.readings.get().get(card.uuid, {}),
            instances=instance_samples(workspace, card.uuid),
            xids=[event for event in self._events if event.params.get("uuid") in (card.uuid, None)],
            wall_s=workspace.clock.wall_s(0.0),
        )

    def _show_field(self) -> None:
        """The chosen row, with its history where it has one."""
        card, key = self.card, self.fields.key
        row = next((row for row in self.fields.model.rows if row.key == key), None)
        self.detail.show_row(row, None if card is None else self._series(card, row))

    def _series(self, card: Card, row: Row | None) -> Series | None:
        if row is None or not row.has_history:
            return None
        return series_of(card, row.key, self._workspace.readings.get().get(card.uuid, {}))

    # -- choices --------------------------------------------------------------------------------------------------

    def _on_tab(self, index: int) -> None:
        self._stack.setCurrentIndex(index)
        self.refresh_texts()

    def _on_choice(self, index: int) -> None:
        self._on_card(self.choice.itemData(index))

    def _on_tile(self, uuid: str) -> None:
        """From all cards to all fields of one."""
        self._on_card(uuid)
        self.open_part(GpuPart.FIELDS)

    def _on_card(self, uuid: str) -> None:
        """While a run is bound to its card the others can be looked at all the same."""
        self._clicked = uuid
        self.card_chosen.emit(uuid)
        self.refresh_texts()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc leaves."""
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)
