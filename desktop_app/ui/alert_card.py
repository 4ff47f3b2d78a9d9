"""One alert: cause and severity, when, what will happen, what to do, and its figures behind a button."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from desktop_app.core.forecasts import Alert, AlertSeverity, Forecast
from desktop_app.core.steps import RunState
from desktop_app.services.facade import Workspace
from desktop_app.ui import icons
from desktop_app.ui.commands import BY_ID
from desktop_app.ui.icons import IconName
from desktop_app.ui.labels import Label, clear_layout, type_scale
from desktop_app.ui.lever_row import CodeLine
from desktop_app.ui.recommendations import commands_for
from desktop_app.ui.texts import advice, evidence, figures, numbers, outlooks, verdicts
from desktop_app.ui.texts import alerts as texts
from desktop_app.ui.theme import FontRole, Theme

_ICON_SIZE: Final = 16
# Colour is never alone: every severity has a shape, and its word.
_ICONS: Final = {
    AlertSeverity.WATCH: IconName.INFO,
    AlertSeverity.LIKELY: IconName.WARNING,
    AlertSeverity.IMMINENT: IconName.ERROR,
}
_SAID_BY_BUTTON: Final = frozenset({"save_and_pause", "pause"})
_ROLES: Final = {AlertSeverity.WATCH: "muted", AlertSeverity.LIKELY: "warn", AlertSeverity.IMMINENT: "danger"}


class AlertCard(QFrame):
    """``command_chosen`` carries a command's id. ``refresh`` follows the forecast; a change of the alert, of its
    severity or end, makes a new card."""

    command_chosen = Signal(str)

    def __init__(self, alert: Alert, workspace: Workspace, theme: Theme, *, unfolded: bool = False) -> None:
        super().__init__()
        self.setObjectName("alertCard")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.alert = alert
        self._workspace = workspace
        self._theme = theme
        self._outlook: tuple[outlooks.Outlook, bool] | None = None  # and whether the run is over
        self._shown: tuple[str, ...] | None = None
        self._sentence = Label(wrap=True)
        self._evidence = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._todo = Label(font=FontRole.LABEL, wrap=True)
        self._buttons = QVBoxLayout()
        self._fold = QPushButton()
        self._details = QWidget()
        self._figures = QGridLayout()
        self._build()
        self._fold.setChecked(unfolded)
        self._show_fold()
        self.refresh()

    def _build(self) -> None:
        alert = self.alert
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 10, 12, 10)
        layout.setSpacing(6)
        layout.addLayout(self._head())
        when = texts.when(alert, self._workspace.clock.wall_s(alert.t_s))
        layout.addWidget(Label(when, font=FontRole.LABEL, role="muted", wrap=True))
        if alert.cleared_t_s is not None:
            layout.addWidget(Label(texts.state(alert, ignored=False), font=FontRole.LABEL, role="ok", wrap=True))
        for label in (self._sentence, self._evidence):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            layout.addWidget(label)
        if alert.cleared_t_s is None and alert.severity is not AlertSeverity.WATCH:
            self._todo.setText("" if alert.action in _SAID_BY_BUTTON else advice.for_action(alert.action))
        self._todo.setVisible(bool(self._todo.text()))
        layout.addWidget(self._todo)
        self._buttons.setSpacing(6)
        layout.addLayout(self._buttons)
        self._fold.setCheckable(True)
        self._fold.setProperty("kind", "quiet")
        self._fold.setObjectName("fold")
        self._fold.toggled.connect(lambda _checked: self._show_fold())
        layout.addWidget(self._fold, alignment=Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self._details)
        self._build_details()

    def _build_details(self) -> None:
        layout = QVBoxLayout(self._details)
        layout.setContentsMargins(0, 0, 0, 2)
        layout.setSpacing(8)
        self._figures.setHorizontalSpacing(12)
        self._figures.setVerticalSpacing(3)
        self._figures.setColumnStretch(0, 1)
        layout.addLayout(self._figures)
        words = Label(advice.for_cause(self.alert.cause), font=FontRole.LABEL, role="muted", wrap=True)
        words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        layout.addWidget(words)
        line = advice.code_for(self.alert.cause)
        if line:
            layout.addWidget(CodeLine(advice.before_the_start(), line, self.tr("Copy")))

    def _head(self) -> QHBoxLayout:
        alert, theme = self.alert, self._theme
        over = alert.cleared_t_s is not None
        ignored = alert.alert_id in self._workspace.ignored_alerts.get()
        role = "ok" if over else "muted" if ignored else _ROLES[alert.severity]
        mark = QLabel()
        name = IconName.OK if over else _ICONS[alert.severity]
        size = round(_ICON_SIZE * type_scale())
        mark.setPixmap(icons.pixmap(name, theme, size, ratio=mark.devicePixelRatioF(), color=getattr(theme, role)))
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(mark, alignment=Qt.AlignmentFlag.AlignTop)
        row.addWidget(Label(outlooks.cause_name(alert.cause), font=FontRole.TITLE, wrap=True), stretch=1)
        if not over:  # how long it lasted is longer than a word, and has a line of its own
            state = Label(texts.state(alert, ignored=ignored), font=FontRole.LABEL, role=role)
            row.addWidget(state, alignment=Qt.AlignmentFlag.AlignTop)
        return row

    @property
    def unfolded(self) -> bool:
        return self._fold.isChecked()

    def unfold(self) -> None:
        self._fold.setChecked(True)

    def refresh(self) -> None:
        """Take the newest forecast of the same cause, and offer what can be done now."""
        alert = self.alert
        forecast = self._workspace.forecast.get() if alert.cleared_t_s is None else None
        self._show_buttons()
        outlook = outlooks.outlook_of(alert, forecast)
        run = self._workspace.run.get()
        over = alert.cleared_t_s is None and run.state is not RunState.IDLE and not run.state.active
        if (outlook, over) == self._outlook:
            return
        self._outlook = outlook, over
        sentence = texts.after_the_run(run) if over else outlooks.sentence(outlook)
        self._sentence.setText(sentence)
        self._evidence.setText(evidence.line(outlook))
        self._show_figures(outlook, forecast)
        self.setAccessibleName(numbers.sentences(verdicts.with_stop(outlooks.cause_name(alert.cause)), sentence))

    def _show_figures(self, outlook: outlooks.Outlook, forecast: Forecast | None) -> None:
        rows = figures.table(outlook.evidence)
        if forecast is not None and forecast.cause is outlook.cause:
            rows += figures.probabilities(forecast)
        old = [self._figures.itemAt(place) for place in range(self._figures.count())]
        labels = [item.widget() for item in old if item is not None]
        if len(labels) != 2 * len(rows):
            clear_layout(self._figures)
            labels = []
        for index, (name, value) in enumerate(rows):
            if labels:
                for label, text in zip(labels[2 * index : 2 * index + 2], (name, value), strict=True):
                    assert isinstance(label, Label)
                    label.setText(text)
            else:
                self._figures.addWidget(Label(name, font=FontRole.LABEL, role="muted", wrap=True), index, 0)
                right = Label(value, font=FontRole.LABEL)
                self._figures.addWidget(right, index, 1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)

    def _show_buttons(self) -> None:
        alert = self.alert
        can_act = alert.cleared_t_s is None and alert.severity is not AlertSeverity.WATCH
        wanted = commands_for(alert, self._workspace) if can_act else ()
        if wanted == self._shown:
            return
        self._shown = wanted
        clear_layout(self._buttons)
        for place, name in enumerate(wanted):
            button = QPushButton(BY_ID[name].title)
            if place == 0:
                button.setProperty("kind", "primary")
            button.clicked.connect(lambda _checked=False, command=name: self.command_chosen.emit(command))
            self._buttons.addWidget(button)

    def _show_fold(self) -> None:
        unfolded = self._fold.isChecked()
        self._details.setVisible(unfolded)
        self._fold.setText(f"{'▾' if unfolded else '▸'}  {texts.details()}")
        self._fold.setAccessibleName(texts.details())
