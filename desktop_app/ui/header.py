"""The first line of the window: name of the run, its card, the way to every command, and the run's buttons."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAction, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QToolButton,
    QWidget,
)

from desktop_app.core.steps import RunState
from desktop_app.core.telemetry import Card
from desktop_app.services.facade import Workspace
from desktop_app.ui import icons
from desktop_app.ui.actions import Actions, shortcut_text, tooltip
from desktop_app.ui.commands import BY_ID
from desktop_app.ui.icons import IconName
from desktop_app.ui.labels import ElidedLabel, Label, type_scale
from desktop_app.ui.tank_reader import lost_reason, selected_card
from desktop_app.ui.texts import cards
from desktop_app.ui.theme import FontRole, Theme, color

_HEIGHT: Final = 48
_LOGO_SIZE: Final = 24
_ICON_SIZE: Final = 16
_SEARCH_WIDTH: Final = 296
_SEARCH_LEAST: Final = 40  # the magnifying glass alone
# Longest run name and card, in line heights; the tooltip has all of them.
_NAME_LINES: Final = 15
_CHIP_LINES: Final = 21
_NARROW: Final = 800  # below it the mark stands for the name
_WIDE: Final = 1200  # from this width on, run buttons have words beside their icons


class CardChip(QPushButton):
    """A pill with a dot: the card of the run, and a menu of all cards where there are several."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("cardChip")
        self._dot = theme.muted
        self._full_text = ""
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def show_card(self, text: str, dot: str) -> None:
        """``dot`` is a colour: green answers, red is lost, grey is unknown; the text says so too."""
        if (text, dot) != (self._full_text, self._dot):
            self._full_text, self._dot = text, dot
            self.setToolTip(text)
            self.setAccessibleName(text)
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        width = self.fontMetrics().horizontalAdvance(self._full_text) + self._padding() + 4
        most = self.fontMetrics().height() * _CHIP_LINES
        return QSize(min(width, most), super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(min(self.sizeHint().width(), 120), super().minimumSizeHint().height())

    def _padding(self) -> int:
        return 28 + (24 if self.menu() is not None else 14)

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        painter = QPainter(self)
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.text = ""
        option.features &= ~QStyleOptionButton.ButtonFeature.HasMenu
        self.style().drawControl(QStyle.ControlElement.CE_PushButton, option, painter, self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color(self._dot))
        middle = self.height() / 2
        painter.drawEllipse(QPoint(17, round(middle)), 4, 4)
        rect = self.rect().adjusted(28, 0, 28 - self._padding(), 0)
        text = self.fontMetrics().elidedText(self._full_text, Qt.TextElideMode.ElideRight, rect.width())
        painter.setPen(self.palette().buttonText().color())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        if self.menu() is not None:
            arrow = self.rect().adjusted(self.width() - 24, 0, -8, 0)
            painter.drawText(arrow, Qt.AlignmentFlag.AlignCenter, "▾")


class SearchButton(QPushButton):
    """Looks like a field and opens the palette: words at the left, the shortcut at the right."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("searchField")
        self.theme = theme
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMaximumWidth(_SEARCH_WIDTH)

    def sizeHint(self) -> QSize:
        return QSize(_SEARCH_WIDTH, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(_SEARCH_LEAST, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        painter = QPainter(self)
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.text = ""
        self.style().drawControl(QStyle.ControlElement.CE_PushButton, option, painter, self)
        ratio = self.devicePixelRatioF()
        size = round(_ICON_SIZE * type_scale())
        glass = icons.pixmap(IconName.SEARCH, self.theme, size, ratio=ratio, color=self.theme.muted)
        painter.drawPixmap(QPoint(12, (self.height() - size) // 2), glass)
        painter.setPen(color(self.theme.muted))
        rect = self.rect().adjusted(20 + size, 0, -12, 0)
        shortcut = shortcut_text("view.palette").replace("+", " ")
        metrics = self.fontMetrics()
        words, keys = metrics.horizontalAdvance(self.text()), metrics.horizontalAdvance(shortcut)
        aligned = Qt.AlignmentFlag.AlignVCenter
        if rect.width() >= words:
            painter.drawText(rect, aligned | Qt.AlignmentFlag.AlignLeft, self.text())
        if rect.width() >= words + keys + 16:
            painter.drawText(rect, aligned | Qt.AlignmentFlag.AlignRight, shortcut)


class Header(QFrame):
    """``card_chosen`` carries the UUID of a card."""

    card_chosen = Signal(str)

    def __init__(self, workspace: Workspace, actions: Actions, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("header")
        self._workspace = workspace
        self._actions = actions
        self._theme = theme
        self._logo = QLabel()
        self._name = Label(font=FontRole.VERDICT)
        self._run_name = ElidedLabel(role="muted")
        self._chip = CardChip(theme)
        self._simulated = Label(font=FontRole.LABEL)
        self.search = SearchButton(theme)
        self._buttons = {
            name: QPushButton() for name in ("run.start", "run.pause", "run.resume", "run.stop", "run.save")
        }
        self._menu_button = QToolButton()
        self._cards: tuple[Card, ...] = ()
        self._build()
        self.retranslate()

    def _build(self) -> None:
        self._simulated.setProperty("chip", "warn")
        self._simulated.setObjectName("simulatedChip")
        self._simulated.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(16, 0, 16, 1)
        layout.setSpacing(8)
        for widget in (self._logo, self._name):
            layout.addWidget(widget)
        layout.addSpacing(4)
        layout.addWidget(self._run_name)
        layout.addSpacing(8)
        layout.addWidget(self._chip)
        layout.addWidget(self._simulated)
        layout.addStretch(1)
        layout.addWidget(self.search, stretch=20)
        layout.addStretch(1)
        for button in self._buttons.values():
            layout.addWidget(button)
        layout.addWidget(self._menu_button)
        self._connect()

    def _connect(self) -> None:
        self.search.clicked.connect(lambda: self._actions.trigger("view.palette"))
        for command_id, button in self._buttons.items():
            button.clicked.connect(lambda _checked=False, name=command_id: self._actions.trigger(name))
            self._actions[command_id].changed.connect(self._show_buttons)
        self._buttons["run.start"].setProperty("kind", "primary")
        self._menu_button.setObjectName("menuButton")
        self._menu_button.clicked.connect(self.open_menu)

    def open_menu(self) -> None:
        """All commands in their menus, below the last button."""
        menu = self._actions.build_menu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        corner = self._menu_button.rect().bottomRight()
        menu.popup(self._menu_button.mapToGlobal(corner - QPoint(menu.sizeHint().width(), -4)))
        menu.setActiveAction(menu.actions()[0])

    def refresh(self) -> None:
        workspace = self._workspace
        run = workspace.run.get()
        name = run.run_name if run.state is not RunState.IDLE else ""
        self._run_name.setText(name)
        self._run_name.setVisible(bool(name))
        self._show_card(selected_card(workspace))
        self._rebuild_card_menu(workspace.cards.get())
        self._show_buttons()

    def _show_card(self, card: Card | None) -> None:
        if card is None:
            self._chip.show_card(cards.none(), self._theme.muted)
        else:
            lost = lost_reason(self._workspace, card)
            self._chip.show_card(cards.chip(card, lost), self._theme.danger if lost else self._theme.ok)
        self._simulated.setVisible(card is not None and card.simulated)

    def _rebuild_card_menu(self, known: tuple[Card, ...]) -> None:
        if known == self._cards:
            return
        self._cards = known
        old = self._chip.menu()
        self._chip.setMenu(self._card_menu(known) if len(known) > 1 else None)  # type: ignore[arg-type]
        if old is not None:
            old.deleteLater()

    def _card_menu(self, known: tuple[Card, ...]) -> QMenu:
        menu = QMenu(self)
        for card in known:
            action = QAction(cards.chip(card, None), menu)
            action.triggered.connect(lambda _checked=False, uuid=card.uuid: self.card_chosen.emit(uuid))
            menu.addAction(action)
        return menu

    def _show_buttons(self) -> None:
        """Only the buttons of the run's state; the others are in menus and palette."""
        state = self._workspace.run.get().state
        shown = {"run.start"}
        if state.active:
            paused = state in (RunState.PAUSED, RunState.PAUSING)
            shown = {"run.resume" if paused else "run.pause", "run.stop", "run.save"}
        for command_id, button in self._buttons.items():
            button.setVisible(command_id in shown)
            button.setEnabled(self._actions[command_id].isEnabled())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_button_words()

    def _show_button_words(self) -> None:
        scale = type_scale()
        wide = self.width() >= _WIDE * scale
        self._name.setVisible(self.width() >= _NARROW * scale)
        self._run_name.setMaximumWidth(self.fontMetrics().height() * _NAME_LINES)
        for command_id, button in self._buttons.items():
            worded = wide or command_id == "run.start"
            button.setText(BY_ID[command_id].title if worded else "")
            button.setMinimumWidth(round((84 if worded else 40) * scale))

    def retranslate(self) -> None:
        self._name.setText(self.tr("Floodmark"))
        self._simulated.setText(self.tr("simulated"))
        self.search.setText(BY_ID["view.palette"].title)
        self.search.setAccessibleName(BY_ID["view.palette"].title)
        self.search.setToolTip(tooltip("view.palette"))
        for command_id, button in self._buttons.items():
            button.setAccessibleName(BY_ID[command_id].title)
            button.setToolTip(tooltip(command_id))
        self._menu_button.setToolTip(tooltip("view.menu"))
        self._menu_button.setAccessibleName(BY_ID["view.menu"].title)
        self._cards = ()
        self._show_button_words()
        self.set_theme(self._theme)
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.search.theme = theme
        ratio = self.devicePixelRatioF()
        scale = type_scale()
        self._logo.setPixmap(icons.pixmap(IconName.LOGO, theme, round(_LOGO_SIZE * scale), ratio=ratio))
        self.setMinimumHeight(round(_HEIGHT * scale))
        icon_size = QSize(1, 1) * round(_ICON_SIZE * scale)
        for command_id, button in self._buttons.items():
            name = BY_ID[command_id].icon
            if name is not None:
                tint = theme.on_accent if command_id == "run.start" else None
                button.setIcon(icons.icon(name, theme, color=tint))
                button.setIconSize(icon_size)
        self._menu_button.setIcon(icons.icon(IconName.LIST, theme))
        self._menu_button.setIconSize(icon_size)
        self.search.setMaximumWidth(round(_SEARCH_WIDTH * scale))
        self.search.update()
        self.refresh()
