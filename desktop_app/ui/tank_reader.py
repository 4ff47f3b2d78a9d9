"""Reads the parts of the workspace that the tank shows and remembers what was said before the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from desktop_app.core.steps import MemoryStats, RunState, RunStatus
from desktop_app.core.telemetry import Card, Reading, Reason
from desktop_app.services.facade import EstimateState, EstimateStatus, Workspace
from desktop_app.services.telemetry_feed import history_name
from desktop_app.ui.tank_model import TankState, tank_state

if TYPE_CHECKING:
    from desktop_app.core.store import Rows

# The estimate traces two steps: the one that makes the optimizer's state, and one that has it. Later growth is the
# forecast's business, so the peak of the first two steps is what the estimate is compared with.
MEASURED_STEPS: Final = 2
_NOTHING: Final = EstimateStatus(EstimateState.NONE)


class TankReader:
    """Makes a ``TankState`` of a workspace. Runs in: GUI thread."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._run_started_s: float | None = None
        self._said = _NOTHING
        self._pulled = 0
        self._first_peaks: list[float] = []

    def read(self) -> TankState:
        """What to show now. Cheap: a few cells, and the first steps of a run once."""
        workspace = self._workspace
        run = workspace.run.get()
        estimate = workspace.estimate.get()
        self._follow(run, estimate)
        card = selected_card(workspace)
        memory = workspace.memory.get() if self._shows_run(run, estimate) else None
        return tank_state(
            card=card,
            readings={} if card is None else self._readings(card, then=memory is not None and not run.state.active),
            run=run.state,
            memory=memory,
            estimate=estimate,
            said=self._said if run.state is not RunState.IDLE and self._shows_run(run, estimate) else estimate,
            forecast=workspace.forecast.get(),
            measured_bytes=self._measured_bytes(memory),
            no_card_reason=workspace.telemetry.get().reason,
        )

    def _readings(self, card: Card, *, then: bool) -> Mapping[str, Reading]:
        """What the card says; ``then``: what it said at the last step, beside which the levels of that step stand."""
        store = self._workspace.store
        now = self._workspace.readings.get().get(card.uuid, {})
        name = history_name(card.uuid)
        step = store.history("steps").latest() if then and {"steps", name} <= set(store.names()) else None
        used = None if step is None else store.history(name).value_at("memory_used_bytes", step["t_s"])
        return now if used is None else {**now, "memory_used_bytes": Reading(used)}

    def _shows_run(self, run: RunStatus, estimate: EstimateStatus) -> bool:
        """While a run lives the tank is its; afterwards until the form is changed to something else."""
        if run.state is RunState.IDLE:
            return False
        if run.state.active:
            return True
        return estimate.config is None or estimate.config == self._workspace.run_config.get()

    def _follow(self, run: RunStatus, estimate: EstimateStatus) -> None:
        if run.started_t_s != self._run_started_s:
            self._run_started_s = run.started_t_s
            self._first_peaks = []
            self._said = _NOTHING
        if estimate.estimate is not None and estimate.config == self._workspace.run_config.get():
            self._said = estimate
        if run.started_t_s is not None and len(self._first_peaks) < MEASURED_STEPS:
            self._collect_first_peaks(run.started_t_s)

    def _collect_first_peaks(self, started_s: float) -> None:
        history = self._workspace.store.history("steps")
        rows = history.since(self._pulled)
        self._pulled = rows.version
        if rows.missed and not self._first_peaks:
            return  # the first steps of the run are no longer held
        self._first_peaks += _peaks(rows, started_s)[: MEASURED_STEPS - len(self._first_peaks)]

    def _measured_bytes(self, memory: MemoryStats | None) -> int | None:
        answer = self._said.estimate
        if memory is None or answer is None or len(self._first_peaks) < MEASURED_STEPS:
            return None
        return int(max(self._first_peaks)) + memory.outside_bytes + answer.others_bytes


def _peaks(rows: Rows, started_s: float) -> list[float]:
    """Reserved peaks (bytes) of the rows after ``started_s`` that have one."""
    peaks = rows.values[rows.columns.index("reserved_peak_bytes")]
    return [float(peak) for peak in peaks[(rows.t_s >= started_s) & np.isfinite(peaks)]]


def selected_card(workspace: Workspace) -> Card | None:
    """The card of the run, else the first one."""
    cards = workspace.cards.get()
    uuid = workspace.card_uuid.get()
    return next((card for card in cards if card.uuid == uuid), cards[0] if cards else None)


def lost_reason(workspace: Workspace, card: Card | None) -> Reason | None:
    """Why the card cannot be read now; ``None`` when it can."""
    status = workspace.telemetry.get()
    if card is None:
        return status.reason
    return (status.lost or {}).get(card.uuid)
