"""Small made-up runs for the forecast's tests: what the allocator would say after every step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from desktop_app.core.forecasts import Alert, Forecast
from desktop_app.core.steps import MemoryStats, StepSample
from desktop_app.core.units import MIB
from desktop_app.forecast.forecaster import Forecaster

Floats = npt.NDArray[Any]

DEMAND = 512 * MIB
BASE = 1024 * MIB


def memory(
    live: float,
    *,
    demand: float = DEMAND,
    idle_at_peak: float = 0.0,
    retries: int = 0,
    outside: int = 0,
) -> MemoryStats:
    """Statistics after a step whose peak was ``live + demand`` with ``idle_at_peak`` reserved beside it."""
    peak = int(live + demand)
    return MemoryStats(
        live_bytes=int(live),
        live_peak_bytes=peak,
        reserved_bytes=int(peak + idle_at_peak),
        reserved_peak_bytes=int(peak + idle_at_peak),
        idle_split_bytes=0,
        returnable_bytes=0,
        alloc_retries=retries,
        outside_bytes=outside,
        peak_categories={},
    )


def step(number: int, stats: MemoryStats | None, *, batch: int = 64, epoch: int = 1, step_s: float = 0.1) -> StepSample:
    return StepSample(
        t_s=number * step_s,
        step=number,
        epoch=epoch,
        loss=None,
        train_accuracy=None,
        learning_rate=1e-3,
        grad_norm=None,
        step_s=step_s,
        batch_samples=batch,
        memory=stats,
    )


def steps(
    troughs: Iterable[float],
    *,
    demands: Sequence[float] | None = None,
    batches: Sequence[int] | None = None,
    steps_per_epoch: int | None = None,
    step_s: float = 0.1,
) -> Iterator[StepSample]:
    """One step per trough, numbered from 1. What was reserved once stays reserved, as in the allocator."""
    reserved = 0.0
    for index, trough in enumerate(troughs):
        demand = float(demands[index]) if demands is not None else DEMAND
        reserved = max(reserved, trough + demand)
        yield step(
            index + 1,
            memory(trough, demand=demand, idle_at_peak=reserved - trough - demand),
            batch=int(batches[index]) if batches is not None else 64,
            epoch=1 if steps_per_epoch is None else index // steps_per_epoch + 1,
            step_s=step_s,
        )


@dataclass
class Replay:
    """What a forecaster said over a whole run. ``oom_step`` is the first step whose peak did not fit."""

    forecasts: list[Forecast] = field(default_factory=list)
    raised: list[Alert] = field(default_factory=list)
    cleared: list[Alert] = field(default_factory=list)
    oom_step: int | None = None

    @property
    def first(self) -> Alert | None:
        return self.raised[0] if self.raised else None

    def lead_steps(self) -> int:
        """Steps between the first alert and the out-of-memory error."""
        assert self.first is not None
        assert self.oom_step is not None
        return self.oom_step - self.first.step

    def at(self, number: int) -> Forecast:
        return next(forecast for forecast in self.forecasts if forecast.step == number)


def replay(samples: Iterable[StepSample], forecaster: Forecaster, *, capacity: int, every: int = 1) -> Replay:
    """Feed a run as if live; it ends at the first step that does not fit under ``capacity``.

    ``every``: a forecast is made of every so many steps only, as of a backlog.
    """
    told = Replay()
    for sample in samples:
        if sample.memory is not None and sample.memory.reserved_peak_bytes > capacity:
            told.oom_step = sample.step
            return told
        if sample.step % every:
            forecaster.absorb_step(sample)
            continue
        update = forecaster.update_step(sample)
        told.forecasts.append(update.forecast)
        told.raised.extend(update.changes.raised)
        told.cleared.extend(update.changes.cleared)
    return told


def line(count: int, slope: float, *, base: float = BASE) -> Floats:
    return base + slope * np.arange(1, count + 1)


def saw(count: int, *, period: int, rise: float, base: float = BASE) -> Floats:
    """Rises by ``rise`` over each period, then falls back to its level trough."""
    return base + rise * (np.arange(count) % period) / max(period - 1, 1)
