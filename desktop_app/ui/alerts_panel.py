"""All alerts of the run, newest first: cause, when, evidence, what to do, and whether it is over."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from desktop_app.core.forecasts import Alert, AlertSeverity
from desktop_app.services.facade import Workspace
from desktop_app.ui import icons
from desktop_app.ui.icons import IconName
from desktop_app.ui.labels import Label, clear_layout
from desktop_app.ui.texts import alerts as texts
from desktop_app.ui.texts import numbers, outlooks, verdicts
from desktop_app.ui.theme import FontRole, Theme

_ICON_SIZE = 16


class AlertCard(QFrame):
    """One alert. Its texts are made once: a raise in severity makes a new card."""

    def __init__(self, alert: Alert, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("alertCard")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        outlook = outlooks.outlook_of(alert)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 10, 12, 12)
        layout.setSpacing(6)
        layout.addLayout(self._head(alert, workspace, theme))
        when = texts.when(alert, workspace.clock.wall_s(alert.t_s))
        layout.addWidget(Label(when, font=FontRole.LABEL, role="muted"))
        sentence = outlooks.sentence(outlook)
        layout.addWidget(Label(sentence, wrap=True))
        for text in (outlooks.evidence(outlook), outlooks.advice(alert.cause)):
            label = Label(text, font=FontRole.LABEL, role="muted", wrap=True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            layout.addWidget(label)
        self.setAccessibleName(numbers.sentences(verdicts.with_stop(outlooks.cause_name(alert.cause)), sentence))

    @staticmethod
    def _head(alert: Alert, workspace: Workspace, theme: Theme) -> QHBoxLayout:
        open_and_loud = alert.cleared_t_s is None and alert.severity is not AlertSeverity.WATCH
        mark = QLabel()
        name = IconName.ERROR if open_and_loud else IconName.INFO
        tint = theme.danger if open_and_loud else theme.muted
        mark.setPixmap(icons.pixmap(name, theme, _ICON_SIZE, ratio=mark.devicePixelRatioF(), color=tint))
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(mark, alignment=Qt.AlignmentFlag.AlignTop)
        row.addWidget(Label(outlooks.cause_name(alert.cause), font=FontRole.TITLE, wrap=True), stretch=1)
        state = texts.state(alert, ignored=alert.alert_id in workspace.ignored_alerts.get())
        role = "danger" if open_and_loud else "muted" if alert.cleared_t_s is None else "ok"
        row.addWidget(Label(state, font=FontRole.LABEL, role=role), alignment=Qt.AlignmentFlag.AlignTop)
        return row


class AlertsPanel(QScrollArea):
    """The list of ``AlertCard``s, or a line that says that there are none."""

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._theme = theme
        self._shown: object = None
        self._empty = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._cards = QVBoxLayout()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        content = QWidget()
        content.setObjectName("panelContent")
        layout = QVBoxLayout(content)
        layout.setContentsMargins(16, 12, 16, 16)
        self._cards.setSpacing(8)
        layout.addWidget(self._empty)
        layout.addLayout(self._cards)
        layout.addStretch()
        self.setWidget(content)
        self.retranslate()

    def refresh(self) -> None:
        wanted = (self._workspace.alerts.get(), self._workspace.ignored_alerts.get())
        if wanted == self._shown:
            return
        self._shown = wanted
        clear_layout(self._cards)
        for alert in reversed(wanted[0]):
            self._cards.addWidget(AlertCard(alert, self._workspace, self._theme))
        self._empty.setVisible(not wanted[0])

    def retranslate(self) -> None:
        self._empty.setText(
            self.tr(
                "No alert in this run. When memory is going to run out, the reason, the time and what to do "
                "stand here, minutes before it happens."
            )
        )
        self._shown = None
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._shown = None
        self.refresh()
