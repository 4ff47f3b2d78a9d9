"""From the trainer into the store, with what was not measured kept apart from what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.missing import is_absent
from desktop_app.core.steps import (
    STEP_COLUMNS,
    VALIDATION_COLUMNS,
    MemoryStats,
    Phase,
    PhaseSample,
    RunState,
    RunStatus,
    StepSample,
    ValidationSample,
)
from desktop_app.core.store import Cell, Store
from desktop_app.core.units import MIB
from desktop_app.services.facade import Notice
from desktop_app.services.notice_board import NoticeBoard
from desktop_app.services.run_feed import RunFeed

from .doubles import make_memory, make_step


class Listener:
    """A forecaster that only listens."""

    def __init__(self) -> None:
        self.heard: list[StepSample | PhaseSample] = []

    def observe_step(self, sample: StepSample) -> None:
        self.heard.append(sample)

    def observe_phase_now(self, sample: PhaseSample) -> object:
        self.heard.append(sample)
        return ()


class Bench:
    def __init__(self, listener: Listener | None = None) -> None:
        self.store = Store()
        self.events = EventQueue()
        self.memory: Cell[MemoryStats | None] = Cell(None)
        self.board = NoticeBoard()
        self.published: list[RunStatus] = []
        self.checkpoints: list[tuple[Path, int, int]] = []
        self.feed = RunFeed(
            self.store,
            self.events,
            memory=self.memory,
            listener=listener,
            publish=self.published.append,
            on_checkpoint=lambda path, step, epoch: self.checkpoints.append((path, step, epoch)),
            notices=self.board,
        )

    def codes(self) -> list[tuple[str, object]]:
        return [(event.code, event.params.get("step")) for event in self.events.since(0)[0]]


def test_a_step_is_one_row_in_the_order_of_the_columns() -> None:
    bench = Bench()
    memory = make_memory(512 * MIB, retries=0)
    bench.feed.on_step(make_step(3, t_s=1.5, epoch=2, loss=0.25, memory=memory))
    row = bench.store.history("steps").latest()
    assert row == {
        "t_s": 1.5,
        "step": 3.0,
        "epoch": 2.0,
        "loss": 0.25,
        "train_accuracy": 0.25,
        "learning_rate": 1e-3,
        "grad_norm": 0.25,
        "samples_per_s": 640.0,
        "step_s": 0.1,
        "batch_samples": 64.0,
        "live_after_bytes": 256.0 * MIB,
        "live_peak_bytes": 512.0 * MIB,
        "reserved_bytes": 512.0 * MIB,
        "reserved_peak_bytes": 512.0 * MIB,
        "idle_split_bytes": 0.0,
        "alloc_retries": 0.0,
    }
    assert bench.memory.get() == memory
    assert bench.store.history("steps").columns == STEP_COLUMNS


def test_between_log_steps_the_line_of_the_loss_goes_on() -> None:
    """The loss is read every few steps only: the steps between are no gaps."""
    bench = Bench()
    for number in range(1, 6):
        bench.feed.on_step(make_step(number, loss=0.5 if number in (1, 5) else None))
    history = bench.store.history("steps")
    assert is_absent(history.since(0).column("loss")).tolist() == [False, True, True, True, False]
    curve = history.curve("loss", 0.0, 1.0, pixels=100)
    assert curve.y.tolist() == [0.5, 0.5]
    assert not curve.has_gaps
    assert not np.isnan(history.since(0).column("step")).any()


@pytest.mark.parametrize("stepped", [True, False])
def test_at_the_end_the_memory_is_that_of_the_last_step(stepped: bool) -> None:
    """After an out-of-memory error the run has given back what it held before it saves."""
    bench = Bench()
    full, released = make_memory(640 * MIB), make_memory(16 * MIB)
    if stepped:
        bench.feed.on_step(make_step(3, memory=full))
    else:
        bench.feed.on_phase(PhaseSample(t_s=0.1, step=1, phase=Phase.BACKWARD, memory=full))
    bench.feed.on_phase(PhaseSample(t_s=0.2, step=3, phase=Phase.SAVE, memory=released))
    assert bench.memory.get() == released
    bench.feed.on_status(RunStatus(RunState.OUT_OF_MEMORY))
    assert bench.memory.get() == full


def test_a_run_without_a_card_has_no_memory_rows() -> None:
    bench = Bench()
    bench.feed.on_step(make_step(1))
    assert bench.memory.get() is None
    assert history_bounds(bench, "reserved_bytes") is None
    assert history_bounds(bench, "step") == (1.0, 1.0)


def history_bounds(bench: Bench, column: str) -> tuple[float, float] | None:
    return bench.store.history("steps").bounds(column, 0.0, 10.0)


def test_epochs_and_allocator_retries_are_events_when_they_change() -> None:
    bench = Bench()
    for number, epoch, retries in ((1, 1, 0), (2, 1, 1), (3, 1, 1), (4, 2, 3)):
        bench.feed.on_step(make_step(number, epoch=epoch, memory=make_memory(retries=retries)))
    assert bench.codes() == [("run.epoch", 1), ("run.alloc_retry", 2), ("run.epoch", 4), ("run.alloc_retry", 4)]
    kinds = [event.kind for event in bench.events.since(0)[0]]
    assert kinds == [EventKind.EPOCH, EventKind.ALLOC_RETRY, EventKind.EPOCH, EventKind.ALLOC_RETRY]


def test_the_forecaster_hears_of_everything_in_order() -> None:
    listener = Listener()
    bench = Bench(listener)
    step = make_step(1)
    phase = PhaseSample(t_s=0.2, step=2, phase=Phase.OPTIMIZER, memory=make_memory(640 * MIB), known_demand_bytes=5)
    bench.feed.on_step(step)
    bench.feed.on_phase(phase)
    assert listener.heard == [step, phase]
    assert bench.memory.get() == phase.memory
    Bench().feed.on_phase(phase)  # nobody listens


def test_a_forecast_that_fails_does_not_take_the_training_with_it(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Listener):
        def observe_phase_now(self, _: PhaseSample) -> object:
            raise ZeroDivisionError

    Bench(Broken()).feed.on_phase(PhaseSample(t_s=0.2, step=2, phase=Phase.OPTIMIZER, memory=None))
    assert "ZeroDivisionError" in caplog.text


def test_validation_is_a_history_of_its_own() -> None:
    bench = Bench()
    bench.feed.on_validation(ValidationSample(t_s=9.0, step=40, epoch=1, loss=0.3, accuracy=0.92))
    assert bench.store.history("validation").columns == VALIDATION_COLUMNS
    assert bench.store.history("validation").latest() == {
        "t_s": 9.0,
        "step": 40.0,
        "epoch": 1.0,
        "loss": pytest.approx(0.3),
        "accuracy": pytest.approx(0.92),
    }


def test_checkpoints_are_noted_with_the_epoch_and_other_events_pass() -> None:
    bench = Bench()
    bench.feed.on_step(make_step(8, epoch=3))
    bench.feed.on_event(
        Event(1.0, EventKind.CHECKPOINT, Level.INFO, "checkpoint.saved", {"path": "a/last.pt", "step": 8})
    )
    bench.feed.on_event(Event(1.0, EventKind.CHECKPOINT, Level.ERROR, "checkpoint.failed", {"path": "a/last.pt"}))
    assert bench.checkpoints == [(Path("a/last.pt"), 8, 3)]
    assert [code for code, _ in bench.codes()] == ["run.epoch", "checkpoint.saved", "checkpoint.failed"]


def test_statuses_go_where_they_are_judged() -> None:
    bench = Bench()
    status = RunStatus(RunState.RUNNING, step=3)
    bench.feed.on_status(status)
    assert bench.published == [status]


@pytest.mark.parametrize(
    ("count", "line"), [(1, "1 file cannot be read and is left out"), (3, "3 files cannot be read and are left out")]
)
def test_files_that_are_left_out_are_a_notice(count: int, line: str) -> None:
    bench = Bench()
    params = {"count": count, "path": "cats/7.png", "reason": "truncated"}
    bench.feed.on_event(Event(1.0, EventKind.DATA_SKIPPED, Level.WARNING, "data.skipped", params))
    text = f"{line}; the first: cats/7.png (truncated). The log names all of them."
    assert bench.board.notices.get() == (Notice("data.skipped", text, "warning", params),)


def test_a_checkpoint_that_cannot_be_written_is_a_notice_until_one_can() -> None:
    bench = Bench()
    params = {"path": "last.pt", "detail": "No space left on device"}
    bench.feed.on_event(Event(1.0, EventKind.CHECKPOINT, Level.ERROR, "checkpoint.failed", params))
    (notice,) = bench.board.notices.get()
    assert (notice.code, notice.level) == ("checkpoint.failed", "error")
    assert "last.pt: No space left on device" in notice.message
    bench.feed.on_event(
        Event(2.0, EventKind.CHECKPOINT, Level.INFO, "checkpoint.saved", {"path": "last.pt", "step": 5})
    )
    assert bench.board.notices.get() == ()


def test_a_checkpoint_that_has_grown_is_noticed(tmp_path: Path) -> None:
    """500 and 900 MB, as after a resume that saves its state twice; the first one and equal ones are not."""
    bench = Bench()
    path = tmp_path / "last.pt"
    for size, noticed in ((100_000, False), (500_000, False), (500_400, False), (900_000, True)):
        path.write_bytes(b"x" * size)
        step = 0 if size == 100_000 else 5  # the first without optimizer state
        bench.feed.on_event(
            Event(1.0, EventKind.CHECKPOINT, Level.INFO, "checkpoint.saved", {"path": path, "step": step})
        )
        codes = [notice.code for notice in bench.board.notices.get()]
        assert ("checkpoint.grown" in codes) is noticed
