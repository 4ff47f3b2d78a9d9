"""Properties: healthy runs of every kind never alert, leaks always do in time, and alerts do not flap."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Forecaster

from .traces import BASE, DEMAND, Floats, Replay, replay, steps

CAPACITY = 6 * GIB
ROOM = CAPACITY - BASE - DEMAND
EXAMPLES = settings(max_examples=12, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)


def run(troughs: Floats, **shape: object) -> Replay:
    return replay(steps(troughs, **shape), Forecaster(capacity_bytes=CAPACITY), capacity=CAPACITY)  # type: ignore[arg-type]


@EXAMPLES
@given(SEEDS, st.integers(2, 28), st.floats(1.0, 1500.0), st.floats(0.0, 5.0))
def test_saw_tooth_with_level_troughs(seed: int, period: int, rise_mib: float, noise_mib: float) -> None:
    """Each tooth has its own length and height; the troughs between are level."""
    rng = np.random.default_rng(seed)
    teeth: list[Floats] = []
    while sum(tooth.size for tooth in teeth) < 250:
        length = int(rng.integers(2, period + 1))
        teeth.append(np.linspace(0.0, rise_mib * MIB * rng.uniform(0.3, 1.0), length))
    troughs = BASE + np.concatenate(teeth) + np.abs(rng.normal(0.0, noise_mib * MIB, sum(t.size for t in teeth)))
    assert run(troughs).raised == []


@EXAMPLES
@given(SEEDS, st.integers(1, 25), st.floats(1.0, 1500.0), st.floats(0.0, 2.0))
def test_warm_up_then_flat(seed: int, length: int, rise_mib: float, noise_mib: float) -> None:
    """Grows in random lumps for some steps, then keeps its level."""
    rng = np.random.default_rng(seed)
    lumps = np.zeros(250)
    lumps[:length] = rng.dirichlet(np.ones(length)) * rise_mib * MIB
    assert run(BASE + np.cumsum(lumps) + rng.normal(0.0, noise_mib * MIB, 250)).raised == []


@EXAMPLES
@given(SEEDS, st.floats(0.0, 4.0), st.floats(1.0, 50.0))
def test_variable_batches_with_room(seed: int, live_mib: float, demand_mib: float) -> None:
    """What is live and what a step needs follow the batch, drawn anew every step."""
    rng = np.random.default_rng(seed)
    batches = rng.integers(1, 64, 250)
    demands = batches * demand_mib * MIB
    assert run(BASE + batches * live_mib * MIB, batches=batches, demands=demands).raised == []


@EXAMPLES
@given(SEEDS, st.floats(0.1, 300.0))
def test_noise_around_a_level(seed: int, noise_mib: float) -> None:
    rng = np.random.default_rng(seed)
    assert run(BASE + np.abs(rng.normal(0.0, noise_mib * MIB, 300))).raised == []


@EXAMPLES
@given(SEEDS, st.integers(40, 300), st.floats(0.0, 0.9))
def test_monotone_leak_is_flagged_ten_steps_before_and_once(seed: int, length: int, uneven: float) -> None:
    """Every step adds something, by up to ``uneven`` more or less than the mean."""
    rng = np.random.default_rng(seed)
    steps_of_growth = rng.uniform(1.0 - uneven, 1.0 + uneven, 2 * length) * ROOM / length
    told = run(BASE + np.cumsum(steps_of_growth))
    assert told.first is not None
    assert told.lead_steps() >= 10
    assert len({alert.alert_id for alert in told.raised}) == 1
    assert told.cleared == []
