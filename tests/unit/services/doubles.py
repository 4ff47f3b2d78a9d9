"""A card, samples and a trainer for the tests of services: no torch, no driver."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from desktop_app.core.errors import FloodmarkError
from desktop_app.core.forecasts import Alert, AlertSeverity, Cause, Estimate, Quantiles, Verdict
from desktop_app.core.steps import MemoryStats, OomReport, Phase, RunState, RunStatus, StepSample
from desktop_app.core.store import Cell
from desktop_app.core.telemetry import FAST_FIELDS, SLOW_FIELDS, Card, ProcessSample, Reading, Reason
from desktop_app.core.units import GIB, MIB
from desktop_app.services.run_desk import RunOrder
from desktop_app.services.run_feed import RunFeed
from desktop_app.telemetry.backend import missing
from desktop_app.training.control import ControlToken

PATIENCE_S = 10.0


def make_card(uuid: str = "SIM-1", *, simulated: bool = True, **facts: Any) -> Card:
    """A 6 GiB card; 128 MiB of it are the driver's."""
    fields: dict[str, Any] = {
        "name": "GeForce GTX 1660",
        "nvml_index": 0,
        "bus_id": None,
        "total_bytes": 6 * GIB,
        "driver_reserved_bytes": 128 * MIB,
    }
    return Card(uuid=uuid, simulated=simulated, **{**fields, **facts})


def make_memory(reserved_bytes: int = 512 * MIB, *, outside_bytes: int = 0, retries: int = 0) -> MemoryStats:
    return MemoryStats(
        live_bytes=reserved_bytes // 2,
        live_peak_bytes=reserved_bytes,
        reserved_bytes=reserved_bytes,
        reserved_peak_bytes=reserved_bytes,
        idle_split_bytes=0,
        returnable_bytes=0,
        alloc_retries=retries,
        outside_bytes=outside_bytes,
        peak_categories={},
    )


def make_step(
    number: int,
    *,
    t_s: float | None = None,
    epoch: int = 1,
    loss: float | None = 0.5,
    memory: MemoryStats | None = None,
) -> StepSample:
    return StepSample(
        t_s=0.1 * number if t_s is None else t_s,
        step=number,
        epoch=epoch,
        loss=loss,
        train_accuracy=loss,
        learning_rate=1e-3,
        grad_norm=loss,
        step_s=0.1,
        batch_samples=64,
        memory=memory,
    )


def make_alert(alert_id: int = 1, *, severity: AlertSeverity = AlertSeverity.LIKELY, **fields: Any) -> Alert:
    known: dict[str, Any] = {
        "t_s": 3.0,
        "step": 30,
        "cause": Cause.LEAK,
        "eta_steps": 120.0,
        "eta_steps_low": 100.0,
        "eta_steps_high": 150.0,
        "eta_s": 12.0,
        "eta_low_s": 10.0,
        "eta_high_s": 15.0,
        "evidence": {"slope_bytes_per_step": 4.0 * MIB},
        "action": "save_and_pause",
    }
    return Alert(alert_id=alert_id, severity=severity, **{**known, **fields})


def make_estimate(*, batch_size: int = 64, largest_batch: int | None = 4096) -> Estimate:
    return Estimate(
        live_peak_bytes=Quantiles(100 * MIB, 110 * MIB, 120 * MIB),
        reserved_peak_bytes=Quantiles(200 * MIB, 210 * MIB, 220 * MIB),
        device_peak_bytes=Quantiles(500 * MIB, 600 * MIB, 700 * MIB),
        capacity_bytes=6 * GIB - 128 * MIB,
        others_bytes=0,
        fits_probability=0.99,
        verdict=Verdict.FITS,
        batch_size=batch_size,
        largest_batch=largest_batch,
        peak_phase=Phase.BACKWARD,
        phases={Phase.BACKWARD: 500 * MIB},
        categories={},
        context_bytes=300 * MIB,
        idle_bytes=100 * MIB,
        optimizer_demand_bytes=10 * MIB,
        rung="trace",
        seconds=1.2345,
    )


def make_oom(*, step: int = 7, cause: str | None = None) -> OomReport:
    return OomReport(
        t_s=4.5,
        step=step,
        phase=Phase.BACKWARD,
        message="CUDA out of memory. Tried to allocate 20.00 MiB.",
        requested_bytes=20 * MIB,
        capacity_bytes=6 * GIB,
        memory=None,
        cause=cause,
    )


class Watched:
    """Waits until a cell holds what a test wants; polls nothing longer than ``PATIENCE_S``."""

    def __init__(self, cell: Cell[Any]) -> None:
        self._cell = cell

    def until(self, wanted: Callable[[Any], bool]) -> Any:
        pause = threading.Event()  # never set: its wait is a clock, not a guess
        for _ in range(int(PATIENCE_S / 0.002)):
            value = self._cell.get()
            if wanted(value):
                return value
            pause.wait(0.002)
        raise AssertionError(f"still {self._cell.get()!r}")


class FakeTrainer:
    """A ``TrainerFactory`` that obeys its token between steps as the real one does.

    It takes a step for each ``allow``; ``result`` is asked at the end, or when the stop comes. ``deaf`` ignores stops.
    """

    def __init__(self, *, steps: int = 1000, allowed: int = 0, deaf: bool = False) -> None:
        self.result: Callable[[RunStatus], RunStatus] = lambda status: status
        self.steps = steps
        self.deaf = deaf
        self.orders: list[RunOrder] = []
        self.entered = threading.Event()
        self.let_go = threading.Event()
        self.checkpoints: Path | None = None
        self.others_bytes: int | None = None
        self.saves = 0
        self._allowed = threading.Semaphore(allowed)
        self._now_s = 0.0

    def allow(self, steps: int) -> None:
        self._allowed.release(steps)

    def __call__(
        self, order: RunOrder, *, sink: RunFeed, token: ControlToken, checkpoints: Path, others_bytes: Callable[[], int]
    ) -> RunStatus:
        self.orders.append(order)
        self.checkpoints = checkpoints
        self.others_bytes = others_bytes()
        status = RunStatus(
            RunState.RUNNING, run_name=order.config.title, epochs=2, batch_size=64, total_steps=self.steps
        )
        self.entered.set()
        sink.on_status(status)
        for number in range(1, self.steps + 1):
            if not self._hold(token, sink, status):
                return self._ended(sink, status, RunState.STOPPED)
            self._now_s += 0.1
            sink.on_step(make_step(number, t_s=self._now_s, memory=make_memory()))
            status = RunStatus(**{**_fields(status), "step": number, "epoch": 1, "loss_last": 0.5})
            sink.on_status(status)
        return self._ended(sink, status, RunState.FINISHED)

    def _hold(self, token: ControlToken, sink: RunFeed, status: RunStatus) -> bool:
        """False: stop."""
        while True:
            if self.deaf:
                return not self.let_go.wait(PATIENCE_S)
            if token.stop_requested:
                return False
            if token.take_save_request():
                self.saves += 1
            elif token.pause_requested:
                sink.on_status(RunStatus(**{**_fields(status), "state": RunState.PAUSED}))
                token.wait_while_paused()
                if not token.stop_requested:
                    sink.on_status(status)
            elif self._allowed.acquire(timeout=0.002):
                return True

    def _ended(self, sink: RunFeed, status: RunStatus, state: RunState) -> RunStatus:
        final = self.result(RunStatus(**{**_fields(status), "state": state}))
        sink.on_status(final)
        return final


def _fields(status: RunStatus) -> dict[str, Any]:
    return {name: getattr(status, name) for name in status.__dataclass_fields__}


def ending(error: Exception) -> Callable[[RunStatus], RunStatus]:
    """A ``FakeTrainer.result`` that raises."""

    def fail(status: RunStatus) -> RunStatus:
        raise error

    return fail


NO_IMAGES = FloodmarkError("data.empty_class", "class folder cats has no image that can be read; add images")


class FakeBackend:
    """One card that always answers, with ``used_bytes`` on it."""

    name = "fake"

    def __init__(self, *cards: Card, used_bytes: int = 256 * MIB) -> None:
        self.cards = cards or (make_card(),)
        self.used_bytes = used_bytes

    def open(self) -> tuple[Card, ...]:
        return self.cards

    def read_fast(self, _: Card) -> Mapping[str, Reading]:
        return {**missing(FAST_FIELDS, Reason.SIMULATED), "memory_used_bytes": Reading(float(self.used_bytes))}

    def read_slow(self, _: Card) -> Mapping[str, Reading]:
        return missing(SLOW_FIELDS, Reason.SIMULATED)

    def processes(self, _: Card) -> tuple[ProcessSample, ...]:
        return ()

    def close(self) -> None: ...
