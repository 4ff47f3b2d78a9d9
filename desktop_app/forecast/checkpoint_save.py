"""Cause ``checkpoint_save``: copies of the state that are made for saving, on the card or in the computer's RAM.

Copies that stay after each save are stairs of what is live (``event_stairs``); this model is about the call itself.
"""

from __future__ import annotations

from typing import Final

from desktop_app.core.forecasts import Cause
from desktop_app.core.steps import Category, MemoryStats, Phase, PhaseSample, StepSample, Surroundings
from desktop_app.forecast.cause_model import CauseModel, View
from desktop_app.forecast.coming_call import Need, call_outlook, call_severity, short_probability, within
from desktop_app.forecast.outlook import WITHIN_STEPS, Outlook, StepsToGo
from desktop_app.forecast.recurring_call import RecurringCall

_ACTION: Final = "save_to_host"
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
            self._coming = self._call.outlook_of_kept(self.cause, sample.memory, view, action=_ACTION)
        elif begins:
            on_card = self._on_card(sample, sample.memory, view)
            in_ram = self._in_ram(sample, sample.memory)
            self._coming = on_card if on_card is not None else in_ram

    def outlook(self, view: View, *, known: bool) -> Outlook | None:
        """Of the save that comes now; else of the next one."""
        if self._coming is not None or self._call.now is not None:
            return self._coming
        return self._call.outlook_of_next(self.cause, view, action=_ACTION, figure="steps_to_save")

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
        return call_outlook(
            self.cause,
            severity=severity,
            chances=within(probability, 1),
            probability=probability,
            to_go=StepsToGo(0.0, 0.0),
            need=need,
            memory=memory,
            view=view,
            action=_ACTION,
            urgent=True,
            figures=figures,
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
