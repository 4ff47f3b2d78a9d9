"""What to do by itself when an alert is raised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from desktop_app.core.forecasts import Alert, Cause

# Parts of a run that can need less memory: values of ``training.control.Shrink``.
_TRAINING: Final = "training"
# Of the allocator's room, what is live at the last peak that there is room for (decision 034): the rest is holes.
_USED_AT_BRIM: Final = 0.85
_PARTS: Final[Mapping[Cause, str]] = {Cause.VALIDATION: "validation", Cause.CHECKPOINT_SAVE: "save"}


@dataclass(frozen=True, slots=True)
class Rule:
    """``on_alert`` and ``on_oom`` are those of ``RunConfig``. The callables only ask: the trainer obeys before its next
    micro-batch, and before the call that an alert was about when the alert came before it."""

    on_alert: str
    pause: Callable[[], None]
    save_checkpoint: Callable[[], None]
    shrink: Callable[[str], None]
    stop: Callable[[], None]
    on_oom: str = "end"
    shrink_to: Callable[[int], None] | None = None  # at most so many samples of the training

    def act(self, alert: Alert) -> str | None:
        """Ask for what the rule says; its name, or ``None`` where it does nothing."""
        if self.on_alert == "shrink":
            return self._shrink(alert)
        acts: dict[str, Callable[[], str]] = {
            "pause": self._pause,
            "save": self._save,
            "save_and_pause": self._save_and_pause,
            "stop": self._stop,
        }
        act = acts.get(self.on_alert)
        return None if act is None else act()

    def _shrink(self, alert: Alert) -> str | None:
        """Less memory where that helps; where it cannot, what keeps the run from losing anything.

        The optimizer's state is as large for any batch: the run is held, unless the rescue is allowed, which makes the
        update tensor by tensor and loses nothing. RAM is not the card's. A leak goes on all the same, only later.
        """
        cause = alert.cause
        if cause is Cause.FIRST_OPTIMIZER_STEP:
            return None if self.on_oom == "shrink" else self._pause()
        if cause is Cause.HOST_MEMORY:
            return self._save_and_pause()
        if cause is Cause.LEAK:
            self.save_checkpoint()
        samples = None if cause is not Cause.BATCH_SHAPE else _fitting_samples(alert.evidence)
        if samples is not None and self.shrink_to is not None:
            self.shrink_to(samples)
        else:
            self.shrink(_PARTS.get(cause, _TRAINING))
        return "shrink"

    def _pause(self) -> str:
        self.pause()
        return "pause"

    def _save(self) -> str:
        self.save_checkpoint()
        return "save"

    def _save_and_pause(self) -> str:
        self.save_checkpoint()
        self.pause()
        return "save_and_pause"

    def _stop(self) -> str:
        self.stop()
        return "stop"


def _fitting_samples(evidence: Mapping[str, float]) -> int | None:
    """Of the batch that the alert is about: as many as there is room for at once. ``None`` where it does not say."""
    known = ("batch_samples", "demand_bytes", "live_bytes", "room_bytes")
    if any(name not in evidence for name in known) or evidence["demand_bytes"] <= 0:
        return None
    room = _USED_AT_BRIM * evidence["room_bytes"] - evidence["live_bytes"]
    return max(1, int(evidence["batch_samples"] * room / evidence["demand_bytes"]))
