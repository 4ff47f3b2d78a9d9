"""Cause ``spill``: the driver moves memory of the card to RAM. No error comes; every step takes several times longer.

Windows does so by itself (WDDM, "sysmem fallback"), and so does WSL. What gives it away: the card is full to the brim,
steps of the same shape are suddenly slow, and nothing was refused. Slow steps beside free memory are something else,
and so is a full card on which steps take as long as ever. Slow steps on a card that was as full while they were fast
wait for something else as a rule, their data for instance: that is watched, and no alert. Where the trainer tells when
a step's forward pass begins, what it has waited for its batch until then is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import Phase, PhaseSample, StepSample, Surroundings
from desktop_app.forecast.cause_model import CauseModel, View
from desktop_app.forecast.outlook import WITHIN_STEPS, Outlook, StepsToGo
from desktop_app.forecast.robust import RollingOrder

# No measurement of ours: design.md §6 says "at the top, and step time several times longer". The figures below are
# judgements, held against the 62 spills (3 to 10 times slower) and the 700 healthy runs of the corpus (decision 034).
FULL_SHARE: Final = 0.97  # of the card: the driver keeps some for itself, so that it is never filled wholly
_SLOWER: Final = 2.0  # times the usual step
_SLOWER_UNMOVED: Final = 4.0  # when the card was as full before, and steps were fast
_MOVED_SHARE: Final = 0.002  # of the card: more in use than when steps were fast
_FIRST_STEPS: Final = 5
_CALM_STEPS: Final = 64
_LEAST_CALM: Final = 8
_LIKELY_AFTER: Final = 3
_IMMINENT_AFTER: Final = 8
_P_NOW: Final = 0.9
_P_SUSPECTED: Final = 0.3


class SpillCause(CauseModel):
    """Compares steps with those before the card was full."""

    cause = Cause.SPILL

    def __init__(self) -> None:
        self._calm_s = RollingOrder(_CALM_STEPS)  # seconds of steps that were not slow
        self._calm_sizes = RollingOrder(_CALM_STEPS)  # and how large their batches were
        self._fills = RollingOrder(_CALM_STEPS)  # in use while steps were fast
        self._slow = 0  # steps in a row
        self._moved = False  # the card was less full before them
        self._over = 0  # steps in a row that held more than there is
        self._ratio = 0.0
        self._fill_bytes = 0.0
        self._device_bytes = 0.0
        self._may_spill = False
        self._retries = 0
        self._last_step = 0
        self._forward: tuple[int, float] | None = None  # the step whose forward pass was told, and when it began

    def take_surroundings(self, sample: Surroundings, view: View) -> None:
        """Take what the whole card holds, and whether its driver moves memory at all."""
        self._device_bytes = float(sample.device_used_bytes or 0)
        self._may_spill = sample.spills

    def take_phase(self, sample: PhaseSample, view: View) -> None:
        """Take the begin of a step's first forward pass: its batch is there."""
        if sample.phase is Phase.FORWARD and not sample.ended and sample.done == 0:
            self._forward = sample.step, sample.t_s

    def take_step(self, sample: StepSample, view: View) -> None:
        """Take a step: its time against its size, and how full the card was."""
        memory = sample.memory
        if memory is None or view.evidence.starting_up or sample.step_s <= 0:
            return
        if sample.step < self._last_step:  # the run has gone back: with other batches, perhaps
            self._calm_s.clear()
            self._calm_sizes.clear()
            self._fills.clear()
        self._last_step = sample.step
        capacity = float(view.environment.capacity_bytes)
        beside = view.environment.others_bytes + view.environment.outside(memory)
        self._fill_bytes = max(self._device_bytes, float(beside + memory.reserved_peak_bytes))
        self._over = self._over + 1 if memory.live_peak_bytes > capacity else 0
        refused, self._retries = memory.alloc_retries > self._retries, memory.alloc_retries
        self._ratio = self._times_slower(sample)
        full = self._fill_bytes >= FULL_SHARE * capacity
        if full and self._is_slow(capacity) and not refused:
            self._moved = self._has_moved(capacity)
            self._slow += 1
            return
        self._slow = 0
        self._calm_s.add(self._computed_s(sample))
        self._calm_sizes.add(_size(sample))
        if not refused and self._ratio < _SLOWER:
            self._fills.add(self._fill_bytes)

    def outlook(self, view: View, *, known: bool) -> Outlook | None:
        """That it happens now; ``None`` while it does not."""
        slow = self._slow if self._may_spill else 0
        if not slow and not self._over:
            return None
        severity = self._severity(slow)
        probability = _P_NOW if severity is not AlertSeverity.WATCH else _P_SUSPECTED
        return Outlook(
            cause=Cause.SPILL,
            severity=severity,
            p_within=dict.fromkeys(WITHIN_STEPS, probability),
            p_run=probability,
            to_go=StepsToGo(0.0, 0.0),
            action="leave_room",
            evidence=self._figures(view),
        )

    def _times_slower(self, sample: StepSample) -> float:
        """Than steps of its size are; 0 while too few are known. More samples or tokens may take more time."""
        if len(self._calm_s) < _LEAST_CALM:
            return 0.0
        expected = self._calm_s.median() * max(1.0, _size(sample) / max(self._calm_sizes.median(), 1.0))
        return self._computed_s(sample) / expected

    def _computed_s(self, sample: StepSample) -> float:
        """Of the step, what came after its batch was there; all of it where that was not told."""
        if self._forward is None or not sample.step - 1 <= self._forward[0] <= sample.step:
            return sample.step_s
        since_s = sample.t_s - self._forward[1]
        return min(since_s, sample.step_s) if since_s > 0 else sample.step_s

    def _is_slow(self, capacity: float) -> bool:
        return self._ratio >= (_SLOWER if self._has_moved(capacity) else _SLOWER_UNMOVED)

    def _has_moved(self, capacity: float) -> bool:
        """More is in use than while steps were fast, but for the few with which it began."""
        known = self._fills.ordered[-_FIRST_STEPS] if len(self._fills) >= _FIRST_STEPS else 0.0
        return self._fill_bytes > known + _MOVED_SHARE * capacity

    def _severity(self, slow: int) -> AlertSeverity:
        if self._over or (slow >= _IMMINENT_AFTER and self._moved):
            return AlertSeverity.IMMINENT
        return AlertSeverity.LIKELY if slow >= _LIKELY_AFTER and self._moved else AlertSeverity.WATCH

    def _figures(self, view: View) -> Mapping[str, float]:
        figures = {
            "device_bytes": self._fill_bytes,
            "capacity_bytes": float(view.environment.capacity_bytes),
            "times_slower": self._ratio,
            "slow_steps": float(self._slow),
        }
        if view.evidence.memory is not None:
            figures["live_peak_bytes"] = float(view.evidence.memory.live_peak_bytes)
        if len(self._calm_s):
            figures["usual_step_s"] = self._calm_s.median()
        return figures


def _size(sample: StepSample) -> float:
    """Of the batch, in the finest measure there is."""
    return float(sample.batch_tokens or sample.batch_pixels or sample.batch_samples)
