"""What will happen: estimates before the first step, forecasts and alerts while it runs. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from desktop_app.core.estimates import ModuleMemory, PhasePeaks, Quantiles, Timeline
from desktop_app.core.steps import Category, Phase

__all__ = [
    "Alert",
    "AlertSeverity",
    "Cause",
    "Estimate",
    "Forecast",
    "Lever",
    "ModuleMemory",
    "PhasePeaks",
    "Quantiles",
    "Timeline",
    "Verdict",
]


class Verdict(StrEnum):
    """Judged against capacity minus what other processes hold now."""

    FITS = "fits"
    TIGHT = "tight"  # P50 fits, P95 does not
    DOES_NOT_FIT = "does_not_fit"
    CANNOT_SAY = "cannot_say"


@dataclass(frozen=True, slots=True)
class Lever:
    """One change that would lower the peak, computed by re-tracing.

    ``changes`` are fields of the run's config; empty where the run's form has none for it (``settings`` tells then).
    """

    code: str  # e.g. "batch_accumulate", "bf16", "sgd": windows make the text
    changes: Mapping[str, object]
    saved_bytes: int
    device_peak_bytes: int  # P50 with the change
    settings: Mapping[str, object] = field(default_factory=dict)  # fields of ``memory.training_spec.TrainingSpec``


@dataclass(frozen=True, slots=True)
class Estimate:
    """Peak memory of a run before its first step. All bytes."""

    live_peak_bytes: Quantiles
    reserved_peak_bytes: Quantiles
    device_peak_bytes: Quantiles
    capacity_bytes: int
    others_bytes: int
    fits_probability: float
    verdict: Verdict
    batch_size: int
    largest_batch: int | None  # None: not even one sample fits, or unknown
    peak_phase: Phase
    phases: Mapping[Phase, int]  # device P50 per phase
    categories: Mapping[Category, int]  # live bytes at the peak
    context_bytes: int  # P50 of what lies outside the allocator
    idle_bytes: int  # reserved minus live at the peak
    optimizer_demand_bytes: int  # state and temporaries of the first optimizer step
    rung: str
    seconds: float  # until the largest batch was known; levers take longer
    levers: tuple[Lever, ...] = ()
    warnings: tuple[str, ...] = ()
    phase_peaks: Mapping[Phase, PhasePeaks] = field(default_factory=dict)
    modules: tuple[ModuleMemory, ...] = ()
    timeline: Timeline | None = None  # of the second step, P50 workspaces
    kernels_assumed: tuple[str, ...] = ()  # e.g. "attention:flash", "optimizer:foreach"
    guesses: Mapping[str, int] = field(default_factory=dict)  # values the trace had to make up, by op
    rung_width: float = 0.0  # what the rung adds to the spread, relative standard deviation


class Cause(StrEnum):
    """Why memory will run out. The first version knows the first two."""

    FIRST_OPTIMIZER_STEP = "first_optimizer_step"
    LEAK = "leak"


class AlertSeverity(StrEnum):
    """``WATCH`` is no alert; ``LIKELY`` and ``IMMINENT`` are."""

    WATCH = "watch"
    LIKELY = "likely"
    IMMINENT = "imminent"


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast after one step. Probabilities in [0, 1]; times in seconds from ``t_s``; ``None`` when quiet.

    The interval (``_low``, ``_high``) holds 80 % (P10 to P90). ``flood_low_bytes`` and ``flood_high_bytes`` are P50
    and P95 of the peak of *device* still to come. The line on the VRAM panel runs from ``device_bytes`` at ``t_s``
    to capacity at ``eta_s`` (band: ``eta_low_s`` to ``eta_high_s``).
    """

    t_s: float
    step: int
    device_bytes: int
    capacity_bytes: int
    p_oom: Mapping[int, float] = field(default_factory=dict)  # within 1, 10, 100 steps
    p_oom_run: float = 0.0
    cause: Cause | None = None
    cause_share: float = 0.0
    severity: AlertSeverity | None = None
    eta_steps: float | None = None
    eta_steps_low: float | None = None
    eta_steps_high: float | None = None
    eta_s: float | None = None
    eta_low_s: float | None = None
    eta_high_s: float | None = None
    flood_low_bytes: int | None = None
    flood_high_bytes: int | None = None
    evidence: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert of one cause. A raise in severity is a new ``Alert`` with the same ``alert_id``."""

    alert_id: int
    t_s: float
    step: int
    cause: Cause
    severity: AlertSeverity
    eta_steps: float | None
    eta_steps_low: float | None
    eta_steps_high: float | None
    eta_s: float | None
    eta_low_s: float | None
    eta_high_s: float | None
    evidence: Mapping[str, float]
    action: str  # code of the one recommended action: "save_and_pause", "pause", "reduce_batch"
    cleared_t_s: float | None = None
