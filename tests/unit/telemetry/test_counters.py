"""Counters into rates, shares and energy; values that cannot be true."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.counters import BusyShare, ByteRate, EnergyCounter, EnergyIntegral
from desktop_app.telemetry.plausibility import PERCENT, TEMPERATURE_C, is_sentinel, judge, judge_used_memory

NOT_YET = Reading(None, Reason.NOT_READ_YET)
IMPLAUSIBLE = Reading(None, Reason.IMPLAUSIBLE)


class TestByteRate:
    def test_needs_two_readings(self) -> None:
        rate = ByteRate()
        assert rate.update(1.0, 100, bits=64) == NOT_YET
        assert rate.update(1.5, 1100, bits=64) == Reading(2000.0)
        rate.forget()
        assert rate.update(2.0, 9999, bits=64) == NOT_YET

    def test_a_32_bit_counter_wraps(self) -> None:
        rate = ByteRate()
        rate.update(0.0, 2**32 - 50, bits=32)
        assert rate.update(0.2, 50, bits=32) == Reading(pytest.approx(500.0))
        # after a long interval it may have wrapped twice
        assert rate.update(1.0, 60, bits=32) == IMPLAUSIBLE

    def test_a_64_bit_counter_that_went_back_says_nothing(self) -> None:
        rate = ByteRate()
        rate.update(0.0, 1000, bits=64)
        assert rate.update(0.2, 10, bits=64) == IMPLAUSIBLE
        assert rate.update(0.4, 30, bits=64) == Reading(pytest.approx(100.0))

    def test_more_than_the_link_can_carry_says_nothing(self) -> None:
        rate = ByteRate(most_per_s=300e9)
        rate.judge(0.0, 0, bits=64)
        assert rate.judge(1.0, 10**12, bits=64) == IMPLAUSIBLE
        assert rate.judge(2.0, 10**12 + 10**11, bits=64) == Reading(pytest.approx(1e11))
        assert rate.judge(3.0, float("nan"), bits=64) == IMPLAUSIBLE

    def test_a_sound_counter_has_no_end(self) -> None:
        """After 2**48 bytes (281 TB: five minutes of NVLink 5), near the highest of 63 bits, and past it."""
        for moved in (2**48 + 10, 2**62, 2**63 - 2**21, 2**63 + 2**40):
            rate = ByteRate(most_per_s=300e9)
            assert rate.judge(0.0, moved, bits=64) == NOT_YET
            assert rate.judge(0.2, moved + 10**9, bits=64) == Reading(pytest.approx(5e9))

    @pytest.mark.parametrize("none", [-1, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1, 2**64, math.nan, math.inf])
    def test_what_is_no_count_begins_anew(self, none: float) -> None:
        rate = ByteRate()
        rate.judge(0.0, 2**50, bits=64)
        assert rate.judge(0.2, none, bits=64) == IMPLAUSIBLE
        assert rate.judge(0.4, 2**50 + 100, bits=64) == NOT_YET


class TestBusyShare:
    def test_a_card_that_was_capped_for_eighty_hours(self) -> None:
        share = BusyShare()
        capped_ns = 80 * 3600 * 10**9  # more than 2**48
        assert share.judge(0.0, capped_ns) == NOT_YET
        assert share.judge(0.2, capped_ns + 50_000_000) == Reading(pytest.approx(25.0))

    def test_nanoseconds_into_percent(self) -> None:
        share = BusyShare()
        assert share.update(0.0, 5_000) == NOT_YET
        assert share.update(0.2, 100_005_000) == Reading(pytest.approx(50.0))
        assert share.update(0.4, 400_005_000) == Reading(100.0)  # the driver counts in steps of 100 ms
        assert share.update(0.6, 0) == IMPLAUSIBLE
        assert share.update(0.8, 60_000_000_000) == IMPLAUSIBLE, "a minute in a fifth of a second"
        assert share.judge(1.0, float("inf")) == IMPLAUSIBLE
        assert share.judge(1.2, 0) == NOT_YET, "after what was no count it starts anew"


class TestEnergy:
    def test_counter_from_the_first_reading_and_over_a_restart(self) -> None:
        counter = EnergyCounter()
        assert counter.update(0.0, 1000.0) == Reading(0.0)
        assert counter.update(1.0, 1250.0) == Reading(250.0)
        assert counter.update(2.0, 10.0) == Reading(250.0)  # driver reloaded
        assert counter.update(3.0, 30.0) == Reading(270.0)

    def test_a_leap_that_no_card_can_draw_is_not_counted(self) -> None:
        counter = EnergyCounter()
        counter.update(0.0, 1000.0)
        assert counter.update(1.0, 1e12) == IMPLAUSIBLE
        assert counter.update(2.0, 1e12 + 300.0) == Reading(300.0)

    def test_integral_by_trapezoids_without_gaps(self) -> None:
        integral = EnergyIntegral()
        integral.update(0.0, 100.0)
        assert integral.total_j is None
        integral.update(0.2, 100.0)
        integral.update(0.4, 200.0)
        assert integral.total_j == pytest.approx(20.0 + 30.0)
        integral.update(0.6, None)  # no reading
        integral.update(0.8, 200.0)
        assert integral.total_j == pytest.approx(50.0)
        integral.update(1.0, 200.0)
        assert integral.total_j == pytest.approx(90.0)
        integral.update(7.0, 200.0)  # the driver was blocked
        assert integral.total_j == pytest.approx(90.0)

    def test_a_slower_sampling_is_one_gap_only(self) -> None:
        integral = EnergyIntegral()
        for t_s in (0.0, 0.2, 5.2, 10.2, 15.2):
            integral.update(t_s, 10.0)
        assert integral.total_j == pytest.approx(10.0 * (0.2 + 10.0))

    @given(st.lists(st.floats(1, 700), min_size=2, max_size=50))
    def test_integral_lies_between_least_and_most_power(self, powers: list[float]) -> None:
        integral = EnergyIntegral()
        for number, power_w in enumerate(powers):
            integral.update(0.2 * number, power_w)
        seconds = 0.2 * (len(powers) - 1)
        assert integral.total_j is not None
        assert min(powers) * seconds <= integral.total_j * (1 + 1e-9)
        assert integral.total_j <= max(powers) * seconds * (1 + 1e-9)


class TestPlausibility:
    @pytest.mark.parametrize("value", [2**63, 2**64 - 1, 2**64, 2**63 - 1, 2**32 - 1, float(2**63)])
    def test_sentinels(self, value: float) -> None:
        assert is_sentinel(value)

    @pytest.mark.parametrize("value", [0, 1, 2**31, 2**32, 6 * 2**30, 2**62])
    def test_sizes_that_memory_really_has(self, value: int) -> None:
        assert not is_sentinel(value)

    def test_ranges(self) -> None:
        assert judge(100, PERCENT) == Reading(100.0)
        assert judge(0, PERCENT) == Reading(0.0)
        assert judge(101, PERCENT) == IMPLAUSIBLE
        assert judge(0, TEMPERATURE_C) == IMPLAUSIBLE
        assert judge(-5, TEMPERATURE_C) == Reading(-5.0)

    def test_memory(self) -> None:
        assert judge_used_memory(100, 100) == Reading(100.0)
        assert judge_used_memory(100, 101) == IMPLAUSIBLE
        assert judge_used_memory(0, 0) == IMPLAUSIBLE
        assert judge_used_memory(100, 0) == Reading(0.0)

    @given(st.integers(0, 2**64))
    def test_whatever_comes_is_in_range_or_absent(self, raw: int) -> None:
        reading = judge(raw, PERCENT)
        assert (reading.value is None) == (reading.reason is Reason.IMPLAUSIBLE)
        assert reading.value is None or 0 <= reading.value <= 100
