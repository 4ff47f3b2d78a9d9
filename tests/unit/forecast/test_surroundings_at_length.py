"""Telemetry of long healthy runs, straight into the causes: many samples, no alert."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from desktop_app.core.forecasts import Alert
from desktop_app.core.steps import Surroundings
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.cause_model import CauseModel, View
from desktop_app.forecast.environment import Environment
from desktop_app.forecast.evidence import Evidence
from desktop_app.forecast.host_memory import HostMemoryCause
from desktop_app.forecast.neighbour import NeighbourCause
from desktop_app.forecast.outside_allocator import OutsideAllocatorCause
from desktop_app.forecast.policy import Policy

from .surroundings_traces import CAPACITY, RESERVED, flat
from .traces import Floats

SAMPLES = 2_000  # of each kind; with 12,000, 156,000 in all, it is silent too
FREE = CAPACITY - RESERVED
RAM = 64 * GIB


def jitter(rng: np.random.Generator, at: Floats) -> Floats:
    return 3 * GIB + rng.uniform(-200.0, 200.0, at.size) * MIB


def wave(rng: np.random.Generator, at: Floats) -> Floats:
    return 3 * GIB + 200 * MIB * np.sin(at / rng.uniform(5.0, 300.0)) + rng.normal(0.0, 10 * MIB, at.size)


def jobs(rng: np.random.Generator, at: Floats) -> Floats:
    period, share = int(rng.integers(30, 900)), rng.uniform(0.2, 0.8)
    return 2 * GIB + 0.5 * FREE * ((at % period) < share * period) + rng.normal(0.0, 5 * MIB, at.size)


def ramps(rng: np.random.Generator, at: Floats) -> Floats:
    period = int(rng.integers(60, 900))
    return 2 * GIB + 0.3 * FREE * (at % period) / period + rng.normal(0.0, 5 * MIB, at.size)


def wander(rng: np.random.Generator, at: Floats) -> Floats:
    kicks = rng.normal(0.0, 20 * MIB, at.size + 1000)
    kernel = 0.99 ** np.arange(1000)
    walked: Floats = np.maximum(3 * GIB + np.convolve(kicks, kernel, mode="valid")[: at.size], 0.0)
    return walked


KINDS = (jitter, wave, jobs, ramps, wander)


def rows_of(cause: str, values: Floats, *, first_s: float = 20.0) -> list[Surroundings]:
    if cause == "host":
        return [
            Surroundings(t_s=first_s + k, host_total_bytes=RAM, host_available_bytes=int(RAM - value))
            for k, value in enumerate(values)
        ]
    if cause == "neighbour":
        return [Surroundings(t_s=first_s + k, others_bytes=int(value)) for k, value in enumerate(values)]
    return [Surroundings(t_s=first_s + k, outside_bytes=int(value)) for k, value in enumerate(values)]


def alerts(model: CauseModel, rows: list[Surroundings]) -> list[Alert]:
    """What the policy makes of one cause alone, one step a second."""
    evidence, policy = Evidence(), Policy()
    raised: list[Alert] = []
    for number in range(1, 21):
        evidence.add(flat(number, step_s=1.0))
    for row in rows:
        evidence.step += 1
        evidence.t_s = row.t_s
        environment = Environment(CAPACITY, row.others_bytes or 0, row.outside_bytes or 0)
        view = View(evidence, environment, None)
        model.take_surroundings(row, view)
        found = model.outlook(view, known=policy.is_open(model.cause))
        outlooks = {} if found is None else {model.cause: found}
        raised += policy.update(row.t_s, evidence.step, outlooks, 1.0).raised
    return raised


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cause", ["neighbour", "outside", "host"])
def test_hours_of_noise_with_room(cause: str, kind: Callable[[np.random.Generator, Floats], Floats]) -> None:
    if cause == "outside" and kind in (jobs, ramps):
        return  # a process keeps its own context
    model = {"neighbour": NeighbourCause, "outside": OutsideAllocatorCause, "host": HostMemoryCause}[cause]()
    values = kind(np.random.default_rng(len(cause)), np.arange(float(SAMPLES)))
    assert alerts(model, rows_of(cause, values)) == []
