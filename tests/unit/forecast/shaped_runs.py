"""Made-up runs whose steps follow the shape of their batches, and phases that come between the steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from desktop_app.core.forecasts import Alert, Cause
from desktop_app.core.steps import BatchShape, MemoryStats, Phase, PhaseSample, StepSample
from desktop_app.core.units import GIB, KIB, MIB
from desktop_app.forecast.forecaster import Forecaster, Update

from .traces import memory, step

SAMPLES = 16
FIXED = 400 * MIB  # gradients and workspaces
PER_TOKEN = 60 * KIB
BASE = 2 * GIB


def demand_of(tokens: float, *, squared: float = 0.0) -> float:
    """Peak less trough of a step: linear in the tokens, and attention's square of the lengths."""
    length = tokens / SAMPLES
    return FIXED + PER_TOKEN * tokens + squared * SAMPLES * length**2


@dataclass
class Told:
    """What came of a run; ``oom_step`` is the first one that did not fit."""

    raised: list[Alert] = field(default_factory=list)
    before_call: list[Alert] = field(default_factory=list)  # those that a look ahead raised
    oom_step: int | None = None

    def causes(self) -> set[Cause]:
        return {alert.cause for alert in self.raised}


def run_lengths(
    lengths: Iterable[float],
    forecaster: Forecaster,
    *,
    capacity: float,
    squared: float = 0.0,
    look_ahead: bool = True,
    steps_per_epoch: int | None = None,
    tells_tokens: bool = True,
    noise: float = 0.002,
    seed: int = 0,
) -> Told:
    """Text of these lengths, padded to ``SAMPLES`` sequences; ends where a step does not fit under ``capacity``."""
    rng = np.random.default_rng(seed)
    told = Told()
    stats: MemoryStats | None = None
    reserved, longest = 0.0, 0
    for number, length in enumerate(lengths, 1):
        shape = BatchShape(SAMPLES, int(length) * SAMPLES)
        assert shape.tokens is not None
        if look_ahead and stats is not None and shape.tokens > longest:
            longest = shape.tokens
            ahead = forecaster.update_phase(forward(number, stats, shape))
            told.before_call.extend(ahead.changes.raised)
            told.raised.extend(ahead.changes.raised)
        demand = demand_of(shape.tokens, squared=squared) * (1.0 + rng.normal(0.0, noise))
        if BASE + demand > capacity:
            told.oom_step = number
            return told
        reserved = max(reserved, BASE + demand)
        stats = memory(BASE, demand=demand, idle_at_peak=reserved - BASE - demand)
        epoch = 1 if steps_per_epoch is None else (number - 1) // steps_per_epoch + 1
        sample = replace(
            step(number, stats, batch=SAMPLES, epoch=epoch), batch_tokens=shape.tokens if tells_tokens else None
        )
        told.raised.extend(forecaster.update_step(sample).changes.raised)
    return told


def forward(number: int, stats: MemoryStats, shape: BatchShape) -> PhaseSample:
    """Just before the forward pass of a step, as after the step before it."""
    now = replace(stats, reserved_peak_bytes=stats.reserved_bytes, live_peak_bytes=stats.live_bytes)
    now = replace(now, returnable_bytes=stats.reserved_bytes - stats.live_bytes)
    return PhaseSample(number * 0.1 - 0.05, number, Phase.FORWARD, now, batch=shape)


def phase(
    forecaster: Forecaster,
    kind: Phase,
    number: int,
    live: float,
    *,
    peak: float | None = None,
    t_s: float | None = None,
    known_demand_bytes: int | None = None,
    known_host_bytes: int | None = None,
    batch: BatchShape | None = None,
    done: int = 0,
    count: int | None = None,
    ended: bool = False,
) -> Update:
    """A sample of a phase with ``live`` bytes and a peak of ``peak`` since the last step."""
    stats = memory(live, demand=(peak or live) - live)
    return forecaster.update_phase(
        PhaseSample(
            t_s=number * 0.1 + 0.05 if t_s is None else t_s,
            step=number,
            phase=kind,
            memory=stats,
            known_demand_bytes=known_demand_bytes,
            known_host_bytes=known_host_bytes,
            batch=batch,
            done=done,
            count=count,
            ended=ended,
        )
    )


def train(forecaster: Forecaster, first: int, last: int, *, live: float, demand: float) -> list[Alert]:
    """Steps ``first`` to ``last`` of one shape."""
    raised: list[Alert] = []
    for number in range(first, last + 1):
        sample: StepSample = step(number, memory(live, demand=demand))
        raised.extend(forecaster.update_step(sample).changes.raised)
    return raised
