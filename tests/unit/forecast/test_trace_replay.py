"""Recorded rows through the forecaster: in other people's words, with columns missing, and never a later row."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest

from desktop_app.core.forecasts import Cause
from desktop_app.core.steps import BatchShape, Phase, PhaseSample, StepSample, Surroundings
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Update
from desktop_app.forecast.trace_memory import RowMemory
from desktop_app.forecast.trace_replay import TraceReplay, replay
from desktop_app.forecast.trace_rows import TraceRow
from desktop_app.forecast.trace_samples import RowReader, Sample, Setting
from desktop_app.forecast.trace_words import Mark, read_event, read_phase

LEAK = 4 * MIB
STEPS = 60


def leaking(*, count: int = STEPS, phase: str = "train") -> Iterator[TraceRow]:
    for step in range(1, count + 1):
        live = 4 * GIB + step * LEAK
        yield TraceRow(
            t_s=0.1 * step,
            step=step,
            phase=phase,
            live_after_bytes=live,
            live_peak_bytes=live + 2 * GIB,
            reserved_peak_bytes=live + 3 * GIB,
            idle_split_bytes=GIB,
            alloc_retries=0,
            device_used_bytes=live + 4 * GIB,
            other_used_bytes=GIB // 2,
            capacity_bytes=16 * GIB,
            batch_samples=8,
            batch_tokens=1024,
            step_s=0.1,
        )


def first_alert(rows: Iterator[TraceRow] | list[TraceRow]) -> tuple[int, Cause] | None:
    for _, update in replay(rows):
        for alert in update.changes.raised:
            return alert.step, alert.cause
    return None


def samples(*rows: TraceRow) -> list[Sample]:
    reader = RowReader()
    return [sample for row in rows for sample in reader.samples(row)]


def phases(*rows: TraceRow) -> list[PhaseSample]:
    return [sample for sample in samples(*rows) if isinstance(sample, PhaseSample)]


def steps(*rows: TraceRow) -> list[StepSample]:
    return [sample for sample in samples(*rows) if isinstance(sample, StepSample)]


def test_nothing_of_the_future_is_read() -> None:
    rows = [*leaking()]
    whole = [update for _, update in replay(rows)]
    for length in (1, 10, 40, STEPS):
        assert [update for _, update in replay(rows[:length])] == whole[:length]


def test_a_row_is_read_only_when_the_one_before_was_answered() -> None:
    read: list[int] = []

    def live() -> Iterator[TraceRow]:
        for row in leaking(count=5):
            assert row.step is not None
            read.append(row.step)
            yield row

    answers = replay(live())
    next(answers)
    assert read == [1]


@pytest.mark.parametrize(
    "missing",
    [field.name for field in fields(TraceRow) if field.name not in ("step", "phase", "event", "capacity_bytes")],
)
def test_any_one_column_may_be_missing(missing: str) -> None:
    unknown: dict[str, Any] = {missing: None}
    found = first_alert([replace(row, **unknown) for row in leaking()])
    assert found is not None
    assert found[0] <= 41
    assert found[1] is Cause.LEAK


@pytest.mark.parametrize(
    "kept",
    [
        ("step", "live_after_bytes"),
        ("step", "live_peak_bytes"),
        ("step", "reserved_peak_bytes"),
        ("step", "device_used_bytes"),
        ("t_s", "live_after_bytes"),
        ("t_s", "step", "device_used_bytes", "other_used_bytes"),
    ],
)
def test_one_column_of_memory_is_enough(kept: tuple[str, ...]) -> None:
    bare = (TraceRow(**{name: getattr(row, name) for name in (*kept, "capacity_bytes")}) for row in leaking())
    found = first_alert(bare)
    assert found is not None
    assert found[0] <= 45


def test_capacity_may_come_late() -> None:
    rows = [replace(row, capacity_bytes=None) if index < 50 else row for index, row in enumerate(leaking())]
    run = TraceReplay()
    raised = [bool(run.take(row).changes.raised) for row in rows]
    assert not any(raised[:50])
    assert any(raised[50:54])


def test_without_any_capacity_it_is_quiet() -> None:
    run = TraceReplay()
    for row in leaking():
        assert not run.take(replace(row, capacity_bytes=None)).changes.raised
    assert run.capacity_bytes is None


def test_known_figures_reach_the_forecaster_unchanged() -> None:
    (row,) = leaking(count=1)
    (step,) = steps(row)
    assert (step.step, step.t_s, step.step_s, step.batch_samples, step.batch_tokens) == (1, 0.1, 0.1, 8, 1024)
    memory = step.memory
    assert memory is not None
    assert (memory.live_bytes, memory.live_peak_bytes) == (row.live_after_bytes, row.live_peak_bytes)
    assert (memory.reserved_peak_bytes, memory.idle_split_bytes) == (row.reserved_peak_bytes, GIB)
    # 4 GiB of the device beyond live: 3 are reserved, half of one is others'.
    assert memory.outside_bytes == GIB // 2
    # Reserved 3 GiB more than live, of which 1 GiB lies in splits.
    assert memory.returnable_bytes == 2 * GIB
    (around,) = [sample for sample in samples(row) if isinstance(sample, Surroundings)]
    assert (around.others_bytes, around.outside_bytes, around.capacity_bytes) == (GIB // 2, GIB // 2, 16 * GIB)


@pytest.mark.parametrize("word", ["", "train", "Training", "train_step", "ITER", "step"])
def test_words_for_a_step(word: str) -> None:
    assert first_alert(leaking(phase=word)) is not None


@pytest.mark.parametrize(
    ("cell", "phase"),
    [
        ("val", Phase.VALIDATION),
        ("Evaluation", Phase.VALIDATION),
        ("eval_step", Phase.VALIDATION),
        ("save", Phase.SAVE),
        ("checkpoint save", Phase.SAVE),
        ("optimizer.step", Phase.OPTIMIZER),
        ("fwd", Phase.FORWARD),
        ("zero_grad", Phase.ZERO),
        ("load checkpoint", Phase.BUILD),
        ("warm-up", None),
    ],
)
def test_words_for_phases(cell: str, phase: Phase | None) -> None:
    assert read_phase(cell).phase is phase
    assert read_phase(cell).known is (cell != "warm-up")


@pytest.mark.parametrize(
    ("cell", "phase", "marks"),
    [
        ("saved checkpoint", Phase.SAVE, set()),
        ("checkpoint_saved", Phase.SAVE, set()),
        ("validation begins; epoch end", Phase.VALIDATION, {Mark.EPOCH_ENDS}),
        ("end of epoch 3", None, {Mark.EPOCH_ENDS}),
        ("epoch 4", None, {Mark.EPOCH_BEGINS}),
        ("resumed from step_900.pt", None, {Mark.RESUME}),
        ("loaded checkpoint", None, {Mark.RESUME}),
        ("restart", None, {Mark.RESTART}),
        ("RuntimeError: CUDA out of memory", None, {Mark.OOM}),
        ("lr decay", None, set()),
        ("steps_per_epoch=100", None, set()),
    ],
)
def test_words_for_events(cell: str, phase: Phase | None, marks: set[Mark]) -> None:
    assert (read_event(cell).phase, set(read_event(cell).marks)) == (phase, marks)


def test_figures_of_events() -> None:
    setting = samples(
        TraceRow(event="run:total_steps=900,steps_per_epoch=300; longest_batch:samples=2,tokens=99,step=7")
    )
    assert setting == [Setting(900, 300, BatchShape(2, 99), 7)]
    (demand,) = phases(TraceRow(step=3, phase="optimizer", live_after_bytes=GIB, event="demand:bytes=1073741824"))
    assert (demand.known_demand_bytes, demand.ended) == (GIB, False)


def test_a_phase_that_is_about_to_begin() -> None:
    """Live is the peak, or the peak is still that of the step before: nothing has happened yet."""
    (step,) = leaking(count=1)
    before = TraceRow(t_s=1.0, step=1, phase="validation", live_after_bytes=step.live_after_bytes)
    (begins,) = phases(step, before)
    assert (begins.done, begins.ended, begins.phase) == (0, False, Phase.VALIDATION)
    (begins,) = phases(step, replace(before, live_peak_bytes=step.live_peak_bytes))
    assert (begins.done, begins.ended) == (0, False)


def test_validation_of_many_rows_counts_its_parts() -> None:
    (step,) = leaking(count=1)
    live = step.live_after_bytes or 0
    part = TraceRow(step=1, phase="eval", live_after_bytes=live + MIB, live_peak_bytes=live + GIB, event="eval 1/40")
    rest = [replace(part, event="", live_after_bytes=live + k * MIB) for k in (2, 3)]
    *parts, end = phases(step, part, *rest, replace(step, step=2))
    assert [(sample.done, sample.count, sample.ended) for sample in parts] == [
        (1, 40, False),
        (2, 40, False),
        (3, 40, False),
    ]
    assert (end.done, end.count, end.ended) == (3, 40, True)
    assert end.memory is not None
    assert end.memory.live_peak_bytes == live + GIB


def test_rows_written_after_each_phase_announce_the_optimizer_in_time() -> None:
    forward = TraceRow(step=1, phase="forward", live_after_bytes=3 * GIB, live_peak_bytes=3 * GIB)
    backward = TraceRow(step=1, phase="backward", live_after_bytes=2 * GIB, live_peak_bytes=4 * GIB)
    optimizer = TraceRow(step=1, phase="optimizer", live_after_bytes=4 * GIB, live_peak_bytes=5 * GIB)
    found = [(sample.phase, sample.ended) for sample in phases(forward, backward, optimizer)]
    assert found == [
        (Phase.FORWARD, False),
        (Phase.BACKWARD, True),
        (Phase.OPTIMIZER, False),
        (Phase.OPTIMIZER, True),
    ]


def test_a_step_known_by_its_phases_only_ends_with_the_next() -> None:
    rows = [
        TraceRow(t_s=float(step), step=step, phase=phase, live_after_bytes=live * GIB + step * MIB)
        for step in (1, 2, 3)
        for phase, live in (("forward", 1), ("backward", 3), ("optimizer", 2))
    ]
    found = steps(*rows)
    assert [(sample.step, sample.t_s) for sample in found] == [(1, 2.0), (2, 3.0)]
    assert [sample.memory and (sample.memory.live_bytes, sample.memory.live_peak_bytes) for sample in found] == [
        (GIB + 2 * MIB, 3 * GIB + MIB),
        (GIB + 3 * MIB, 3 * GIB + 2 * MIB),
    ]


def test_the_batch_of_a_forward_row_is_the_next_one() -> None:
    (coming,) = phases(TraceRow(step=5, phase="forward", batch_samples=4, batch_tokens=30_000))
    assert (coming.batch, coming.memory) == (BatchShape(4, 30_000), None)


def test_the_length_of_an_epoch_is_learnt_from_its_ends() -> None:
    rows = [replace(row, event="epoch end" if (row.step or 0) % 20 == 0 else "") for row in leaking()]
    learnt = [(sample.steps_per_epoch) for sample in samples(*rows) if isinstance(sample, Setting)]
    assert learnt == [20]
    assert [sample.epoch for sample in steps(*rows)] == [1 + (step - 1) // 20 for step in range(1, STEPS + 1)]


def test_a_clock_that_starts_again_goes_on() -> None:
    first, again = [*leaking(count=5)], [*leaking(count=5)]
    times = [sample.t_s for sample in steps(*(replace(row, t_s=100.0 + (row.t_s or 0)) for row in first), *again)]
    assert all(later >= earlier for earlier, later in itertools.pairwise(times))
    assert times[-1] == pytest.approx(100.5 + 0.4)


def test_unknown_words_are_passed_over() -> None:
    rows = [replace(row, event="lr warm-up; my own note: 17") for row in leaking()]
    assert first_alert(rows) == first_alert([*leaking()])


def test_the_first_forward_row_counts_when_the_next_one_shows_that_it_was_about_the_begin() -> None:
    forward = TraceRow(step=1, phase="forward", live_after_bytes=2 * GIB, batch_samples=4)
    backward = TraceRow(step=1, phase="backward", live_after_bytes=5 * GIB, live_peak_bytes=5 * GIB)
    before = phases(forward, backward)
    assert [(sample.phase, sample.memory is not None) for sample in before] == [
        (Phase.FORWARD, False),  # the batch, at once
        (Phase.FORWARD, True),
        (Phase.BACKWARD, True),
    ]
    over = TraceRow(step=1, phase="backward", live_after_bytes=3 * GIB, live_peak_bytes=6 * GIB)
    after = phases(replace(forward, live_after_bytes=5 * GIB), over)
    assert all(sample.memory is None for sample in after if sample.phase is Phase.FORWARD)


def test_one_row_for_a_whole_save_tells_what_it_took() -> None:
    (step,) = leaking(count=1)
    live = step.live_after_bytes or 0
    took = TraceRow(step=1, phase="save", live_after_bytes=live, live_peak_bytes=live + 5 * GIB)
    midst, end = phases(step, took)
    assert (midst.done, midst.ended, end.ended) == (1, False, True)
    assert midst.memory is not None
    assert midst.memory.live_peak_bytes == live + 5 * GIB


@pytest.mark.parametrize(
    ("event", "extra", "expected"),
    [
        ("saved checkpoint", 0, [(0, True)]),
        ("saving checkpoint begins", 0, [(0, False)]),
        ("checkpoint", 4 * GIB, [(1, False), (0, True)]),  # the step's peak is above the one before: the save's own
        ("validation", 0, [(0, False)]),
        ("validation", 4 * GIB, [(1, False), (0, True)]),
        ("validation done", 0, [(0, True)]),
    ],
)
def test_a_phase_in_the_event_of_a_step(event: str, extra: int, expected: list[tuple[int, bool]]) -> None:
    first, second = leaking(count=2)
    told = replace(second, event=event, live_peak_bytes=(second.live_peak_bytes or 0) + extra)
    assert [(sample.done, sample.ended) for sample in phases(first, told)] == expected


def test_a_step_number_that_goes_back_is_a_resume() -> None:
    rows = [*leaking(count=20)]
    again = [replace(row, t_s=(row.t_s or 0) + 10) for row in rows[9:]]
    found = phases(*rows, *again)
    assert [(sample.phase, sample.step, sample.ended) for sample in found] == [(Phase.BUILD, 10, True)]
    told = [replace(again[0], event="restart"), *again[1:]]
    assert phases(*rows, *told) == []


def test_rows_of_one_step_are_one_step() -> None:
    (row,) = leaking(count=1)
    assert len(steps(row, replace(row, t_s=0.2), replace(row, t_s=0.3))) == 1


def test_surroundings_are_heard_once_a_second_and_at_once_when_they_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = TraceReplay(capacity_bytes=16 * GIB)
    heard: list[float] = []
    original = run.forecaster.update_surroundings

    def listen(sample: Surroundings) -> Update:
        heard.append(sample.t_s)
        return original(sample)

    monkeypatch.setattr(run.forecaster, "update_surroundings", listen)
    for tenth in range(30):
        others = GIB if tenth >= 15 else 0
        run.take(TraceRow(t_s=tenth / 8, device_used_bytes=4 * GIB + others, other_used_bytes=others))
    assert heard == [0.0, 1.0, 1.875, 2.875]


def test_a_cache_that_is_filled_again_is_no_memory_outside() -> None:
    """A refusal in the midst of a step empties the cache, and the step fills it again in part."""
    memory = RowMemory()
    before = TraceRow(
        step=1, live_after_bytes=GIB, idle_split_bytes=0, reserved_peak_bytes=8 * GIB, device_used_bytes=9 * GIB
    )
    assert memory.outside_bytes(before) == GIB
    memory.figures(before, within_step=False)
    refilled = replace(before, step=2, device_used_bytes=7 * GIB)
    figures = memory.figures(refilled, within_step=False)
    assert figures is not None
    assert (figures.reserved_bytes, figures.outside_bytes) == (6 * GIB, GIB)
    assert memory.outside_bytes(refilled) == GIB


def test_a_cache_that_was_emptied_tells_what_lies_outside() -> None:
    """Of a recording that begins with it: only what is live is left."""
    row = TraceRow(
        step=1, live_after_bytes=GIB, idle_split_bytes=0, reserved_peak_bytes=8 * GIB, device_used_bytes=3 * GIB
    )
    assert RowMemory().outside_bytes(row) == 2 * GIB


def level(*, count: int = STEPS) -> list[TraceRow]:
    """Steps of 6 GiB that hold 4 GiB between them, on a card of 12 GiB of which 1 GiB is others'."""
    return [
        replace(
            row, live_after_bytes=4 * GIB, live_peak_bytes=10 * GIB, reserved_peak_bytes=10 * GIB, idle_split_bytes=0
        )
        for row in leaking(count=count)
    ]


@pytest.mark.parametrize(
    ("phase", "event"),
    [
        ("build", "resume"),
        ("build", "loaded checkpoint"),
        ("build", "resume done"),
        ("build", "resumed from step_900.pt"),
        ("forward", "resume"),
        ("forward", "resume done"),
        ("train", "resume"),
    ],
)
def test_what_a_resume_has_left_is_set_against_the_next_step(phase: str, event: str) -> None:
    """4 GiB more are live, and a step takes 6 GiB: 14 GiB do not fit into 12; with 0.5 GiB more 10.5 do."""
    steps_before = [replace(row, capacity_bytes=12 * GIB, device_used_bytes=None) for row in level()]
    last = steps_before[-1]
    kept = 8 * GIB
    loaded = replace(
        last,
        t_s=9.0,
        step=STEPS + 1,
        phase=phase,
        live_after_bytes=kept,
        live_peak_bytes=kept,
        event=event,
        step_s=None,
    )
    assert first_alert([*steps_before, loaded]) == (STEPS + 1, Cause.RESUME)
    little = replace(loaded, live_after_bytes=4 * GIB + GIB // 2, live_peak_bytes=4 * GIB + GIB // 2)
    assert first_alert([*steps_before, little]) is None


@pytest.mark.parametrize("event", ["resuming from step_900.pt", "loading checkpoint", "resume;phase_begin"])
def test_a_resume_that_begins_has_left_nothing_yet(event: str) -> None:
    (step,) = leaking(count=1)
    (build,) = phases(step, replace(step, step=2, phase="build", event=event))
    assert (build.phase, build.ended) == (Phase.BUILD, False)


def test_the_row_after_a_resume_is_about_the_begin_of_its_forward() -> None:
    step = level(count=1)[0]
    loaded = replace(step, step=2, phase="build", live_after_bytes=8 * GIB, live_peak_bytes=8 * GIB, event="resume")
    _, forward = phases(step, loaded, replace(loaded, phase="forward", event=""))
    assert (forward.phase, forward.ended) == (Phase.FORWARD, False)
