"""Zero false zeros: whatever fails, no reading is a value that the driver did not give."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from desktop_app.core.telemetry import DETAIL_FIELDS

ROOT = Path(__file__).resolve().parents[3]
TICKS = 10_000
# Fields of whose truth the trial keeps its own book, and that must have been seen often enough to mean something.
BOOKED = (
    "utilization_percent",
    "memory_used_bytes",
    "power_w",
    "power_average_w",
    "temperature_c",
    "sm_clock_mhz",
    "pcie_rx_bytes_per_s",
    "throttle_power_percent",
    "fan_percent",
    "performance_state",
    "ecc_uncorrected",
    "bar1_used_bytes",
    *DETAIL_FIELDS,
)


@pytest.mark.parametrize("seed", [int(os.environ.get("FLOODMARK_SEED", "5"))])
def test_random_errors_never_make_a_value(driver_folder: Path, seed: int) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tests.fake_nvml.random_errors", str(seed), str(TICKS)],
        env={**os.environ, "LD_LIBRARY_PATH": str(driver_folder), "FAKE_NVML_SCRIPT": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["false"] == []
    for field in BOOKED:
        assert told["seen"][field] > TICKS / 20, field
        assert told["absent"][field] > TICKS / 50, field


def test_random_errors_never_make_a_value_of_an_instance(driver_folder: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tests.fake_nvml.random_instances", os.environ.get("FLOODMARK_SEED", "5"), "2000"],
        env={**os.environ, "LD_LIBRARY_PATH": str(driver_folder), "FAKE_NVML_SCRIPT": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["false"] == []
    for field in ("memory_used_bytes", "sm_activity_percent", "tensor_activity_percent"):
        assert min(told["seen"][field], told["absent"][field]) > 200, field
    assert told["seen"].get("utilization_percent", 0) == 0  # no driver reports it of an instance
