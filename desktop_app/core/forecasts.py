"""What will happen: estimates before the first step, forecasts and alerts while it runs. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from desktop_app.core.estimates import ModuleMemory, PhasePeaks, Quantiles, Timeline
from desktop_app.core.steps import Category, Phase

__all__ = [
    "ACTIONS",
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
    """Why memory will run out. ``HOST_MEMORY`` is the computer's RAM, all others are the card's memory."""

    FIRST_OPTIMIZER_STEP = "first_optimizer_step"  # the optimizer makes its state
    BATCH_SHAPE = "batch_shape"  # a batch of more samples, tokens or pixels than the ones before
    LEAK = "leak"  # memory that is live after every step and never freed
    FRAGMENTATION = "fragmentation"  # idle memory grows in pieces that no request fits into
    NEIGHBOUR = "neighbour"  # another process on the card
    VALIDATION = "validation"  # what validation holds on top of the training, or keeps after it
    CHECKPOINT_SAVE = "checkpoint_save"  # copies made for saving, or kept after it
    RESUME = "resume"  # what loading a checkpoint leaves behind
    OUTSIDE_ALLOCATOR = "outside_allocator"  # context, handles, compiled kernels, communication buffers
    HOST_MEMORY = "host_memory"  # RAM or commit charge of the computer
    SPILL = "spill"  # Windows and WSL: the driver moves memory to RAM, slowly and without an error


# What one alert recommends: codes, windows and the command line make the text.
ACTIONS: Final = (
    "save_and_pause",  # a leak: save what is learnt, then find what keeps it
    "pause",  # before a call that cannot succeed
    "reduce_batch",  # fewer samples in a micro-step
    "split_batch",  # the one longest batch: cut its length, or split it
    "find_leak",  # record one step and look who keeps memory
    "expandable_segments",  # PYTORCH_ALLOC_CONF=expandable_segments:True, then start again
    "close_neighbour",  # end or move the other process (evidence: its growth; a window names it)
    "smaller_validation_batch",
    "no_grad_validation",  # validation keeps its outputs or its graph
    "save_to_host",  # copy the state to RAM before saving; keep no copy on the card
    "load_to_host",  # map_location="cpu", and let go of the checkpoint after loading
    "free_outside",  # limit cuDNN search, compile caches, communication buffers
    "fewer_workers",  # loader workers, caches in RAM
    "free_host_memory",
    "leave_room",  # spill: less than the card holds, or the driver's fall-back switched off
)


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
    p_oom_epoch: float | None = None  # to the end of the epoch; None when epochs are not known
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
    action: str  # code of the one recommended action, one of ``ACTIONS``
    cleared_t_s: float | None = None
