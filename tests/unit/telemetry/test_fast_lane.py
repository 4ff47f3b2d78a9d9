"""A fast lane of fewer fields: those and no others, and never without what they are judged by."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import FAST_FIELDS
from desktop_app.telemetry.nvml_backend import NvmlBackend

FEWER = """
import json
from desktop_app.core.clock import SessionClock
from desktop_app.telemetry.nvml_backend import NvmlBackend

seen = []
for fields in (["temperature_c", "power_average_w", "utilization_percent", "memory_utilization_percent"],
               ["sm_clock_mhz", "utilization_percent", "memory_utilization_percent", "power_average_w", "power_w",
                "temperature_c", "pcie_rx_bytes_per_s"]):
    backend = NvmlBackend(SessionClock(), fast_fields=fields)
    (card,) = backend.open()
    readings = backend.read_fast(card)
    seen.append([set(readings) == set(fields), readings["temperature_c"].value, readings["power_average_w"].value])
    backend.close()
print(json.dumps(seen))
"""


def test_a_fast_lane_of_fewer_fields(driver_folder: Path) -> None:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver_folder)}
    result = subprocess.run(
        [sys.executable, "-c", FEWER], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout) == [
        [True, 61.0, pytest.approx(150.25)],  # alone by the older call, and beside others as field 185
        [True, 61.0, pytest.approx(148.0)],
    ]


@pytest.mark.parametrize(
    "fields",
    [
        (),
        ("memory_used_bytes", "power_w"),
        tuple(field for field in FAST_FIELDS if field != "temperature_c"),
        tuple(field for field in FAST_FIELDS if field != "utilization_percent"),
        (*FAST_FIELDS, "fan_percent"),
    ],
)
def test_a_fast_lane_that_cannot_be_judged_is_refused(fields: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="a fast lane is some of"):
        NvmlBackend(SessionClock(), fast_fields=fields)
