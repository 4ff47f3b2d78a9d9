"""The loop: what it says, how it obeys, and that an interrupted run is the uninterrupted one."""

from __future__ import annotations

import gc
import threading
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from desktop_app.core.clock import SessionClock
from desktop_app.core.events import EventKind, Level
from desktop_app.core.steps import Phase, PhaseSample, RunState, StepSample
from desktop_app.training.checkpoints import load_checkpoint, save_checkpoint
from desktop_app.training.config import RunConfig
from desktop_app.training.control import ControlToken
from desktop_app.training.devices import CpuDevice
from desktop_app.training.loop import Trainer
from desktop_app.training.outcome import EndReason, RunOutcome
from desktop_app.training.recipes.faults import KeepsLossGraph

from .doubles import FillingDevice, HandClock, NumberRecipe, RecordingSink

CONFIG = RunConfig(
    batch_size=8, epochs=3, log_every_steps=1, warmup_steps=2, checkpoint_every_epochs=0
)  # 6 steps an epoch
WAIT_S = 20.0


def train(
    config: RunConfig = CONFIG,
    *,
    sink: RecordingSink | None = None,
    token: ControlToken | None = None,
    recipe: NumberRecipe | None = None,
    clock: SessionClock | None = None,
    **options: Any,
) -> tuple[RunOutcome, RecordingSink]:
    sink = sink or RecordingSink()
    recipe = recipe or NumberRecipe()
    trainer = Trainer(
        recipe,
        config,
        recipe.prepare(config),
        device=options.pop("device", None) or CpuDevice(),
        sink=sink,
        token=token or ControlToken(),
        clock=clock or SessionClock(),
        threads=1,
        **options,
    )
    return trainer.run(), sink


def test_a_run_counts_its_steps_and_ends() -> None:
    outcome, sink = train()
    assert outcome.state is RunState.FINISHED
    assert outcome.reason is EndReason.EPOCHS
    assert [sample.step for sample in sink.steps] == list(range(1, 19))
    assert [sample.epoch for sample in sink.steps] == [1] * 6 + [2] * 6 + [3] * 6
    assert [(sample.step, sample.epoch) for sample in sink.validations] == [(6, 1), (12, 2), (18, 3)]
    assert outcome.status.total_steps == outcome.status.step == 18
    assert outcome.status.epoch == outcome.status.epochs_done == 3
    assert outcome.status.loss_first == sink.steps[0].loss
    assert outcome.status.loss_last == sink.steps[-1].loss
    assert outcome.status.accuracy_best == max(sample.accuracy for sample in sink.validations)
    states = [status.state for status in sink.statuses]
    assert states[0] is RunState.RUNNING
    assert states[-1] is RunState.FINISHED
    assert all(sample.batch_samples == 8 and sample.step_s > 0 for sample in sink.steps)


def test_equal_seeds_give_equal_runs_and_others_do_not() -> None:
    first = train()[1].losses()
    assert train()[1].losses() == first
    assert train(replace(CONFIG, seed=1))[1].losses() != first


def test_accumulation_averages_over_micro_batches() -> None:
    """Without batch norm and dropout at work, two halves are one whole; here: the loss is the mean of the micro-steps
    and the samples are counted together."""
    _, sink = train(replace(CONFIG, batch_size=4, accumulation=2))
    assert len(sink.steps) == 18
    assert sink.steps[0].batch_samples == 8


def test_the_first_update_is_announced_before_it_is_made() -> None:
    _, sink = train()
    firsts = [sample for sample in sink.phases if sample.phase is Phase.OPTIMIZER]
    assert [sample.step for sample in firsts] == [1]
    # Tensors of 48, 8, 8, 8, 16 and 2 floats round up to 512 B each; two states and one foreach copy.
    assert firsts[0].known_demand_bytes == 6 * 512 * 3
    assert firsts[0].t_s <= sink.steps[0].t_s


def test_validation_and_saving_are_announced(tmp_path: Path) -> None:
    _, sink = train(replace(CONFIG, epochs=2, output_dir=str(tmp_path), checkpoint_every_epochs=1))
    begun = [(sample.phase, sample.step) for sample in sink.phases if not sample.ended and sample.done == 0]
    assert begun == [
        (Phase.OPTIMIZER, 1),
        (Phase.VALIDATION, 6),
        (Phase.SAVE, 6),
        (Phase.VALIDATION, 12),
        (Phase.SAVE, 12),
    ]
    assert [(sample.phase, sample.step) for sample in sink.phases if sample.ended] == begun[1:]
    saves = [sample for sample in sink.phases if sample.phase is Phase.SAVE and not sample.ended]
    assert {sample.known_demand_bytes for sample in saves} == {0}
    assert sink.codes() == ["checkpoint.saved", "checkpoint.saved"]


def test_a_rule_can_hold_the_run_before_the_first_update() -> None:
    """Pause from inside ``on_phase``; while it is held, nothing has been updated."""
    sink, token = RecordingSink(), ControlToken()
    held: list[tuple[int, RunState]] = []

    def hold(sample: PhaseSample) -> None:
        if sample.phase is Phase.OPTIMIZER:
            token.pause()
            token.request_save()

    def look() -> None:
        assert sink.reached[RunState.PAUSED].wait(WAIT_S)
        held.append((len(sink.steps), sink.statuses[-1].state))
        token.stop(save=False)

    sink.on_each_phase = hold
    watcher = threading.Thread(target=look)
    watcher.start()
    outcome, _ = train(sink=sink, token=token)
    watcher.join()
    assert held == [(0, RunState.PAUSED)]
    assert outcome.state is RunState.STOPPED
    assert outcome.status.step == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "settings",
    [{}, {"batch_size": 4, "accumulation": 2}, {"optimizer": "adamw", "foreach": False}],
    ids=["plain", "accumulation", "loop"],
)
@pytest.mark.parametrize("stop_at", [1, 6, 8])
def test_a_resumed_run_equals_an_uninterrupted_one(
    tmp_path: Path, dtype: torch.dtype, settings: dict[str, Any], stop_at: int
) -> None:
    config = replace(CONFIG, output_dir=str(tmp_path), **settings)
    whole = train(replace(config, output_dir=None), recipe=NumberRecipe(dtype=dtype))[1]
    token, first = ControlToken(), RecordingSink()
    first.on_each_step = lambda sample: token.stop(save=True) if sample.step == stop_at else None
    stopped, _ = train(config, recipe=NumberRecipe(dtype=dtype), sink=first, token=token)
    assert stopped.state is RunState.STOPPED
    assert stopped.status.step == stop_at
    assert stopped.status.checkpoint_path == str(tmp_path / "last.pt")
    torch.manual_seed(12345)  # whatever happens in between
    resumed, second = train(config, recipe=NumberRecipe(dtype=dtype), resume_from=tmp_path / "last.pt")
    assert resumed.state is RunState.FINISHED
    assert first.losses() + second.losses() == whole.losses()
    assert [*first.validations, *second.validations][-1].loss == whole.validations[-1].loss
    assert resumed.status.accuracy_best == whole.statuses[-1].accuracy_best
    assert resumed.status.total_steps == 18


def test_stopping_between_micro_steps_loses_only_the_unfinished_step(tmp_path: Path) -> None:
    config = replace(CONFIG, batch_size=4, accumulation=2, output_dir=str(tmp_path))
    whole = train(replace(config, output_dir=None))[1]
    token, first = ControlToken(), RecordingSink()
    recipe = NumberRecipe()
    calls = {"n": 0}
    loss_of = recipe.loss

    def stop_in_step_three(model: Any, batch: Any) -> Any:
        calls["n"] += 1
        if calls["n"] == 5:  # first micro-step of step 3
            token.stop(save=True)
        return loss_of(model, batch)

    recipe.loss = stop_in_step_three  # type: ignore[method-assign]
    stopped, _ = train(config, recipe=recipe, sink=first, token=token)
    assert stopped.status.step == 2
    assert calls["n"] == 5
    _, second = train(config, resume_from=tmp_path / "last.pt")
    assert first.losses() + second.losses() == whole.losses()


def test_a_stop_during_validation_resumes_with_that_validation(tmp_path: Path) -> None:
    config = replace(CONFIG, output_dir=str(tmp_path))
    whole = train(replace(config, output_dir=None))[1]
    token, first = ControlToken(), RecordingSink()
    first.on_each_phase = lambda sample: token.stop(save=True) if sample.phase is Phase.VALIDATION else None
    stopped, _ = train(config, sink=first, token=token)
    assert stopped.status.step == 6
    assert (stopped.status.epoch, stopped.status.epochs_done) == (1, 0)
    assert first.validations == []
    _, second = train(config, resume_from=tmp_path / "last.pt")
    assert [sample.loss for sample in second.validations] == [sample.loss for sample in whole.validations]
    assert first.losses() + second.losses() == whole.losses()


def test_the_same_samples_follow_when_the_micro_batch_is_halved(tmp_path: Path) -> None:
    config = replace(CONFIG, output_dir=str(tmp_path))
    token, sink = ControlToken(), RecordingSink()
    sink.on_each_step = lambda sample: token.stop(save=True) if sample.step == 8 else None
    train(config, sink=sink, token=token)
    halved = replace(config, batch_size=4, accumulation=2)
    outcome, second = train(halved, resume_from=tmp_path / "last.pt")
    assert second.steps[0].step == 9
    assert outcome.status.step == 18
    other = replace(config, batch_size=16)
    outcome, _ = train(other, resume_from=tmp_path / "last.pt")
    assert outcome.state is RunState.FINISHED


def test_a_run_resumed_from_weights_alone_announces_its_first_update(tmp_path: Path) -> None:
    config = replace(CONFIG, output_dir=str(tmp_path))
    token, sink = ControlToken(), RecordingSink()
    sink.on_each_step = lambda sample: token.stop(save=True) if sample.step == 8 else None
    train(config, sink=sink, token=token)
    weights = replace(load_checkpoint(tmp_path / "last.pt"), optimizer=None)
    save_checkpoint(tmp_path / "weights.pt", weights)
    _, second = train(config, resume_from=tmp_path / "weights.pt")
    announced = [sample for sample in second.phases if sample.phase is Phase.OPTIMIZER]
    assert [(sample.step, sample.known_demand_bytes) for sample in announced] == [(9, 6 * 512 * 3)]
    _, third = train(config, resume_from=tmp_path / "last.pt")
    assert Phase.OPTIMIZER not in [sample.phase for sample in third.phases]


def test_a_wrong_checkpoint_fails_before_the_first_step(tmp_path: Path) -> None:
    outcome, sink = train(resume_from=tmp_path / "none.pt")
    assert outcome.state is RunState.FAILED
    assert outcome.error is not None
    assert outcome.error[0] == "checkpoint.missing"
    assert sink.steps == []


def test_half_precision_learns_too() -> None:
    outcome, _ = train(replace(CONFIG, precision="bf16"))
    assert outcome.state is RunState.FINISHED
    assert outcome.status.loss_last is not None


def test_save_while_paused_writes_and_stays_paused(tmp_path: Path) -> None:
    sink, token = RecordingSink(), ControlToken()
    sink.on_each_step = lambda sample: token.pause() if sample.step == 3 else None
    saved = threading.Event()
    post = sink.on_event

    def note(event: Any) -> None:
        post(event)
        if event.kind is EventKind.CHECKPOINT:
            saved.set()

    sink.on_event = note  # type: ignore[method-assign]

    def steer() -> None:
        assert sink.reached[RunState.PAUSED].wait(WAIT_S)
        token.request_save()
        assert saved.wait(WAIT_S)
        assert len(sink.steps) == 3
        token.resume()

    steering = threading.Thread(target=steer)
    steering.start()
    outcome, _ = train(replace(CONFIG, output_dir=str(tmp_path)), sink=sink, token=token)
    steering.join()
    assert outcome.state is RunState.FINISHED
    assert RunState.PAUSED in [status.state for status in sink.statuses]


def test_a_pause_counts_neither_as_step_time_nor_as_pace() -> None:
    hand = HandClock()
    clock = SessionClock(monotonic=hand, origin_s=0.0)
    sink, token = RecordingSink(), ControlToken()
    sink.on_each_step = lambda sample: token.pause() if sample.step == 3 else None

    def steer() -> None:
        assert sink.reached[RunState.PAUSED].wait(WAIT_S)
        hand.now += 1000.0
        token.resume()

    steering = threading.Thread(target=steer)
    steering.start()
    _, _ = train(sink=sink, token=token, clock=clock)
    steering.join()
    assert max(sample.step_s for sample in sink.steps) == 0.0
    assert sink.steps[-1].t_s == 1000.0


def test_a_stop_wakes_a_paced_run_at_once() -> None:
    """One step in a hundred seconds, and the test does not take that long."""
    sink, token = RecordingSink(), ControlToken()
    stepped = threading.Event()
    sink.on_each_step = lambda _: stepped.set()

    def steer() -> None:
        assert stepped.wait(WAIT_S)
        token.stop(save=False)

    steering = threading.Thread(target=steer)
    steering.start()
    outcome, _ = train(replace(CONFIG, max_steps_per_s=0.01), sink=sink, token=token)
    steering.join()
    assert outcome.state is RunState.STOPPED
    assert outcome.status.step == 1


class _Busy:
    def __init__(self) -> None:
        self.spans: list[tuple[str, float]] = []

    def begin_busy(self, t_s: float) -> None:
        self.spans.append(("begin", t_s))

    def end_busy(self, t_s: float) -> None:
        self.spans.append(("end", t_s))


def test_pacing_is_not_busy_time(monkeypatch: pytest.MonkeyPatch) -> None:
    hand = HandClock()
    clock = SessionClock(monotonic=hand, origin_s=0.0)
    token, busy = ControlToken(), _Busy()
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        hand.now += seconds
        return True

    monkeypatch.setattr(token, "wait", wait)
    _, sink = train(replace(CONFIG, epochs=1, max_steps_per_s=4.0), token=token, clock=clock, load=busy)
    assert waits == pytest.approx([0.25] * 5)  # the first step waits for nobody
    assert [sample.t_s for sample in sink.steps] == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0, 1.25])
    begun = 0.0
    for kind, t_s in busy.spans:
        if kind == "begin":
            begun = t_s
        assert t_s == begun  # every busy span is closed before the clock moves


def test_early_stop_after_epochs_without_progress() -> None:
    outcome, sink = train(replace(CONFIG, epochs=50, learning_rate=1e-9, early_stop_epochs=2))
    assert outcome.reason is EndReason.EARLY_STOP
    accuracies = [sample.accuracy for sample in sink.validations]
    assert accuracies.index(max(accuracies)) == len(accuracies) - 3  # two epochs were no better than the best


def test_max_seconds_ends_with_a_validation() -> None:
    hand = HandClock()
    sink = RecordingSink()

    def tick(sample: StepSample) -> None:
        hand.now += 1.0

    sink.on_each_step = tick
    outcome, _ = train(
        replace(CONFIG, epochs=50, max_seconds=8.0), sink=sink, clock=SessionClock(monotonic=hand, origin_s=0.0)
    )
    assert outcome.state is RunState.FINISHED
    assert outcome.reason is EndReason.MAX_SECONDS
    assert outcome.status.step == 8
    assert [sample.step for sample in sink.validations] == [6, 8]


def test_values_are_read_only_at_log_points() -> None:
    hand = HandClock()
    sink = RecordingSink()

    def tick(sample: StepSample) -> None:
        hand.now += 0.07

    sink.on_each_step = tick
    train(replace(CONFIG, epochs=2, log_every_steps=None), sink=sink, clock=SessionClock(monotonic=hand, origin_s=0.0))
    known = [sample.step for sample in sink.steps if sample.loss is not None]
    # First step, then every 0.2 s (three steps of 0.07), and the last of each epoch.
    assert known == [1, 4, 6, 9, 12]
    assert all((sample.loss is None) == (sample.grad_norm is None) for sample in sink.steps)


def test_status_at_most_ten_times_a_second() -> None:
    hand = HandClock()
    sink = RecordingSink()

    def tick(sample: StepSample) -> None:
        hand.now += 0.01

    sink.on_each_step = tick
    train(replace(CONFIG, epochs=10), sink=sink, clock=SessionClock(monotonic=hand, origin_s=0.0))
    running = [status for status in sink.statuses if status.state is RunState.RUNNING]
    assert 6 <= len(running) <= 8  # 0.6 s: six ticks, and the change to RUNNING
    late = running[-1]
    assert late.samples_per_s == pytest.approx(800.0)
    assert late.eta_s == pytest.approx((60 - late.step) * 0.01, abs=0.011)
    assert late.eta_low_s is not None
    assert late.eta_high_s is not None
    assert late.eta_low_s <= late.eta_s <= late.eta_high_s


def test_a_loss_that_is_no_number_ends_the_run_in_words(tmp_path: Path) -> None:
    outcome, sink = train(
        replace(CONFIG, output_dir=str(tmp_path), grad_clip=0.0, checkpoint_every_epochs=1),
        recipe=NumberRecipe(spoil_from_step=9),
    )
    assert outcome.state is RunState.FAILED
    assert outcome.error is not None
    code, message = outcome.error
    assert code == "training.loss_not_finite"
    assert message == "the loss became nan at step 7; lower learning_rate or set grad_clip"
    # Six steps and two validation batches made eight losses; the checkpoint is still the one of epoch 1.
    assert sink.codes() == ["checkpoint.saved"]
    resumed, _ = train(replace(CONFIG, output_dir=str(tmp_path)), resume_from=tmp_path / "last.pt")
    assert resumed.state is RunState.FINISHED


@pytest.mark.parametrize(
    ("phase", "at_op", "occurrence", "step", "checkpoint"),
    [
        (Phase.FORWARD, "", 8, 8, True),
        (Phase.BACKWARD, "", 8, 8, True),
        (Phase.VALIDATION, "", 1, 6, True),
        (Phase.OPTIMIZER, "foreach_norm", 8, 8, True),  # clipping: nothing is updated yet
        (Phase.OPTIMIZER, "foreach_sqrt", 8, 8, False),  # the moments are, the parameters are not
    ],
)
@pytest.mark.parametrize(
    "error",
    [
        lambda: torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of"
        ),
        lambda: RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
    ids=["torch", "cublas"],
)
def test_out_of_memory_is_caught_wherever_it_strikes(
    tmp_path: Path, phase: Phase, at_op: str, occurrence: int, step: int, checkpoint: bool, error: Any
) -> None:
    config = replace(CONFIG, output_dir=str(tmp_path), checkpoint_every_epochs=0, grad_clip=0.0)
    whole = train(replace(config, output_dir=None))[1]
    device = FillingDevice(phase, step=occurrence, error=error, at_op=at_op)
    outcome, sink = train(config, device=device)
    assert outcome.state is RunState.OUT_OF_MEMORY
    assert outcome.oom is not None
    assert outcome.oom.phase is phase
    assert outcome.oom.step == step
    assert outcome.oom.capacity_bytes == 6 << 30
    assert outcome.oom.message == str(error())
    assert outcome.oom.requested_bytes == (20 << 20 if "Tried" in str(error()) else None)
    assert outcome.oom.largest_owners == (("activations", 3), ("parameters", 1))
    assert device.released == 1
    assert (tmp_path / "last.pt").exists() is checkpoint
    if checkpoint:
        _, second = train(config, resume_from=tmp_path / "last.pt")
        assert sink.losses() + second.losses() == whole.losses()


def test_after_out_of_memory_nothing_of_the_step_is_alive() -> None:
    """The exception's frames would keep the activations: all of them must be gone when the outcome is there."""
    alive: list[weakref.ref[Any]] = []
    recipe = NumberRecipe()
    loss_of = recipe.loss

    def watched(model: Any, batch: Any) -> Any:
        loss, logits = loss_of(model, batch)
        alive.extend((weakref.ref(loss), weakref.ref(logits)))
        return loss, logits

    recipe.loss = watched  # type: ignore[method-assign]
    device = FillingDevice(Phase.BACKWARD, step=3, error=lambda: torch.OutOfMemoryError("CUDA out of memory."))
    released: list[int] = []
    device.release = lambda: released.append(sum(ref() is not None for ref in alive))  # type: ignore[method-assign]
    outcome, _ = train(device=device, recipe=recipe)
    assert outcome.state is RunState.OUT_OF_MEMORY
    assert released == [0]  # already before the cache was given back


def test_other_errors_fail_in_one_line() -> None:
    device = FillingDevice(Phase.FORWARD, step=2, error=lambda: ValueError("shapes\ndo not match"))
    outcome, _ = train(device=device)
    assert outcome.state is RunState.FAILED
    assert outcome.error == ("training.unexpected", "ValueError: shapes do not match; the log has the details")
    host = RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried …")
    outcome, _ = train(device=FillingDevice(Phase.FORWARD, step=2, error=lambda: host))
    assert outcome.state is RunState.FAILED
    assert outcome.error is not None
    assert outcome.error[0] == "training.host_memory"


def test_a_disk_that_refuses_ends_no_run(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    outcome, sink = train(replace(CONFIG, output_dir=str(blocked)))
    assert outcome.state is RunState.FINISHED
    assert outcome.status.checkpoint_path is None
    assert set(sink.codes()) == {"checkpoint.failed"}
    assert all(event.level is Level.ERROR for event in sink.events)


def test_keeping_the_loss_graph_keeps_the_activations() -> None:
    """The fault is real: the graph of every step, and what it has saved, is alive until the end of the run."""
    kept: list[weakref.ref[Any]] = []
    recipe = NumberRecipe()
    loss_of = recipe.loss

    def watched(model: Any, batch: Any) -> Any:
        loss, logits = loss_of(model, batch)
        if model.training:
            kept.append(weakref.ref(loss))
        return loss, logits

    recipe.loss = watched  # type: ignore[method-assign]
    alive_at_step: list[int] = []
    sink = RecordingSink()
    sink.on_each_step = lambda _: alive_at_step.append(sum(ref() is not None for ref in kept))
    outcome, _ = train(recipe=recipe, sink=sink, fault=KeepsLossGraph())
    assert outcome.state is RunState.FINISHED
    assert alive_at_step == list(range(1, 19))
    gc.collect()
    assert sum(ref() is not None for ref in kept) == 0


def test_torch_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    train()
    assert torch.get_num_threads() == before
