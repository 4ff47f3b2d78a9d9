"""Demonstrations end to end, without a window: what the README promises, on simulated cards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.window.demonstrations import run_demo

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

GTX_1660_BYTES = 6 * 1024**3
# As the whole card, in a sixth of the time and of the RAM: the same network and the same advice.
SMALL_CARD = ("--card", "GeForce GTX 1660 capped at 1 GiB")
TOO_MANY = 256


def test_cats_and_dogs_are_learnt_without_an_alert(tmp_path: Path) -> None:
    outcome = run_demo(tmp_path, "cats-dogs", "--for", "40")
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


def test_too_big_is_refused_by_the_estimate_and_its_advice_runs(tmp_path: Path) -> None:
    refused = run_demo(tmp_path / "refused", "too-big", *SMALL_CARD, batch=TOO_MANY).report
    assert refused["exit_code"] == 3
    assert refused["estimate"]["verdict"] == "does_not_fit"
    largest = refused["estimate"]["largest_batch"]
    assert 0 < largest < refused["estimate"]["batch_size"] == TOO_MANY
    advised = run_demo(tmp_path / "advised", "too-big", *SMALL_CARD, "--for", "12", batch=largest).report
    assert advised["exit_code"] == 0
    assert advised["steps"] >= 1
    assert advised["oom"] is None
    assert advised["alerts"] == []
    assert advised["estimate"]["verdict"] == "fits"
