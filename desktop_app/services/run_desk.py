"""A run from start to end: folder, estimate, forecaster, trainer, and how it ended."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from desktop_app.core.clock import SessionClock
from desktop_app.core.errors import FloodmarkError
from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.forecasts import Cause
from desktop_app.core.lifecycle import RunMachine
from desktop_app.core.steps import BatchShape, MemoryStats, OomReport, RunState, RunStatus, Surroundings
from desktop_app.core.store import Cell, Store
from desktop_app.core.telemetry import Card
from desktop_app.forecast.forecaster import Forecaster
from desktop_app.forecast.worker import ForecasterThread
from desktop_app.services.alert_desk import AlertDesk, Rule
from desktop_app.services.card_use import CardUse
from desktop_app.services.estimator import Estimator
from desktop_app.services.forecast_feed import ForecastFeed
from desktop_app.services.notice_board import NoticeBoard
from desktop_app.services.oom_cause import likely_cause
from desktop_app.services.run_feed import SKIPPED_NOTICE, Counsel, RunFeed
from desktop_app.services.run_records import RunRecords
from desktop_app.services.scenarios import Stage
from desktop_app.services.step_recorder import StepRecorder
from desktop_app.services.trace_recording import TraceRecording
from desktop_app.training.config import RunConfig

if TYPE_CHECKING:
    from desktop_app.training.control import ControlToken

_log = logging.getLogger(__name__)

# The estimate takes a second; a model that is not answered by then starts without one.
_ESTIMATE_PATIENCE_S: Final = 30.0
_ENDS: Final = frozenset({RunState.FINISHED, RunState.STOPPED, RunState.FAILED, RunState.OUT_OF_MEMORY})


@dataclass(frozen=True, slots=True)
class RunOrder:
    """What to run on what."""

    config: RunConfig
    card: Card | None  # None: on the CPU, without a card
    resume_from: Path | None = None
    fault: str | None = None
    scenario: str | None = None
    stage: Stage = field(default_factory=Stage)  # what a demonstration has around it


class TrainerFactory(Protocol):
    """Builds and runs the training of an order in the calling thread; torch is imported in here, late.

    Returns the last status of the run: FINISHED, STOPPED, FAILED or OUT_OF_MEMORY. ``FloodmarkError`` for what the
    user can mend.
    """

    def __call__(
        self, order: RunOrder, *, sink: RunFeed, token: ControlToken, checkpoints: Path, others_bytes: Callable[[], int]
    ) -> RunStatus: ...


class RunDesk:
    """Starts one run at a time and brings each to an end. Its public methods return at once, from any thread.

    An end is shown in ``run`` only when the trainer's device is closed, its forecaster has stopped and its folder
    says so: whoever sees it may start the next run.
    """

    def __init__(
        self,
        *,
        clock: SessionClock,
        store: Store,
        events: EventQueue,
        desk: AlertDesk,
        estimator: Estimator,
        records: RunRecords,
        forecasts: ForecastFeed,
        use: CardUse,
        notices: NoticeBoard,
        train: TrainerFactory,
    ) -> None:
        self._clock = clock
        self._store = store
        self._events = events
        self._desk = desk
        self._estimator = estimator
        self._records = records
        self._forecasts = forecasts
        self._use = use
        self._notices = notices
        self._train = train
        self._lock = threading.Lock()
        self._machine = RunMachine()
        self._over = threading.Event()
        self._over.set()
        self._under_way = threading.Event()
        self._thread: threading.Thread | None = None
        self._token: ControlToken | None = None
        self._forecaster: ForecasterThread | None = None
        self._length_told = False
        self._longest_told: tuple[BatchShape | None, int | None] | None = None
        self._trace = TraceRecording(store)
        self.run: Cell[RunStatus] = Cell(RunStatus(RunState.IDLE))
        self.memory: Cell[MemoryStats | None] = Cell(None)
        self.steps = StepRecorder()

    def start(self, order: RunOrder) -> bool:
        """Begin a run; what goes wrong appears in ``run``. ``False`` when one is active already: it goes on."""
        from desktop_app.training.control import ControlToken

        with self._lock:
            if not self._machine.attempt(RunState.PREPARING):
                return False
            token = self._token = ControlToken()
            self._records.forget()
            self._notices.take_down(SKIPPED_NOTICE)
            self._forecasts.begin_run()
            self._part_curves()
            self.memory.set(None)
            self.steps.begin_run()
            self.run.set(_first_status(order, self._clock.now_s()))
            self._desk.begin_run(self._rule(order.config, token))
            self._over.clear()
            self._under_way.clear()
            self._thread = threading.Thread(target=self._main, args=(order, token), name="trainer", daemon=True)
            self._thread.start()
        return True

    def _rule(self, config: RunConfig, token: ControlToken) -> Rule:
        from desktop_app.training.control import Shrink

        return Rule(
            on_alert=config.on_alert,
            on_oom=config.on_oom,
            pause=self.pause,
            save_checkpoint=token.request_save,
            shrink=lambda part: token.request_shrink(Shrink(part)),
            shrink_to=lambda samples: token.request_shrink(to=samples),
            stop=self.stop,
        )

    def _part_curves(self) -> None:
        """No line joins the end of one run to the start of the next."""
        for name in ("steps", "validation"):
            history = self._store.history(name)
            last = history.latest()
            if last is not None:
                history.append_gap(last["t_s"])

    def refuse(self, order: RunOrder, error: FloodmarkError) -> bool:
        """Show why a run cannot even begin. ``False`` when one is active already: it goes on."""
        with self._lock:
            if not self._machine.attempt(RunState.PREPARING):
                return False
            self._token = None
            self._records.forget()
            self.run.set(_first_status(order, self._clock.now_s()))
        self._end(self._failed(error.code, error.message))
        self._under_way.set()
        return True

    def pause(self) -> None:
        """Hold a running training before its next micro-step."""
        with self._lock:
            if self._token is not None and self._machine.state is RunState.RUNNING:
                self._machine.to(RunState.PAUSING)
                self._token.pause()
                self._show_waiting()

    def resume(self) -> None:
        """Let a paused training go on."""
        with self._lock:
            if self._token is not None and self._machine.state in (RunState.PAUSING, RunState.PAUSED):
                self._machine.to(RunState.RUNNING)
                self._token.resume()
                self._show_waiting()

    def stop(self, *, save: bool = True) -> None:
        """End the run before its next micro-step. Asked again, the last call decides about saving."""
        with self._lock:
            if self._token is None or not self._machine.state.active:
                return
            self._machine.attempt(RunState.STOPPING)
            self._token.stop(save=save)
            self._show_waiting()
        self._estimator.wake()

    def save_checkpoint(self) -> None:
        """Before the next step, also while paused."""
        token = self._token
        if token is not None:
            token.request_save()

    def shrink_batch(self) -> None:
        """A smaller micro-batch from the next one on, the effective batch kept; also while paused."""
        token = self._token
        if token is not None and self._machine.state.active:
            token.request_shrink()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block until the run has ended. For headless programs and tests."""
        # Not Thread.join: interrupted by Ctrl+C it takes the thread for ended (CPython 3.11), and the end is lost.
        return self._over.wait(timeout_s)

    def wait_until_under_way(self, timeout_s: float | None = None) -> bool:
        """Block until the first step begins, or the run has ended before it."""
        return self._under_way.wait(timeout_s)

    def tell_forecaster(self, surroundings: Surroundings) -> None:
        """Card and computer have been read anew. Never waits for a forecast. Runs in: sampler thread."""
        forecaster = self._forecaster
        if forecaster is not None:
            self._trace.on_surroundings(surroundings)
            forecaster.observe_surroundings(surroundings)

    def _show_waiting(self) -> None:
        """Show a request at once with the step it waits for; the trainer's next status replaces it."""
        status, state = self.run.get(), self._machine.state
        waiting = state in (RunState.PAUSING, RunState.STOPPING)
        self.run.set(replace(status, state=state, waiting_step=status.step + 1 if waiting else None))

    def _main(self, order: RunOrder, token: ControlToken) -> None:
        """Runs in: trainer thread. Never raises: a run always ends in a state that the window can show."""
        try:
            final = self._run_order(order, token)
            if final.state not in _ENDS:
                raise ValueError(f"the trainer returned in state {final.state}")
        except FloodmarkError as error:
            final = self._failed(error.code, error.message)
        except Exception as error:  # thread main: the stack goes to the log, one line to the user
            _log.exception("The run failed")
            line = " ".join(str(error).split())
            final = self._failed(
                "run.unexpected", f"The run failed: {type(error).__name__}: {line}. The log has the details."
            )
        try:
            self._end(final)
            self._records.end()
        finally:
            self._under_way.set()
            self._over.set()

    def _run_order(self, order: RunOrder, token: ControlToken) -> RunStatus:
        folder = self._records.open(
            order.config, card=order.card, resumed_from=order.resume_from, scenario=order.scenario
        )
        if order.card is not None:
            self._estimator.wait_for(order.config, timeout_s=_ESTIMATE_PATIENCE_S, unless=lambda: token.stop_requested)
        if token.stop_requested:
            return replace(self.run.get(), state=RunState.STOPPED)
        self._forecaster, self._length_told, self._longest_told = self._make_forecaster(order), False, None
        feed = RunFeed(
            self._store,
            self._events,
            memory=self.memory,
            listener=self._forecaster,
            publish=self._publish,
            on_checkpoint=self._records.note_checkpoint,
            notices=self._notices,
            steps=self.steps,
            resumed_from=order.resume_from,
            counsel=Counsel(lambda: self._largest_batch(order.config), self._name_cause),
        )
        try:
            return self._train(
                order,
                sink=feed,
                token=token,
                checkpoints=folder.checkpoints_path,
                others_bytes=lambda: self._use.others_bytes,
            )
        finally:
            self.steps.detach()
            forecaster, self._forecaster = self._forecaster, None
            if forecaster is not None:
                forecaster.stop()

    def _largest_batch(self, config: RunConfig) -> int | None:
        """What the estimate of this run says would fit; ``None`` without one."""
        status = self._estimator.status.get()
        return status.estimate.largest_batch if status.estimate is not None and status.config == config else None

    def _name_cause(self, oom: OomReport) -> str | None:
        """The alert's, or what message and phase say; where no batch fits, no alert about a batch."""
        alerted = self._desk.open_cause()
        if oom.fits_no_batch and alerted == Cause.BATCH_SHAPE:
            alerted = None
        return alerted or likely_cause(oom)

    def _make_forecaster(self, order: RunOrder) -> ForecasterThread | None:
        """``None`` for a run without a card, or on one whose memory is not known."""
        capacity_bytes = order.card.capacity_bytes if order.card is not None else None
        if not capacity_bytes:
            return None
        estimate = self._estimator.status.get()
        forecaster = ForecasterThread(
            Forecaster(
                capacity_bytes=capacity_bytes,
                others_bytes=self._use.others_bytes,
                outside_bytes=self._use.outside_bytes or 0,
                prior=estimate.estimate if estimate.config == order.config else None,
            ),
            on_forecast=self._forecasts.on_forecast,
            on_alert=self._desk.on_alert,
            on_cleared=self._desk.on_cleared,
        )
        forecaster.start()
        return forecaster

    def _publish(self, status: RunStatus) -> None:
        """Show what the trainer says, unless a request is under way that it has not seen yet.

        Runs in: trainer thread. The end is not shown here but in ``_end``.
        """
        if not status.state.active:
            return
        with self._lock:
            status = self._completed(status)
            changed = status.batch_size != self.run.get().batch_size
            shown = self._machine.state
            unseen_pause = shown is RunState.PAUSING and status.state is RunState.RUNNING
            if status.state is not shown and (unseen_pause or not self._machine.attempt(status.state)):
                status = replace(status, state=shown, waiting_step=status.step + 1)
            if status.state is not self.run.get().state:
                _log.info("Run %s: %s at step %d", status.run_name, status.state.value, status.step)
            self.run.set(status)
        if status.state is not RunState.PREPARING:
            self._under_way.set()
        if changed and self._forecaster is not None:
            self._forecaster.forecaster.forget_estimate()
        if not self._length_told and status.total_steps is not None:
            self._length_told = True
            self._tell_length(status)
        longest = status.longest_batch, status.longest_batch_step
        if status.longest_batch is not None and longest != self._longest_told:
            self._longest_told = longest
            self._tell_longest(status)

    def _tell_length(self, status: RunStatus) -> None:
        """The forecaster learns how long the run and its epochs are. Runs in: trainer thread."""
        forecaster, total = self._forecaster, status.total_steps
        if forecaster is not None and total is not None:
            whole_epochs = status.epochs > 0 and total % status.epochs == 0  # not when resumed with another batch size
            steps_per_epoch = total // status.epochs if whole_epochs else None
            forecaster.forecaster.set_environment(total_steps=total, steps_per_epoch=steps_per_epoch)
            self._trace.on_length(self._clock.now_s(), total_steps=total, steps_per_epoch=steps_per_epoch)

    def _tell_longest(self, status: RunStatus) -> None:
        """The forecaster learns which batch of the epoch is the longest. Runs in: trainer thread."""
        if self._forecaster is not None:
            self._forecaster.forecaster.set_environment(
                longest_batch=status.longest_batch, longest_batch_step=status.longest_batch_step
            )

    def _completed(self, status: RunStatus) -> RunStatus:
        """With what the trainer does not know: the scenario, and the beginning until it has one of its own."""
        begun = self.run.get()
        started_t_s = status.started_t_s if status.started_t_s is not None else begun.started_t_s
        return replace(status, scenario=begun.scenario, started_t_s=started_t_s)

    def _failed(self, code: str, message: str) -> RunStatus:
        return replace(self.run.get(), state=RunState.FAILED, error_code=code, error_message=message)

    def _end(self, final: RunStatus) -> None:
        """The one way out."""
        oom = final.oom
        if oom is not None and oom.cause is None:
            oom = replace(oom, cause=self._name_cause(oom))
        ended_t_s = final.ended_t_s if final.ended_t_s is not None else self._clock.now_s()
        final = self._completed(replace(final, ended_t_s=ended_t_s, waiting_step=None, oom=oom))
        _log.info("Run %s: %s at step %d", final.run_name, final.state.value, final.step)
        self._records.mark_ended(final)
        self._events.post(_end_event(final))
        with self._lock:
            if not self._machine.attempt(final.state):  # it went by unseen states to its end
                self._machine.attempt(RunState.RUNNING)
                self._machine.to(final.state)
            self._token = None
            self.run.set(final)
        self._estimator.wake()  # who waits for the estimate of a run that has failed


def _first_status(order: RunOrder, now_s: float) -> RunStatus:
    return RunStatus(
        RunState.PREPARING,
        run_name=order.config.title,
        scenario=order.scenario,
        epochs=order.config.epochs,
        batch_size=order.config.batch_size,
        accumulation=order.config.accumulation,
        started_t_s=now_s,
    )


def _end_event(final: RunStatus) -> Event:
    kind, level = EventKind.RUN_STATE, Level.INFO
    params: dict[str, object] = {"step": final.step, "error": final.error_message}
    if final.oom is not None:
        kind, level = EventKind.OOM, Level.ERROR
        params = {"step": final.oom.step, "phase": final.oom.phase.value, "cause": final.oom.cause}
    elif final.state is RunState.FAILED:
        kind, level = EventKind.ERROR, Level.ERROR
    t_s = final.oom.t_s if final.oom is not None else final.ended_t_s
    assert t_s is not None
    return Event(t_s=t_s, kind=kind, level=level, code=f"run.{final.state.value}", params=params)
