"""Growth that comes with saves or validations is foreseen at the event that will not fit, under that event's name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import Phase, PhaseSample
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.event_stairs import EventStairWatch
from desktop_app.forecast.forecaster import Forecaster
from desktop_app.forecast.ramps import OrdinaryChange
from desktop_app.forecast.stairs import Stairs

from .traces import BASE, DEMAND, Floats, Replay, memory, steps

COPY = 430 * MIB  # OOM-36: one copy of the averaged weights per save


def told_of(
    troughs: Floats,
    *,
    capacity: int,
    events: dict[int, tuple[PhaseSample, ...]],
    steps_per_epoch: int | None = None,
) -> Replay:
    """Steps with phases after some of them. Of the flat parts between events only every 20th step is judged."""
    forecaster = Forecaster(capacity_bytes=capacity)
    told = Replay()
    for sample in steps(troughs, steps_per_epoch=steps_per_epoch):
        assert sample.memory is not None
        if sample.memory.reserved_peak_bytes > capacity:
            told.oom_step = sample.step
            return told
        updates = []
        if sample.step % 20 and not any(sample.step - back in events for back in range(6)):
            forecaster.absorb_step(sample)
        else:
            updates.append(forecaster.update_step(sample))
        updates += [forecaster.update_phase(phase) for phase in events.get(sample.step, ())]
        for update in updates:
            told.forecasts.append(update.forecast)
            told.raised.extend(update.changes.raised)
            told.cleared.extend(update.changes.cleared)
    return told


def phases(step: int, *order: Phase, live: float | None = None, ended: bool = False) -> tuple[PhaseSample, ...]:
    stats = None if live is None else memory(live)
    return tuple(PhaseSample(0.1 * step, step, phase, stats, ended=ended) for phase in order)


def saves(every: int, until: int, *, ended: bool = False) -> dict[int, tuple[PhaseSample, ...]]:
    return {step: phases(step, Phase.SAVE, ended=ended) for step in range(every, until + 1, every)}


@pytest.mark.parametrize("shows_after", [0, 1, 2])
@pytest.mark.parametrize("ended", [False, True])
def test_a_copy_kept_at_every_save_is_flagged_after_two_saves(shows_after: int, ended: bool) -> None:
    """+430 MiB at steps 100, 200, ...: the save is told before or after, the copy shows with it or later."""
    every = 100
    troughs = BASE + COPY * ((np.arange(1, 1001) - shows_after) // every)
    capacity = int(BASE + DEMAND + 7.5 * COPY)
    told = told_of(troughs, capacity=capacity, events=saves(every, 1000, ended=ended))
    assert told.first is not None
    assert told.oom_step == 8 * every + shows_after
    assert told.first.step <= 2 * every + 5
    assert {alert.cause for alert in told.raised} == {Cause.CHECKPOINT_SAVE}
    assert told.first.action == "save_to_host"
    assert told.first.evidence["jump_bytes"] == pytest.approx(COPY)
    assert told.first.evidence["jump_distance_steps"] == pytest.approx(every, abs=1)
    assert told.first.evidence["saves_to_go"] == 6
    assert told.first.eta_steps == pytest.approx(8 * every - told.first.step, abs=3)
    assert told.lead_steps() >= 10
    assert told.cleared == []


def test_outputs_kept_by_every_validation_are_that_cause_s() -> None:
    """Validation and save both come at the end of every epoch: live before the save tells whose the growth is."""
    every = 60
    events = {
        step: phases(step, Phase.VALIDATION, live=BASE + COPY * (step // every - 1))
        + phases(step, Phase.SAVE, live=BASE + COPY * (step // every))
        for step in range(every, 600, every)
    }
    troughs = BASE + COPY * ((np.arange(1, 601) - 1) // every)
    told = told_of(troughs, capacity=int(BASE + DEMAND + 6.5 * COPY), events=events, steps_per_epoch=every)
    assert told.first is not None
    assert told.first.step <= 2 * every + 5
    assert {alert.cause for alert in told.raised} == {Cause.VALIDATION}
    assert told.first.evidence["validations_to_go"] == 5


def test_a_higher_level_after_a_save_is_an_alert_only_when_one_more_does_not_fit() -> None:
    """OOM-37: 29 GiB, 31 GiB after the first save, on 32 GiB; and on 48 GiB, where nobody needs to know."""
    troughs = np.where(np.arange(1, 701) <= 500, 28.5 * GIB, 30.5 * GIB)
    told = told_of(troughs, capacity=32 * GIB, events=saves(500, 500))
    assert told.first is not None
    assert told.first.severity is AlertSeverity.LIKELY
    assert told.first.cause is Cause.CHECKPOINT_SAVE
    assert told.first.step <= 503
    roomy = told_of(troughs, capacity=48 * GIB, events=saves(500, 500))
    assert roomy.raised == []
    assert any(forecast.severity is AlertSeverity.WATCH for forecast in roomy.forecasts)


def test_saves_that_keep_nothing_say_nothing() -> None:
    rng = np.random.default_rng(3)
    troughs = BASE + np.abs(rng.normal(0.0, 20 * MIB, 600))
    assert told_of(troughs, capacity=int(BASE + DEMAND + GIB), events=saves(50, 600)).raised == []


def test_a_leak_between_saves_stays_a_leak() -> None:
    troughs = BASE + 10 * MIB * np.arange(1, 200)
    told = told_of(troughs, capacity=6 * GIB, events=saves(20, 200))
    assert {alert.cause for alert in told.raised} == {Cause.LEAK}


def test_what_one_save_keeps_and_the_next_gives_back_is_no_staircase() -> None:
    troughs = BASE + COPY * (np.arange(1, 801) // 100 % 2)
    told = told_of(troughs, capacity=int(BASE + DEMAND + 4 * COPY), events=saves(100, 800))
    assert told.raised == []


# The watch alone


def samples(risers: list[tuple[int, float]], count: int) -> Iterator[tuple[int, float]]:
    for step in range(1, count + 1):
        yield step, BASE + sum(size for at, size in risers if step > at)


def watched(
    risers: list[tuple[int, float]],
    count: int,
    *,
    events: list[int],
    kind: Phase = Phase.SAVE,
    epoch: int | None = None,
) -> Stairs | None:
    ordinary = OrdinaryChange()
    watch = EventStairWatch(ordinary)
    for step, trough in samples(risers, count):
        watch.add(step, trough, ordinary.add(trough), epoch=1 if epoch is None else (step - 1) // epoch + 1)
        if step in events:
            watch.take_phase(PhaseSample(0.0, step, kind, None))
    return watch.stairs(count)


def test_two_like_risers_at_two_events_are_stairs() -> None:
    found = watched([(50, COPY), (100, COPY)], 130, events=[50, 100])
    assert found is not None
    assert (found.risers, found.distance_steps, found.since_last_steps, found.event) == (2, 50.0, 30.0, "save")
    assert found.risers_until_full(2.5 * COPY) == 3
    assert found.steps_until_full(2.5 * COPY) == 20 + 2 * 50


def test_an_event_without_a_riser_ends_them() -> None:
    assert watched([(50, COPY), (100, COPY)], 160, events=[50, 100, 150]) is None


def test_events_that_do_not_come_any_more_end_them_too() -> None:
    assert watched([(50, COPY), (100, COPY)], 190, events=[50, 100]) is None


def test_risers_of_no_like_size_are_counted_from_the_newest() -> None:
    found = watched([(50, COPY), (100, 3 * COPY)], 130, events=[50, 100])
    assert found is not None
    assert (found.risers, found.jump_bytes) == (1, 3 * COPY)


def test_the_end_of_an_epoch_is_an_event_without_a_phase() -> None:
    found = watched([(40, COPY), (80, COPY)], 100, events=[], epoch=40)
    assert found is not None
    assert (found.event, found.risers, found.distance_steps) == ("epoch", 2, 40.0)
