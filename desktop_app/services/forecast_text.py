"""Alerts and the forecast in words for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from desktop_app.core.forecasts import Alert, AlertSeverity, Cause, Forecast
from desktop_app.core.units import format_bytes

CAUSES: Final[Mapping[Cause, str]] = {
    Cause.FIRST_OPTIMIZER_STEP: "the first optimizer step has no room for the optimizer's state",
    Cause.BATCH_SHAPE: "a larger batch than the ones before",
    Cause.LEAK: "memory that is kept after every step and never freed",
    Cause.FRAGMENTATION: "idle memory in pieces too small for what is asked for",
    Cause.NEIGHBOUR: "another process on the card",
    Cause.VALIDATION: "what validation holds on top of the training",
    Cause.CHECKPOINT_SAVE: "copies made for a checkpoint",
    Cause.RESUME: "what loading the checkpoint has left behind",
    Cause.OUTSIDE_ALLOCATOR: "memory of this process outside PyTorch's allocator",
    Cause.HOST_MEMORY: "the computer's main memory (RAM), not the card's",
    Cause.SPILL: "the card is full and spills into main memory, without an error and far slower",
}
ACTIONS: Final[Mapping[str, str]] = {
    "save_and_pause": "Save a checkpoint and pause; then look for what keeps a tensor of every step.",
    "pause": "Pause before the call that cannot succeed.",
    "reduce_batch": "Take fewer samples in a micro-step and accumulate.",
    "split_batch": "Cut or split the longest batch.",
    "find_leak": "Record one step (floodmark snapshot) and look who keeps memory.",
    "expandable_segments": "Set PYTORCH_ALLOC_CONF=expandable_segments:True and start again.",
    "close_neighbour": "End or move the other process.",
    "smaller_validation_batch": "Take a smaller validation batch.",
    "no_grad_validation": "Validate under torch.inference_mode() and keep numbers, not tensors.",
    "save_to_host": "Copy the state to main memory before saving, and keep no copy on the card.",
    "load_to_host": "Load with map_location='cpu' and delete the checkpoint before the first step.",
    "free_outside": "Leave room outside the allocator: cudnn.benchmark off, constant shapes, a memory fraction.",
    "fewer_workers": "Use fewer loader workers.",
    "free_host_memory": "Free main memory: close programs, drop caches of samples.",
    "leave_room": "Use less than the card holds, or switch the driver's fall-back to main memory off.",
}
_SAID: Final = {AlertSeverity.LIKELY: "likely", AlertSeverity.IMMINENT: "IMMINENT", AlertSeverity.WATCH: "watching"}
_ARE_BYTES: Final = ("_bytes", "_bytes_per_step", "_bytes_per_s")
_MOST_FIGURES: Final = 5


def alert_lines(alert: Alert, *, times_known: bool) -> str:
    """An alert in three short lines: what and when, the figures, what to do."""
    when = f"step {alert.step:,}" + (f" ({duration(alert.t_s)})" if times_known else "")
    head = f"{when}: out of memory {_SAID[alert.severity]}{_in(alert, times_known=times_known)}"
    if alert.cause in (Cause.HOST_MEMORY, Cause.SPILL):
        head = f"{when}: {_SAID[alert.severity]}{_in(alert, times_known=times_known)}"
    lines = [head, f"  cause: {alert.cause.value}, {CAUSES[alert.cause]}"]
    figures = figures_line(alert.evidence)
    if figures:
        lines.append(f"  figures: {figures}")
    lines.append(f"  {ACTIONS.get(alert.action, alert.action)}")
    return "\n".join(lines)


def over_line(alert: Alert, *, step: int) -> str:
    """The end of an alert."""
    return f"step {step:,}: over: {alert.cause.value}"


def outlook_line(forecast: Forecast) -> str:
    """The forecast after the last row."""
    within = ", ".join(f"{forecast.p_oom[steps]:.1%} within {steps}" for steps in sorted(forecast.p_oom))
    epoch = "" if forecast.p_oom_epoch is None else f"{forecast.p_oom_epoch:.1%} to the end of the epoch, "
    return f"P(out of memory): {within} steps, {epoch}{forecast.p_oom_run:.1%} to the end of the run"


def figures_line(evidence: Mapping[str, float]) -> str:
    """The first figures of an alert, by their names."""
    parts = []
    for name, figure in [*evidence.items()][:_MOST_FIGURES]:
        suffix = next((end for end in _ARE_BYTES if name.endswith(end)), None)
        if suffix is None:
            parts.append(f"{name.replace('_', ' ')} {figure:,.6g}")
        else:
            per = suffix.removeprefix("_bytes").replace("_", " ")
            parts.append(f"{name.removesuffix(suffix).replace('_', ' ')} {format_bytes(figure)}{per}")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """``12.3 s``, ``4 min 20 s``, ``3 h 10 min``, ``2 d 5 h``."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


def _in(alert: Alert, *, times_known: bool) -> str:
    if alert.eta_steps is None:
        return ""
    if alert.eta_steps < 1.0:
        return " in what comes next"
    text = f" in about {alert.eta_steps:,.0f} steps"
    if (
        alert.eta_steps_low is not None
        and alert.eta_steps_high is not None
        and alert.eta_steps_high > alert.eta_steps_low
    ):
        text += f" ({alert.eta_steps_low:,.0f} to {alert.eta_steps_high:,.0f})"
    if times_known and alert.eta_s:
        text += f", {duration(alert.eta_s)}"
    return text
