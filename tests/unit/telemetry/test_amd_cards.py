"""AMD cards through a stand-in for their package: units, reasons, what differs by family and version."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import (
    ALL_GPU_FIELDS,
    DETAIL_FIELDS,
    FAST_FIELDS,
    SLOW_FIELDS,
    Card,
    EnergySource,
    Reading,
    Reason,
)
from desktop_app.telemetry import amdsmi
from desktop_app.telemetry.amdsmi import AmdSmiDoor, load_package
from desktop_app.telemetry.amdsmi_backend import AmdSmiBackend
from desktop_app.telemetry.backend import Advice, BackendUnavailable, outage_reason
from tests.fake_amdsmi import (
    DRIVER_NOT_LOADED,
    NO_PERM,
    NOT_FOUND,
    UNKNOWN,
    AmdSmiClkType,
    AmdSmiException,
    AmdSmiTemperatureMetric,
    AmdSmiTemperatureType,
    FakePackage,
    error,
    instinct,
    radeon,
)

GIB = 2**30


class Machine:
    """A backend on a stand-in, its time moved by hand."""

    def __init__(
        self, *cards: dict[str, Any], without: tuple[str, ...] = (), pci_devices: Path = Path("/none")
    ) -> None:
        self.now_s = 0.0
        self.package = FakePackage(cards, without=without)
        clock = SessionClock()
        door = AmdSmiDoor(load=lambda: self.package, monotonic=lambda: self.now_s)
        self.backend = AmdSmiBackend(clock, door=door, pci_devices=pci_devices)
        self.cards = self.backend.open()

    @property
    def answers(self) -> dict[str, Any]:
        return self.package.cards[0]

    def read(self, card: Card | None = None) -> dict[str, Reading]:
        card = card or self.cards[0]
        return {**self.backend.read_fast(card), **self.backend.read_slow(card)}

    def values(self) -> dict[str, float]:
        return {field: reading.value for field, reading in self.read().items() if reading.value is not None}


def test_a_radeon_with_everything_it_has() -> None:
    machine = Machine(radeon())
    assert machine.values() == {
        "utilization_percent": 87,
        "memory_utilization_percent": 34,
        "memory_used_bytes": 3 * GIB,
        "power_average_w": 303,
        "temperature_c": 62,
        "sm_clock_mhz": 2615,
        "memory_clock_mhz": 1249,
        "fan_percent": 40,  # 102 of 255
        "power_limit_w": 339,
        "energy_j": 0,  # since the session began
        "pcie_generation": 4,
        "pcie_width": 8,
        "temperature_memory_c": 84,
        "graphics_clock_mhz": 2615,
        "video_clock_mhz": 21,
        "temperature_margin_c": 110 - 81,
        "pcie_replays": 4,
        "retired_pages": 0,
    }
    missing = {field: reading.reason for field, reading in machine.read().items() if reading.value is None}
    assert set(missing.values()) == {Reason.NOT_SUPPORTED}
    assert missing.keys() >= {"power_w", "ecc_uncorrected", "encoder_percent", "throttle_power_percent"}


def test_the_facts_of_a_radeon() -> None:
    (card,) = Machine(radeon()).cards
    assert (card.uuid, card.bus_id, card.name, card.vendor) == (
        "6cff744c-0000-1000-8045-2b5d6c5c4f9a",
        "00000000:03:00.0",
        "Radeon RX 7900 XTX",
        "AMD",
    )
    assert (card.simulated, card.torch_index, card.total_bytes, card.capacity_bytes) == (
        False,
        None,
        24 * GIB,
        24 * GIB,
    )
    assert (card.architecture, card.sm_count, card.driver_version) == ("gfx1100", 96, "6.12.12")
    assert (card.power_limit_w, card.power_max_w, card.power_min_w) == (339, 389, None)
    assert card.reasons["power_min_w"] is Reason.IMPLAUSIBLE  # 0 W is no limit
    assert (card.temperature_slowdown_c, card.temperature_shutdown_c, card.temperature_memory_max_c) == (100, 105, 108)
    assert (card.sm_clock_max_mhz, card.memory_clock_max_mhz, card.memory_bus_bits) == (3220, 1249, 384)
    assert (card.pcie_generation_max, card.pcie_width_max, card.vbios_version) == (4, 16, "113-EXT800129-L03")
    assert card.energy_source is EnergySource.COUNTER


def test_an_instinct_has_no_edge_no_fan_and_counters_of_being_held_back() -> None:
    machine = Machine(instinct())
    (card,) = machine.cards
    first = machine.read()
    assert (first["power_w"], first["power_average_w"]) == (Reading(645.0), Reading(None, Reason.NOT_SUPPORTED))
    assert (first["temperature_c"], card.temperature_slowdown_c) == (Reading(71.0), 100)  # of the hottest spot, both
    assert first["temperature_margin_c"] == Reading(29.0)
    assert first["fan_percent"] == Reading(None, Reason.NOT_SUPPORTED)
    assert (first["ecc_corrected"], first["ecc_uncorrected"]) == (Reading(7.0), Reading(0.0))
    assert first["retired_pages"] == Reading(None, Reason.NO_PERMISSION)
    assert first["throttle_power_percent"] == Reading(None, Reason.NOT_READ_YET)
    machine.answers["amdsmi_get_gpu_metrics_info"] = {
        "accumulation_counter": 1200,
        "ppt_residency_acc": 150,
        "socket_thm_residency_acc": 10,
        "hbm_thm_residency_acc": 25,
        "prochot_residency_acc": 0,
    }
    second = machine.backend.read_fast(card)
    assert second["throttle_power_percent"] == Reading(25.0)  # 50 of 200 looks
    assert second["throttle_thermal_percent"] == Reading(10.0)  # the memory, 20 of 200


def test_counters_that_begin_anew_are_no_negative_share() -> None:
    machine = Machine(instinct())
    machine.read()
    machine.answers["amdsmi_get_gpu_metrics_info"] = {"accumulation_counter": 10, "ppt_residency_acc": 0}
    readings = machine.read()
    assert readings["throttle_power_percent"] == Reading(None, Reason.NOT_READ_YET)
    assert readings["throttle_thermal_percent"] == Reading(None, Reason.NOT_SUPPORTED)


def test_energy_is_in_joules_since_the_session_began() -> None:
    machine = Machine(radeon())
    assert machine.read()["energy_j"] == Reading(0.0)
    machine.answers["amdsmi_get_energy_count"] = {"energy_accumulator": 3_000_000, "counter_resolution": 15.3}
    assert machine.read()["energy_j"].value == pytest.approx(15.3)  # a million of 15.3 µJ
    machine.answers["amdsmi_get_energy_count"] = {"power": 4_000_000, "counter_resolution": 15.3}  # the older name
    assert machine.read()["energy_j"].value == pytest.approx(30.6)


def test_older_versions_have_other_names_and_units() -> None:
    """cur_clk before 24.5; thousandths of a degree, as the kernel has them; no call that is newer."""
    card = radeon()
    card["amdsmi_get_clock_info"] = {AmdSmiClkType.GFX: {"cur_clk": 2400, "avg_clk": 2300, "max_clk": 3000}}
    card["amdsmi_get_temp_metric"] = {
        (AmdSmiTemperatureType.EDGE, AmdSmiTemperatureMetric.CURRENT): 62000,
        (AmdSmiTemperatureType.EDGE, AmdSmiTemperatureMetric.CRITICAL): 100000,
    }
    machine = Machine(card, without=("amdsmi_get_gpu_metrics_info", "amdsmi_get_gpu_vbios_info"))
    readings = machine.read()
    assert (readings["sm_clock_mhz"], readings["temperature_c"]) == (Reading(2400.0), Reading(62.0))
    assert readings["memory_clock_mhz"] == Reading(None, Reason.NOT_SUPPORTED)
    assert readings["throttle_power_percent"] == Reading(None, Reason.NOT_SUPPORTED)
    assert machine.cards[0].temperature_slowdown_c == 100
    assert machine.cards[0].reasons["vbios_version"] is Reason.NOT_SUPPORTED


@pytest.mark.parametrize("nothing", ["N/A", 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, None, True, [1]])
def test_every_way_of_saying_nothing_is_missing(nothing: object) -> None:
    card = radeon()
    card["amdsmi_get_gpu_activity"] = {"gfx_activity": nothing, "umc_activity": nothing}
    card["amdsmi_get_power_info"] = {"current_socket_power": nothing, "average_socket_power": nothing}
    readings = Machine(card).read()
    for field in ("utilization_percent", "memory_utilization_percent", "power_w", "power_average_w"):
        assert readings[field] == Reading(None, Reason.NOT_SUPPORTED), field


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (1, Reason.NOT_SUPPORTED),
        (2, Reason.NOT_SUPPORTED),
        (8, Reason.TIMED_OUT),
        (9, Reason.NOT_READ_YET),
        (NO_PERM, Reason.NO_PERMISSION),
        (NOT_FOUND, Reason.GPU_LOST),
        (32, Reason.NO_DRIVER),
        (DRIVER_NOT_LOADED, Reason.NO_DRIVER),
        (-40, Reason.NOT_READ_YET),
        (7, Reason.UNKNOWN_ERROR),
        (UNKNOWN, Reason.UNKNOWN_ERROR),
    ],
)
def test_a_code_is_a_reason_and_the_others_go_on(code: int, reason: Reason) -> None:
    card = radeon()
    card["amdsmi_get_gpu_activity"] = error(code)
    readings = Machine(card).read()
    assert readings["utilization_percent"] == Reading(None, reason)
    assert readings["temperature_c"] == Reading(62.0)


@pytest.mark.parametrize("odd", [ValueError("invalid literal"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")])
def test_what_the_package_cannot_read_itself_is_an_error_of_that_field(odd: Exception) -> None:
    card = radeon()
    card["amdsmi_get_gpu_activity"] = odd
    assert Machine(card).read()["utilization_percent"] == Reading(None, Reason.UNKNOWN_ERROR)


def test_used_memory_above_the_total_cannot_be() -> None:
    card = radeon()
    card["amdsmi_get_gpu_memory_usage"] = {0: 25 * GIB}
    assert Machine(card).read()["memory_used_bytes"] == Reading(None, Reason.IMPLAUSIBLE)


def test_what_is_not_supported_is_asked_for_again_after_a_minute_only() -> None:
    machine = Machine(radeon())
    machine.package.asked.clear()
    machine.read()
    machine.now_s = 59.0
    machine.read()
    assert machine.package.asked.count("amdsmi_get_gpu_total_ecc_count") == 1
    machine.now_s = 61.0
    machine.answers["amdsmi_get_gpu_total_ecc_count"] = {"correctable_count": 1, "uncorrectable_count": 2}
    assert machine.read()["ecc_uncorrected"] == Reading(2.0)


def test_processes() -> None:
    machine = Machine(radeon())
    own = os.getpid()
    machine.answers["amdsmi_get_gpu_process_list"] = [
        {
            "name": "python3",
            "pid": own,
            "mem": 3 * GIB,
            "memory_usage": {"gtt_mem": GIB, "cpu_mem": 0, "vram_mem": 2 * GIB},
            "cu_occupancy": 24,
        },
        {"name": "N/A", "pid": 0, "mem": 1, "memory_usage": {"vram_mem": 1}},
        {"name": "other", "pid": 2**31 - 2, "mem": 5, "memory_usage": {"vram_mem": 999 * GIB}, "cu_occupancy": "N/A"},
    ]
    mine, other = machine.backend.processes(machine.cards[0])
    assert (mine.pid, mine.own, mine.memory_bytes, mine.sm_percent) == (own, True, 2 * GIB, 25.0)  # 24 of 96 units
    assert (other.name, other.memory_bytes, other.memory_reason) == ("other", None, Reason.IMPLAUSIBLE)
    assert (other.sm_percent, other.sm_reason) == (None, Reason.NOT_SUPPORTED)
    machine.answers["amdsmi_get_gpu_process_list"] = error(NO_PERM)
    assert machine.backend.processes(machine.cards[0]) == ()


def test_a_card_that_fell_off_the_bus_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "0000:03:00.0"
    folder.mkdir()
    machine = Machine(radeon(), instinct(), pci_devices=tmp_path)
    (tmp_path / "0001:05:00.0").mkdir()
    first, second = machine.cards
    machine.answers.clear()
    assert outage_reason(machine.backend.read_fast(first)) is None, "its folder is there: nothing is supported"
    folder.rmdir()
    assert outage_reason(machine.backend.read_fast(first)) is Reason.GPU_LOST
    assert machine.backend.read_fast(second)["power_w"] == Reading(645.0)


def test_a_card_that_sleeps_is_not_asked(tmp_path: Path) -> None:
    power = tmp_path / "0000:03:00.0" / "power"
    power.mkdir(parents=True)
    (power / "runtime_status").write_text("suspended\n")
    machine = Machine(radeon(), pci_devices=tmp_path)
    machine.package.asked.clear()
    readings = machine.read()
    assert set(readings.values()) == {Reading(None, Reason.ASLEEP)}
    assert readings.keys() == set(ALL_GPU_FIELDS)
    assert outage_reason(readings) is None, "a sleeping card is no lost one"
    assert machine.backend.processes(machine.cards[0]) == ()
    assert machine.package.asked == []
    (power / "runtime_status").write_text("active\n")
    assert machine.read()["temperature_c"] == Reading(62.0)


@pytest.mark.parametrize(
    ("architecture", "name", "shared"),
    [
        ("gfx1103", "AMD Radeon 780M Graphics", True),
        ("gfx1151", "AMD Radeon 8060S Graphics", True),
        ("gfx90c:xnack+", "AMD Radeon Graphics", True),
        ("gfx942", "AMD Instinct MI300A", True),
        ("gfx942", "AMD Instinct MI300X", False),
        ("gfx1100", "Radeon RX 7900 XTX", False),
        ("N/A", "Radeon RX 7900 XTX", False),
    ],
)
def test_the_graphics_of_a_processor_share_its_memory(architecture: str, name: str, shared: bool) -> None:
    answers = radeon()
    answers["amdsmi_get_gpu_asic_info"] |= {"target_graphics_version": architecture, "market_name": name}
    (card,) = Machine(answers).cards
    assert card.shared_memory is shared


def test_a_card_that_is_plugged_in_or_out_is_noticed(tmp_path: Path) -> None:
    driven = tmp_path / "drivers" / "amdgpu"
    driven.mkdir(parents=True)
    for name in ("bind", "unbind", "0000:03:00.0"):
        (driven / name).touch()
    machine = Machine(radeon(), pci_devices=tmp_path / "devices")
    machine.package.asked.clear()
    assert not machine.backend.has_changed()
    (driven / "0000:09:00.0").touch()
    assert machine.backend.has_changed()
    assert machine.package.asked == [], "the kernel's folder was looked at, and nobody asked"
    machine.package.cards.append(instinct())
    machine.backend.close()
    assert len(machine.backend.open()) == 2
    assert not machine.backend.has_changed()
    (driven / "0000:03:00.0").unlink()
    assert machine.backend.has_changed()
    assert not AmdSmiBackend(SessionClock(), pci_devices=tmp_path / "no" / "where").has_changed()


def test_closed_and_opened_again_it_goes_on_counting() -> None:
    machine = Machine(radeon())
    machine.read()
    machine.backend.close()
    assert machine.package.closed == 1
    with pytest.raises(BackendUnavailable):
        machine.backend.read_fast(machine.cards[0])
    machine.answers["amdsmi_get_energy_count"] = {"energy_accumulator": 3_000_000, "counter_resolution": 15.3}
    assert machine.backend.open() == machine.cards
    assert machine.read()["energy_j"].value == pytest.approx(15.3)


def test_a_card_without_a_name_or_uuid() -> None:
    card = radeon()
    card["amdsmi_get_gpu_device_uuid"] = error(UNKNOWN)
    card["amdsmi_get_gpu_asic_info"] = {"market_name": "0x744c", "device_id": "0x744c"}
    nobody = {"amdsmi_get_gpu_asic_info": {"market_name": "?"}}
    (found,) = Machine(card, nobody).cards
    assert (found.uuid, found.name) == ("PCI-00000000:03:00.0", "AMD GPU 0x744c")


@pytest.mark.parametrize(
    ("init_error", "reason", "advice"),
    [
        (error(DRIVER_NOT_LOADED), Reason.NO_DRIVER, Advice.LOAD_DRIVER),
        (error(NO_PERM), Reason.NO_PERMISSION, Advice.ALLOW_ACCESS),
        (AmdSmiException("no code"), Reason.UNKNOWN_ERROR, Advice.TRY_AGAIN),
    ],
)
def test_a_driver_that_does_not_start(init_error: Exception, reason: Reason, advice: Advice) -> None:
    package = FakePackage([radeon()])
    package.init_error = init_error
    backend = AmdSmiBackend(SessionClock(), door=AmdSmiDoor(load=lambda: package))
    with pytest.raises(BackendUnavailable) as refused:
        backend.open()
    assert (refused.value.reason, refused.value.advice_code) == (reason, advice)


def test_a_driver_without_cards_is_closed_again() -> None:
    package = FakePackage([])
    with pytest.raises(BackendUnavailable, match="sees no card"):
        AmdSmiBackend(SessionClock(), door=AmdSmiDoor(load=lambda: package)).open()
    assert (package.opened, package.closed) == (1, 1)


def test_the_package_is_looked_for_before_it_is_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it fails where its library is not: two lines on the terminal and a KeyError."""
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    monkeypatch.delenv("ROCM_HOME", raising=False)
    monkeypatch.delitem(sys.modules, "amdsmi", raising=False)
    with pytest.raises(BackendUnavailable, match=r"package amdsmi is not installed"):
        load_package()
    (tmp_path / "amdsmi.py").write_text("print('Unable to find libamd_smi.so')\n{}['libamd_smi.so']\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BackendUnavailable, match=r"libamd_smi\.so, part of ROCm\) is not installed"):
        load_package()
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(amdsmi, "_finds_library", lambda: True)
    with pytest.raises(BackendUnavailable, match=r"does not fit AMD's library \(KeyError\)") as refused:
        load_package()
    assert refused.value.reason is Reason.DRIVER_MISMATCH


ANSWERS = st.one_of(
    st.sampled_from(["N/A", "", None, True, -1, 0, 1, 0xFFFF, 0xFFFFFFFF, 2**63, 2**64 - 1, float("nan"), 1e300]),
    st.sampled_from([error(2), error(10), error(31), error(UNKNOWN), ValueError("x"), KeyError("y")]),
    st.integers(0, 200),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.sampled_from(["clk", "gfx_activity", "pcie_metric", "power_cap", "pid"]), st.integers(0, 300)),
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(set(radeon()) - {"amdsmi_get_gpu_device_bdf"})), ANSWERS, min_size=1))
def test_whatever_is_answered_all_fields_have_a_true_value_or_a_reason(odd: dict[str, Any]) -> None:
    machine = Machine({**radeon(), **odd})
    for _ in range(2):
        readings = machine.read()
        assert list(readings) == list(FAST_FIELDS + SLOW_FIELDS + DETAIL_FIELDS) == list(ALL_GPU_FIELDS)
        for field, reading in readings.items():
            assert (reading.value is None) == (reading.reason is not None), field
            assert reading.value is None or -100 <= reading.value < 2**48, field
    machine.backend.processes(machine.cards[0])
