"""The four demonstrations end to end: what the README promises, on the simulated default card."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.window.demonstrations import run_demo

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

GTX_1660_BYTES = 6 * 1024**3


def test_cats_and_dogs_are_learnt_without_an_alert(tmp_path: Path) -> None:
    outcome = run_demo(tmp_path, "cats-dogs", "--for", "60")
    report = outcome.report
    assert outcome.exit_code == report["exit_code"] == 0
    assert report["schema"] == 1
    assert report["scenario"] == "cats-dogs"
    assert report["card"]["simulated"] is True
    assert 0.95 * GTX_1660_BYTES < report["card"]["capacity_bytes"] <= GTX_1660_BYTES
    assert report["val_accuracy_best"] >= 0.90
    assert report["loss_last"] < report["loss_first"]
    assert report["alerts"] == []
    assert report["oom"] is None
    assert report["estimate"]["verdict"] == "fits"
    assert report["telemetry"]["samples"] > 200
    assert {"utilization_percent", "temperature_c", "power_w", "memory_used_bytes"} <= set(
        report["telemetry"]["fields_available"]
    )


def test_leak_is_forecast_long_before_memory_runs_out(tmp_path: Path) -> None:
    outcome = run_demo(tmp_path, "leak")
    report = outcome.report
    assert outcome.exit_code == report["exit_code"] == 3
    first, oom = report["alerts"][0], report["oom"]
    assert first["cause"] == "leak"
    assert oom["step"] - first["step"] >= 10
    half_way = report["forecast_half_way"]
    assert half_way["eta_steps"] == pytest.approx(half_way["true_steps"], rel=0.25)
    assert first["eta_steps"] == pytest.approx(oom["step"] - first["step"], rel=0.25)
    assert "CUDA out of memory. Tried to allocate" in oom["message"]
    assert oom["cause"] == "leak"


def test_first_optimizer_step_is_announced_before_the_call(tmp_path: Path) -> None:
    report = run_demo(tmp_path, "first-step").report
    assert report["exit_code"] == 3
    alert, oom = report["alerts"][0], report["oom"]
    assert alert["cause"] == "first_optimizer_step"
    assert alert["step"] == oom["step"] == 1
    assert alert["t_s"] < oom["t_s"]
    assert oom["phase"] == "optimizer"


def test_too_big_is_refused_by_the_estimate_and_its_advice_runs(tmp_path: Path) -> None:
    refused = run_demo(tmp_path / "refused", "too-big").report
    assert refused["exit_code"] == 3
    assert refused["estimate"]["verdict"] == "does_not_fit"
    largest = refused["estimate"]["largest_batch"]
    assert 0 < largest < refused["estimate"]["batch_size"]
    advised = run_demo(tmp_path / "advised", "too-big", "--for", "75", batch=largest, timeout_s=220).report
    assert advised["exit_code"] == 0
    assert advised["steps"] >= 1
    assert advised["oom"] is None
    assert advised["alerts"] == []
    assert advised["estimate"]["verdict"] == "fits"
