"""Cause ``neighbour``: other processes on the card, with room for the run and without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import StepSample
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.trace_replay import replay
from desktop_app.forecast.trace_rows import TraceRow

from .surroundings_traces import CAPACITY, RESERVED, first_of, flat, live_with, noise
from .traces import BASE, Floats, memory, step

FREE = CAPACITY - RESERVED


def ramp(seconds: int, *, begins: int = 30, first: float = 2.0 * GIB, last: float = FREE) -> Floats:
    """Flat, then growing until ``last`` at ``begins + seconds``, where it ends."""
    rising = np.arange(begins + seconds) - begins
    return first + (last - first) * np.maximum(rising, 0) / seconds


@pytest.mark.parametrize("seconds", [25, 40, 150])
@pytest.mark.parametrize("jitter_mib", [0.0, 60.0])
def test_a_neighbour_that_fills_the_card_is_told_in_time(seconds: int, jitter_mib: float) -> None:
    others = ramp(seconds) + np.abs(noise(seconds, seconds + 30, jitter_mib * MIB))
    told = live_with({"others_bytes": others})
    first = first_of(told, Cause.NEIGHBOUR)
    assert {alert.cause for alert in told.raised} == {Cause.NEIGHBOUR}
    left_s = 30 + seconds - first.t_s
    assert left_s >= 8.0  # 16 steps
    assert first.eta_s == pytest.approx(left_s, rel=0.2)
    assert first.action == "close_neighbour"
    assert first.evidence["slope_bytes_per_s"] == pytest.approx((FREE - 2 * GIB) / seconds, rel=0.2)
    assert told.raised[-1].severity is AlertSeverity.IMMINENT
    assert told.cleared == []


def test_the_flood_mark_is_over_the_brim_while_a_neighbour_fills_the_card() -> None:
    told = live_with({"others_bytes": ramp(150)})
    warned = [one for one in told.forecasts if one.severity in {AlertSeverity.LIKELY, AlertSeverity.IMMINENT}]
    calm = [one for one in told.forecasts if one.t_s < 30.0]
    assert len(warned) > 50
    assert all((one.flood_low_bytes or 0) > CAPACITY for one in warned)
    assert all((one.flood_high_bytes or CAPACITY) < CAPACITY for one in calm)


@pytest.mark.parametrize("loads", [3, 6])
def test_programs_loaded_one_after_another(loads: int) -> None:
    """Stairs: each of the same size, one a minute. The one that does not fit is foreseen."""
    others = np.repeat(GIB + np.arange(loads) * FREE / loads, 60)
    first = first_of(live_with({"others_bytes": others}), Cause.NEIGHBOUR)
    assert first is not None
    assert first.t_s + first.eta_s == pytest.approx(60.0 * loads, abs=5.0)


def test_eta_is_right_from_half_way_on() -> None:
    told = live_with({"others_bytes": ramp(200) + np.abs(noise(7, 230, 40.0 * MIB))})
    later = [one for one in told.forecasts if one.t_s > 140.0 and one.cause is Cause.NEIGHBOUR and one.eta_s]
    assert len(later) > 100
    errors = [abs(one.eta_s - (230.0 - one.t_s)) / (230.0 - one.t_s) for one in later if one.eta_s and one.t_s < 229]
    assert float(np.median(errors)) < 0.05


def test_it_is_quiet_again_when_the_neighbour_has_gone() -> None:
    others = np.concatenate([ramp(60)[:85], np.full(60, 2.0 * GIB)])
    told = live_with({"others_bytes": others})
    assert first_of(told, Cause.NEIGHBOUR) is not None
    assert [alert.cause for alert in told.cleared] == [Cause.NEIGHBOUR]


@pytest.mark.parametrize(
    "kind", ["jitter", "slow wave", "jobs that come and go", "loads and stops", "stairs that end", "levels off"]
)
def test_a_noisy_neighbour_with_room_is_no_alarm(kind: str) -> None:
    at = np.arange(500.0)
    rng = np.random.default_rng(len(kind))
    others = {
        "jitter": 3 * GIB + rng.uniform(-200, 200, at.size) * MIB,
        "slow wave": 3 * GIB + 200 * MIB * np.sin(at / 40.0),
        "jobs that come and go": GIB + (at // 37 % 3 == 1) * 6.0 * GIB + rng.normal(0, MIB, at.size),
        "loads and stops": 2 * GIB + 9.0 * GIB * np.clip((at - 100) / 60, 0, 1),
        "stairs that end": 2 * GIB + 2.0 * GIB * np.clip((at - 100) // 50, 0, 5),
        "levels off": 2 * GIB + 12.0 * GIB * (1 - np.exp(-at / 90)),
    }[kind]
    told = live_with({"others_bytes": others}, steps_per_second=1.0)
    assert told.raised == []


def test_a_neighbour_cannot_take_what_is_reserved() -> None:
    """It jumps to the brim and stays; the run needs nothing that it has not got."""
    others = np.repeat([2.0 * GIB, FREE - 100.0 * MIB], [60, 200])
    assert live_with({"others_bytes": others}, steps_per_second=1.0).raised == []


class TestGivenBack:
    """The allocator holds less between steps than at their peaks: the script calls ``empty_cache``."""

    @staticmethod
    def step(number: int) -> StepSample:
        stats = replace(memory(BASE), reserved_bytes=BASE)
        return step(number, stats, step_s=1.0)

    def test_a_jump_into_what_the_next_peak_needs(self) -> None:
        others = np.repeat([2.0 * GIB, FREE + 300.0 * MIB], [60, 6])
        told = live_with({"others_bytes": others}, steps_per_second=1.0, make_step=self.step)
        first = first_of(told, Cause.NEIGHBOUR)
        assert first.severity is AlertSeverity.IMMINENT
        assert first.t_s <= 63.0
        assert first.eta_steps == pytest.approx(1.0)
        assert first.evidence["headroom_bytes"] == pytest.approx(-300.0 * MIB, abs=MIB)

    def test_one_odd_reading_is_no_jump(self) -> None:
        """Driver and allocator are read at different moments: one second shows the run's own peak as a neighbour's."""
        others = np.full(120, 2.0 * GIB)
        others[60] = FREE + 300.0 * MIB
        assert live_with({"others_bytes": others}, steps_per_second=1.0, make_step=self.step).raised == []


def test_a_refusal_after_a_neighbour_took_the_rest() -> None:
    others = np.repeat([2.0 * GIB, FREE - 50.0 * MIB], [60, 20])

    def make(number: int) -> StepSample:
        return step(number, memory(BASE, retries=1 if number > 70 else 0), step_s=1.0)

    first = first_of(live_with({"others_bytes": others}, steps_per_second=1.0, make_step=make), Cause.NEIGHBOUR)
    assert first.step <= 73


def test_whose_memory_it_is() -> None:
    others = ramp(40)
    known = live_with([{"others_bytes": int(size), "largest_neighbour_pid": 4711} for size in others])
    nobody = live_with({"others_bytes": others})
    assert first_of(known, Cause.NEIGHBOUR).evidence["pid"] == 4711.0
    assert first_of(nobody, Cause.NEIGHBOUR).evidence["owner_unknown"] == 1.0


def test_unknown_others_say_nothing() -> None:
    told = live_with([{"device_used_bytes": 23 * GIB} for _ in range(60)], make_step=flat)
    assert told.raised == []


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_stairs_about_as_long_as_the_samples_are_apart_keep_their_alert_to_the_end(seed: int) -> None:
    """3 % of the card every 25 steps of 0.1 s, and a look about once a second: every third look is a new stair.

    The alert stays the one that it is, and what is told beside it is never 0, until the stair that does not fit.
    """
    rng = np.random.default_rng(seed)
    card, reserved, outside = 8 * GIB, 4320 * MIB, 350 * MIB
    stair = 0.03 * card
    first, free = 100, card - reserved - outside - GIB // 4
    fits = int(free // stair)
    end = first + 25 * fits
    rows, t_s = list[TraceRow](), 0.0
    for at in range(1, end):
        t_s += 0.1006 + rng.normal(0.0, 0.004)
        others = round(GIB // 4 + stair * max(0, (at - first) // 25 + 1))
        rows.append(
            TraceRow(
                t_s=t_s,
                step=at,
                phase="train",
                live_after_bytes=2600 * MIB,
                live_peak_bytes=4200 * MIB,
                reserved_peak_bytes=reserved,
                alloc_retries=0,
                device_used_bytes=others + outside + reserved,
                other_used_bytes=others,
                capacity_bytes=card,
            )
        )
    told = list(replay(rows))
    raised = [alert for _, update in told for alert in update.changes.raised]
    assert {(alert.alert_id, alert.cause) for alert in raised} == {(1, Cause.NEIGHBOUR)}
    assert end - raised[0].step >= 50
    assert not any(update.changes.cleared for _, update in told)
    since = [update.forecast for row, update in told if (row.step or 0) >= raised[0].step]
    assert all(one.p_oom_run >= 0.5 for one in since)
    assert since[-1].p_oom[10] >= 0.5
