"""NVML through the whole stack, against a fake driver library in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from desktop_app.core.telemetry import DETAIL_FIELDS, FAST_FIELDS, SLOW_FIELDS
from tests.fake_nvml.driver import PlaySteps, play_steps

MIB = 2**20
GIB = 2**30
UUIDS = [f"GPU-0000000{n}-1111-2222-3333-444444444444" for n in range(3)]
ALL = ["open", "fast", "slow", "processes"]


def only(played: dict[str, Any], step: int, action: str) -> Any:
    """The one card's answer."""
    (answer,) = played["steps"][step][action]
    return answer


def test_importing_telemetry_does_not_import_pynvml() -> None:
    code = (
        "import sys, desktop_app.telemetry.selection, desktop_app.telemetry.sampler\n"
        "print('pynvml' in sys.modules, 'torch' in sys.modules, 'PySide6' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.split() == ["False", "False", "False"]


# Values of a card that has every part, in the fake driver's units (GPM: hundredths of a percent).
EVERYTHING = (
    "graphics_clock=1905,video_clock=1665,throttle_reasons=36,margin=22,field186.1=412500,jpeg=12,optical_flow=34,"
    "encoder_sessions=2,field94=17,field3=5,field5=61,field6=1,field142=3,field143=2,field144=1,field145=0,"
    "field29=4,field30=2,field91=4,link3=0,mps_pid=OWN_PID,gpm=1,gpm2=8810,gpm3=4275,gpm5=5150,gpm10=6333,"
    "gpm11=25,gpm12=1950,gpm13=707"
)


class TestACardWithEverything:
    @pytest.fixture(scope="class")
    @classmethod
    def played(cls, play: PlaySteps) -> dict[str, Any]:
        busy = "ecc=3,compute_pid=OWN_PID,compute_memory=536870912,graphics_pid=OWN_PID,graphics_memory=1048576"
        return play(
            [
                {
                    "t_s": 10.0,
                    "do": ALL,
                    "values": f"{busy},{EVERYTHING},energy=5000000,field197=4294967000,field74=0,field76=0,"
                    "field77=1,field78=2,field79=3,field138.all=1000,field139.all=5000",
                },
                {
                    "t_s": 10.2,
                    "do": ALL,
                    "values": f"{busy},{EVERYTHING},energy=5030000,field197=1704,field74=50000000,field76=20000000,"
                    "field77=40000001,field78=60000002,field79=3,field138.all=3000,field139.all=5100",
                },
            ]
        )

    def test_static_facts(self, played: dict[str, Any]) -> None:
        card = only(played, 0, "open")
        assert card["uuid"] == UUIDS[0]
        assert card["name"] == "NVIDIA GeForce RTX 3060"
        assert card["bus_id"] == "00000000:01:00.0"
        assert (card["nvml_index"], card["torch_index"]) == (0, 0)
        assert card["total_bytes"] == 12288 * MIB
        assert card["driver_reserved_bytes"] == 368 * MIB
        assert card["capacity_bytes"] == 11920 * MIB
        assert (card["architecture"], card["compute_capability"], card["sm_count"]) == ("Ampere", [8, 6], 28)
        assert (card["power_limit_w"], card["power_max_w"]) == (170.0, 190.0)
        assert (card["temperature_slowdown_c"], card["temperature_shutdown_c"]) == (95.0, 98.0)
        assert (card["driver_version"], card["cuda_driver_version"]) == ("570.86.10", "12.8")
        assert card["energy_source"] == "counter"
        assert card["simulated"] is False

    def test_settings_and_limits(self, played: dict[str, Any]) -> None:
        card = only(played, 0, "open")
        assert (card["power_min_w"], card["power_default_w"]) == (100.0, 170.0)
        assert (card["temperature_operating_max_c"], card["temperature_memory_max_c"]) == (93.0, None)
        assert (card["sm_clock_max_mhz"], card["memory_clock_max_mhz"]) == (2145.0, 7501.0)
        assert (card["memory_bus_bits"], card["bar1_total_bytes"]) == (192, 256 * MIB)
        assert (card["pcie_generation_max"], card["pcie_width_max"]) == (4, 16)
        assert (card["compute_mode"], card["persistence_mode"], card["display_active"]) == ("default", "on", "off")
        absent = ("temperature_memory_max_c", "ecc_mode", "mig_mode", "driver_model", "numa_node")
        assert [card[name] for name in absent] == [None] * len(absent)
        assert [card["reasons"].pop(name) for name in absent] == ["not_supported"] * len(absent)
        assert card["reasons"].keys() <= {"xid_events"}

    def test_fast_fields(self, played: dict[str, Any]) -> None:
        fast = only(played, 1, "fast")
        assert set(fast) == set(FAST_FIELDS)
        values = {field: value for field, (value, reason) in fast.items() if reason is None}
        assert values["utilization_percent"] == 97.0
        assert values["memory_utilization_percent"] == 41.0
        assert values["memory_used_bytes"] == 2048 * MIB
        assert values["power_w"] == pytest.approx(151.5)  # field 186
        assert values["power_average_w"] == pytest.approx(148.0)  # field 185
        assert values["temperature_c"] == 61.0
        assert (values["sm_clock_mhz"], values["memory_clock_mhz"]) == (1890.0, 7501.0)

    def test_counters_become_rates_and_shares(self, played: dict[str, Any]) -> None:
        assert only(played, 0, "fast")["pcie_tx_bytes_per_s"] == [None, "not_read_yet"]
        fast = only(played, 1, "fast")
        # the 32-bit counter wrapped: 296 bytes to the end and 1704 after it, in 0.2 s
        assert fast["pcie_tx_bytes_per_s"][0] == pytest.approx(2000 / 0.2)
        assert fast["pcie_rx_bytes_per_s"] == [0.0, None]
        assert fast["throttle_power_percent"][0] == pytest.approx(25.0)  # 50 ms of 200 ms
        assert fast["throttle_thermal_percent"] == [0.0, None]

    def test_slow_fields(self, played: dict[str, Any]) -> None:
        slow = only(played, 1, "slow")
        assert set(slow) == set(SLOW_FIELDS) | set(DETAIL_FIELDS)
        assert slow == {
            "fan_percent": [55.0, None],
            "performance_state": [2.0, None],
            "power_limit_w": [170.0, None],
            "energy_j": [pytest.approx(30.0), None],
            "encoder_percent": [0.0, None],
            "decoder_percent": [3.0, None],
            "ecc_uncorrected": [3.0, None],
            "pcie_generation": [4.0, None],
            "pcie_width": [16.0, None],
            "bar1_used_bytes": [5 * MIB, None],
            "temperature_memory_c": [78.0, None],
            "sm_activity_percent": [pytest.approx(88.1), None],
            "sm_occupancy_percent": [pytest.approx(42.75), None],
            "tensor_activity_percent": [pytest.approx(51.5), None],
            "dram_activity_percent": [pytest.approx(63.33), None],
            "fp16_activity_percent": [pytest.approx(7.07), None],
            "fp32_activity_percent": [pytest.approx(19.5), None],
            "fp64_activity_percent": [pytest.approx(0.25), None],
            "graphics_clock_mhz": [1905.0, None],
            "video_clock_mhz": [1665.0, None],
            "throttle_sync_boost_percent": [pytest.approx(10.0), None],  # 20, 40 and 60 ms of 200 ms
            "throttle_board_limit_percent": [pytest.approx(20.0), None],
            "throttle_low_utilization_percent": [pytest.approx(30.0), None],
            "throttle_reliability_percent": [0.0, None],
            "throttle_reasons": [36.0, None],
            "temperature_margin_c": [22.0, None],
            "power_module_w": [412.5, None],
            "jpeg_percent": [12.0, None],
            "optical_flow_percent": [34.0, None],
            "encoder_sessions": [2.0, None],
            "pcie_replays": [17.0, None],
            "nvlink_rx_bytes_per_s": [pytest.approx(100 * 1024 / 0.2), None],
            "nvlink_tx_bytes_per_s": [pytest.approx(2000 * 1024 / 0.2), None],
            "nvlinks_active": [3.0, None],  # one of four is down
            "ecc_corrected": [5.0, None],
            "ecc_corrected_total": [61.0, None],
            "ecc_uncorrected_total": [1.0, None],
            "remapped_rows_corrected": [3.0, None],
            "remapped_rows_uncorrected": [2.0, None],
            "remapping_pending": [1.0, None],
            "remapping_failed": [0.0, None],
            "retired_pages": [6.0, None],  # of both kinds of errors
            "mps_clients": [1.0, None],  # the entry with pid 0 is none
        }

    def test_what_needs_two_readings_says_so(self, played: dict[str, Any]) -> None:
        slow = only(played, 0, "slow")
        rates = [name for name, pair in slow.items() if pair == [None, "not_read_yet"]]
        assert sorted(rates) == sorted(
            [
                *(name for name in DETAIL_FIELDS if "activity" in name or "occupancy" in name),
                *(name for name in DETAIL_FIELDS if name.startswith("throttle") and name.endswith("percent")),
                "nvlink_rx_bytes_per_s",
                "nvlink_tx_bytes_per_s",
            ]
        )

    def test_processes_are_merged_and_the_own_one_is_marked(self, played: dict[str, Any]) -> None:
        (process,) = only(played, 0, "processes")  # the entry with pid 0 is no process
        assert process["kind"] == "both"
        assert process["memory_bytes"] == 512 * MIB
        assert process["own"] is True
        assert process["simulated"] is False
        assert process["name"]
        assert "read_cards.py" in process["command"]

    def test_each_failure_is_logged_once(self, play: PlaySteps) -> None:
        played = play([{"t_s": t, "do": ["open", "slow"], "errors": "nvmlDeviceGetFanSpeed=999"} for t in (0, 5, 70)])
        assert sum("nvmlDeviceGetFanSpeed" in line for line in played["log"]) == 1


FAILING = {
    "nvmlDeviceGetUtilizationRates": "utilization_percent",
    "nvmlDeviceGetClockInfo": "sm_clock_mhz",
    "field186": "power_w",
    "field198": "pcie_rx_bytes_per_s",
    "field75": "throttle_thermal_percent",
    "nvmlDeviceGetFanSpeed": "fan_percent",
    "nvmlDeviceGetEncoderUtilization": "encoder_percent",
    "nvmlDeviceGetBAR1MemoryInfo": "bar1_used_bytes",
    "field82": "temperature_memory_c",
    "nvmlDeviceGetPerformanceState": "performance_state",
}
TOGETHER = {"utilization_percent": {"memory_utilization_percent"}, "sm_clock_mhz": {"memory_clock_mhz"}}


class TestEveryFieldFailsAlone:
    @pytest.fixture(scope="class")
    @classmethod
    def played(cls, play: PlaySteps) -> dict[str, Any]:
        """For each failure: twice while it lasts, then twice more than a minute later (a rate needs two)."""
        steps: list[dict[str, Any]] = [{"do": ["open", "fast"], "values": "ecc=0"}]
        for number, failing in enumerate(FAILING):
            for after_s in (0.0, 0.2, 61.0, 61.2):
                errors = f"{failing}=3" if after_s < 60 else ""
                t_s = 100.0 * (number + 1) + after_s
                steps.append({"t_s": t_s, "do": ["fast", "slow"], "values": "ecc=0", "errors": errors})
        return play(steps)

    @pytest.mark.parametrize("failing", FAILING)
    def test_with_its_reason_and_for_a_time(self, played: dict[str, Any], failing: str) -> None:
        field, first = FAILING[failing], 1 + 4 * list(FAILING).index(failing)
        for step in (first, first + 1):
            readings = only(played, step, "fast") | only(played, step, "slow")
            assert readings[field] == [None, "not_supported"]
        others = set(readings) - set(DETAIL_FIELDS) - {field} - TOGETHER.get(field, set())
        assert [name for name in others if readings[name][0] is None] == []
        # nothing is disabled for good: asked again after a minute
        assert (only(played, first + 3, "fast") | only(played, first + 3, "slow"))[field][0] is not None


def test_not_supported_is_believed_for_a_minute_and_a_passing_failure_for_seconds(play: PlaySteps) -> None:
    played = play(
        [
            {"t_s": 0.0, "do": ["open", "slow"], "errors": "nvmlDeviceGetFanSpeed=3,nvmlDeviceGetPerformanceState=10"},
            {"t_s": 1.0, "do": ["slow"]},
            {"t_s": 3.0, "do": ["slow"]},
            {"t_s": 61.0, "do": ["slow"]},
        ]
    )
    fan = [only(played, step, "slow")["fan_percent"] for step in range(4)]
    state = [only(played, step, "slow")["performance_state"] for step in range(4)]
    assert fan == [[None, "not_supported"]] * 3 + [[55.0, None]]
    assert state == [[None, "timed_out"]] * 2 + [[2.0, None]] * 2


def test_every_error_has_its_reason(play: PlaySteps) -> None:
    reasons = {3: "not_supported", 4: "no_permission", 10: "timed_out", 18: "driver_mismatch", 999: "unknown_error"}
    steps = [{"t_s": 100.0 * n, "do": ["slow"], "errors": f"nvmlDeviceGetFanSpeed={c}"} for n, c in enumerate(reasons)]
    played = play([{"do": ["open"]}, *steps])
    for number, reason in enumerate(reasons.values()):
        assert only(played, number + 1, "slow")["fan_percent"] == [None, reason]


class TestALostCard:
    def test_the_others_go_on_and_it_comes_back(self, play: PlaySteps) -> None:
        lost = "gpu1:*=15"
        played = play(
            [
                {"t_s": 0.0, "do": ["open", "fast", "slow"], "values": "count=3"},
                {"t_s": 0.2, "do": ["fast", "slow"], "values": "count=3", "errors": lost},
                {"t_s": 1.2, "do": ["close", "open", "fast"], "values": "count=3", "errors": lost},
                {"t_s": 3.2, "do": ["close", "open", "fast", "slow"], "values": "count=3,energy=5009000"},
            ]
        )
        assert [card["uuid"] for card in played["steps"][0]["open"]] == UUIDS
        fast = played["steps"][1]["fast"]
        assert {tuple(pair) for pair in fast[1].values()} == {(None, "gpu_lost")}
        assert fast[0]["utilization_percent"] == [97.0, None]
        assert fast[2]["memory_used_bytes"] == [2048 * MIB, None]
        assert [card["uuid"] for card in played["steps"][2]["open"]] == [UUIDS[0], UUIDS[2]]
        assert {tuple(pair) for pair in played["steps"][2]["fast"][1].values()} == {(None, "gpu_lost")}
        assert [card["uuid"] for card in played["steps"][3]["open"]] == UUIDS
        assert played["steps"][3]["fast"][1]["utilization_percent"] == [97.0, None]
        # energy of the session goes on over the outage; rates start anew
        assert played["steps"][3]["slow"][1]["energy_j"] == [pytest.approx(9.0), None]
        assert played["steps"][3]["fast"][1]["pcie_rx_bytes_per_s"] == [None, "not_read_yet"]

    def test_a_reloaded_driver_is_no_driver(self, play: PlaySteps) -> None:
        played = play([{"do": ["open"]}, {"do": ["fast"], "errors": "*=1"}])
        assert {tuple(pair) for pair in only(played, 1, "fast").values()} == {(None, "no_driver")}


class TestAnOldDriver:
    @pytest.fixture(scope="class")
    @classmethod
    def played(cls, play_old: PlaySteps) -> dict[str, Any]:
        return play_old([{"do": ALL}])

    def test_memory_v1_counts_the_reserve_as_used(self, played: dict[str, Any]) -> None:
        card = only(played, 0, "open")
        assert card["total_bytes"] == card["capacity_bytes"] == 12288 * MIB
        assert card["driver_reserved_bytes"] is None
        assert card["reasons"]["driver_reserved_bytes"] == "not_supported"
        assert only(played, 0, "fast")["memory_used_bytes"] == [(2048 + 368) * MIB, None]

    def test_the_older_temperature_call_is_used(self, played: dict[str, Any]) -> None:
        assert only(played, 0, "fast")["temperature_c"] == [61.0, None]

    def test_power_of_ampere_is_an_average(self, played: dict[str, Any]) -> None:
        fast = only(played, 0, "fast")
        assert fast["power_average_w"] == [pytest.approx(150.25), None]
        assert fast["power_w"] == [None, "not_supported"]

    @pytest.mark.parametrize(("major", "minor"), [(7, 5), (8, 0)])
    def test_power_of_turing_and_ga100_is_of_the_moment(self, play_old: PlaySteps, major: int, minor: int) -> None:
        played = play_old([{"do": ["open", "fast"], "values": f"major={major},minor={minor}"}])
        fast = only(played, 0, "fast")
        assert fast["power_w"] == [pytest.approx(150.25), None]
        assert fast["power_average_w"] == [None, "not_supported"]

    def test_fields_left_untouched_are_no_zeros(self, play_old: PlaySteps) -> None:
        played = play_old([{"t_s": t, "do": ["open", "fast"], "values": "silent_fields=1"} for t in (0.0, 0.2)])
        assert only(played, 1, "fast")["pcie_rx_bytes_per_s"] == [None, "not_supported"]

    def test_energy_is_the_integral_of_power_where_there_is_no_counter(self, play_old: PlaySteps) -> None:
        no_counter = "nvmlDeviceGetTotalEnergyConsumption=3"
        played = play_old(
            [
                {"t_s": 0.0, "do": ["open", "fast", "slow"], "errors": no_counter, "values": "power=100000"},
                {"t_s": 0.2, "do": ["fast"], "errors": no_counter, "values": "power=100000"},
                {"t_s": 0.4, "do": ["fast", "slow"], "errors": no_counter, "values": "power=50000"},
            ]
        )
        assert only(played, 0, "open")["energy_source"] == "integral"
        assert only(played, 0, "slow")["energy_j"] == [None, "not_read_yet"]
        assert only(played, 2, "slow")["energy_j"] == [pytest.approx(100 * 0.2 + 75 * 0.2), None]


IMPOSSIBLE = {
    "util=101": "utilization_percent",
    "memory_util=4294967295": "memory_utilization_percent",
    "used=12884901889": "memory_used_bytes",
    "used=9223372036854775808": "memory_used_bytes",
    "used=18446744073709551615": "memory_used_bytes",
    "total=18446744073709551615": "memory_used_bytes",
    "temperature=0": "temperature_c",
    "temperature=255": "temperature_c",
    "sm_clock=0": "sm_clock_mhz",
    "field186=0": "power_w",
    "field185=4294967295": "power_average_w",
    "fan=4294967295": "fan_percent",
    "pstate=32": "performance_state",
    "decoder=200": "decoder_percent",
    "energy=18446744073709551615": "energy_j",
    "pcie_generation=0": "pcie_generation",
    "field82=0": "temperature_memory_c",
    "ecc=18446744073709551615": "ecc_uncorrected",
}


class TestValuesThatCannotBeTrue:
    @pytest.fixture(scope="class")
    @classmethod
    def played(cls, play: PlaySteps) -> dict[str, Any]:
        steps = [
            {"t_s": 1.0 + n, "do": ["fast", "slow"], "values": f"ecc=0,{values}"} for n, values in enumerate(IMPOSSIBLE)
        ]
        return play([{"do": ["open"], "values": "ecc=0"}, *steps])

    @pytest.mark.parametrize("values", IMPOSSIBLE)
    def test_are_not_available(self, played: dict[str, Any], values: str) -> None:
        step = 1 + list(IMPOSSIBLE).index(values)
        readings = only(played, step, "fast") | only(played, step, "slow")
        assert readings[IMPOSSIBLE[values]] == [None, "implausible"]


class TestUnifiedMemory:
    @pytest.mark.parametrize(
        ("values", "errors"),
        [("total=0,used=0,reserved=0", ""), ("", "nvmlDeviceGetMemoryInfo_v2=3,nvmlDeviceGetMemoryInfo=3")],
    )
    def test_the_memory_is_the_systems_and_says_so(self, play: PlaySteps, values: str, errors: str) -> None:
        played = play([{"do": ["open", "fast"], "values": values, "errors": errors}])
        card = only(played, 0, "open")
        assert card["shared_memory"] is True
        assert card["total_bytes"] == 64 * GIB
        assert card["reasons"]["driver_reserved_bytes"] == "unified_memory"
        assert only(played, 0, "fast")["memory_used_bytes"] == [9 * GIB, None]

    def test_success_with_all_zeros_is_no_reading(self, play: PlaySteps) -> None:
        zeros = "util=0,memory_util=0,temperature=0,sm_clock=0,memory_clock=0,field185=0,field186=0,total=0,used=0"
        played = play([{"do": ["open", "fast"], "values": zeros}])
        fast = only(played, 0, "fast")
        for field in ("utilization_percent", "temperature_c", "sm_clock_mhz", "power_w", "power_average_w"):
            assert fast[field] == [None, "implausible"]


class TestModesThatHideValues:
    def test_mig(self, play: PlaySteps) -> None:
        errors = "nvmlDeviceGetUtilizationRates=3,nvmlDeviceGetEncoderUtilization=3,nvmlDeviceGetFanSpeed=3"
        played = play([{"do": ["open", "fast", "slow"], "values": "mig=1", "errors": errors}])
        assert only(played, 0, "fast")["utilization_percent"] == [None, "mig"]
        assert only(played, 0, "slow")["encoder_percent"] == [None, "mig"]
        assert only(played, 0, "slow")["fan_percent"] == [None, "not_supported"]

    @pytest.mark.parametrize(("mode", "reason"), [("driver_model=0", "wddm"), ("mig=1", "mig")])
    def test_memory_of_a_process_is_unknown_not_zero(self, play: PlaySteps, mode: str, reason: str) -> None:
        hidden = "compute_pid=OWN_PID,compute_memory=18446744073709551615"
        played = play([{"do": ["open", "processes"], "values": f"{mode},{hidden}"}])
        (process,) = only(played, 0, "processes")
        assert (process["memory_bytes"], process["memory_reason"]) == (None, reason)

    def test_more_than_the_card_has_is_implausible(self, play: PlaySteps) -> None:
        values = "compute_pid=OWN_PID,compute_memory=99999999999"
        (process,) = only(play([{"do": ["open", "processes"], "values": values}]), 0, "processes")
        assert (process["memory_bytes"], process["memory_reason"]) == (None, "implausible")

    def test_the_odd_process_list_of_535_is_avoided(self, play: PlaySteps) -> None:
        errors = "nvmlDeviceGetComputeRunningProcesses_v3=999,nvmlDeviceGetGraphicsRunningProcesses_v3=999"
        values = "driver=535.54.03,compute_pid=OWN_PID"
        played = play([{"do": ["open", "processes"], "values": values, "errors": errors}])
        assert len(only(played, 0, "processes")) == 1

    def test_thresholds_from_the_margin_where_there_are_no_others(self, play: PlaySteps) -> None:
        played = play([{"do": ["open"], "errors": "nvmlDeviceGetTemperatureThreshold=3"}])
        card = only(played, 0, "open")
        # 61 °C now, 32 degrees of margin, limits at -2 and -8
        assert (card["temperature_slowdown_c"], card["temperature_shutdown_c"]) == (95.0, 101.0)
        assert card["temperature_operating_max_c"] == 93.0
        assert card["reasons"]["temperature_memory_max_c"] == "not_supported"  # its margin is not the memory's


class TestNoDriver:
    def test_no_library(self, tmp_path: Path) -> None:
        played = play_steps(tmp_path, [{"do": ["probe"]}])
        probe = played["steps"][0]["probe"]
        if probe["reason"] is None:
            pytest.skip("this machine has a card")
        assert probe["reason"] == "no_driver"
        assert probe["advice_code"] in {"install_driver", "load_driver"}
        assert probe["cards"] == []

    @pytest.mark.parametrize(
        ("code", "reason", "advice"),
        [
            (9, "no_driver", "load_driver"),
            (18, "driver_mismatch", "restart_after_update"),
            (4, "no_permission", "allow_access"),
            (999, "unknown_error", "try_again"),
        ],
    )
    def test_library_without_a_working_driver(self, play: PlaySteps, code: int, reason: str, advice: str) -> None:
        played = play([{"do": ["open", "probe"], "errors": f"nvmlInitWithFlags={code}"}])
        opened = played["steps"][0]["open"]
        assert (opened["unavailable"], opened["advice"]) == (reason, advice)
        assert "\n" not in opened["detail"]
        assert played["steps"][0]["probe"]["reason"] == reason

    def test_a_driver_without_cards(self, play: PlaySteps) -> None:
        played = play([{"do": ["open"], "values": "count=0"}])
        assert played["steps"][0]["open"]["advice"] == "check_card"

    def test_a_probe_of_a_good_machine(self, play: PlaySteps) -> None:
        probe = play([{"do": ["probe"], "values": "count=2"}])["steps"][0]["probe"]
        assert probe["reason"] is None
        assert (probe["driver_version"], probe["cuda_driver_version"]) == ("570.86.10", "12.8")
        assert [card["uuid"] for card in probe["cards"]] == UUIDS[:2]


def test_cuda_visible_devices_decide_the_torch_index(play: PlaySteps) -> None:
    played = play([{"do": ["open"], "values": "count=3"}], CUDA_VISIBLE_DEVICES="2,GPU-00000000")
    assert [card["torch_index"] for card in played["steps"][0]["open"]] == [1, None, 0]
