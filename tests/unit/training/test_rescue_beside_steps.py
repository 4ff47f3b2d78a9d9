"""Validations and checkpoints that have no room, and runs that are asked to need less."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from desktop_app.core.events import Event, EventKind, Level
from desktop_app.core.steps import Phase, PhaseSample, RunState, StepSample
from desktop_app.training.checkpoints import load_checkpoint
from desktop_app.training.control import ControlToken, Shrink

from .doubles import FillingDevice, NumberRecipe, RecordingSink
from .rescue_bench import (
    CONFIG,
    WAIT_S,
    NarrowDevice,
    PlainRecipe,
    events_of,
    full,
    halved_from,
    train,
)

# Validation and saving


def test_validation_goes_on_with_smaller_batches() -> None:
    device = NarrowDevice(2, Phase.VALIDATION)
    outcome, sink = train(device=device)
    assert outcome.state is RunState.FINISHED
    assert [size for _, size in device.refusals] == [6, 3]  # batches of 6; the second epoch knows it
    whole = train()[1]
    assert [v.loss for v in sink.validations] == pytest.approx([v.loss for v in whole.validations], abs=1e-12)
    assert [v.accuracy for v in sink.validations] == [v.accuracy for v in whole.validations]
    assert outcome.status.batch_size == 8  # the training fits as it is
    assert [rescue.rescued_batch_size for rescue in outcome.status.rescues] == [3, 1]
    assert {event.code for event in events_of(sink, EventKind.RESCUE)} == {"rescue.validation"}
    assert {rescue.step for rescue in outcome.status.rescues} == {6}


def test_a_checkpoint_that_has_no_room_on_the_card_goes_through_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import desktop_app.training.run_saver as saver

    save, refused = saver.save_checkpoint, []

    def refuse_once(path: Path, checkpoint: Any) -> None:
        if not refused:
            refused.append(path)
            raise full()
        save(path, checkpoint)

    monkeypatch.setattr(saver, "save_checkpoint", refuse_once)
    config = replace(CONFIG, output_dir=str(tmp_path), checkpoint_every_epochs=1)
    outcome, sink = train(config, device=FillingDevice(Phase.BUILD, step=0, error=full))
    assert outcome.state is RunState.FINISHED
    assert refused
    (rescue,) = outcome.status.rescues
    assert (rescue.phase, rescue.step) == (Phase.SAVE, 6)
    assert sink.codes() == ["checkpoint.saved", "rescue.save", "checkpoint.saved"]
    assert load_checkpoint(tmp_path / "last.pt").progress.step == 12


def test_a_checkpoint_that_has_room_nowhere_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import desktop_app.training.run_saver as saver

    def refuse(path: Path, checkpoint: Any) -> None:
        raise full()

    monkeypatch.setattr(saver, "save_checkpoint", refuse)
    config = replace(CONFIG, output_dir=str(tmp_path))
    outcome, sink = train(config)
    assert outcome.state is RunState.FINISHED
    assert sink.codes() == ["checkpoint.failed"]
    outcome, _ = train(replace(config, on_oom="end"))
    assert outcome.state is RunState.OUT_OF_MEMORY
    assert outcome.oom is not None
    assert outcome.oom.phase is Phase.SAVE


# Asked to


@pytest.mark.parametrize("make", [PlainRecipe, lambda: NumberRecipe(dtype=torch.float64)], ids=["plain", "batch-norm"])
def test_who_asks_for_less_gets_it_before_the_next_step(tmp_path: Path, make: Callable[[], NumberRecipe]) -> None:
    """Also without the rule for errors. The losses are those of a run configured so from that step on."""
    config = replace(CONFIG, on_oom="end")
    sink, token = RecordingSink(), ControlToken()
    sink.on_each_step = lambda sample: token.request_shrink() if sample.step == 3 else None
    outcome, _ = train(config, recipe=make(), sink=sink, token=token)
    assert sink.losses() == halved_from(4, tmp_path, make, config)
    assert (outcome.status.batch_size, outcome.status.accumulation) == (4, 2)
    (change,) = events_of(sink, EventKind.CHANGE)
    assert (change.level, change.code) == (Level.INFO, "run.shrunk")
    assert change.params == {
        "part": "training",
        "step": 4,
        "batch_before": 8,
        "batch_after": 4,
        "accumulation_after": 2,
    }


def test_an_estimate_tells_how_small() -> None:
    sink, token = RecordingSink(), ControlToken()
    sink.on_each_step = lambda sample: token.request_shrink() if sample.step == 3 else None
    outcome, _ = train(sink=sink, token=token, largest_batch=lambda: 2)
    assert (outcome.status.batch_size, outcome.status.accumulation) == (2, 4)


def test_a_validation_that_would_not_fit_is_made_smaller_before_it_begins() -> None:
    sink, token, device = RecordingSink(), ControlToken(), NarrowDevice(0)

    def ask(sample: PhaseSample) -> None:
        if sample.phase is Phase.VALIDATION and sample.step == 6 and not sample.ended and sample.done == 0:
            token.request_shrink(Shrink.VALIDATION)

    sink.on_each_phase = ask
    outcome, _ = train(sink=sink, token=token, device=device)
    assert outcome.status.batch_size == 8
    assert device.placed == [8] * 6 + [3] * 4 + [8] * 6 + [3] * 4


def test_one_sample_cannot_be_halved() -> None:
    sink, token = RecordingSink(), ControlToken()
    sink.on_each_step = lambda sample: token.request_shrink() if sample.step == 1 else None
    train(replace(CONFIG, batch_size=1, epochs=1), sink=sink, token=token)
    (change,) = events_of(sink, EventKind.CHANGE)
    assert (change.level, change.code) == (Level.WARNING, "run.not_shrunk")


def test_a_paused_run_shrinks_and_stays_paused() -> None:

    sink, token = RecordingSink(), ControlToken()
    sink.on_each_step = lambda sample: token.pause() if sample.step == 3 else None
    shrunk, keep = threading.Event(), sink.on_event

    def note(event: Event) -> None:
        keep(event)
        if event.kind is EventKind.CHANGE:
            shrunk.set()

    sink.on_event = note  # type: ignore[method-assign]

    def steer() -> None:
        assert sink.reached[RunState.PAUSED].wait(WAIT_S)
        token.request_shrink()
        assert shrunk.wait(WAIT_S)
        assert len(sink.steps) == 3
        token.resume()

    steering = threading.Thread(target=steer)
    steering.start()
    outcome, _ = train(sink=sink, token=token)
    steering.join()
    assert outcome.status.batch_size == 4
    assert (
        RunState.RUNNING
        not in [status.state for status in sink.statuses if status.batch_size == 4 and status.step == 3][:1]
    )


def test_who_says_how_small_gets_that_and_no_less() -> None:
    sink, token = RecordingSink(), ControlToken()

    def ask(sample: StepSample) -> None:
        if sample.step in (2, 4):
            token.request_shrink(to=5)  # 4 of 8 are the next equal parts; the second time it is small enough
            token.request_shrink(to=7)

    sink.on_each_step = ask
    outcome, _ = train(sink=sink, token=token)
    assert (outcome.status.batch_size, outcome.status.accumulation) == (4, 2)
    assert [event.code for event in events_of(sink, EventKind.CHANGE)] == ["run.shrunk"]
