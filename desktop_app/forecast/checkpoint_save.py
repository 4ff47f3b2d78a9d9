"""Cause ``checkpoint_save``: copies of the state that are made for saving, on the card or in the computer's RAM.

Copies that stay after each save are stairs of what is live (``event_stairs``); this model is about the call itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import Category, MemoryStats, Phase, PhaseSample, StepSample, Surroundings
from desktop_app.forecast.cause_model import CauseModel, View
from desktop_app.forecast.coming_call import (
    Need,
    call_severity,
    device_peak,
    later_severity,
    short_probability,
    within,
)
from desktop_app.forecast.outlook import WITHIN_STEPS, Outlook, StepsToGo
from desktop_app.forecast.recurring_call import RecurringCall, next_step_need, trough_growth

_NEAR_SHARE: Final = 0.25  # of the room: further off, the next save is not looked at
_HOST_MARGIN: Final = 0.1  # of what is available: the system gives its caches back, and needs some itself
_HOST_WATCH_P: Final = 0.15  # a checkpoint larger than the RAM: writers that stream it need far less
_KEPT_CATEGORIES: Final = (Category.PARAMETERS, Category.OPTIMIZER_STATE)


class CheckpointSaveCause(CauseModel):
    """Judges a save just before it, and the next one from those before."""

    cause = Cause.CHECKPOINT_SAVE

    def __init__(self) -> None:
        self._call = RecurringCall()
        self._coming: Outlook | None = None
        self._host_available_bytes: int | None = None

    def take_step(self, sample: StepSample, view: View) -> None:
        """The training goes on: a save is over."""
        self._call.leave()
        self._coming = None

    def take_surroundings(self, sample: Surroundings, view: View) -> None:
        """RAM that a checkpoint could use."""
        if sample.host_available_bytes is not None:
            self._host_available_bytes = sample.host_available_bytes

    def take_phase(self, sample: PhaseSample, view: View) -> None:
        """A save is about to begin or is over."""
        if sample.phase is not Phase.SAVE or sample.memory is None:
            self._call.leave()
            self._coming = None
            return
        begins = self._call.take(sample, sample.memory)
        if sample.ended:
            self._coming = self._of_kept(sample.memory, view)
        elif begins:
            on_card = self._on_card(sample, sample.memory, view)
            in_ram = self._in_ram(sample, sample.memory)
            self._coming = on_card if on_card is not None else in_ram

    def outlook(self, view: View, *, known: bool) -> Outlook | None:
        """Of the save that comes now; else of the next one."""
        if self._coming is not None or self._call.now is not None:
            return self._coming
        return self._of_next(view)

    def _on_card(self, sample: PhaseSample, memory: MemoryStats, view: View) -> Outlook | None:
        known, earlier = sample.known_demand_bytes, self._call.demand_bytes
        demand = max(float(known or 0), self._call.next_demand_bytes or 0.0)
        if demand <= 0.0:
            return None
        need = Need(memory.live_bytes + demand)
        survived = memory.live_peak_bytes if memory.live_peak_bytes > memory.live_bytes else 0.0
        probability = short_probability(need, memory, view.environment, survived_bytes=survived)
        severity = call_severity(probability)
        if severity is None:
            return None
        figures = {"demand_bytes": demand}
        if earlier is not None:
            figures["earlier_demand_bytes"] = earlier
        if self._host_available_bytes is not None:
            figures["host_available_bytes"] = float(self._host_available_bytes)
        return _outlook(
            severity,
            within(probability, 1),
            probability,
            StepsToGo(0.0, 0.0),
            need,
            memory,
            view,
            urgent=True,
            figures=figures,
        )

    def _of_kept(self, memory: MemoryStats, view: View) -> Outlook | None:
        """The save is over and has left something: the next step may have no room for its peak."""
        kept = self._call.kept_bytes
        found = next_step_need(view, memory, kept)
        severity = call_severity(found[1]) if found is not None else None
        if found is None or severity is None:
            return None
        need, probability = found
        return _outlook(
            severity,
            within(probability, 1),
            probability,
            StepsToGo(1.0, 0.0),
            need,
            memory,
            view,
            urgent=True,
            figures={"kept_bytes": kept, "demand_bytes": need.mean_bytes - memory.live_bytes},
        )

    def _in_ram(self, sample: PhaseSample, memory: MemoryStats) -> Outlook | None:
        """The host's side: certain where the trainer knows what it will copy, else a watch at most."""
        available = self._host_available_bytes
        if available is None:
            return None
        state = sum(memory.peak_categories.get(category, 0) for category in _KEPT_CATEGORIES)
        size = sample.known_host_bytes if sample.known_host_bytes is not None else state
        if size <= 0:
            return None
        width = max(_HOST_MARGIN * available, 1.0)
        probability = min(1.0, max(0.0, (size - (1.0 - _HOST_MARGIN) * available) / width))
        if sample.known_host_bytes is None:
            probability = min(probability, _HOST_WATCH_P)
        severity = call_severity(probability)
        if severity is None:
            return None
        return Outlook(
            cause=Cause.CHECKPOINT_SAVE,
            severity=severity,
            p_within=dict.fromkeys(WITHIN_STEPS, probability),
            p_run=probability,
            to_go=StepsToGo(0.0, 0.0),
            urgent=True,
            action="free_host_memory",
            evidence={"checkpoint_bytes": float(size), "host_available_bytes": float(available)},
        )

    def _of_next(self, view: View) -> Outlook | None:
        """The next save takes what the last ones took, on top of what is live by then."""
        demand, memory = self._call.next_demand_bytes, view.evidence.memory
        if demand is None or memory is None or not view.evidence.rows:
            return None
        steps = self._call.steps_to_next(view.evidence.step, view.environment)
        trough = float(view.evidence.column("live_after_bytes")[-1])
        room = view.environment.allocator_room(memory)
        if steps is None or room - trough - demand > _NEAR_SHARE * room:
            return None
        growth = trough_growth(view.evidence, steps)
        need = Need(trough + demand + growth, 0.5 * growth)
        borne = float(view.evidence.column("live_peak_bytes").max())
        probability = short_probability(need, memory, view.environment, survived_bytes=borne)
        severity = later_severity(probability, steps)
        if severity is None:
            return None
        return _outlook(
            severity,
            within(probability, steps + 1.0),
            probability,
            StepsToGo(steps, 0.0),
            need,
            memory,
            view,
            urgent=steps <= 1,
            figures={"demand_bytes": demand, "growth_bytes": growth, "steps_to_save": steps},
        )


def _outlook(
    severity: AlertSeverity,
    chances: Mapping[int, float],
    probability: float,
    to_go: StepsToGo,
    need: Need,
    memory: MemoryStats,
    view: View,
    *,
    urgent: bool,
    figures: Mapping[str, float],
) -> Outlook:
    environment = view.environment
    return Outlook(
        cause=Cause.CHECKPOINT_SAVE,
        severity=severity,
        p_within=chances,
        p_run=probability,
        to_go=to_go,
        urgent=urgent,
        action="save_to_host",
        evidence={
            **figures,
            "live_bytes": float(memory.live_bytes),
            "room_bytes": float(environment.allocator_room(memory)),
            "capacity_bytes": float(environment.capacity_bytes),
        },
        peak_low_bytes=device_peak(need.mean_bytes, memory, environment),
        peak_high_bytes=device_peak(need.high_bytes, memory, environment),
    )
