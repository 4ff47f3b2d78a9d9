"""An out-of-memory error that is survived: the run goes on as if the micro-batch had been smaller from that step on."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from desktop_app.core.clock import SessionClock
from desktop_app.core.events import Event, EventKind, Level
from desktop_app.core.steps import OomReport, Phase, PhaseSample, RunState, StepSample
from desktop_app.memory.overheads import CardSpec
from desktop_app.memory.simulated_device import SimulatedDevice
from desktop_app.training.checkpoints import load_checkpoint
from desktop_app.training.config import RunConfig
from desktop_app.training.control import ControlToken, Shrink
from desktop_app.training.devices import CpuDevice, SimulatedCudaDevice
from desktop_app.training.loop import Trainer
from desktop_app.training.micro_batches import MicroBatches, split_sizes
from desktop_app.training.optimizer_memory import first_step_demand, rehearse_step
from desktop_app.training.outcome import RunOutcome
from desktop_app.training.recipes.data import Batch, BatchSource, DataInfo
from desktop_app.training.recipes.recipe import RECIPES

from .doubles import FillingDevice, NumberRecipe, RecordingSink

CONFIG = RunConfig(
    batch_size=8, epochs=2, log_every_steps=1, warmup_steps=2, checkpoint_every_epochs=0, on_oom="shrink"
)  # 6 steps an epoch
FULL = (
    "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 5.00 GiB of which 1.00 MiB is free."
)
WAIT_S = 20.0


def full() -> BaseException:
    return torch.OutOfMemoryError(FULL)


class PlainRecipe(NumberRecipe):
    """No batch statistics and nothing random: equal to the last bits however a batch is split."""

    def __init__(self) -> None:
        super().__init__(dtype=torch.float64)

    def model(self, config: RunConfig, info: DataInfo) -> nn.Module:  # noqa: ARG002
        return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, len(info.classes))).double()


class NarrowDevice(FillingDevice):
    """A card with room for so many samples in the phases named, however often it is tried."""

    def __init__(self, samples: int, *phases: Phase, from_step: int = 1) -> None:
        super().__init__(Phase.BUILD, step=0, error=full)
        self._samples = samples
        self._phases = phases
        self._steps_left = from_step
        self._placed = 0
        self.placed: list[int] = []
        self.refusals: list[tuple[Phase, int]] = []

    def place(self, batch: Batch) -> Batch:
        self._placed = batch.samples
        self.placed.append(batch.samples)
        return batch

    def phase(self, phase: Phase) -> None:
        if phase is Phase.ZERO:
            self._steps_left -= 1
        self._phase = phase

    def is_full(self, op: str) -> bool:  # noqa: ARG002
        refused = self._phase in self._phases and self._steps_left <= 1 and self._placed > self._samples
        if refused:
            self.refusals.append((self._phase, self._placed))
        return refused


def train(
    config: RunConfig = CONFIG,
    *,
    recipe: NumberRecipe | None = None,
    sink: RecordingSink | None = None,
    token: ControlToken | None = None,
    **options: Any,
) -> tuple[RunOutcome, RecordingSink]:
    sink, recipe = sink or RecordingSink(), recipe or PlainRecipe()
    trainer = Trainer(
        recipe,
        config,
        recipe.prepare(config),
        device=options.pop("device", None) or CpuDevice(),
        sink=sink,
        token=token or ControlToken(),
        clock=SessionClock(),
        threads=1,
        **options,
    )
    return trainer.run(), sink


def events_of(sink: RecordingSink, kind: EventKind) -> list[Event]:
    return [event for event in sink.events if event.kind is kind]


def halved_from(step: int, folder: Path, make: Callable[[], NumberRecipe], config: RunConfig = CONFIG) -> list[Any]:
    """Losses of a run whose config has half the micro-batch and twice the accumulation from ``step`` on."""
    config = replace(config, output_dir=str(folder))
    token, first = ControlToken(), RecordingSink()
    first.on_each_step = lambda sample: token.stop(save=True) if sample.step == step - 1 else None
    train(config, recipe=make(), sink=first, token=token)
    halves = replace(config, batch_size=config.batch_size // 2, accumulation=2 * config.accumulation)
    _, second = train(halves, recipe=make(), resume_from=folder / "last.pt")
    return first.losses() + second.losses()


# Splitting


@pytest.mark.parametrize(
    ("samples", "limit", "sizes"),
    [
        (64, 64, (64,)),
        (64, 32, (32, 32)),
        (64, 48, (32, 32)),
        (48, 20, (16, 16, 16)),
        (33, 16, (11, 11, 11)),
        (47, 23, (16, 16, 15)),
        (7, 3, (3, 2, 2)),
        (7, 1, (1,) * 7),
        (5, 9, (5,)),
    ],
)
def test_a_batch_is_split_evenly_or_almost(samples: int, limit: int, sizes: tuple[int, ...]) -> None:
    assert split_sizes(samples, limit) == sizes


def test_no_sample_is_lost_and_no_part_is_too_large() -> None:
    for samples, limit in itertools.product(range(1, 130), range(1, 130)):
        sizes = split_sizes(samples, limit)
        assert sum(sizes) == samples
        assert max(sizes) <= limit
        assert max(sizes) - min(sizes) <= 1


def test_halving_ends_at_one_sample() -> None:
    batches, seen = MicroBatches(whole=44, accumulation=3), []
    while batches.shrink():
        seen.append((batches.size, batches.accumulation))
    assert seen == [(22, 6), (11, 12), (4, 33), (2, 66), (1, 132)]
    assert not batches.shrink()
    hinted = MicroBatches(whole=44)
    assert hinted.shrink(12)
    assert hinted.size == 11
    assert hinted.shrink(40)  # what is known does not help any more
    assert hinted.size == 4


@pytest.mark.parametrize("limit", [6, 5, 3, 1])
def test_parts_add_up_to_the_mean_of_the_whole(limit: int) -> None:
    """Uneven parts too: their gradients are those of the whole batch."""
    recipe, config = PlainRecipe(), replace(CONFIG, batch_size=11)
    data = recipe.prepare(config)
    model, batch = recipe.model(config, data.info), data.train.batch(epoch=1, index=0)
    recipe.loss(model, batch)[0].backward()
    whole = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    for part, divisor in MicroBatches(whole=11, limit=limit).parts(batch):
        (recipe.loss(model, part)[0] / divisor).backward()
    for wanted, parameter in zip(whole, model.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, wanted, rtol=0, atol=1e-15)


# The step is repeated


@pytest.mark.parametrize("make", [PlainRecipe, lambda: NumberRecipe(dtype=torch.float64)], ids=["plain", "batch-norm"])
@pytest.mark.parametrize(
    ("phase", "at_op"),
    [(Phase.FORWARD, ""), (Phase.BACKWARD, ""), (Phase.BACKWARD, "mm"), (Phase.FORWARD, "log_softmax")],
)
@pytest.mark.parametrize("step", [1, 4])
def test_the_losses_are_those_of_a_run_with_smaller_micro_batches_from_that_step_on(
    tmp_path: Path, make: Callable[[], NumberRecipe], phase: Phase, at_op: str, step: int
) -> None:
    """With batch statistics and dropout too: buffers and random state are put back."""
    device = FillingDevice(phase, step=step, error=full, at_op=at_op)
    outcome, sink = train(recipe=make(), device=device)
    assert outcome.state is RunState.FINISHED
    assert [sample.step for sample in sink.steps] == list(range(1, 13))
    wanted = (
        halved_from(step, tmp_path, make)
        if step > 1
        else train(replace(CONFIG, batch_size=4, accumulation=2), recipe=make())[1].losses()
    )
    assert sink.losses() == pytest.approx(wanted, abs=1e-12)
    if make is PlainRecipe:
        assert sink.losses() == pytest.approx(train(recipe=make())[1].losses(), abs=1e-12)
    assert outcome.status.batch_size == 4
    assert outcome.status.accumulation == 2
    assert {sample.batch_samples for sample in sink.steps} == {8}


def test_the_rescue_is_told_once_with_all_that_is_known() -> None:
    named: list[OomReport] = []

    def name(report: OomReport) -> str:
        named.append(report)
        return "leak"

    outcome, sink = train(device=FillingDevice(Phase.BACKWARD, step=4, error=full), name_cause=name)
    (rescue,) = outcome.status.rescues
    assert (rescue.step, rescue.phase, rescue.cause) == (4, Phase.BACKWARD, "leak")
    assert (rescue.batch_size, rescue.rescued_batch_size) == (8, 4)
    assert rescue.message == FULL
    assert rescue.largest_owners == (("activations", 3), ("parameters", 1))
    assert outcome.oom is None
    assert len(named) == 1
    (event,) = events_of(sink, EventKind.RESCUE)
    assert (event.level, event.code) == (Level.WARNING, "rescue.training")
    assert event.params == {
        "step": 4,
        "phase": "backward",
        "cause": "leak",
        "batch_before": 8,
        "batch_after": 4,
        "accumulation_after": 2,
        "requested_bytes": 20 << 20,
    }
    told = next(status for status in sink.statuses if status.rescues)
    assert (told.step, told.batch_size, told.accumulation) == (3, 4, 2)


@pytest.mark.parametrize(
    ("room", "known", "tried"), [(3, None, [8, 4]), (1, None, [8, 4, 2]), (3, 3, [8]), (1, 3, [8, 2])]
)
def test_it_settles_within_the_step(room: int, known: int | None, tried: list[int]) -> None:
    device = NarrowDevice(room, Phase.BACKWARD, from_step=3)
    outcome, sink = train(device=device, largest_batch=lambda: known)
    assert outcome.state is RunState.FINISHED
    assert [size for _, size in device.refusals] == tried
    assert {rescue.step for rescue in outcome.status.rescues} == {3}
    assert sink.losses() == pytest.approx(train()[1].losses(), abs=1e-12)


def test_where_one_sample_does_not_fit_the_run_ends_with_its_post_mortem(tmp_path: Path) -> None:
    config = replace(CONFIG, output_dir=str(tmp_path))
    device = NarrowDevice(0, Phase.FORWARD, from_step=4)
    outcome, sink = train(config, device=device, name_cause=lambda _: "neighbour")
    assert outcome.state is RunState.OUT_OF_MEMORY
    assert outcome.oom is not None
    assert (outcome.oom.step, outcome.oom.phase, outcome.oom.cause) == (4, Phase.FORWARD, "neighbour")
    assert (outcome.oom.batch_size, outcome.oom.rescued_batch_size) == (1, None)
    assert [rescue.rescued_batch_size for rescue in outcome.status.rescues] == [4, 2, 1]
    assert load_checkpoint(tmp_path / "last.pt").progress.step == 3
    assert len(sink.steps) == 3


def test_without_the_rule_the_run_ends_as_it_always_did() -> None:
    outcome, sink = train(replace(CONFIG, on_oom="end"), device=NarrowDevice(4, Phase.BACKWARD, from_step=2))
    assert outcome.state is RunState.OUT_OF_MEMORY
    assert outcome.oom is not None
    assert outcome.oom.batch_size == 8
    assert not events_of(sink, EventKind.RESCUE)


def test_other_errors_are_not_rescued() -> None:
    device = FillingDevice(Phase.FORWARD, step=2, error=lambda: ValueError("shapes do not match"))
    assert train(device=device)[0].state is RunState.FAILED


@pytest.mark.parametrize(
    "message",
    [
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "HIP out of memory. Tried to allocate",
    ],
)
def test_errors_of_libraries_are_rescued_too(message: str) -> None:
    device = FillingDevice(Phase.FORWARD, step=2, error=lambda: RuntimeError(message))
    outcome, _ = train(device=device)
    assert outcome.state is RunState.FINISHED
    assert outcome.status.batch_size == 4


# The update


def test_clipping_that_runs_out_of_memory_is_repeated() -> None:
    device = FillingDevice(Phase.OPTIMIZER, step=4, error=full, at_op="foreach_norm")
    outcome, sink = train(device=device)
    assert outcome.state is RunState.FINISHED
    assert sink.losses() == pytest.approx(train()[1].losses(), abs=1e-12)


class RoomForUpdates(FillingDevice):
    """A card without room for what an update allocates, until something was given back."""

    def __init__(self, *, step: int) -> None:
        super().__init__(Phase.OPTIMIZER, step=step, error=full)
        self._step = step

    def phase(self, phase: Phase) -> None:
        self._phase = phase
        self._step -= phase is Phase.ZERO

    def is_full(self, op: str) -> bool:
        return self._phase is Phase.OPTIMIZER and self._step <= 1 and "empty_like" in op and self.released == 0


@pytest.mark.parametrize("step", [1, 4])
def test_a_full_update_is_made_tensor_by_tensor_and_nothing_was_half_updated(step: int) -> None:
    """The rehearsal runs out of memory, not the update: no state to go back to is needed."""
    outcome, sink = train(device=RoomForUpdates(step=step))
    assert outcome.state is RunState.FINISHED
    assert [sample.step for sample in sink.steps] == list(range(1, 13))
    assert sink.losses() == pytest.approx(train()[1].losses(), abs=1e-12)
    (rescue,) = outcome.status.rescues
    assert (rescue.phase, rescue.batch_size, rescue.rescued_batch_size) == (Phase.OPTIMIZER, 8, 8)
    assert events_of(sink, EventKind.RESCUE)[0].code == "rescue.update"


def test_halving_ends_where_an_update_needs_as_much_as_before() -> None:
    device = RoomForUpdates(step=2)
    few = device.stats()
    device.stats = lambda: replace(few, live_bytes=64 << 20)  # type: ignore[method-assign]
    device.release = lambda: None  # type: ignore[method-assign] # whatever is given back
    outcome, sink = train(device=device)
    assert outcome.state is RunState.OUT_OF_MEMORY
    assert [event.code for event in events_of(sink, EventKind.RESCUE)] == ["rescue.update", "rescue.training"]
    assert outcome.status.step == 1


@pytest.mark.parametrize(("every", "back_to"), [(0, 0), (1, 6)])
def test_after_a_torn_update_the_run_goes_back_to_a_whole_state(tmp_path: Path, every: int, back_to: int) -> None:
    """The moments are of step 8, the parameters of step 7: back to the newest checkpoint, or to the beginning."""
    config = replace(CONFIG, output_dir=str(tmp_path), checkpoint_every_epochs=every)
    device = FillingDevice(Phase.OPTIMIZER, step=8, error=full, at_op="foreach_sqrt")
    outcome, sink = train(config, device=device)
    assert outcome.state is RunState.FINISHED
    assert [sample.step for sample in sink.steps] == [*range(1, 8), *range(back_to + 1, 13)]
    whole = train(replace(config, output_dir=None))[1].losses()
    assert sink.losses() == pytest.approx(whole[:7] + whole[back_to:], abs=1e-12)
    assert outcome.status.step == 12


@pytest.mark.parametrize("kind", ["adamw", "adam", "sgd", "momentum"])
@pytest.mark.parametrize("foreach", [True, False])
def test_a_rehearsal_asks_for_what_the_update_asks_for(kind: str, foreach: bool) -> None:
    """By the books of a simulated card: the update that follows asks the driver for nothing more."""
    mib = 1 << 20
    card = CardSpec("Small", 2048 * mib, 2048 * mib, "turing", (7, 5), 14)
    model = nn.Sequential(nn.Linear(700, 900), nn.Linear(900, 1100), nn.Linear(1100, 10))
    options: dict[str, Any] = {"lr": 1e-3, "foreach": foreach}
    optimizer: torch.optim.Optimizer
    if kind in ("adamw", "adam"):
        make = torch.optim.AdamW if kind == "adamw" else torch.optim.Adam
        optimizer = make(model.parameters(), weight_decay=0.01, **options)
    else:
        optimizer = torch.optim.SGD(
            model.parameters(), momentum=0.9 if kind == "momentum" else 0.0, weight_decay=0.01, **options
        )
    with SimulatedDevice(card) as device:
        device.track_model(model)
        device.track_optimizer(optimizer)
        for _ in ("first", "later"):
            device.phase(Phase.FORWARD)
            with device.scope():
                loss = model(torch.ones(2, 700)).sum()
                device.phase(Phase.BACKWARD)
                loss.backward()
                del loss
                device.phase(Phase.OPTIMIZER)
                demand = first_step_demand(optimizer)
                assert demand is not None
                before = device.stats()
                device.reset_peaks()
                rehearse_step(optimizer)
                rehearsed = device.stats()
                assert rehearsed.live_bytes == before.live_bytes
                asked = rehearsed.live_peak_bytes - before.live_bytes
                assert demand.total_bytes <= asked <= demand.total_bytes + mib  # blocks of the cache may be larger
                device.reset_peaks()
                optimizer.step()
                updated = device.stats()
                assert updated.reserved_peak_bytes == rehearsed.reserved_peak_bytes
                optimizer.zero_grad(set_to_none=True)


# Nothing is kept


def test_nothing_of_the_failed_step_is_alive_when_it_is_repeated() -> None:
    alive: list[weakref.ref[Any]] = []
    recipe = NumberRecipe()
    loss_of = recipe.loss

    def watched(model: Any, batch: Any) -> Any:
        loss, logits = loss_of(model, batch)
        alive.extend((weakref.ref(loss), weakref.ref(logits), weakref.ref(batch.inputs)))
        return loss, logits

    recipe.loss = watched  # type: ignore[method-assign]
    device = FillingDevice(Phase.BACKWARD, step=3, error=full)
    released: list[tuple[int, int]] = []
    release = device.release

    def count() -> None:
        released.append((len(alive), sum(ref() is not None for ref in alive)))
        release()

    device.release = count  # type: ignore[method-assign]
    told: list[bool] = []
    sink = RecordingSink()
    sink.on_event = lambda event: told.append(event.kind is EventKind.RESCUE)  # type: ignore[method-assign]
    outcome, _ = train(device=device, recipe=recipe, sink=sink)
    assert outcome.state is RunState.FINISHED
    assert released == [(9, 0)]
    assert told == [True]


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
    import threading

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


# On disk


def test_a_resumed_run_knows_what_fits(tmp_path: Path) -> None:
    config = replace(CONFIG, output_dir=str(tmp_path))
    token, first = ControlToken(), RecordingSink()
    first.on_each_step = lambda sample: token.stop(save=True) if sample.step == 5 else None
    train(config, sink=first, token=token, device=NarrowDevice(2, Phase.FORWARD, from_step=4))
    device = NarrowDevice(2, Phase.FORWARD)
    outcome, second = train(config, resume_from=tmp_path / "last.pt", device=device)
    assert device.refusals == []
    assert (outcome.status.batch_size, outcome.status.accumulation) == (2, 4)
    assert first.losses() + second.losses() == pytest.approx(train()[1].losses(), abs=1e-12)
    chosen = replace(config, batch_size=4, accumulation=2)  # by the user, who means it
    assert train(chosen, resume_from=tmp_path / "last.pt")[0].status.batch_size == 4


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_at(point: str, config: RunConfig) -> None:
    """Train until ``point`` of the rescue in step 9, and die there as by ``kill -9``."""
    import desktop_app.training.checkpoints as checkpoints
    import desktop_app.training.run_saver as saver
    from desktop_app.training import rescue

    sink, device = RecordingSink(), NarrowDevice(2, Phase.BACKWARD, from_step=9)
    oom_seen: list[str] = []

    def name(report: OomReport) -> None:
        oom_seen.append(report.message)
        if point == "caught":
            _kill()

    if point == "put back":
        rescue.Rescue.tell = lambda *_: _kill()  # type: ignore[method-assign]
    elif point == "writing":
        fsync = os.fsync

        def die(handle: int) -> None:
            if oom_seen:
                _kill()
            fsync(handle)

        checkpoints.os.fsync = die  # type: ignore[attr-defined]
    elif point == "written":
        save = saver.save_checkpoint

        def save_and_die(path: Path, checkpoint: Any) -> None:
            save(path, checkpoint)
            if oom_seen:
                _kill()

        saver.save_checkpoint = save_and_die  # type: ignore[attr-defined]
    train(config, sink=sink, device=device, name_cause=name)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork, and no SIGKILL")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # torch's threads are idle here
def test_a_run_killed_in_the_midst_of_a_rescue_can_be_resumed(tmp_path: Path) -> None:
    whole = train(replace(CONFIG, checkpoint_every_epochs=1))[1].losses()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for point, saved_step in {
            "caught": 6,
            "put back": 6,
            "writing": 6,
            "written": 8,
        }.items():
            folder = tmp_path / point
            config = replace(CONFIG, output_dir=str(folder), checkpoint_every_epochs=1)
            child = os.fork()
            if child == 0:
                try:
                    _die_at(point, config)
                finally:
                    os._exit(7)
            _, status = os.waitpid(child, 0)
            assert os.WIFSIGNALED(status), point
            assert os.WTERMSIG(status) == signal.SIGKILL, point
            assert load_checkpoint(folder / "last.pt").progress.step == saved_step, point
            outcome, sink = train(config, resume_from=folder / "last.pt", device=NarrowDevice(2, Phase.BACKWARD))
            assert outcome.state is RunState.FINISHED, point
            assert sink.losses() == pytest.approx(whole[saved_step:], abs=1e-12), point
    finally:
        torch.set_num_threads(threads)
        sys.stdout.flush()


def test_steps_say_their_micro_batch() -> None:
    def known(sample: StepSample) -> int:
        return sample.micro_batch_samples or sample.batch_samples

    _, sink = train(device=FillingDevice(Phase.FORWARD, step=4, error=full))
    assert [known(sample) for sample in sink.steps] == [8] * 3 + [4] * 9


# On a simulated card: the same errors where the card would raise them


class Few:
    """The first batches of a source."""

    def __init__(self, source: BatchSource, batches: int) -> None:
        self._source = source
        self.batches = batches
        self.samples = batches * source.batch(epoch=1, index=0).samples

    def batch(self, *, epoch: int, index: int) -> Batch:
        return self._source.batch(epoch=epoch, index=index)


def train_on_card(config: RunConfig, *, free_mib: int | None) -> tuple[RunOutcome, RecordingSink]:
    """Three steps and a validation of the built-in recipe on a card of which context and others leave ``free_mib``."""
    mib, recipe, sink = 1 << 20, RECIPES[config.recipe], RecordingSink()
    card = CardSpec("Small", 2048 * mib, 2048 * mib, "turing", (7, 5), 14)
    data = recipe.prepare(config)
    data = replace(data, train=Few(data.train, 3 * config.accumulation), validation=Few(data.validation, 1))
    with SimulatedDevice(card) as memory:
        if free_mib is not None:
            memory.set_others(card.capacity_bytes - memory.outside_bytes - free_mib * mib)
        device, token = SimulatedCudaDevice(memory), ControlToken()
        return Trainer(
            recipe, config, data, device=device, sink=sink, token=token, clock=SessionClock(), threads=1
        ).run(), sink


def losses_of(sink: RecordingSink) -> list[float]:
    return [loss for loss in sink.losses() if loss is not None]


CARD_RUN = RunConfig(batch_size=64, width=32, epochs=1, augment=False, on_oom="shrink", log_every_steps=1)


@pytest.mark.parametrize(("free_mib", "batch"), [(30, 8)])
def test_under_a_cap_a_run_settles_within_one_step_and_finishes(free_mib: int, batch: int) -> None:
    outcome, sink = train_on_card(CARD_RUN, free_mib=free_mib)
    assert outcome.state is RunState.FINISHED
    assert (outcome.status.batch_size, outcome.status.accumulation) == (batch, 64 // batch)
    assert {rescue.step for rescue in outcome.status.rescues if rescue.phase is not Phase.VALIDATION} == {1}
    memory = [sample.memory for sample in sink.steps if sample.memory is not None]
    assert len(memory) == 3
    assert all(stats.reserved_peak_bytes <= free_mib << 20 for stats in memory)
    configured, whole = train_on_card(
        replace(CARD_RUN, batch_size=batch, accumulation=64 // batch, on_oom="end"), free_mib=None
    )
    assert configured.state is RunState.FINISHED
    assert losses_of(sink) == pytest.approx(losses_of(whole), rel=1e-5)
    # Nothing of the failed steps is kept: between steps it holds what a run holds that never failed.
    assert [stats.live_bytes for stats in memory] == [s.memory.live_bytes for s in whole.steps if s.memory is not None]


def test_the_first_update_is_made_tensor_by_tensor_where_only_that_fits() -> None:
    config = replace(CARD_RUN, batch_size=16, model="wide-mlp", hidden=1024, depth=8)
    outcome, sink = train_on_card(config, free_mib=170)  # 182 with the temporaries of all tensors, 162 without
    assert outcome.state is RunState.FINISHED
    assert [event.code for event in events_of(sink, EventKind.RESCUE)] == ["rescue.update"]
    _, whole = train_on_card(config, free_mib=None)
    assert losses_of(sink) == pytest.approx(losses_of(whole), rel=1e-6)
