"""rocm-smi's JSON and the Prometheus text of exporters."""

from __future__ import annotations

import pytest
from log_samples import DCGM, EXPORTER, MIB, ROCM, UUIDS, read, value, values

from desktop_app.core.telemetry import Reason
from desktop_app.telemetry.logs.kinds import UnknownKindError


def test_rocm_smi() -> None:
    records, log = read("WARNING: AMD GPU device(s) is/are in a low-power state.\n" + ROCM)
    assert values(records[0]) == {
        "temperature_c": 36.0,
        "temperature_memory_c": 35.0,
        "sm_clock_mhz": 1725.0,
        "memory_clock_mhz": 1000.0,
        "pcie_generation": 4.0,  # 16 GT/s
        "pcie_width": 16.0,
        "fan_percent": 21.0,
        "power_limit_w": 225.0,
        "power_average_w": 126.0,
        "utilization_percent": 63.0,
        "memory_utilization_percent": 19.0,
        "memory_used_bytes": 10850304.0,
    }
    assert (records[0].card.name, records[0].card.bus_id) == ("Radeon Instinct MI50 32GB", "00000000:63:00.0")
    assert records[0].facts["total_bytes"].value == 34342961152.0
    assert value(records[1], "utilization_percent") is Reason.NOT_SUPPORTED
    assert not log.notes.left_out


def test_a_cut_off_rocm_file_keeps_its_whole_cards() -> None:
    records, log = read(ROCM[: ROCM.index('"card1"') + 30])
    assert [record.card.index for record in records] == [0]
    assert "damaged JSON" in log.notes.left_out[0].why


def test_dcgm() -> None:
    records, log = read(DCGM)
    assert values(records[0]) == {
        "utilization_percent": 64.0,
        "memory_used_bytes": 20481.0 * MIB,
        "power_w": 211.305,  # GA100
        "temperature_c": 48.0,
        "temperature_memory_c": Reason.NOT_SUPPORTED,  # blank + 2 of dcgm_fields.h
        "sm_clock_mhz": 1410.0,
        "encoder_percent": Reason.NO_PERMISSION,  # blank + 3
        "pcie_rx_bytes_per_s": 73101.0,
        "tensor_activity_percent": 41.23,
    }
    assert (records[0].card.uuid, records[0].card.index) == (UUIDS[0], 0)
    assert (records[0].stamp.seconds, records[0].stamp.zoned) == (1784019600.25, True)
    assert records[0].texts["driver_version"] == "535.129.03"
    assert not log.notes.left_out


def test_scrapes_in_a_row() -> None:
    records, _ = read(DCGM + DCGM.replace("1784019600250", "1784019615250").replace(" 64 ", " 65 "))
    assert [(r.stamp.seconds, value(r, "utilization_percent")) for r in records] == [
        (1784019600.25, 64.0),
        (1784019615.25, 65.0),
    ]


def test_a_mig_instance_is_not_its_card() -> None:
    text = DCGM.replace('gpu="0"', 'gpu="0",GPU_I_PROFILE="1g.5gb",GPU_I_ID="7"')
    records, _ = read(DCGM + text)
    assert values(records[0])["utilization_percent"] == 64.0
    assert records[0].raw["DCGM_FI_DEV_GPU_UTIL [MIG instance 7]"] == "64"


def test_nvidia_gpu_exporter() -> None:
    records, _ = read(EXPORTER)
    assert values(records[0]) == {
        "sm_clock_mhz": 765.0,
        "fan_percent": 38.0,
        "memory_used_bytes": 211.0 * MIB,
        "power_w": 39.17,
        "utilization_percent": 7.0,
    }
    assert records[0].card.name == "NVIDIA GeForce RTX 2080 SUPER"
    assert records[0].stamp is None


@pytest.mark.parametrize("text", ["", "   \n", '{"a": 1}', "<html></html>"])
def test_what_no_tool_wrote(text: str) -> None:
    with pytest.raises(UnknownKindError):
        read(text)


_SINGLE_REASONS = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
}


@pytest.mark.parametrize("kind", ["event", "throttle"])
def test_reasons_of_the_exporter_are_those_of_the_csv(kind: str) -> None:
    """nvml.h: a software power cap is 4, a hardware slowdown for heat 0x8 and 0x40: 76 together."""
    active = f'nvidia_smi_clocks_{kind}_reasons_active{{uuid="aa"}} 76\n'
    exported, _ = read(active)
    table, _ = read(f"index, clocks_{kind}_reasons.active\n0, 0x000000000000004C\n")
    assert value(exported[0], "throttle_reasons") == value(table[0], "throttle_reasons") == 76.0


def test_single_reasons_of_the_exporter_together() -> None:
    holds = {"sw_power_cap", "hw_slowdown", "hw_thermal_slowdown"}
    lines = [
        f'nvidia_smi_clocks_event_reasons_{name}{{uuid="aa"}} {int(name in holds)}\n'
        for name in sorted(_SINGLE_REASONS)
    ]
    records, _ = read("".join(lines))
    assert value(records[0], "throttle_reasons") == 76.0
    records, _ = read("".join(lines[1:]))
    assert "throttle_reasons" not in records[0].readings  # one of them is not known
