"""The simulated card is physics: right numbers by hand, plausible whatever happens, labelled everywhere."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_app.core.clock import SessionClock
from desktop_app.core.load import CardLoad
from desktop_app.core.telemetry import DETAIL_FIELDS, FAST_FIELDS, SLOW_FIELDS, Card, EnergySource, Reading, Reason
from desktop_app.telemetry.card_model import (
    CardModel,
    CardPhysics,
    busy_power_w,
    clock_share,
    clock_under_cap,
    settled_temperature_c,
)
from desktop_app.telemetry.catalogue import find_card, load_catalogue
from desktop_app.telemetry.simulated import SimulatedBackend, physics_of

MIB = 2**20
GTX_1660 = CardPhysics(tdp_w=120.0, power_limit_w=120.0, boost_clock_mhz=1785.0)


class Bench:
    """A simulated card on a clock that the test moves."""

    def __init__(self, name: str = "GTX 1660", **settings: float) -> None:
        self.now_s = 0.0
        self.load = CardLoad()
        clock = SessionClock(monotonic=lambda: self.now_s, anchor_wall_s=0.0, origin_s=0.0)
        self.backend = SimulatedBackend(find_card(name), load=self.load, clock=clock, **settings)  # type: ignore[arg-type]
        (self.card,) = self.backend.open()

    def run(self, seconds: float, *, busy: bool = True, tick_s: float = 0.2) -> dict[str, Reading]:
        """The last fast readings after so many seconds at full or no duty."""
        if busy:
            self.load.begin_busy(self.now_s)
        else:
            self.load.end_busy(self.now_s)
        start_s, readings = self.now_s, {}
        for tick in range(1, round(seconds / tick_s) + 1):
            self.now_s = start_s + tick * tick_s
            readings = dict(self.backend.read_fast(self.card))
        return readings

    def slow(self) -> dict[str, Reading]:
        return dict(self.backend.read_slow(self.card))


class TestPhysics:
    def test_constants_of_the_gtx_1660(self) -> None:
        assert physics_of(find_card("GTX 1660")) == GTX_1660
        assert GTX_1660.idle_w == pytest.approx(12.0)
        assert GTX_1660.load_w == pytest.approx(116.4)
        assert GTX_1660.design_c == 71.0
        assert GTX_1660.design_conductance_w_per_c == pytest.approx(116.4 / 46)

    def test_idle_settles_where_heat_and_cooling_balance(self) -> None:
        # fan 30 %: 2.530 W/K x (0.4 + 0.6 x 0.30 / 0.5395) = 1.856 W/K; 12 W / 1.856 = 6.46 K over 25 °C
        assert settled_temperature_c(GTX_1660, 12.0) == pytest.approx(31.46, abs=0.01)
        assert CardModel(GTX_1660).state.temperature_c == pytest.approx(31.46, abs=0.01)

    def test_full_load_settles_by_hand(self) -> None:
        model = CardModel(GTX_1660)
        for _ in range(6000):
            state = model.advance(1.0, 0.2)
        # at 69.93 °C: 45 MHz of bins are gone, clock 0.9749, f V² 0.9554, 111.7 W; the fan at 52.4 % carries
        # 2.487 W/K x 44.93 K = 111.7 W
        assert state.temperature_c == pytest.approx(69.93, abs=0.05)
        assert state.power_w == pytest.approx(111.74, abs=0.1)
        assert state.clock_mhz == pytest.approx(1785 - 3 * (69.93 - 55), abs=0.5)
        assert state.fan_share == pytest.approx(0.523, abs=0.002)
        assert (state.throttle_power_share, state.throttle_thermal_share) == (0.0, 0.0)

    def test_warming_follows_the_time_constant(self) -> None:
        model = CardModel(GTX_1660)
        state = model.advance(1.0, 10.0)
        # fan still at 30 %: heads for 25 + 116.4 / 1.856 = 87.7 °C with 189.8 J/K / 1.856 W/K = 102.2 s
        assert state.temperature_c == pytest.approx(87.7 - (87.7 - 31.46) * 0.9068, abs=0.05)
        assert state.energy_j == pytest.approx(1164.0)

    def test_a_lower_power_limit_takes_clock_and_says_so(self) -> None:
        capped = replace(GTX_1660, power_limit_w=80.0)
        # f (0.6 + 0.4 f)² = (80 - 12) / 104.4 = 0.6513 at f = 0.7818
        clock, by_power, by_heat = clock_share(capped, 40.0, cap=clock_under_cap(capped))
        assert clock == pytest.approx(0.7818, abs=0.0003)
        assert (by_power, by_heat) == (True, False)
        assert busy_power_w(capped, clock) == pytest.approx(80.0)
        state = CardModel(capped).advance(0.5, 1.0)
        assert state.throttle_power_share == pytest.approx(0.5)  # half the time busy, all of that under the cap
        assert state.power_w == pytest.approx((80 + 12) / 2)

    def test_a_hot_room_throttles_and_holds_below_shutdown(self) -> None:
        model = CardModel(replace(GTX_1660, ambient_c=70.0))
        for _ in range(6000):
            state = model.advance(1.0, 0.2)
        assert 93.0 < state.temperature_c < 96.0
        assert state.throttle_thermal_share == 1.0
        assert state.clock_mhz < 0.9 * 1785
        assert state.fan_share == 1.0
        # balance: what it draws is what the cooler carries at full fan, 2.530 x (0.4 + 0.6 / 0.5395) = 3.826 W/K
        assert state.power_w == pytest.approx(3.826 * (state.temperature_c - 70), rel=0.01)

    def test_energy_is_the_integral_of_power(self) -> None:
        model, energy_j = CardModel(GTX_1660), 0.0
        for number in range(500):
            state = model.advance((number % 7) / 6, 0.1 + 0.01 * (number % 5))
            energy_j += state.power_w * (0.1 + 0.01 * (number % 5))
        assert state.energy_j == pytest.approx(energy_j)

    def test_the_step_of_the_reader_hardly_matters(self) -> None:
        fine, coarse = CardModel(GTX_1660), CardModel(GTX_1660)
        for _ in range(600):
            fine.advance(1.0, 0.1)
        coarse.advance(1.0, 60.0)
        assert coarse.state.temperature_c == pytest.approx(fine.state.temperature_c, abs=0.2)
        assert coarse.state.energy_j == pytest.approx(fine.state.energy_j, rel=0.005)

    @given(
        duties=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 20)), min_size=1, max_size=10),
        tdp_w=st.floats(20, 1500),
        limit_share=st.floats(0.3, 1.2),
        ambient_c=st.floats(0, 60),
        fan=st.booleans(),
    )
    def test_stays_physical_whatever_happens(
        self, duties: list[tuple[float, float]], tdp_w: float, limit_share: float, ambient_c: float, fan: bool
    ) -> None:
        physics = CardPhysics(
            tdp_w=tdp_w, power_limit_w=limit_share * tdp_w, boost_clock_mhz=2000.0, ambient_c=ambient_c, fan=fan
        )
        model, energy_j = CardModel(physics), 0.0
        for duty, dt_s in duties:
            state = model.advance(duty, dt_s)
            assert physics.idle_w - 1e-6 <= state.power_w <= max(physics.idle_w, tdp_w) + 1e-6
            assert ambient_c <= state.temperature_c <= physics.slowdown_c + 4.0
            assert 300.0 <= state.clock_mhz <= 2000.0
            assert 0.0 <= state.throttle_power_share <= 1.0
            assert 0.0 <= state.throttle_thermal_share <= 1.0
            assert 0.3 <= state.fan_share <= 1.0
            assert state.energy_j >= energy_j
            energy_j = state.energy_j


class TestReadings:
    def test_the_card_is_labelled(self) -> None:
        card = Bench().card
        assert card.simulated is True
        assert card.uuid == "SIM-geforce-gtx-1660"
        assert card.name == "GeForce GTX 1660"
        assert card.total_bytes == 6144 * MIB
        assert card.driver_reserved_bytes == 104 * MIB  # 1.7 % of the total
        assert card.capacity_bytes == 6040 * MIB
        assert (card.sm_count, card.compute_capability, card.architecture) == (22, (7, 5), "Turing")
        assert (card.power_limit_w, card.power_max_w, card.sm_clock_max_mhz) == (120.0, 120.0, 1785.0)
        assert (card.temperature_slowdown_c, card.temperature_shutdown_c) == (93.0, 96.0)
        assert card.energy_source is EnergySource.MODEL
        assert card.reasons["bus_id"] is Reason.SIMULATED

    def test_a_busy_minute(self) -> None:
        bench = Bench()
        readings = bench.run(60.0)
        assert set(readings) == set(FAST_FIELDS)
        assert readings["utilization_percent"].value == pytest.approx(97, abs=3)
        assert readings["power_w"].value == pytest.approx(116, rel=0.02)
        assert readings["power_average_w"].value == pytest.approx(116, abs=1)
        assert readings["temperature_c"].value == pytest.approx(56, abs=1)
        assert readings["sm_clock_mhz"].value in {1770.0, 1785.0}
        assert readings["memory_clock_mhz"] == Reading(None, Reason.SIMULATED)
        slow = bench.slow()
        assert set(slow) == set(SLOW_FIELDS) | set(DETAIL_FIELDS)
        assert slow["energy_j"].value == pytest.approx(60 * 116.3, rel=0.005)
        assert slow["performance_state"].value == 2.0
        assert slow["power_limit_w"].value == 120.0
        assert (slow["pcie_generation"].value, slow["pcie_width"].value) == (3.0, 16.0)
        assert slow["ecc_uncorrected"] == Reading(None, Reason.NOT_SUPPORTED)
        assert slow["temperature_memory_c"] == Reading(None, Reason.NOT_SUPPORTED)

    def test_details_are_those_that_the_model_knows(self) -> None:
        bench = Bench()
        bench.run(10.0)
        fast, slow = bench.run(60.0), bench.slow()
        known = {name: slow[name].value for name in DETAIL_FIELDS if slow[name].value is not None}
        margin = (bench.card.temperature_slowdown_c or 0.0) - (fast["temperature_c"].value or 0.0)
        assert known == {
            "graphics_clock_mhz": fast["sm_clock_mhz"].value,
            "temperature_margin_c": pytest.approx(margin, abs=1),
            "throttle_reasons": 0.0,
        }
        assert {slow[name].reason for name in DETAIL_FIELDS if name not in known} == {Reason.SIMULATED}
        bench.run(5.0, busy=False)
        assert bench.slow()["throttle_reasons"].value == 1.0  # idle

    def test_idle_falls_asleep(self) -> None:
        bench = Bench()
        bench.run(10.0)
        readings = bench.run(5.0, busy=False)
        assert readings["utilization_percent"].value == 0.0
        assert readings["power_w"].value == pytest.approx(12, rel=0.02)
        assert readings["sm_clock_mhz"].value == 300.0
        assert bench.slow()["performance_state"].value == 8.0
        assert bench.slow()["pcie_generation"].value == 1.0

    def test_half_duty_is_half_utilisation(self) -> None:
        bench = Bench()
        for tick in range(1, 51):
            bench.load.begin_busy((tick - 1) * 0.2)
            bench.load.end_busy((tick - 1) * 0.2 + 0.1)
            bench.now_s = tick * 0.2
            readings = bench.backend.read_fast(bench.card)
        assert readings["utilization_percent"].value == pytest.approx(48.5, abs=3)
        assert readings["power_w"].value == pytest.approx((116.4 + 12) / 2, rel=0.02)

    def test_memory_is_what_all_hold(self) -> None:
        bench = Bench()
        bench.load.set_memory(reserved_bytes=900 * MIB, outside_bytes=300 * MIB)
        bench.load.set_others(317 * MIB)
        assert bench.run(0.2)["memory_used_bytes"].value == 1517 * MIB

    def test_the_seed_fixes_the_noise(self) -> None:
        first, again, other = Bench(seed=3), Bench(seed=3), Bench(seed=4)
        assert first.run(5.0) == again.run(5.0)
        assert first.run(5.0)["power_w"] != other.run(10.0)["power_w"]

    def test_own_and_other_processes(self) -> None:
        bench = Bench()
        assert bench.backend.processes(bench.card) == ()
        bench.load.set_memory(reserved_bytes=900 * MIB, outside_bytes=300 * MIB)
        bench.load.set_others(317 * MIB)
        own, others = bench.backend.processes(bench.card)
        assert (own.pid, own.own, own.memory_bytes, own.kind) == (os.getpid(), True, 1200 * MIB, "compute")
        assert (others.own, others.memory_bytes, others.kind) == (False, 317 * MIB, "graphics")
        assert own.simulated
        assert others.simulated

    def test_a_server_card_has_no_fan_but_hbm(self) -> None:
        bench = Bench("A100-SXM4-80GB")
        bench.run(5.0)
        slow = bench.slow()
        assert slow["fan_percent"] == Reading(None, Reason.NOT_SUPPORTED)
        assert slow["performance_state"].value == 0.0
        assert slow["ecc_uncorrected"] == Reading(None, Reason.SIMULATED)
        assert slow["temperature_memory_c"] == Reading(None, Reason.SIMULATED)
        assert bench.card.temperature_slowdown_c == 89.0  # from a capture

    def test_blank_figures_stay_without_a_value(self) -> None:
        bench = Bench("H20")  # no clock in the catalogue
        assert bench.run(1.0)["sm_clock_mhz"] == Reading(None, Reason.SIMULATED)
        bench = Bench("GTX 1660 Ti Mobile")  # no power
        readings = bench.run(1.0)
        assert readings["power_w"] == readings["power_average_w"] == Reading(None, Reason.SIMULATED)
        assert bench.slow()["energy_j"] == bench.slow()["power_limit_w"] == Reading(None, Reason.SIMULATED)
        assert bench.card.power_limit_w is None
        assert bench.card.energy_source is None
        assert bench.card.reasons["power_limit_w"] is Reason.SIMULATED


SIMULABLE = [part.card_id for part in load_catalogue() if part.total_bytes is not None]


@given(
    card_id=st.sampled_from(SIMULABLE),
    steps=st.lists(st.tuples(st.booleans(), st.floats(0.01, 20.0)), min_size=1, max_size=12),
    held=st.integers(0, 2**40),
)
def test_every_card_reads_plausibly(card_id: str, steps: list[tuple[bool, float]], held: int) -> None:
    bench = Bench(card_id)
    card: Card = bench.card
    assert card.capacity_bytes is not None
    bench.load.set_memory(reserved_bytes=held, outside_bytes=0)
    for busy, seconds in steps:
        readings = bench.run(seconds, busy=busy, tick_s=seconds) | bench.slow()
        assert set(readings) == set(FAST_FIELDS) | set(SLOW_FIELDS) | set(DETAIL_FIELDS)
        for name, reading in readings.items():
            assert (reading.value is None) == (reading.reason is not None), name
        values = {name: reading.value for name, reading in readings.items() if reading.value is not None}
        assert 0 <= values["utilization_percent"] <= 100
        assert 0 <= values["memory_utilization_percent"] <= 100
        assert 0 <= values["memory_used_bytes"] <= card.capacity_bytes
        assert 20 <= values["temperature_c"] <= (card.temperature_shutdown_c or 0)
        if card.power_limit_w is not None:
            assert 0 < values["power_w"] <= 1.05 * card.power_limit_w
            assert values["energy_j"] >= 0
        if card.sm_clock_max_mhz is not None:
            assert 0 < values["sm_clock_mhz"] <= card.sm_clock_max_mhz + 8
