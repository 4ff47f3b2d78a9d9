"""All alerts of the run: the open ones, worst first, and those that are over behind a fold."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QPushButton, QScrollArea, QVBoxLayout, QWidget

from desktop_app.core.forecasts import Alert, AlertSeverity
from desktop_app.services.facade import Workspace
from desktop_app.ui.alert_card import AlertCard
from desktop_app.ui.labels import Label, clear_layout
from desktop_app.ui.texts import alerts as texts
from desktop_app.ui.texts import evidence, figures, numbers, outlooks, verdicts
from desktop_app.ui.theme import FontRole, Theme

_RANK = {severity: rank for rank, severity in enumerate(AlertSeverity)}


def ordered(alerts: tuple[Alert, ...]) -> tuple[list[Alert], list[Alert]]:
    """Open ones, the most severe and then the newest first; and those that are over, newest first."""
    newest = sorted(alerts, key=lambda alert: -alert.t_s)
    open_ones = [alert for alert in newest if alert.cleared_t_s is None]
    return sorted(open_ones, key=lambda alert: -_RANK[alert.severity]), [
        alert for alert in newest if alert.cleared_t_s is not None
    ]


class AlertsPanel(QScrollArea):
    """The list of ``AlertCard``s, or a line that says that there are none. ``command_chosen`` carries a command."""

    command_chosen = Signal(str)

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._theme = theme
        self._shown: object = None
        self._open: dict[int, AlertCard] = {}
        self._empty = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._watched = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._cards = QVBoxLayout()
        self._fold = QPushButton()
        self._over = QWidget()
        self._over_cards = QVBoxLayout(self._over)
        self._build()
        self.retranslate()

    def _build(self) -> None:
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        content = QWidget()
        content.setObjectName("panelContent")
        layout = QVBoxLayout(content)
        layout.setContentsMargins(16, 12, 16, 16)
        layout.setSpacing(8)
        self._cards.setSpacing(8)
        self._over_cards.setSpacing(8)
        self._over_cards.setContentsMargins(0, 0, 0, 0)
        self._fold.setCheckable(True)
        self._fold.setObjectName("fold")
        self._fold.setProperty("kind", "quiet")
        self._fold.toggled.connect(lambda _checked: self._show_over())
        layout.addWidget(self._empty)
        layout.addWidget(self._watched)
        layout.addLayout(self._cards)
        layout.addWidget(self._fold, alignment=Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self._over)
        layout.addStretch()
        self.setWidget(content)

    def refresh(self) -> None:
        self._refresh_cards()
        forecast = self._workspace.forecast.get() if self._workspace.run.get().state.active else None
        watched = outlooks.watched(forecast)
        if (
            watched is None
            or forecast is None
            or any(card.alert.cause is watched.cause for card in self._open.values())
        ):
            self._watched.hide()
            return
        parts = (verdicts.with_stop(outlooks.sentence(watched)), evidence.line(watched), figures.chances(forecast))
        self._watched.setText(numbers.sentences(*parts))
        self._watched.show()

    def _refresh_cards(self) -> None:
        wanted = (self._workspace.alerts.get(), self._workspace.ignored_alerts.get())
        if wanted == self._shown:
            for card in self._open.values():
                card.refresh()
            return
        self._shown = wanted
        unfolded = {key for key, card in self._open.items() if card.unfolded}
        open_ones, over = ordered(wanted[0])
        clear_layout(self._cards)
        clear_layout(self._over_cards)
        self._open = {alert.alert_id: self._card(alert, unfolded=alert.alert_id in unfolded) for alert in open_ones}
        for card in self._open.values():
            self._cards.addWidget(card)
        for alert in over:
            self._over_cards.addWidget(self._card(alert))
        self._empty.setText(self._none_open() if over else self._none())
        self._empty.setVisible(not open_ones)
        self._fold.setVisible(bool(over))
        self._show_over()

    def unfold(self, alert_id: int) -> None:
        """Open the figures of an alert and bring it into sight."""
        self.refresh()
        card = self._open.get(alert_id)
        if card is not None:
            card.unfold()
            self.ensureWidgetVisible(card, 0, 0)

    def _card(self, alert: Alert, *, unfolded: bool = False) -> AlertCard:
        card = AlertCard(alert, self._workspace, self._theme, unfolded=unfolded)
        card.command_chosen.connect(self.command_chosen)
        return card

    def _show_over(self) -> None:
        unfolded = self._fold.isChecked()
        words = texts.cleared(self._over_cards.count())
        self._fold.setText(f"{'▾' if unfolded else '▸'}  {words}")
        self._fold.setAccessibleName(words)
        self._over.setVisible(unfolded and self._over_cards.count() > 0)

    def _none(self) -> str:
        return self.tr(
            "No alert in this run. When memory is going to run out, the reason, the time and what to do "
            "stand here, minutes before it happens."
        )

    def _none_open(self) -> str:
        return self.tr("Nothing is wrong now.")

    def retranslate(self) -> None:
        self._shown = None
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._shown = None
        self.refresh()
