"""Estimates, forecasts and alerts of ``FakeWorkspace``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from desktop_app.core.estimates import PhasePeaks, Timeline
from desktop_app.core.forecasts import Alert, AlertSeverity, Cause, Estimate, Forecast, Lever, Quantiles, Verdict
from desktop_app.core.steps import Phase
from desktop_app.core.units import GIB
from desktop_app.services.facade import EstimateState, EstimateStatus
from desktop_app.training.config import RunConfig
from tests.ui.fake_data import (
    CATEGORIES,
    CONTEXT_BYTES,
    IDLE_BYTES,
    LEAK_BYTES_PER_STEP,
    LEAK_STEPS,
    NOW_STEP,
    OTHERS_BYTES,
    WITHOUT_CARD,
    FakeState,
    device_bytes,
)
from tests.ui.fake_timelines import bert_large_like, bert_modules


def estimate_status(state: FakeState, config: RunConfig) -> EstimateStatus:
    if state is FakeState.NOTHING:
        return EstimateStatus(EstimateState.NONE)
    if state is FakeState.ESTIMATING:
        return EstimateStatus(EstimateState.WORKING, config=config)
    if state is FakeState.ESTIMATE_FAILED:
        error = "The folder /data/pictures holds one class only: a classifier needs two."
        return EstimateStatus(EstimateState.FAILED, config=config, error_code="data.one_class", error=error)
    if state in WITHOUT_CARD:
        return EstimateStatus(EstimateState.NONE)
    answer = ready_estimate()
    if state in {FakeState.LEAK, FakeState.OUT_OF_MEMORY}:
        answer = without_leak(answer)
    if state is FakeState.TOO_BIG:
        too_big = Quantiles(p50=int(7.9 * GIB), p90=int(8.3 * GIB), p95=int(8.5 * GIB))
        answer = dataclasses.replace(
            answer,
            device_peak_bytes=too_big,
            verdict=Verdict.DOES_NOT_FIT,
            fits_probability=0.0,
            batch_size=512,
            largest_batch=312,
            phase_peaks=phase_peaks(scale=7.9 / 4.31),
        )
    return EstimateStatus(EstimateState.READY, estimate=answer, config=config)


def ready_estimate() -> Estimate:
    device = Quantiles(p50=int(4.31 * GIB), p90=int(4.5 * GIB), p95=int(4.6 * GIB))
    return Estimate(
        live_peak_bytes=Quantiles(p50=int(3.6 * GIB), p90=int(3.62 * GIB), p95=int(3.65 * GIB)),
        reserved_peak_bytes=Quantiles(p50=int(3.83 * GIB), p90=int(3.9 * GIB), p95=int(3.95 * GIB)),
        device_peak_bytes=device,
        capacity_bytes=6 * GIB,
        others_bytes=OTHERS_BYTES,
        fits_probability=0.99,
        verdict=Verdict.FITS,
        batch_size=64,
        largest_batch=88,
        peak_phase=Phase.BACKWARD,
        phases={
            Phase.BUILD: int(0.94 * GIB),
            Phase.FORWARD: int(3.9 * GIB),
            Phase.BACKWARD: int(4.31 * GIB),
            Phase.OPTIMIZER: int(3.4 * GIB),
        },
        categories=CATEGORIES,
        context_bytes=CONTEXT_BYTES,
        idle_bytes=IDLE_BYTES,
        optimizer_demand_bytes=int(1.1 * GIB),
        rung="meta",
        seconds=0.8,
        levers=LEVERS,
        phase_peaks=phase_peaks(),
        modules=bert_modules(),
        timeline=step_timeline(),
        kernels_assumed=("attention:flash", "optimizer:foreach"),
        guesses={"aten._local_scalar_dense": 3},
        rung_width=0.01,
    )


LEVERS = (
    Lever("batch_accumulate", {"batch_size": 48, "accumulation": 2}, int(0.34 * GIB), int(3.97 * GIB)),
    Lever("bf16", {"precision": "bf16"}, int(0.61 * GIB), int(3.70 * GIB)),
    Lever("sgd", {"optimizer": "sgd"}, int(0.78 * GIB), int(3.53 * GIB)),
    Lever("no_foreach", {"foreach": False}, int(0.52 * GIB), int(3.79 * GIB)),
    Lever("checkpoint_full", {}, int(0.31 * GIB), int(4.0 * GIB), {"checkpointing": "full"}),
    Lever("expandable_segments", {}, int(0.2 * GIB), int(4.11 * GIB), {}),
    Lever("zero1", {}, int(0.15 * GIB), int(4.16 * GIB), {"sharding": "zero1", "world_size": 4}),
    Lever("lora_8", {}, int(0.1 * GIB), int(4.21 * GIB), {"lora_rank": 8}),
)


@lru_cache
def step_timeline() -> Timeline:
    """Made once: the window compares by identity, and two thousand blocks take a while."""
    return bert_large_like(blocks=2000)


def phase_peaks(*, scale: float = 1.0) -> dict[Phase, PhasePeaks]:
    """Peaks of device by phase: P50, and a spread of 5 % to P95."""
    sizes = {Phase.BUILD: 0.94, Phase.FORWARD: 3.9, Phase.BACKWARD: 4.31, Phase.OPTIMIZER: 3.4, Phase.ZERO: 3.2}
    found = {}
    for phase, share in sizes.items():
        gib = scale * share
        device = Quantiles(int(gib * GIB), int(1.04 * gib * GIB), int(1.06 * gib * GIB))
        found[phase] = PhasePeaks(device, device, device)
    return found


def without_leak(answer: Estimate) -> Estimate:
    """What was said before a run that leaks: it fits well, for nobody traces two hundred steps."""
    return dataclasses.replace(
        answer,
        device_peak_bytes=Quantiles(p50=int(2.65 * GIB), p90=int(2.74 * GIB), p95=int(2.8 * GIB)),
        largest_batch=216,
    )


def leak_evidence() -> dict[str, float]:
    return {
        "slope_bytes_per_step": float(LEAK_BYTES_PER_STEP),
        "grown_steps": float(LEAK_STEPS),
        "batch_samples": 64.0,
    }


def leak_forecast(now_s: float) -> Forecast:
    return Forecast(
        t_s=now_s,
        step=NOW_STEP,
        device_bytes=device_bytes(FakeState.LEAK, NOW_STEP),
        capacity_bytes=6 * GIB,
        p_oom={1: 0.0, 10: 0.01, 100: 0.22},
        p_oom_run=0.97,
        cause=Cause.LEAK,
        cause_share=0.98,
        severity=AlertSeverity.LIKELY,
        eta_steps=160.0,
        eta_steps_low=136.0,
        eta_steps_high=200.0,
        eta_s=200.0,
        eta_low_s=170.0,
        eta_high_s=250.0,
        flood_low_bytes=int(6.2 * GIB),
        flood_high_bytes=int(6.5 * GIB),
        evidence=leak_evidence(),
    )


def leak_alert(t_s: float) -> Alert:
    return Alert(
        alert_id=1,
        t_s=t_s,
        step=NOW_STEP - 48,
        cause=Cause.LEAK,
        severity=AlertSeverity.LIKELY,
        eta_steps=208.0,
        eta_steps_low=136.0,
        eta_steps_high=200.0,
        eta_s=260.0,
        eta_low_s=170.0,
        eta_high_s=250.0,
        evidence=leak_evidence(),
        action="save_and_pause",
    )


def first_step_forecast(now_s: float) -> Forecast:
    return Forecast(
        t_s=now_s,
        step=1,
        device_bytes=int(4.9 * GIB),
        capacity_bytes=6 * GIB,
        p_oom={1: 0.96, 10: 0.97, 100: 0.97},
        p_oom_run=0.97,
        cause=Cause.FIRST_OPTIMIZER_STEP,
        cause_share=1.0,
        severity=AlertSeverity.IMMINENT,
        eta_steps=0.0,
        eta_s=0.0,
        flood_low_bytes=int(6.9 * GIB),
        flood_high_bytes=int(7.1 * GIB),
        evidence={"demand_bytes": 2.1 * GIB, "room_bytes": 1.1 * GIB},
    )


def first_step_alert(now_s: float) -> Alert:
    return Alert(
        alert_id=1,
        t_s=now_s,
        step=1,
        cause=Cause.FIRST_OPTIMIZER_STEP,
        severity=AlertSeverity.IMMINENT,
        eta_steps=0.0,
        eta_steps_low=0.0,
        eta_steps_high=0.0,
        eta_s=0.0,
        eta_low_s=0.0,
        eta_high_s=0.0,
        evidence={"demand_bytes": 2.1 * GIB, "room_bytes": 1.1 * GIB},
        action="reduce_batch",
    )


def calm_forecast(now_s: float, step: int, capacity_bytes: int) -> Forecast:
    return Forecast(
        t_s=now_s,
        step=step,
        device_bytes=device_bytes(FakeState.HEALTHY, step),
        capacity_bytes=capacity_bytes,
        p_oom={1: 0.0, 10: 0.0, 100: 0.001},
        p_oom_run=0.002,
        flood_low_bytes=int(4.56 * GIB),
        flood_high_bytes=int(4.62 * GIB),
    )


# One alert of every cause, with the figures that ``desktop_app.forecast`` gives it.
EVIDENCE: Final[Mapping[Cause, Mapping[str, float]]] = {
    Cause.FIRST_OPTIMIZER_STEP: {"demand_bytes": 2.1 * GIB, "room_bytes": 1.1 * GIB},
    Cause.LEAK: leak_evidence(),
}
STATES: Final = frozenset({FakeState.SEVERAL_ALERTS, FakeState.VALIDATION_AHEAD, FakeState.HOST_FULL})


def alert_of(
    cause: Cause,
    now_s: float,
    *,
    severity: AlertSeverity = AlertSeverity.LIKELY,
    action: str = "save_and_pause",
    alert_id: int = 1,
    steps: float = 160.0,
    cleared_t_s: float | None = None,
) -> Alert:
    """An alert of ``cause`` raised now, ``steps`` from the brim."""
    return Alert(
        alert_id=alert_id,
        t_s=now_s,
        step=NOW_STEP,
        cause=cause,
        severity=severity,
        eta_steps=steps,
        eta_steps_low=0.85 * steps,
        eta_steps_high=1.25 * steps,
        eta_s=1.25 * steps,
        eta_low_s=1.0625 * steps,
        eta_high_s=1.5625 * steps,
        evidence=EVIDENCE.get(cause, {}),
        action=action,
        cleared_t_s=cleared_t_s,
    )


def forecast_of(alert: Alert, now_s: float) -> Forecast:
    """The forecast that says the same as ``alert``."""
    return Forecast(
        t_s=now_s,
        step=NOW_STEP,
        device_bytes=device_bytes(FakeState.HEALTHY, NOW_STEP),
        capacity_bytes=6 * GIB,
        p_oom={1: 0.0, 10: 0.02, 100: 0.31},
        p_oom_epoch=0.35,
        p_oom_run=0.93,
        cause=alert.cause,
        cause_share=0.9,
        severity=alert.severity,
        eta_steps=alert.eta_steps,
        eta_steps_low=alert.eta_steps_low,
        eta_steps_high=alert.eta_steps_high,
        eta_s=alert.eta_s,
        eta_low_s=alert.eta_low_s,
        eta_high_s=alert.eta_high_s,
        flood_low_bytes=int(6.1 * GIB),
        flood_high_bytes=int(6.4 * GIB),
        evidence=alert.evidence,
    )


def alerting(state: FakeState, now_s: float) -> tuple[Forecast, tuple[Alert, ...]]:
    """Forecast and alerts of the states in ``STATES``."""
    if state is FakeState.VALIDATION_AHEAD:
        alert = alert_of(Cause.VALIDATION, now_s, action="smaller_validation_batch", steps=48.0)
        return forecast_of(alert, now_s), (alert,)
    if state is FakeState.HOST_FULL:
        alert = alert_of(Cause.HOST_MEMORY, now_s, action="fewer_workers", severity=AlertSeverity.IMMINENT, steps=14.0)
        return forecast_of(alert, now_s), (alert,)
    over = alert_of(
        Cause.FRAGMENTATION, now_s - 330.0, action="expandable_segments", alert_id=1, cleared_t_s=now_s - 90.0
    )
    others = (
        alert_of(Cause.NEIGHBOUR, now_s - 180.0, action="close_neighbour", alert_id=2, steps=420.0),
        alert_of(Cause.SPILL, now_s - 60.0, action="leave_room", alert_id=4, severity=AlertSeverity.WATCH),
        alert_of(Cause.LEAK, now_s - 30.0, alert_id=3, severity=AlertSeverity.IMMINENT, steps=16.0),
    )
    return forecast_of(others[-1], now_s), (over, *others)
