"""What a window may see and do: the protocol between ``ui`` and everything below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from desktop_app.core.clock import SessionClock
    from desktop_app.core.estimates import Timeline
    from desktop_app.core.events import EventQueue
    from desktop_app.core.forecasts import Alert, Estimate, Forecast
    from desktop_app.core.steps import MemoryStats, RunStatus
    from desktop_app.core.store import Cell, Store
    from desktop_app.core.telemetry import Card, InstanceSample, ProcessSample, Reading, Reason, SelfCost
    from desktop_app.training.config import RunConfig


class EstimateState(StrEnum):
    NONE = "none"
    WORKING = "working"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class EstimateStatus:
    """The newest estimate. While ``WORKING`` the last answer stays beside it; ``error`` is one line for ``FAILED``.

    ``levers_pending``: the answer is there, what would help is still being worked out.
    """

    state: EstimateState
    estimate: Estimate | None = None
    config: RunConfig | None = None
    error_code: str | None = None
    error: str | None = None
    levers_pending: bool = False


@dataclass(frozen=True, slots=True)
class StepRecording:
    """One step of the run, written down on request. ``possible``: the run's device can do it now."""

    possible: bool = False
    recording: bool = False
    timeline: Timeline | None = None


class SnapshotState(StrEnum):
    NONE = "none"
    READING = "reading"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    """The memory recording that was opened last; ``name`` of its file, ``error`` is one line for ``FAILED``."""

    state: SnapshotState
    name: str = ""
    timeline: Timeline | None = None
    error_code: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TelemetryStatus:
    """Whether the cards can be read; ``reason`` and ``detail`` say why not. ``lost`` maps a UUID to its reason."""

    reason: Reason | None = None
    detail: str = ""
    lost: Mapping[str, Reason] | None = None


class EndOutcome(StrEnum):
    """What came of telling a process to end."""

    SENT = "sent"  # the system has told it; it leaves ``processes`` once it has ended
    GONE = "gone"  # it had ended before, or its pid is another process's by now
    NO_PERMISSION = "no_permission"
    NOT_ALLOWED = "not_allowed"  # read-only mode; this program and what it started; simulated; a pid of the host


@dataclass(frozen=True, slots=True)
class ResumeOffer:
    """A run that did not end well and has a checkpoint."""

    session_path: Path
    checkpoint_path: Path
    run_name: str
    step: int
    epoch: int
    ended_wall_s: float


@dataclass(frozen=True, slots=True)
class Notice:
    """A condition of the program itself that stays until it is over: recorder cannot write, disk full, …"""

    code: str
    message: str
    level: str = "warning"
    params: Mapping[str, object] = field(default_factory=dict)  # for the window's own words


class Workspace(Protocol):
    """One open workplace. All reads are cheap and thread-safe; a reader pulls what is new since its own version."""

    @property
    def clock(self) -> SessionClock: ...

    @property
    def store(self) -> Store: ...

    @property
    def events(self) -> EventQueue: ...

    @property
    def cards(self) -> Cell[tuple[Card, ...]]: ...

    @property
    def card_uuid(self) -> Cell[str | None]:
        """The card of the run."""

    @property
    def readings(self) -> Cell[Mapping[str, Mapping[str, Reading]]]:
        """Uuid -> field -> newest reading with its reason."""

    @property
    def processes(self) -> Cell[Mapping[str, tuple[ProcessSample, ...]]]: ...

    @property
    def instances(self) -> Cell[Mapping[str, tuple[InstanceSample, ...]]]:
        """Uuid of a card in MIG mode -> what each of its instances reports; ``Card.instances`` has their facts."""

    @property
    def telemetry(self) -> Cell[TelemetryStatus]: ...

    @property
    def run(self) -> Cell[RunStatus]: ...

    @property
    def run_config(self) -> Cell[RunConfig]:
        """Of the active or last run; defaults before one."""

    @property
    def memory(self) -> Cell[MemoryStats | None]:
        """Newest allocator statistics of the run."""

    @property
    def estimate(self) -> Cell[EstimateStatus]: ...

    @property
    def step_recording(self) -> Cell[StepRecording]: ...

    @property
    def snapshot(self) -> Cell[SnapshotStatus]: ...

    @property
    def forecast(self) -> Cell[Forecast | None]: ...

    @property
    def alerts(self) -> Cell[tuple[Alert, ...]]:
        """All of this run, newest last; an open one has cleared_t_s None."""

    @property
    def ignored_alerts(self) -> Cell[frozenset[int]]: ...

    @property
    def read_only(self) -> bool:
        """Nothing on this machine is changed: no process is ended."""

    @property
    def cost(self) -> Cell[SelfCost]: ...

    @property
    def notices(self) -> Cell[tuple[Notice, ...]]: ...

    @property
    def resume_offer(self) -> Cell[ResumeOffer | None]: ...

    def request_estimate(self, config: RunConfig) -> None:
        """Start estimating; returns at once, the newest request wins."""

    def start(self, config: RunConfig, *, resume_from: Path | None = None) -> None:
        """Start a run; returns at once. Errors appear in ``run`` as FAILED with a code and one line.

        After a demonstration, a run of its name is the demonstration again, with what was changed.
        """

    def start_demo(self, name: str) -> None:
        """Start a demonstration of ``services.scenarios``; returns at once. What stands in its way is a notice."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def stop(self, *, save: bool = True) -> None: ...
    def save_checkpoint(self) -> None: ...
    def shrink_batch(self) -> None:
        """A smaller micro-batch from the next one on, with the same effective batch; an event says how small."""

    def record_step(self) -> None:
        """Write down the run's next step; it appears in ``step_recording``. Nothing where that is not possible."""

    def open_snapshot(self, path: Path) -> None:
        """Read a recording of ``torch.cuda.memory``; returns at once, it appears in ``snapshot``."""

    def ignore_alert(self, alert_id: int) -> None: ...
    def accept_resume_offer(self) -> None:
        """Go on with the run of the offer, as it was configured."""

    def dismiss_resume_offer(self) -> None: ...
    def end_process(self, uuid: str, pid: int, *, force: bool = False) -> EndOutcome:
        """Tell process ``pid`` of the card to end (SIGTERM), or end it at once (``force``: SIGKILL). Does not wait."""

    def select_card(self, uuid: str) -> None: ...
    def set_sampling_hz(self, hz: float) -> None: ...
    def note_frame(self, seconds: float) -> None:
        """The window reports the cost of one frame, for the status bar and the benchmark."""
