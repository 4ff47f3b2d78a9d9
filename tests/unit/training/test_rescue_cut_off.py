"""A rescue that is cut off, by a kill or an interrupt, and what is found afterwards."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from desktop_app.core.steps import OomReport, Phase, RunState
from desktop_app.training.checkpoints import load_checkpoint
from desktop_app.training.config import RunConfig
from desktop_app.training.control import ControlToken

from .doubles import RecordingSink
from .rescue_bench import (
    CONFIG,
    NarrowDevice,
    train,
)


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
