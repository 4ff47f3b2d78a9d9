"""A rescue that is cut off, by a kill or an interrupt, and what is found afterwards."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from desktop_app.core.events import Event, EventKind
from desktop_app.core.steps import OomReport, Phase, RunState
from desktop_app.training.checkpoints import load_checkpoint
from desktop_app.training.config import RunConfig
from desktop_app.training.control import ControlToken

from .doubles import RecordingSink
from .rescue_bench import CONFIG, WAIT_S, NarrowDevice, train


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
        rescue.Rescue._store = lambda *_: _kill()  # type: ignore[method-assign]
    elif point == "told":
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
            "told": 8,
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


# Interrupts: Ctrl+C and the window's buttons ask the token


class Interrupted(RecordingSink):
    """Asks once, at ``point`` of the first rescue: as the error is put into words, or as the rescue is told."""

    def __init__(self, point: str, ask: Callable[[], None]) -> None:
        super().__init__()
        self._point = point
        self._ask = ask

    def name_cause(self, _: OomReport) -> None:
        self._reach("caught")

    def on_event(self, event: Event) -> None:
        super().on_event(event)
        if event.kind is EventKind.RESCUE:
            self._reach("told")
        elif event.kind is EventKind.CHECKPOINT:
            self._reach("saved")

    def _reach(self, point: str) -> None:
        if point == self._point:
            self._point = ""
            self._ask()


@pytest.mark.parametrize("point", ["caught", "told", "saved"])
@pytest.mark.parametrize("save", [True, False], ids=["once", "twice"])
def test_a_stop_in_the_midst_of_a_rescue_leaves_the_last_whole_step(point: str, save: bool, tmp_path: Path) -> None:
    """Whatever the stop says about saving: the rescue itself writes the last whole step before it goes on."""
    config = replace(CONFIG, output_dir=str(tmp_path))
    token, device = ControlToken(), NarrowDevice(2, Phase.BACKWARD, from_step=5)
    sink = Interrupted(point, lambda: token.stop(save=save))
    outcome, _ = train(config, sink=sink, token=token, device=device, name_cause=sink.name_cause)
    assert (outcome.state, outcome.status.step) == (RunState.STOPPED, 4)
    saved = load_checkpoint(tmp_path / "last.pt")
    assert (saved.progress.step, saved.progress.micro_batch) == (4, 4)
    _, second = train(config, resume_from=tmp_path / "last.pt", device=NarrowDevice(2, Phase.BACKWARD))
    assert sink.losses() + second.losses() == pytest.approx(train()[1].losses(), abs=1e-12)


@pytest.mark.parametrize("point", ["caught", "told"])
def test_a_pause_in_the_midst_of_a_rescue_holds_before_the_step_is_repeated(point: str) -> None:
    token = ControlToken()
    sink = Interrupted(point, token.pause)
    held: list[int] = []

    def let_go() -> None:
        if sink.reached[RunState.PAUSED].wait(WAIT_S):
            held.append(len(sink.steps))
        token.resume()

    steering = threading.Thread(target=let_go)
    steering.start()
    device = NarrowDevice(4, Phase.BACKWARD, from_step=5)
    outcome, _ = train(sink=sink, token=token, device=device, name_cause=sink.name_cause)
    steering.join()
    assert held == [4]
    assert outcome.state is RunState.FINISHED
    assert outcome.status.batch_size == 4
    assert sink.losses() == pytest.approx(train()[1].losses(), abs=1e-12)


def test_a_smaller_batch_asked_for_in_the_midst_of_a_rescue_comes_on_top() -> None:
    token = ControlToken()
    sink = Interrupted("told", token.request_shrink)
    outcome, _ = train(sink=sink, token=token, device=NarrowDevice(4, Phase.BACKWARD, from_step=5))
    assert (outcome.state, outcome.status.batch_size) == (RunState.FINISHED, 2)
    assert sink.losses() == pytest.approx(train()[1].losses(), abs=1e-12)


def test_a_rescue_in_the_first_step_leaves_a_checkpoint_too(tmp_path: Path) -> None:
    """Before it is told: a kill that comes after the news finds what the rescue has learnt."""
    config = replace(CONFIG, output_dir=str(tmp_path))
    token = ControlToken()
    sink = Interrupted("told", lambda: token.stop(save=False))
    outcome, _ = train(config, sink=sink, token=token, device=NarrowDevice(4, Phase.BACKWARD))
    assert (outcome.state, outcome.status.step) == (RunState.STOPPED, 0)
    saved = load_checkpoint(tmp_path / "last.pt")
    assert (saved.progress.step, saved.progress.micro_batch) == (0, 4)
    device = NarrowDevice(4, Phase.BACKWARD)
    _, second = train(config, resume_from=tmp_path / "last.pt", device=device)
    assert device.refusals == []
    assert second.losses() == pytest.approx(train()[1].losses(), abs=1e-12)
