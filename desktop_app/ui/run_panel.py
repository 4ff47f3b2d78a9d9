"""The run: its form with an estimate as one types, what would help, how far it is and what it waits for."""

from __future__ import annotations

import dataclasses
from typing import Any, Final, cast

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QPushButton, QScrollArea, QVBoxLayout, QWidget

from desktop_app.core.forecasts import Cause, Lever
from desktop_app.core.steps import RunState, RunStatus
from desktop_app.services.facade import EstimateState, Workspace
from desktop_app.training.config import RunConfig, field_spec
from desktop_app.ui.actions import Actions
from desktop_app.ui.answers import answer_of
from desktop_app.ui.commands import BY_ID
from desktop_app.ui.estimate_card import EstimateCard
from desktop_app.ui.headline import open_alert
from desktop_app.ui.labels import Divider, ElidedLabel, Label
from desktop_app.ui.levers import LeverList
from desktop_app.ui.run_form import RunForm
from desktop_app.ui.texts import progress, verdicts
from desktop_app.ui.theme import FontRole, Theme

# A pause in typing that is long enough to be one: the estimate of a half-typed number helps nobody.
DEBOUNCE_MS: Final = 300
_MOST_MICRO_STEPS: Final = int(field_spec("accumulation").maximum or 1)


class RunPanel(QScrollArea):
    """``form_changed`` follows every edit, by hand or by a lever."""

    form_changed = Signal()

    def __init__(self, workspace: Workspace, actions: Actions, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._actions = actions
        self.form = RunForm(theme)
        self._estimate = EstimateCard()
        self._start = QPushButton()
        self._levers = LeverList(theme)
        self._epoch = Label(font=FontRole.TITLE)
        self._eta = ElidedLabel(font=FontRole.LABEL, role="muted")
        self._bar = QProgressBar()
        self._batch = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._waiting = Label(font=FontRole.LABEL, role="warn", wrap=True)
        self._progress = QWidget()
        self._debounce = QTimer(self, singleShot=True, interval=DEBOUNCE_MS)
        self._config_version = -1
        self._build()
        self._connect()
        self.retranslate()
        self.refresh()

    def _build(self) -> None:
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        content = QWidget()
        content.setObjectName("panelContent")
        layout = QVBoxLayout(content)
        layout.setContentsMargins(16, 8, 16, 16)
        layout.setSpacing(12)
        layout.addWidget(self.form)
        layout.addWidget(self._estimate)
        self._start.setProperty("kind", "primary")
        layout.addWidget(self._start)
        layout.addWidget(self._levers)
        self._build_progress()
        layout.addWidget(self._progress)
        layout.addStretch()
        self.setWidget(content)

    def _build_progress(self) -> None:
        layout = QVBoxLayout(self._progress)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(Divider())
        row = QHBoxLayout()
        self._eta.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self._epoch)
        row.addWidget(self._eta, stretch=1)
        layout.addLayout(row)
        self._bar.setTextVisible(False)
        self._bar.setRange(0, 1000)  # per mille: steps of long runs do not fit an int property
        layout.addWidget(self._bar)
        layout.addWidget(self._batch)
        layout.addWidget(self._waiting)

    def _connect(self) -> None:
        self.form.edited.connect(self._on_edited)
        self._debounce.timeout.connect(self.request_estimate)
        self._levers.chosen.connect(self._on_lever_chosen)
        self._estimate.batch_wanted.connect(lambda: self._actions.trigger("run.use_largest_batch"))
        self._estimate.more_wanted.connect(lambda: self._actions.trigger("view.memory"))
        self._start.clicked.connect(lambda: self._actions.trigger("run.start"))
        self._actions["run.start"].changed.connect(self._show_start)

    def _on_edited(self) -> None:
        self._debounce.start()
        self.form_changed.emit()

    def request_estimate(self) -> None:
        """Ask what the form would need, unless it is not valid or a run is active."""
        config = self.form.config()
        if config is not None and not self._workspace.run.get().state.active:
            self._workspace.request_estimate(config)

    def _on_lever_chosen(self, lever: Lever) -> None:
        config = self.form.config() or self._workspace.run_config.get()
        self.show_config(dataclasses.replace(config, **cast("dict[str, Any]", dict(lever.changes))))

    def show_config(self, config: RunConfig) -> None:
        """Put ``config`` into the form and ask for its estimate at once."""
        self.form.set_config(config)
        self._debounce.stop()
        self.request_estimate()
        self.form_changed.emit()

    def use_largest_batch(self) -> None:
        """The batch that the estimate says fits, accumulated to about the size that was asked for."""
        estimate, config = self._workspace.estimate.get().estimate, self.form.config()
        if estimate is None or not estimate.largest_batch or config is None:
            return
        micro_steps = max(1, round(config.effective_batch / estimate.largest_batch))
        self.show_config(dataclasses.replace(config, batch_size=estimate.largest_batch, accumulation=micro_steps))

    def halve_batch(self) -> None:
        """Half of the micro-batch in the form, accumulated to about the same batch."""
        config = self.form.config()
        if config is not None and config.batch_size > 1:
            size = (config.batch_size + 1) // 2
            micro_steps = min(round(config.effective_batch / size), _MOST_MICRO_STEPS)
            self.show_config(dataclasses.replace(config, batch_size=size, accumulation=micro_steps))

    def refresh(self) -> None:
        status = self._workspace.run.get()
        self._follow_run_config()
        self.form.set_cards(self._workspace.cards.get())
        self.form.set_locked(locked=status.state.active)
        self._show_estimate(status)
        self._show_levers(status)
        self._show_progress(status)
        self._show_start()

    def _follow_run_config(self) -> None:
        """A run that was started elsewhere (command line, resume) brings its own settings."""
        if self._workspace.run_config.version != self._config_version:
            self._config_version = self._workspace.run_config.version
            if self.form.config() != self._workspace.run_config.get():
                self.form.set_config(self._workspace.run_config.get())

    def _show_estimate(self, status: RunStatus) -> None:
        known = self._workspace.estimate.get()
        told = status.state is RunState.OUT_OF_MEMORY and known.config == self._workspace.run_config.get()
        self._estimate.setVisible(not status.state.active and not told and known.state is not EstimateState.NONE)
        self._estimate.show_status(known, self.form.config())

    def _show_levers(self, status: RunStatus) -> None:
        known = self._workspace.estimate.get()
        answer = answer_of(known) if known.state is EstimateState.WORKING else known.estimate
        pending = known.levers_pending and not status.state.active
        self._levers.show_levers(answer, known.config, pending=pending)
        self._levers.set_locked(locked=status.state.active)
        alert = open_alert(self._workspace)
        self._levers.set_leak(leaking=alert is not None and alert.cause is Cause.LEAK and status.state.active)

    def _show_progress(self, status: RunStatus) -> None:
        self._progress.setVisible(status.state not in (RunState.IDLE, RunState.PREPARING))
        self._epoch.setText(progress.epoch(status))
        self._eta.setText(progress.eta(status))
        share = status.step / status.total_steps if status.total_steps else 0.0
        self._bar.setValue(round(1000 * min(share, 1.0)))
        self._bar.setAccessibleDescription(self._epoch.text())
        batch = progress.batch(status)
        self._batch.setText(batch)
        self._batch.setVisible(bool(batch))
        waiting = status.state in (RunState.STOPPING, RunState.PAUSING)
        self._waiting.setVisible(waiting)
        self._waiting.setText(verdicts.waiting(status) if waiting else "")

    def _show_start(self) -> None:
        self._start.setVisible(not self._workspace.run.get().state.active)
        self._start.setEnabled(self._actions["run.start"].isEnabled())

    def retranslate(self) -> None:
        self._start.setText(BY_ID["run.start"].title)
        self._bar.setAccessibleName(self.tr("Progress of the run"))
        self.form.retranslate()
        self._estimate.retranslate()
        self._levers.retranslate()

    def set_theme(self, theme: Theme) -> None:
        self.form.set_theme(theme)
        self._levers.set_theme(theme)
