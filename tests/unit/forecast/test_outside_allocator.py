"""Cause ``outside_allocator``: this process takes memory of the card past its allocator."""

from __future__ import annotations

import numpy as np
import pytest

from desktop_app.core.forecasts import Cause
from desktop_app.core.steps import StepSample
from desktop_app.core.units import GIB, MIB

from .surroundings_traces import RESERVED, first_of, flat, live_with

CARD = 8 * GIB
FREE = CARD - RESERVED


@pytest.mark.parametrize("told_by", ["telemetry", "steps"])
def test_graphs_and_kernels_that_pile_up(told_by: str) -> None:
    """30 MiB more a second over a context of 500 MiB: full after 200 s."""
    outside = 500.0 * MIB + np.arange(190) * (FREE - 500.0 * MIB) / 200.0

    def make(number: int) -> StepSample:
        return flat(number, step_s=1.0, outside=int(outside[number - 1]) if told_by == "steps" else 0)

    rows = [{"outside_bytes": int(size)} if told_by == "telemetry" else {} for size in outside]
    told = live_with(rows, steps_per_second=1.0, make_step=make, capacity=CARD)
    first = first_of(told, Cause.OUTSIDE_ALLOCATOR)
    assert {alert.cause for alert in told.raised} == {Cause.OUTSIDE_ALLOCATOR}
    assert first.eta_s == pytest.approx(200.0 - first.t_s, rel=0.1)
    assert first.t_s <= 140.0
    assert first.action == "free_outside"
    assert first.evidence["outside_bytes"] == pytest.approx(outside[int(first.t_s) - 1], rel=0.05)


@pytest.mark.parametrize("kind", ["compiles at first", "handles", "level", "jumps once"])
def test_what_ends_by_itself_is_no_alarm(kind: str) -> None:
    at = np.arange(300.0)
    outside = {
        "compiles at first": 400.0 * MIB + 1500.0 * MIB * np.minimum(at / 50.0, 1.0),
        "handles": 400.0 * MIB + 64.0 * MIB * np.minimum(at // 20, 6),
        "level": 400.0 * MIB + np.random.default_rng(1).normal(0, 3.0 * MIB, at.size),
        "jumps once": np.where(at < 100, 400.0, 2400.0) * MIB,
    }[kind]
    told = live_with({"outside_bytes": outside}, steps_per_second=1.0, capacity=CARD)
    assert told.raised == []


def test_it_is_not_taken_for_a_neighbour() -> None:
    outside = 500.0 * MIB + np.arange(150) * (FREE - 500.0 * MIB) / 160.0
    rows = [{"outside_bytes": int(size), "others_bytes": 300 * MIB} for size in outside]
    told = live_with(rows, steps_per_second=1.0, capacity=CARD)
    assert {alert.cause for alert in told.raised} == {Cause.OUTSIDE_ALLOCATOR}
