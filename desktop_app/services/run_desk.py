"""A run from start to end: folder, recorder, estimate, device, trainer, forecaster, and how it ended."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import filelock

from desktop_app.core.clock import SessionClock
from desktop_app.core.errors import FloodmarkError
from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.forecasts import Forecast
from desktop_app.core.steps import MemoryStats, OomReport, RunState, RunStatus
from desktop_app.core.store import Cell, Store
from desktop_app.core.telemetry import Card
from desktop_app.forecast.forecaster import Forecaster
from desktop_app.forecast.worker import ForecasterThread
from desktop_app.services.alert_desk import AlertDesk, Rule
from desktop_app.services.estimator import Estimator
from desktop_app.services.locations import sessions_folder, writable_problem
from desktop_app.services.recorder import Recorder
from desktop_app.services.run_feed import RunFeed
from desktop_app.services.session_folder import SessionFolder, create_session, mark_ended
from desktop_app.training.config import RunConfig, config_to_toml

if TYPE_CHECKING:
    from desktop_app.training.control import ControlToken

_log = logging.getLogger(__name__)

FORECAST_COLUMNS: Final = (
    "step",
    "eta_steps",
    "eta_s",
    "p_oom_100",
    "p_oom_run",
    "flood_low_bytes",
    "flood_high_bytes",
)
# The estimate takes a second; a model that is not answered by then starts without one.
_ESTIMATE_PATIENCE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class RunOrder:
    """What to run on what."""

    config: RunConfig
    card: Card | None  # None: on the CPU, without a card
    resume_from: Path | None = None
    fault: str | None = None
    scenario: str | None = None


class TrainerFactory(Protocol):
    """Builds and runs the training of an order in the calling thread; torch is imported in here, late.

    Returns the last status of the run: FINISHED, STOPPED, FAILED or OUT_OF_MEMORY. ``FloodmarkError`` for what the
    user can mend.
    """

    def __call__(
        self, order: RunOrder, *, sink: RunFeed, token: ControlToken, checkpoints: Path, others_bytes: Callable[[], int]
    ) -> RunStatus: ...


class RunDesk:
    """Starts one run at a time and brings each to an end. Its public methods return at once, from any thread."""

    def __init__(
        self,
        *,
        clock: SessionClock,
        store: Store,
        events: EventQueue,
        desk: AlertDesk,
        estimator: Estimator,
        train: TrainerFactory,
        others_bytes: Callable[[], int],
        on_recorder_trouble: Callable[[str | None], None],
    ) -> None:
        self._clock = clock
        self._store = store
        self._events = events
        self._desk = desk
        self._estimator = estimator
        self._train = train
        self._others_bytes = others_bytes
        self._on_recorder_trouble = on_recorder_trouble
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._token: ControlToken | None = None
        self._recorder: Recorder | None = None
        self._folder_lock: filelock.BaseFileLock | None = None
        self.folder: SessionFolder | None = None
        self.forecaster: ForecasterThread | None = None
        self.run: Cell[RunStatus] = Cell(RunStatus(RunState.IDLE))
        self.memory: Cell[MemoryStats | None] = Cell(None)
        self.forecast: Cell[Forecast | None] = Cell(None)
        store.declare("forecast", FORECAST_COLUMNS)

    def start(self, order: RunOrder) -> None:
        """Begin a run; what goes wrong appears in ``run``. ``FloodmarkError`` when one is active already."""
        from desktop_app.training.control import ControlToken

        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                raise FloodmarkError("run.active", "A run is active already. Stop it before you start another.")
            self._token = ControlToken()
            self.memory.set(None)
            self.forecast.set(None)
            self.run.set(
                RunStatus(
                    RunState.PREPARING,
                    run_name=order.config.title,
                    scenario=order.scenario,
                    epochs=order.config.epochs,
                    batch_size=order.config.batch_size,
                    started_t_s=self._clock.now_s(),
                )
            )
            self._desk.begin_run(
                Rule(on_alert=order.config.on_alert, pause=self._token.pause, save_checkpoint=self._token.request_save)
            )
            self._thread = threading.Thread(target=self._main, args=(order, self._token), name="trainer", daemon=True)
            self._thread.start()

    def pause(self) -> None:
        self._ask(RunState.PAUSING, lambda token: token.pause(), when=(RunState.RUNNING,))

    def resume(self) -> None:
        self._ask(RunState.RUNNING, lambda token: token.resume(), when=(RunState.PAUSED, RunState.PAUSING))

    def stop(self, *, save: bool = True) -> None:
        self._ask(RunState.STOPPING, lambda token: token.stop(save=save), when=tuple(RunState))

    def save_checkpoint(self) -> None:
        if self._token is not None:
            self._token.request_save()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block until the run has ended. For headless programs and tests."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout_s)
        return thread is None or not thread.is_alive()

    def set_others(self, others_bytes: int) -> None:
        """Tell the forecast what other processes hold on the card now."""
        forecaster = self.forecaster
        if forecaster is not None:
            forecaster.forecaster.set_environment(others_bytes=others_bytes)

    def close_recorder(self, timeout_s: float = 5.0) -> bool:
        """Flush what is left, also of a run that did not end: its folder stays without an end and can be resumed."""
        recorder, self._recorder = self._recorder, None
        flushed = recorder is None or recorder.stop(timeout_s)
        if self._folder_lock is not None:
            self._folder_lock.release()
            self._folder_lock = None
        return flushed

    def _ask(self, state: RunState, ask: Callable[[ControlToken], None], *, when: tuple[RunState, ...]) -> None:
        """Pass a request on and show at once what it waits for; the trainer's next status replaces it."""
        with self._lock:
            status, token = self.run.get(), self._token
            if token is None or not status.state.active or status.state not in when:
                return
            ask(token)
            self.run.set(replace(status, state=state, waiting_step=status.step + 1))

    def _main(self, order: RunOrder, token: ControlToken) -> None:
        """Runs in: trainer thread. Never raises: a run always ends in a state that the window can show."""
        try:
            self._open_folder(order)
            final = self._run_order(order, token)
        except FloodmarkError as error:
            _log.error("%s", error.message)
            final = self._failed(error.code, error.message)
        except Exception as error:  # thread main: the stack goes to the log, one line to the user
            _log.exception("The run failed")
            final = self._failed("run.unexpected", f"The run failed: {error!r}. The log has the details.")
        self._end(final)

    def _run_order(self, order: RunOrder, token: ControlToken) -> RunStatus:
        assert self.folder is not None
        if order.card is not None:
            self._estimator.wait_for(order.config, timeout_s=_ESTIMATE_PATIENCE_S)
        self.forecaster = self._make_forecaster(order)
        feed = RunFeed(
            self._store,
            self._events,
            run=self.run,
            memory=self.memory,
            listener=self.forecaster,
            complete_status=lambda status: self._complete(status, order),
        )
        try:
            return self._train(
                order,
                sink=feed,
                token=token,
                checkpoints=self.folder.checkpoints_path,
                others_bytes=self._others_bytes,
            )
        finally:
            if self.forecaster is not None:
                self.forecaster.stop()
                self.forecaster = None

    def _open_folder(self, order: RunOrder) -> None:
        problem = writable_problem(sessions_folder())
        if problem is not None:
            raise problem
        self.close_recorder()
        card = order.card
        try:
            folder = create_session(
                sessions_folder(),
                run_name=order.config.title,
                config_toml=config_to_toml(order.config),
                card={} if card is None else {"name": card.name, "uuid": card.uuid, "simulated": card.simulated},
                anchor_wall_s=self._clock.anchor_wall_s,
            )
            self._folder_lock = folder.lock()
            self._folder_lock.acquire()
        except OSError as error:
            raise FloodmarkError(
                "data_folder.unwritable", f"Cannot make a session folder in {sessions_folder()}: {error}."
            ) from error
        self.folder = folder
        self._recorder = Recorder(
            folder,
            store=self._store,
            events=self._events,
            start_at={name: self._store.history(name).version for name in self._store.names()},
            first_event=self._events.since(0)[1],
            on_trouble=self._on_recorder_trouble,
        )
        self._recorder.start()

    def _make_forecaster(self, order: RunOrder) -> ForecasterThread | None:
        """``None`` for a run without a card, or on one whose memory is not known."""
        capacity_bytes = order.card.capacity_bytes if order.card is not None else None
        if not capacity_bytes:
            return None
        estimate = self._estimator.status.get()
        forecaster = ForecasterThread(
            Forecaster(
                capacity_bytes=capacity_bytes,
                others_bytes=self._others_bytes(),
                prior=estimate.estimate if estimate.config == order.config else None,
            ),
            on_forecast=self._on_forecast,
            on_alert=self._desk.on_alert,
            on_cleared=self._desk.on_cleared,
        )
        forecaster.start()
        return forecaster

    def _on_forecast(self, forecast: Forecast) -> None:
        self.forecast.set(forecast)
        history = self._store.history("forecast")
        last = history.latest()
        row = {
            "step": forecast.step,
            "eta_steps": forecast.eta_steps,
            "eta_s": forecast.eta_s,
            "p_oom_100": forecast.p_oom.get(100),
            "p_oom_run": forecast.p_oom_run,
            "flood_low_bytes": forecast.flood_low_bytes,
            "flood_high_bytes": forecast.flood_high_bytes,
        }
        # A direct answer to the trainer may overtake the forecast of the step before it.
        t_s = forecast.t_s if last is None else max(forecast.t_s, last["t_s"])
        history.append(t_s, {name: float(value) for name, value in row.items() if value is not None})

    def _complete(self, status: RunStatus, order: RunOrder) -> RunStatus:
        """What the trainer does not know: the scenario, a request under way, and the forecast's cause of an OOM."""
        status = replace(status, scenario=order.scenario, oom=self._with_cause(status.oom))
        shown = self.run.get()
        waits = {RunState.PAUSING: RunState.RUNNING, RunState.STOPPING: RunState.RUNNING}
        if waits.get(shown.state) is status.state:
            return replace(status, state=shown.state, waiting_step=status.step + 1)
        return status

    def _with_cause(self, oom: OomReport | None) -> OomReport | None:
        if oom is None or oom.cause is not None:
            return oom
        open_alerts = [alert for alert in self._desk.alerts.get() if alert.cleared_t_s is None]
        return replace(oom, cause=open_alerts[-1].cause.value) if open_alerts else oom

    def _failed(self, code: str, message: str) -> RunStatus:
        return replace(
            self.run.get(),
            state=RunState.FAILED,
            waiting_step=None,
            ended_t_s=self._clock.now_s(),
            error_code=code,
            error_message=message,
        )

    def _end(self, final: RunStatus) -> None:
        self.run.set(final)
        failed = final.state is RunState.FAILED
        self._events.post(
            Event(
                t_s=self._clock.now_s(),
                kind=EventKind.ERROR if failed else EventKind.RUN_STATE,
                level=Level.ERROR if failed else Level.INFO,
                code=f"run.{final.state.value}",
                params={"step": final.step, "error": final.error_message},
            )
        )
        if self.folder is None:
            return
        try:
            mark_ended(self.folder, state=final.state.value, details={"step": final.step, "epoch": final.epoch})
        except OSError as error:
            self._on_recorder_trouble(str(error))
