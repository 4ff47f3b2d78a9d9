"""Cause ``spill``: a full card and slow steps, with and without a driver that moves memory to RAM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import Phase, PhaseSample, StepSample, Surroundings
from desktop_app.core.units import GIB
from desktop_app.forecast.forecaster import Forecaster

from .traces import BASE, Replay, memory, step

CARD = 8 * GIB
FULL = int(7.9 * GIB)


def live(
    seconds: Any,
    used: Any,
    *,
    spills: bool = True,
    tokens: Any = None,
    retries: Any = None,
    live_bytes: int = BASE,
) -> Replay:
    """Steps of so many seconds on a card of which so much is in use, as telemetry has it."""
    forecaster, told, t_s = Forecaster(capacity_bytes=CARD), Replay(), 0.0
    for at, step_s in enumerate(seconds):
        t_s += float(step_s)
        stats = memory(live_bytes, retries=int(retries[at]) if retries is not None else 0)
        sample: StepSample = replace(step(at + 1, stats), t_s=t_s, step_s=float(step_s))
        if tokens is not None:
            sample = replace(sample, batch_tokens=int(tokens[at]))
        around = Surroundings(t_s=t_s, device_used_bytes=int(used[at]), spills=spills)
        for update in (forecaster.update_surroundings(around), forecaster.update_step(sample)):
            told.raised += update.changes.raised
            told.cleared += update.changes.cleared
    return told


@pytest.mark.parametrize("factor", [2.5, 6.0])
@pytest.mark.parametrize("at", [30, 200])
def test_slow_steps_on_a_full_card(factor: float, at: int) -> None:
    late = np.arange(at + 30) >= at
    told = live(0.2 * np.where(late, factor, 1.0), np.where(late, FULL, 6 * GIB))
    first = told.first
    assert first is not None
    assert first.cause is Cause.SPILL
    assert at < first.step <= at + 5
    assert first.action == "leave_room"
    assert first.evidence["times_slower"] == pytest.approx(factor)
    assert first.evidence["usual_step_s"] == pytest.approx(0.2)
    assert [alert.severity for alert in told.raised] == [AlertSeverity.LIKELY, AlertSeverity.IMMINENT]
    assert told.cleared == []


def test_it_is_over_when_memory_has_gone_back() -> None:
    slow = (np.arange(300) >= 60) & (np.arange(300) < 90)
    told = live(0.5 * np.where(slow, 5.0, 1.0), np.where(slow, FULL, 6 * GIB))
    assert [alert.cause for alert in told.cleared] == [Cause.SPILL]


@pytest.mark.parametrize(
    "kind",
    ["full and fast", "slow with room", "slow now and then", "longer batches", "a driver that refuses", "retries"],
)
def test_no_spill(kind: str) -> None:
    at = np.arange(300)
    late = at >= 100
    usual, used = np.full(at.size, 0.2), np.where(late, FULL, 6 * GIB)
    told = {
        "full and fast": lambda: live(usual, used),
        "slow with room": lambda: live(np.where(late, 1.0, 0.2), np.full(at.size, 0.6 * CARD)),
        "slow now and then": lambda: live(np.where(at % 20 == 0, 2.0, 0.2), used),
        "longer batches": lambda: live(np.where(late, 1.0, 0.2), used, tokens=np.where(late, 5000, 1000)),
        "a driver that refuses": lambda: live(np.where(late, 1.0, 0.2), used, spills=False),
        "retries": lambda: live(np.where(late, 1.0, 0.2), used, retries=np.maximum(at - 99, 0)),
    }[kind]()
    assert told.raised == []


def test_a_slow_disk_beside_a_card_that_was_full_before() -> None:
    """Steps were fast on the same full card, so three times slower must be something else."""
    at = np.arange(300)
    assert live(np.where(at >= 200, 0.6, 0.2), np.where(at >= 50, FULL, 6 * GIB)).raised == []


@pytest.mark.parametrize("factor", [3.0, 6.0])
def test_a_slow_loader_beside_a_card_that_has_always_been_full(factor: float) -> None:
    """97 % in use from the first step on, and after 100 steps the data come slowly, for good: no spill."""
    at = np.arange(300)
    assert live(np.where(at >= 100, 0.2 * factor, 0.2), np.full(at.size, int(0.975 * CARD))).raised == []


@pytest.mark.parametrize(("waits", "alerts"), [(True, []), (False, [Cause.SPILL])])
def test_a_loader_that_becomes_slow_just_as_the_card_is_full(waits: bool, alerts: list[Cause]) -> None:
    """The trainer tells when the forward pass begins: a second of waiting before it, or a second of computing after."""
    forecaster, raised, t_s = Forecaster(capacity_bytes=CARD), [], 0.0
    for number in range(1, 81):
        slow = number > 40
        used = FULL if slow else 6 * GIB
        wait_s, compute_s = (1.0, 0.2) if slow and waits else (0.05, 1.15 if slow else 0.2)
        begin = PhaseSample(t_s + wait_s, number, Phase.FORWARD, memory(BASE))
        t_s += wait_s + compute_s
        sample: StepSample = replace(step(number, memory(BASE)), t_s=t_s, step_s=wait_s + compute_s)
        around = Surroundings(t_s=t_s, device_used_bytes=used, spills=True)
        updates = forecaster.update_phase(begin), forecaster.update_surroundings(around), forecaster.update_step(sample)
        raised += [alert.cause for update in updates for alert in update.changes.raised if alert.severity == "likely"]
    assert raised == alerts


@pytest.mark.parametrize("spills", [True, False])
def test_more_live_than_the_card_has(spills: bool) -> None:
    """OOM-69: 7.42 GiB allocated on a card of 4 is proof enough, at any speed."""
    told = live(np.full(10, 0.2), np.full(10, 7.9 * GIB), spills=spills, live_bytes=int(8.5 * GIB))
    assert told.first is not None
    assert told.first.cause is Cause.SPILL
    assert told.first.severity is AlertSeverity.IMMINENT
