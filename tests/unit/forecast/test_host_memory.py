"""Cause ``host_memory``: RAM and commit charge that rise to their end, and those that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.host_memory import HostMemoryCause
from desktop_app.forecast.sampled_growth import SampledGrowth

from .surroundings_traces import first_of, live_with, noise
from .traces import Floats

RAM = 32 * GIB


def ram(used: Floats, **parts: Floats) -> dict[str, Floats]:
    """Columns of telemetry for RAM of which ``used`` bytes are taken."""
    return {"host_total_bytes": np.full(used.size, float(RAM)), "host_available_bytes": RAM - used, **parts}


def test_meters_that_keep_graphs_fill_the_ram() -> None:
    """OOM-07 of the cases, at ten times its speed: 6 to 31 of 32 GB, in this process."""
    used = np.linspace(6.0, 31.0, 240) * GIB
    told = live_with(ram(used, own_rss_bytes=used - 4 * GIB), steps_per_second=1.0)
    first = first_of(told, Cause.HOST_MEMORY)
    assert first.severity is AlertSeverity.LIKELY
    assert first.t_s <= 150.0  # at less than 22 GB: the machine still answers
    full_s = 240.0 * (0.98 * 32 - 6.0) / 25.0
    assert first.eta_s == pytest.approx(full_s - first.t_s, rel=0.1)
    assert first.action == "free_host_memory"
    assert first.evidence["grown_own_rss_bytes"] == pytest.approx(first.evidence["grown_bytes"], rel=0.2)
    assert told.raised[-1].severity is AlertSeverity.IMMINENT
    assert told.cleared == []


def test_workers_that_multiply() -> None:
    """OOM-88 and OOM-90: the main process stays as it is, its workers become more and hold more."""
    at = np.arange(200.0)
    children = 4.0 * (1 + at // 50)
    workers = GIB + 23 * GIB * at / 200.0
    told = live_with(
        ram(
            6 * GIB + workers, own_rss_bytes=np.full(at.size, 5.0 * GIB), children_rss_bytes=workers, children=children
        ),
        steps_per_second=1.0,
    )
    first = first_of(told, Cause.HOST_MEMORY)
    assert first.action == "fewer_workers"
    assert first.evidence["grown_children_rss_bytes"] > 0.5 * first.evidence["grown_bytes"]
    assert first.evidence["grown_own_rss_bytes"] == 0.0


def test_commit_charge_of_windows() -> None:
    """OOM-91: RAM is flat, each epoch eats of what may be promised."""
    committed = 10.0 * GIB + np.arange(10.0).repeat(30) * 3 * GIB
    rows: list[dict[str, Any]] = [
        {
            "host_total_bytes": RAM,
            "host_available_bytes": 20 * GIB,
            "commit_used_bytes": int(size),
            "commit_limit_bytes": 40 * GIB,
        }
        for size in committed
    ]
    first = first_of(live_with(rows, steps_per_second=1.0), Cause.HOST_MEMORY)
    assert first.evidence["commit"] == 1.0
    assert first.t_s + first.eta_s == pytest.approx(300.0, abs=35.0)


@pytest.mark.parametrize("kind", ["full but level", "noise at the top", "loaded at first", "epochs", "far too slow"])
def test_ram_that_does_not_run_out_is_no_alarm(kind: str) -> None:
    at = np.arange(400.0)
    used = {
        "full but level": np.full(at.size, 0.95 * RAM),
        "noise at the top": 0.9 * RAM + np.abs(noise(3, at.size, 100.0 * MIB)),
        "loaded at first": 4 * GIB + 20 * GIB * np.minimum(at / 100.0, 1.0),
        "epochs": 6 * GIB + 10 * GIB * (at % 80) / 80.0,
        "far too slow": 6 * GIB + 10.0 * at * 1024,
    }[kind]
    told = live_with(ram(used), steps_per_second=1.0, first_s=110.0 if kind == "loaded at first" else 0.0)
    assert told.raised == []


def test_a_cache_that_fills_in_the_first_epoch() -> None:
    """It grows as a leak does until every sample has been seen: 300 steps, 18 of 26 GB."""
    at = np.arange(450.0)
    cached = 6 * GIB + 18 * GIB * np.minimum(at / 300.0, 1.0)
    assert live_with(ram(cached), steps_per_second=1.0, steps_per_epoch=300).raised == []
    doomed = 6 * GIB + 26 * GIB * np.minimum(at[:260] / 270.0, 1.0)
    told = live_with(ram(doomed), steps_per_second=1.0, steps_per_epoch=300)
    assert first_of(told, Cause.HOST_MEMORY).t_s < 180.0


def test_over_ninety_percent_and_rising_is_imminent() -> None:
    used = np.concatenate([np.full(60, 0.88 * RAM), 0.88 * RAM + 0.0008 * RAM * np.arange(100)])
    first = first_of(live_with(ram(used), steps_per_second=1.0), Cause.HOST_MEMORY)
    assert first.severity is AlertSeverity.IMMINENT
    assert first.evidence["host_used_bytes"] < 0.94 * RAM


def test_memory_of_the_model_itself_is_bounded() -> None:
    """A day of samples: what is kept does not grow."""
    growth = SampledGrowth()
    for second in range(20_000):
        growth.add(float(second), 6.0 * GIB + (second % 7) * MIB)
    assert len(growth._heights._blocks) <= 128
    assert len(growth._times) == 16
    assert HostMemoryCause()._ram.samples == 0
