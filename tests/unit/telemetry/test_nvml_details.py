"""The details of a card: each fails alone, for a time, and asks the driver no more than it must."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from desktop_app.core.telemetry import DETAIL_FIELDS
from tests.fake_nvml.driver import PlaySteps
from tests.unit.telemetry.test_nvml_readings import EVERYTHING, only

ROOT = Path(__file__).resolve().parents[3]
VALUES = f"{EVERYTHING},field138.all=1000,field139.all=5000"
GPM = {name for name in DETAIL_FIELDS if "activity" in name or "occupancy" in name}
FAILING: dict[str, set[str]] = {
    "gpm2": {"sm_activity_percent"},
    "gpm10": {"dram_activity_percent"},
    "nvmlGpmQueryDeviceSupport": GPM,
    "nvmlGpmSampleGet": GPM,
    "nvmlGpmMetricsGet": GPM,
    "field76": {"throttle_sync_boost_percent"},
    "field79": {"throttle_reliability_percent"},
    "nvmlDeviceGetMarginTemperature": {"temperature_margin_c"},
    "field186.1": {"power_module_w"},
    "nvmlDeviceGetJpgUtilization": {"jpeg_percent"},
    "nvmlDeviceGetOfaUtilization": {"optical_flow_percent"},
    "nvmlDeviceGetEncoderStats": {"encoder_sessions"},
    "field94": {"pcie_replays"},
    "field139.all": {"nvlink_rx_bytes_per_s"},
    "link2": {"nvlinks_active"},
    "field3": {"ecc_corrected"},
    "field6": {"ecc_uncorrected_total"},
    "field143": {"remapped_rows_uncorrected"},
    "field145": {"remapping_failed"},
    "field30": {"retired_pages"},
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": {"mps_clients"},
}
IMPOSSIBLE = {
    "graphics_clock=0": "graphics_clock_mhz",
    "video_clock=4294967295": "video_clock_mhz",
    "throttle_reasons=18446744073709551615": "throttle_reasons",
    "margin=4294967": "temperature_margin_c",
    "field186.1=0": "power_module_w",
    "jpeg=101": "jpeg_percent",
    "optical_flow=4294967295": "optical_flow_percent",
    "encoder_sessions=18446744073709551615": "encoder_sessions",
    "field94=4294967295": "pcie_replays",
    "field3=18446744073709551615": "ecc_corrected",
    "field5=9223372036854775808": "ecc_corrected_total",
    "field144=2": "remapping_pending",
    "field29=18446744073709551615": "retired_pages",
    "field139.all=18446744073709551615": "nvlink_rx_bytes_per_s",
    "field78=18446744073709551615": "throttle_low_utilization_percent",
    "gpm5=10100": "tensor_activity_percent",
    "gpm3=18446744073709551615": "sm_occupancy_percent",  # not a number
    "link1=7": "nvlinks_active",
}


class TestEachFailsAlone:
    @pytest.fixture(scope="class")
    @classmethod
    def played(cls, play: PlaySteps) -> dict[str, Any]:
        """For each failure: once before it, once while it lasts, twice more than a minute later."""
        steps: list[dict[str, Any]] = [{"do": ["open", "slow"], "values": VALUES}]
        for number, failing in enumerate(FAILING):
            for after_s in (0.0, 1.0, 62.0, 63.0):
                errors = f"{failing}=3" if after_s == 1.0 else ""
                steps.append(
                    {"t_s": 100.0 * (number + 1) + after_s, "do": ["slow"], "values": VALUES, "errors": errors}
                )
        return play(steps)

    @pytest.mark.parametrize("failing", FAILING)
    def test_with_its_reason_and_for_a_time(self, played: dict[str, Any], failing: str) -> None:
        first = 1 + 4 * list(FAILING).index(failing)
        readings = only(played, first + 1, "slow")
        asked_once = failing == "nvmlGpmQueryDeviceSupport"  # a card has it or not
        missing = {name for name in DETAIL_FIELDS if readings[name][0] is None}
        assert missing == (set() if asked_once else FAILING[failing])
        assert {readings[name][1] for name in missing} <= {"not_supported"}
        last = only(played, first + 3, "slow")
        assert [name for name in DETAIL_FIELDS if last[name][0] is None] == []


class TestValuesThatCannotBeTrue:
    @pytest.fixture(scope="class")
    @classmethod
    def played(cls, play: PlaySteps) -> dict[str, Any]:
        steps = [
            {"t_s": 2.0 + n, "do": ["slow"], "values": f"{VALUES},{values}"} for n, values in enumerate(IMPOSSIBLE)
        ]
        return play([{"t_s": t_s, "do": ["open", "slow"], "values": VALUES} for t_s in (0.0, 1.0)] + steps)

    @pytest.mark.parametrize("values", IMPOSSIBLE)
    def test_are_not_available(self, played: dict[str, Any], values: str) -> None:
        readings = only(played, 2 + list(IMPOSSIBLE).index(values), "slow")
        assert readings[IMPOSSIBLE[values]] == [None, "implausible"]


def test_a_card_without_links_has_no_bytes_of_links(play: PlaySteps) -> None:
    steps = [
        {"t_s": t, "do": ["open", "slow"], "values": "field91=0,field138.all=0,field139.all=0"} for t in (0.0, 1.0)
    ]
    slow = only(play(steps), 1, "slow")
    names = ("nvlinks_active", "nvlink_rx_bytes_per_s", "nvlink_tx_bytes_per_s")
    assert [slow[name] for name in names] == [[None, "not_supported"]] * 3


def test_nvlink_5_counts_bytes(play: PlaySteps) -> None:
    steps = [
        {"t_s": t, "do": ["open", "slow"], "values": f"field91=18,field202.all={sent},field204.all={got}"}
        for t, sent, got in ((0.0, 0, 1000), (1.0, 3_000_000_000, 500_001_000))
    ]
    slow = only(play(steps), 1, "slow")
    assert slow["nvlink_tx_bytes_per_s"] == [pytest.approx(3e9), None]
    assert slow["nvlink_rx_bytes_per_s"] == [pytest.approx(5e8), None]
    assert slow["nvlinks_active"] == [18.0, None]


def test_counters_of_a_driver_that_has_run_for_weeks(play: PlaySteps) -> None:
    """Capped for 80 h (2**48 ns are 78), and 2**50 bytes over each way of NVLink 5 (2**48 are five minutes)."""
    capped_ns, moved = 80 * 3600 * 10**9, 2**50
    steps = [
        {
            "t_s": t,
            "do": ["open", "fast", "slow"],
            "values": f"field91=18,field202.all={moved + sent},field204.all={moved},field74={capped_ns + ns},"
            f"field75={capped_ns},field77={capped_ns + ns}",
        }
        for t, sent, ns in ((0.0, 0, 0), (1.0, 3_000_000_000, 250_000_000))
    ]
    played = play(steps)
    fast, slow = only(played, 1, "fast"), only(played, 1, "slow")
    assert fast["throttle_power_percent"] == [pytest.approx(25.0), None]
    assert fast["throttle_thermal_percent"] == [0.0, None]
    assert slow["throttle_board_limit_percent"] == [pytest.approx(25.0), None]
    assert slow["nvlink_tx_bytes_per_s"] == [pytest.approx(3e9), None]
    assert slow["nvlink_rx_bytes_per_s"] == [0.0, None]


def test_reasons_of_throttling_by_the_older_call(play: PlaySteps) -> None:
    errors = "nvmlDeviceGetCurrentClocksEventReasons=13"
    played = play([{"do": ["open", "slow"], "values": "throttle_reasons=4", "errors": errors}])
    assert only(played, 0, "slow")["throttle_reasons"] == [4.0, None]


def test_an_old_driver_has_none_of_the_new_parts(play_old: PlaySteps) -> None:
    played = play_old([{"t_s": t, "do": ["open", "slow"]} for t in (0.0, 1.0)])
    slow = only(played, 1, "slow")
    for name in (*GPM, "temperature_margin_c", "power_module_w", "nvlinks_active", "retired_pages", "ecc_corrected"):
        assert slow[name] == [None, "not_supported"], name
    assert slow["throttle_sync_boost_percent"] == [0.0, None]


SAMPLES = """
import json
from desktop_app.core.clock import SessionClock
from desktop_app.telemetry.nvml_backend import NvmlBackend
from tests.fake_nvml.play_scenarios import load_library

library = load_library()
script = "- value count 2;* value gpm 1;* value gpm2 0 rate 100;* @30..31 error nvmlGpmSampleGet 10"
library.fake_nvml_play(script.replace(";", chr(10)).encode())
held, seen = [], []
now_s = [0.0]
backend = NvmlBackend(SessionClock(monotonic=library.fake_nvml_clock, anchor_wall_s=0.0, origin_s=0.0))
for t_s in (10.0, 12.0, 20.0, 30.0, 33.0, 34.0):
    library.fake_nvml_set_clock(t_s)
    readings = [backend.read_slow(card)["sm_activity_percent"] for card in backend.open()]
    seen.append([readings[1].value, readings[1].reason])
    held.append(library.fake_nvml_gpm_samples())
backend.close()
held.append(library.fake_nvml_gpm_samples())
library.fake_nvml_set_clock(40.0)
seen.append([backend.read_slow(backend.open()[0])["sm_activity_percent"].reason])
backend.close()
held.append(library.fake_nvml_gpm_samples())
print(json.dumps([seen, held]))
"""


def test_gpm_samples_take_turns_and_are_given_back(driver_folder: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", SAMPLES],
        env={**os.environ, "LD_LIBRARY_PATH": str(driver_folder), "FAKE_NVML_SCRIPT": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    seen, held = json.loads(result.stdout)
    # the fake gives the mean of its values (1 % a second) at the two moments that are compared
    assert seen == [
        [None, "not_read_yet"],
        [11.0, None],
        [16.0, None],
        [None, "timed_out"],
        [None, "not_read_yet"],  # what was before the gap is not compared
        [33.5, None],
        ["not_read_yet"],  # after opening again neither
    ]
    assert held == [2, 4, 4, 4, 4, 4, 0, 0]
