"""What the training says: phases, memory statistics, steps, validation. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Phase(StrEnum):
    """Where in a training the time and the memory go."""

    BUILD = "build"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    ZERO = "zero"
    VALIDATION = "validation"
    SAVE = "save"


class Category(StrEnum):
    """Owners of live bytes, in the order of the tank from the bottom up."""

    PARAMETERS = "parameters"
    GRADIENTS = "gradients"
    OPTIMIZER_STATE = "optimizer_state"
    ACTIVATIONS = "activations"
    WORKSPACE = "workspace"
    TEMPORARIES = "temporaries"  # told apart from activations by a trace only, which knows how each block ends
    INPUTS = "inputs"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """The caching allocator at one moment; peaks since the last reset (one step). All bytes.

    ``returnable_bytes`` counts only wholly free segments; ``idle_split_bytes`` the rest of the idle memory.
    ``outside_bytes`` is what this process holds outside the allocator (CUDA context, handles, kernels).
    """

    live_bytes: int
    live_peak_bytes: int
    reserved_bytes: int
    reserved_peak_bytes: int
    idle_split_bytes: int
    returnable_bytes: int
    alloc_retries: int
    outside_bytes: int
    peak_categories: Mapping[Category, int]


# Columns of the history "steps", in order. NaN where unknown.
STEP_COLUMNS: Final = (
    "step",
    "epoch",
    "loss",
    "train_accuracy",
    "learning_rate",
    "grad_norm",
    "samples_per_s",
    "step_s",
    "batch_samples",
    "live_after_bytes",
    "live_peak_bytes",
    "reserved_bytes",
    "reserved_peak_bytes",
    "idle_split_bytes",
    "alloc_retries",
)
# Columns of the history "validation".
VALIDATION_COLUMNS: Final = ("step", "epoch", "loss", "accuracy")


@dataclass(frozen=True, slots=True)
class BatchShape:
    """Size of one micro-batch as memory sees it. ``tokens`` and ``pixels`` count padding; ``None`` is unknown."""

    samples: int
    tokens: int | None = None
    pixels: int | None = None


@dataclass(frozen=True, slots=True)
class StepSample:
    """One optimizer step. ``t_s`` is its end; ``memory`` is read right after gradients were cleared.

    ``batch_tokens`` and ``batch_pixels`` are those of the largest micro-batch of the step, padding included.
    """

    t_s: float
    step: int  # 1 = first optimizer step of the run
    epoch: int  # from 1
    loss: float | None  # None between log steps
    train_accuracy: float | None
    learning_rate: float
    grad_norm: float | None
    step_s: float
    batch_samples: int
    memory: MemoryStats | None
    batch_tokens: int | None = None
    batch_pixels: int | None = None
    micro_batch_samples: int | None = None  # None: one micro-step of ``batch_samples``

    @property
    def samples_per_s(self) -> float:
        return self.batch_samples / self.step_s if self.step_s > 0 else float("nan")


@dataclass(frozen=True, slots=True)
class PhaseSample:
    """The trainer is about to enter ``phase`` of ``step``, or is in the midst of it.

    ``known_demand_bytes``: what that phase will certainly allocate and keep, where the trainer can tell (optimizer
    state not made yet, a copy of the state for saving), plus its temporaries; ``known_host_bytes`` the same of the
    computer's RAM. ``batch``: the micro-batch that comes next (``FORWARD``, ``VALIDATION``). ``done`` of ``count``
    parts of the phase (validation batches, micro-steps) are over: 0 before the first. ``ended``: the phase is over,
    ``memory`` is read right after it.
    """

    t_s: float
    step: int
    phase: Phase
    memory: MemoryStats | None
    known_demand_bytes: int | None = None
    batch: BatchShape | None = None
    done: int = 0
    count: int | None = None
    ended: bool = False
    known_host_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Once a second: the card and the computer around the run. Bytes unless named otherwise; ``None`` is unknown.

    ``device_used_bytes`` is the whole card, ``others_bytes`` other processes on it, ``outside_bytes`` this process
    outside its allocator. ``spills``: the driver may move memory of the card to RAM (Windows WDDM, WSL).
    """

    t_s: float
    device_used_bytes: int | None = None
    others_bytes: int | None = None
    outside_bytes: int | None = None
    capacity_bytes: int | None = None
    host_used_bytes: int | None = None
    host_total_bytes: int | None = None
    host_available_bytes: int | None = None
    own_rss_bytes: int | None = None  # this process
    children_rss_bytes: int | None = None  # its loader workers together
    children: int | None = None  # how many
    commit_used_bytes: int | None = None  # Windows: commit charge; Linux with overcommit off: Committed_AS
    commit_limit_bytes: int | None = None
    largest_neighbour_pid: int | None = None
    spills: bool = False


@dataclass(frozen=True, slots=True)
class ValidationSample:
    t_s: float
    step: int
    epoch: int
    loss: float
    accuracy: float


class RunState(StrEnum):
    """Life of a run. ``STOPPING`` and ``PAUSING`` wait for the micro-step named in ``RunStatus.waiting_step``."""

    IDLE = "idle"
    PREPARING = "preparing"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    STOPPING = "stopping"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    OUT_OF_MEMORY = "out_of_memory"

    @property
    def active(self) -> bool:
        """A trainer thread is alive."""
        return self in _ACTIVE


_ACTIVE: Final = frozenset({RunState.PREPARING, RunState.RUNNING, RunState.PAUSING, RunState.PAUSED, RunState.STOPPING})


@dataclass(frozen=True, slots=True)
class OomReport:
    """The post-mortem of an out-of-memory error: strings and numbers only, never the exception.

    ``least_bytes``: what a step holds at any batch (parameters, gradients, the optimizer's state, the temporaries of an
    update tensor by tensor); ``room_bytes``: what the card had for it. ``fits_no_batch``: that is too much, or one
    sample was tried in vain; ``largest_owners`` are then what a step needs, if that is more than was held.
    """

    t_s: float
    step: int
    phase: Phase
    message: str
    requested_bytes: int | None
    capacity_bytes: int | None
    memory: MemoryStats | None
    cause: str | None  # a Cause value, when the forecast has named one
    largest_owners: tuple[tuple[str, int], ...] = ()  # (module or category, bytes), largest first
    batch_size: int | None = None  # micro-batch that ran out
    rescued_batch_size: int | None = None  # micro-batch with which the run went on; None: it did not
    least_bytes: int | None = None
    room_bytes: int | None = None
    fits_no_batch: bool = False


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Everything the window says about the run, replaced as a whole. Times in seconds."""

    state: RunState
    run_name: str = ""
    scenario: str | None = None
    step: int = 0
    total_steps: int | None = None
    epoch: int = 0
    epochs: int = 0
    epochs_done: int = 0  # whole epochs, their validation included; ``epoch`` is the one under way
    batch_size: int = 0
    waiting_step: int | None = None
    started_t_s: float | None = None
    ended_t_s: float | None = None
    eta_s: float | None = None
    eta_low_s: float | None = None
    eta_high_s: float | None = None
    samples_per_s: float | None = None
    loss_first: float | None = None
    loss_last: float | None = None
    accuracy_last: float | None = None
    accuracy_best: float | None = None
    checkpoint_path: str | None = None
    skipped_files: int = 0
    error_code: str | None = None
    error_message: str | None = None
    oom: OomReport | None = None
    accumulation: int = 1
    longest_batch: BatchShape | None = None  # of the epoch under way, where the loader can tell
    longest_batch_step: int | None = None  # the step that it comes with
    rescues: tuple[OomReport, ...] = ()  # out-of-memory errors that the run survived, oldest first
