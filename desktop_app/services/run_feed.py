"""From the trainer into the store: steps, validation, run state, and the forecaster's food."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.steps import (
    STEP_COLUMNS,
    VALIDATION_COLUMNS,
    MemoryStats,
    OomReport,
    PhaseSample,
    RunStatus,
    StepSample,
    ValidationSample,
)
from desktop_app.core.store import Cell, Store
from desktop_app.services.checkpoint_sizes import grown, size_of
from desktop_app.services.notice_board import NoticeBoard
from desktop_app.services.step_recorder import StepRecorder
from desktop_app.services.trace_recording import TraceRecording

_log = logging.getLogger(__name__)

# Code of the trainer's event, and of the notice made of it.
SKIPPED_NOTICE: Final = "data.skipped"
CHECKPOINT_NOTICE: Final = "checkpoint.failed"
GROWN_NOTICE: Final = "checkpoint.grown"


@dataclass(frozen=True, slots=True)
class Counsel:
    """What a trainer may ask when its card is full. Runs in: trainer thread."""

    largest_batch: Callable[[], int | None] = lambda: None  # of the run's estimate
    name_cause: Callable[[OomReport], str | None] = lambda _: None


class StepListener(Protocol):
    """Who wants every step: the forecaster. Calls come in the trainer's thread and must be short."""

    def observe_step(self, sample: StepSample) -> None: ...
    def observe_phase_now(self, sample: PhaseSample) -> object: ...


class RunFeed:
    """The trainer's sink. Runs in: trainer thread."""

    def __init__(
        self,
        store: Store,
        events: EventQueue,
        *,
        memory: Cell[MemoryStats | None],
        listener: StepListener | None,
        publish: Callable[[RunStatus], None],
        on_checkpoint: Callable[[Path, int, int], None],
        notices: NoticeBoard,
        steps: StepRecorder | None = None,
        counsel: Counsel | None = None,
        resumed_from: Path | None = None,
    ) -> None:
        """``publish`` gets every status, ``on_checkpoint`` each checkpoint's path, step and epoch."""
        self._checkpoint_bytes = size_of(resumed_from) if resumed_from is not None else None
        self.recorder = steps
        self.counsel = counsel or Counsel()
        self._steps = store.declare("steps", STEP_COLUMNS)
        self._validation = store.declare("validation", VALIDATION_COLUMNS)
        self._trace = TraceRecording(store)
        self._events = events
        self._memory = memory
        self._listener = listener
        self._publish = publish
        self._on_checkpoint = on_checkpoint
        self._notices = notices
        self._epoch = 0
        self._retries = 0
        self._held: MemoryStats | None = None  # of the last step; before the first, the fullest phase
        self._stepped = False

    def on_status(self, status: RunStatus) -> None:
        """At the end the memory is again that of the last step: what came after it, such as a save, holds less."""
        if not status.state.active and self._held is not None:
            self._memory.set(self._held)
        self._publish(status)

    def on_step(self, sample: StepSample) -> None:
        self._steps.append(sample.t_s, _step_row(sample))
        self._trace.on_step(sample)
        if sample.epoch != self._epoch:
            self._epoch = sample.epoch
            self._post(sample.t_s, EventKind.EPOCH, Level.INFO, "run.epoch", epoch=sample.epoch, step=sample.step)
        if sample.memory is not None:
            self._memory.set(sample.memory)
            self._held, self._stepped = sample.memory, True
            self._note_retries(sample)
        if self._listener is not None:
            self._listener.observe_step(sample)
        if self.recorder is not None:
            self.recorder.poll(sample.memory)

    def on_phase(self, sample: PhaseSample) -> None:
        self._trace.on_phase(sample)
        if sample.memory is not None:
            self._memory.set(sample.memory)
            self._hold(sample.memory)
        if self._listener is not None:
            try:
                self._listener.observe_phase_now(sample)
            except Exception:  # hook: a forecast that fails must not take the training with it
                _log.exception("The forecast failed; the run goes on without it")

    def _hold(self, memory: MemoryStats) -> None:
        if not self._stepped and (self._held is None or memory.live_peak_bytes > self._held.live_peak_bytes):
            self._held = memory

    def on_validation(self, sample: ValidationSample) -> None:
        self._validation.append(sample.t_s, (sample.step, sample.epoch, sample.loss, sample.accuracy))

    def on_event(self, event: Event) -> None:
        self._events.post(event)
        if event.code == "checkpoint.saved":
            step, path = event.params.get("step"), Path(str(event.params["path"]))
            self._on_checkpoint(path, step if isinstance(step, int) else 0, self._epoch)
            self._notices.take_down(CHECKPOINT_NOTICE)
            if step:  # before the first step there is no optimizer state yet
                self._compare_size(path)
        elif event.code == CHECKPOINT_NOTICE:
            where, detail = event.params.get("path"), event.params.get("detail")
            line = f"The checkpoint cannot be written to {where}: {detail}. Free some space; it is tried again."
            self._notices.put(CHECKPOINT_NOTICE, line, level="error", params=event.params)
        elif event.code == SKIPPED_NOTICE:
            self._notices.put(SKIPPED_NOTICE, _skipped_line(event.params), params=event.params)

    def _compare_size(self, path: Path) -> None:
        """The same run gives checkpoints of one size; one that grows holds something twice."""
        before, self._checkpoint_bytes = self._checkpoint_bytes, size_of(path)
        growth = grown(before, self._checkpoint_bytes)
        if growth is not None:
            params = {"before_bytes": growth.before_bytes, "after_bytes": growth.after_bytes}
            self._notices.put(GROWN_NOTICE, growth.line, params=params)

    def _note_retries(self, sample: StepSample) -> None:
        """The first retry is the allocator's own last warning before an out-of-memory error."""
        assert sample.memory is not None
        if sample.memory.alloc_retries > self._retries:
            self._post(
                sample.t_s,
                EventKind.ALLOC_RETRY,
                Level.WARNING,
                "run.alloc_retry",
                step=sample.step,
                retries=sample.memory.alloc_retries,
            )
        self._retries = sample.memory.alloc_retries

    def _post(self, t_s: float, kind: EventKind, level: Level, code: str, **params: object) -> None:
        self._events.post(Event(t_s=t_s, kind=kind, level=level, code=code, params=params))


def _skipped_line(params: Mapping[str, object]) -> str:
    count = params.get("count")
    what = "1 file cannot be read and is" if count == 1 else f"{count} files cannot be read and are"
    return f"{what} left out; the first: {params.get('path')} ({params.get('reason')}). The log names all of them."


def _step_row(sample: StepSample) -> tuple[float | None, ...]:
    """One row in the order of ``STEP_COLUMNS``; ``None`` where this step did not measure."""
    memory = sample.memory
    allocator: tuple[int | None, ...] = (None,) * 6
    if memory is not None:
        allocator = (
            memory.live_bytes,
            memory.live_peak_bytes,
            memory.reserved_bytes,
            memory.reserved_peak_bytes,
            memory.idle_split_bytes,
            memory.alloc_retries,
        )
    return (
        sample.step,
        sample.epoch,
        sample.loss,
        sample.train_accuracy,
        sample.learning_rate,
        sample.grad_norm,
        sample.samples_per_s,
        sample.step_s,
        sample.batch_samples,
        *allocator,
    )
