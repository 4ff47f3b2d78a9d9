"""A workspace without machine, torch or threads: every state a window must show, with the same numbers each time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path

from desktop_app.core.clock import SessionClock
from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.forecasts import Alert, Forecast
from desktop_app.core.steps import STEP_COLUMNS, VALIDATION_COLUMNS, MemoryStats, RunState, RunStatus
from desktop_app.core.store import Cell, History, Store
from desktop_app.core.telemetry import GPU_FIELDS, HOST_FIELDS, Card, InstanceSample, ProcessSample, Reading, SelfCost
from desktop_app.core.units import MIB
from desktop_app.services.facade import (
    EndOutcome,
    EstimateStatus,
    Notice,
    ResumeOffer,
    SnapshotState,
    SnapshotStatus,
    StepRecording,
    TelemetryStatus,
)
from desktop_app.training.config import RunConfig
from tests.ui import fake_data, fake_forecasts
from tests.ui.fake_data import FakeState

__all__ = ["FakeState", "FakeWorkspace"]


class ManualClock:
    """A monotonic clock that moves only when told."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


class FakeWorkspace:
    """Implements ``services.facade.Workspace``. What the window asks for is kept in ``calls``."""

    def __init__(self, state: FakeState | str = FakeState.HEALTHY) -> None:
        self.state = FakeState(state)
        self.calls: list[tuple[object, ...]] = []
        self.manual = ManualClock(2.0)
        self.clock = SessionClock(monotonic=self.manual, anchor_wall_s=fake_data.ANCHOR_WALL_S, origin_s=0.0)
        self.store = Store()
        self.events = EventQueue()
        self.config = fake_data.config(self.state)
        card_list = fake_data.cards(self.state)
        self.cards: Cell[tuple[Card, ...]] = Cell(card_list)
        self.card_uuid: Cell[str | None] = Cell(card_list[0].uuid if card_list else None)
        self.readings: Cell[Mapping[str, Mapping[str, Reading]]] = Cell({})
        self.processes: Cell[Mapping[str, tuple[ProcessSample, ...]]] = Cell(fake_data.processes(self.state, card_list))
        self.instances: Cell[Mapping[str, tuple[InstanceSample, ...]]] = Cell({})
        self.telemetry: Cell[TelemetryStatus] = Cell(fake_data.telemetry(self.state, card_list))
        self.run: Cell[RunStatus] = Cell(RunStatus(state=RunState.IDLE))
        self.run_config: Cell[RunConfig] = Cell(self.config)
        self.memory: Cell[MemoryStats | None] = Cell(None)
        self.estimate: Cell[EstimateStatus] = Cell(fake_forecasts.estimate_status(self.state, self.config))
        self.snapshot: Cell[SnapshotStatus] = Cell(SnapshotStatus(SnapshotState.NONE))
        self.step_recording: Cell[StepRecording] = Cell(StepRecording())
        self.forecast: Cell[Forecast | None] = Cell(None)
        self.alerts: Cell[tuple[Alert, ...]] = Cell(())
        self.ignored_alerts: Cell[frozenset[int]] = Cell(frozenset())
        self.cost: Cell[SelfCost] = Cell(
            SelfCost(cpu_percent=1.8, rss_bytes=214 * MIB, sampling_hz=5.0, samples=3600, late=0, tick_p95_ms=1.4)
        )
        self.notices: Cell[tuple[Notice, ...]] = Cell(fake_data.notices(self.state))
        self.resume_offer: Cell[ResumeOffer | None] = Cell(fake_data.resume_offer(self.state))
        self.read_only = False
        self.end_outcome = EndOutcome.SENT
        self._declare()
        self._fill()

    # -- what the window asks for -------------------------------------------------------------------------------

    def request_estimate(self, config: RunConfig) -> None:
        self.calls.append(("request_estimate", config))

    def start(self, config: RunConfig, *, resume_from: Path | None = None) -> None:
        self.calls.append(("start", config, resume_from))
        self.run_config.set(config)
        self.set_run(state=RunState.PREPARING, run_name=config.name or config.data)

    def start_demo(self, name: str) -> None:
        self.calls.append(("start_demo", name))
        self.set_run(state=RunState.PREPARING, run_name=name)

    def shrink_batch(self) -> None:
        self.calls.append(("shrink_batch",))
        status = self.run.get()
        self.set_run(batch_size=status.batch_size // 2, accumulation=status.accumulation * 2)

    def pause(self) -> None:
        self.calls.append(("pause",))
        self.set_run(state=RunState.PAUSING, waiting_step=self.run.get().step + 1)

    def resume(self) -> None:
        self.calls.append(("resume",))
        self.set_run(state=RunState.RUNNING, waiting_step=None)

    def stop(self, *, save: bool = True) -> None:
        self.calls.append(("stop", save))
        self.set_run(state=RunState.STOPPING, waiting_step=self.run.get().step + 1)

    def save_checkpoint(self) -> None:
        self.calls.append(("save_checkpoint",))

    def open_snapshot(self, path: Path) -> None:
        self.calls.append(("open_snapshot", path))
        self.snapshot.set(SnapshotStatus(SnapshotState.READING, name=path.name))

    def record_step(self) -> None:
        self.calls.append(("record_step",))
        self.step_recording.set(dataclasses.replace(self.step_recording.get(), recording=True))

    def ignore_alert(self, alert_id: int) -> None:
        self.calls.append(("ignore_alert", alert_id))
        self.ignored_alerts.set(self.ignored_alerts.get() | {alert_id})

    def accept_resume_offer(self) -> None:
        self.calls.append(("accept_resume_offer",))
        self.resume_offer.set(None)

    def dismiss_resume_offer(self) -> None:
        self.calls.append(("dismiss_resume_offer",))
        self.resume_offer.set(None)

    def end_process(self, uuid: str, pid: int, *, force: bool = False) -> EndOutcome:
        self.calls.append(("end_process", uuid, pid, force))
        return self.end_outcome

    def select_card(self, uuid: str) -> None:
        self.calls.append(("select_card", uuid))
        self.card_uuid.set(uuid)

    def set_sampling_hz(self, hz: float) -> None:
        self.calls.append(("set_sampling_hz", hz))
        self.cost.set(dataclasses.replace(self.cost.get(), sampling_hz=hz))

    def note_frame(self, seconds: float) -> None:
        self.calls.append(("note_frame", seconds))

    # -- what a test may change ---------------------------------------------------------------------------------

    def set_run(self, **changes: object) -> None:
        """Replace fields of the run's status, as a trainer would."""
        self.run.set(dataclasses.replace(self.run.get(), **changes))  # type: ignore[arg-type]

    def called(self, name: str) -> list[tuple[object, ...]]:
        """The calls of one name, oldest first."""
        return [call for call in self.calls if call[0] == name]

    def advance(self, seconds: float) -> None:
        """Move the clock and sample every card at ``fake_data.SAMPLE_HZ``; a running run makes its steps."""
        start_s = self.manual.now_s
        end_s = start_s + seconds
        for index in range(1, round(seconds * fake_data.SAMPLE_HZ) + 1):
            self._sample_cards(start_s + index / fake_data.SAMPLE_HZ)
        self.manual.now_s = end_s
        if self.run.get().state is RunState.RUNNING:
            first = self.run.get().step + 1
            count = int(seconds / fake_data.STEP_S)
            for index in range(count):
                self._step(first + index, start_s + (index + 1) * fake_data.STEP_S)
            self.set_run(step=first + count - 1)

    # -- data -----------------------------------------------------------------------------------------------------

    def _declare(self) -> None:
        self.store.declare("host", HOST_FIELDS)
        self.store.declare("steps", STEP_COLUMNS)
        self.store.declare("validation", VALIDATION_COLUMNS)
        self.store.declare("forecast", fake_data.FORECAST_COLUMNS)
        for card in self.cards.get():
            self.store.declare(f"gpu:{card.uuid}", GPU_FIELDS)

    def _fill(self) -> None:
        seconds = {FakeState.FIRST_SECOND: 1.0, FakeState.PREPARING: 3.0}.get(self.state, fake_data.HISTORY_S)
        if self.state in fake_data.WITHOUT_RUN:
            seconds = 30.0
        if self.state is FakeState.LONG_RUN:
            self._fill_long_run()
            seconds = 2.0
        begin_s = self.manual.now_s
        count = round(seconds * fake_data.SAMPLE_HZ)
        for index in range(count + 1):
            self._sample_cards(begin_s + index / fake_data.SAMPLE_HZ, newest=index == count)
        self.manual.now_s = begin_s + seconds
        if self.state not in fake_data.WITHOUT_RUN:
            self._fill_run(begin_s, seconds)

    def _fill_long_run(self) -> None:
        """Thirty days: one sample a minute and one step in a hundred are enough to fill the axis."""
        day_s = 86400.0
        for minute in range(30 * 1440):
            t_s = 2.0 + minute * 60.0
            self._sample_cards(t_s, newest=False)
            if minute % 2 == 0:
                self._step(1 + minute * 48, t_s)
        self.manual.now_s = 2.0 + 30 * day_s

    def _fill_run(self, begin_s: float, seconds: float) -> None:
        now_s = self.manual.now_s
        state = fake_data.RUN_STATES.get(self.state, RunState.RUNNING)
        last_step = self._last_step()
        first_step = max(1, last_step - int(seconds / fake_data.STEP_S) + 1)
        if last_step and self.state is not FakeState.LONG_RUN:
            for step in range(first_step, last_step + 1):
                self._step(step, now_s - (last_step - step) * fake_data.STEP_S)
        if self.state is FakeState.FIRST_SECOND:
            self._step(1, now_s - 0.1)
        if last_step or self.state is FakeState.FIRST_SECOND:
            self.memory.set(fake_data.memory(self.state, last_step))
        self.run.set(fake_data.run_status(self.state, state, self.config, last_step, begin_s, now_s))
        self._fill_events(now_s)
        self._fill_forecast(now_s, last_step)

    def _last_step(self) -> int:
        if self.state in {FakeState.PREPARING, FakeState.FIRST_STEP}:
            return 0
        if self.state is FakeState.FIRST_SECOND:
            return 1
        if self.state is FakeState.LONG_RUN:
            return 2_073_600
        if self.state is FakeState.OUT_OF_MEMORY:
            return fake_data.NOW_STEP + 159
        return fake_data.NOW_STEP

    def _sample_cards(self, t_s: float, *, newest: bool = True) -> None:
        readings: dict[str, Mapping[str, Reading]] = {}
        lost = self.state is FakeState.GPU_LOST and t_s > fake_data.HISTORY_S - 90.0
        for card in self.cards.get():
            history = self.store.history(f"gpu:{card.uuid}")
            values = fake_data.card_values(self.state, card, t_s)
            if lost:
                history.append_gap(t_s)
            else:
                history.append(t_s, [values[name] for name in GPU_FIELDS])
            if newest:
                readings[card.uuid] = fake_data.readings(values, lost=lost)
        if newest:
            self.readings.set(readings)
        self.store.history("host").append(t_s, fake_data.host_values(t_s))

    def _step(self, step: int, t_s: float) -> None:
        loss = 0.12 + 0.66 * math.exp(-step / 520) + 0.02 * math.sin(step * 1.7) * math.cos(step * 0.31)
        memory = fake_data.memory(self.state, step)
        self.store.history("steps").append(
            t_s,
            {
                "step": step,
                "epoch": 1 + (step - 1) // fake_data.STEPS_PER_EPOCH,
                "loss": loss,
                "train_accuracy": 1.0 - loss / 2.2,
                "learning_rate": 3e-3 * (0.5 + 0.5 * math.cos(math.pi * min(step, 12_000) / 12_000)),
                "grad_norm": 0.4 + 1.8 * math.exp(-step / 700) + 0.1 * math.sin(step * 0.9),
                "samples_per_s": self.config.batch_size / fake_data.STEP_S,
                "step_s": fake_data.STEP_S,
                "batch_samples": self.config.batch_size,
                "live_after_bytes": memory.live_bytes,
                "live_peak_bytes": memory.live_peak_bytes,
                "reserved_bytes": memory.reserved_bytes,
                "reserved_peak_bytes": memory.reserved_peak_bytes,
                "idle_split_bytes": memory.idle_split_bytes,
                "alloc_retries": memory.alloc_retries,
            },
        )
        if step % fake_data.STEPS_PER_EPOCH == 0:
            accuracy = 0.941 - 0.4 * math.exp(-step / 420)
            self.store.history("validation").append(
                t_s,
                {
                    "step": step,
                    "epoch": step // fake_data.STEPS_PER_EPOCH,
                    "loss": loss * 1.12 + 0.02,
                    "accuracy": accuracy,
                },
            )

    def _fill_events(self, now_s: float) -> None:
        if self.state in {FakeState.PREPARING, FakeState.FIRST_SECOND, FakeState.FIRST_STEP}:
            return
        for epoch in range(1, 13):
            t_s = now_s - fake_data.HISTORY_S + epoch * 54.0
            self._post(t_s, EventKind.EPOCH, Level.INFO, "epoch.finished", {"epoch": epoch})
        self._post(now_s - 250.0, EventKind.CHECKPOINT, Level.INFO, "checkpoint.saved", {"step": 1480})
        if self.state is FakeState.LEAK:
            self._post(
                now_s - 60.0, EventKind.ALERT, Level.WARNING, "alert.leak", {"cause": "leak", "severity": "likely"}
            )
        if self.state is FakeState.SEVERAL_ALERTS:
            for ago_s, cause in ((330.0, "fragmentation"), (180.0, "neighbour"), (30.0, "leak")):
                self._post(now_s - ago_s, EventKind.ALERT, Level.WARNING, f"forecast.{cause}", {"cause": cause})
            self._post(now_s - 90.0, EventKind.ALERT_CLEARED, Level.INFO, "forecast.fragmentation", {})
        if self.state is FakeState.RESCUED:
            for report in fake_data.rescues(now_s):
                params = {"step": report.step, "batch_after": report.rescued_batch_size}
                self._post(report.t_s, EventKind.RESCUE, Level.WARNING, "rescue.training", params)
        if self.state is FakeState.OUT_OF_MEMORY:
            self._post(now_s, EventKind.OOM, Level.ERROR, "run.out_of_memory", {"step": fake_data.NOW_STEP + 160})
        if self.state is FakeState.GPU_LOST:
            self._post(now_s - 90.0, EventKind.OUTAGE, Level.ERROR, "telemetry.gpu_lost", {"reason": "gpu_lost"})
        if self.state is FakeState.HEALTHY:
            self._post(now_s - 400.0, EventKind.THROTTLE, Level.WARNING, "throttle.power", {"percent": 12.0})

    def _post(self, t_s: float, kind: EventKind, level: Level, code: str, params: Mapping[str, object]) -> None:
        self.events.post(Event(t_s=t_s, kind=kind, level=level, code=code, params=params))

    def _fill_forecast(self, now_s: float, step: int) -> None:
        if self.state is FakeState.FIRST_STEP:
            self.forecast.set(fake_forecasts.first_step_forecast(now_s))
            self.alerts.set((fake_forecasts.first_step_alert(now_s),))
        elif self.state in {FakeState.LEAK, FakeState.OUT_OF_MEMORY}:
            alert = fake_forecasts.leak_alert(now_s - 60.0)
            if self.state is FakeState.LEAK:
                self.forecast.set(fake_forecasts.leak_forecast(now_s))
                alert = dataclasses.replace(alert, t_s=now_s, step=fake_data.NOW_STEP, eta_steps=160.0, eta_s=200.0)
            self.alerts.set((alert,))
        elif self.state in fake_forecasts.STATES:
            forecast, alerts = fake_forecasts.alerting(self.state, now_s)
            self.forecast.set(forecast)
            self.alerts.set(alerts)
        elif self.state not in fake_data.ENDED and self.state is not FakeState.PREPARING:
            self.forecast.set(fake_forecasts.calm_forecast(now_s, step, self.cards.get()[0].capacity_bytes or 0))
        forecast = self.forecast.get()
        if forecast is not None:
            self.store.history("forecast").append(
                now_s,
                {
                    "eta_steps": forecast.eta_steps if forecast.eta_steps is not None else float("nan"),
                    "p_oom_100": forecast.p_oom.get(100, 0.0),
                    "flood_low_bytes": forecast.flood_low_bytes or float("nan"),
                    "flood_high_bytes": forecast.flood_high_bytes or float("nan"),
                },
            )


def replace_history(workspace: FakeWorkspace, **columns: Callable[[float], float]) -> None:
    """The card's history again with other values, by seconds before now."""
    uuid = workspace.cards.get()[0].uuid
    old = workspace.store.history(f"gpu:{uuid}")
    rows = old.since(0)
    new = History(old.columns)
    for index, t_s in enumerate(rows.t_s.tolist()):
        row = rows.values[:, index].copy()
        for name, value in columns.items():
            row[old.columns.index(name)] = value(workspace.manual.now_s - t_s)
        new.append(t_s, row)
    workspace.store._histories[f"gpu:{uuid}"] = new
    workspace.store._versioned = tuple(new if part is old else part for part in workspace.store._versioned)
