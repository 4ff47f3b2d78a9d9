"""From an order to a real, very small training. These tests import torch."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from desktop_app.core.clock import SessionClock
from desktop_app.core.events import EventQueue
from desktop_app.core.load import CardLoad
from desktop_app.core.steps import MemoryStats, RunState, RunStatus
from desktop_app.core.store import Cell, Store
from desktop_app.core.telemetry import Card
from desktop_app.core.units import MIB
from desktop_app.services import trainer
from desktop_app.services.notice_board import NoticeBoard
from desktop_app.services.run_desk import RunOrder
from desktop_app.services.run_feed import RunFeed
from desktop_app.services.trainer import train_order
from desktop_app.training.checkpoints import FILE_NAME
from desktop_app.training.config import RunConfig
from desktop_app.training.control import ControlToken

from .doubles import make_card

CARD = make_card(architecture="Turing", compute_capability=(7, 5), sm_count=22)


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    """Two classes of twelve pictures each; three steps an epoch."""
    for name, level in (("bright", 180), ("dark", 30)):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(12):
            values = bytes((level + 5 * number * (x + 2 * y) % 70) for y in range(10) for x in range(10))
            Image.frombytes("L", (10, 10), values).save(tmp_path / "pictures" / name / f"{number}.png")
    (tmp_path / "pictures" / "dark" / "torn.png").write_text("not a picture")
    return RunConfig(
        name="tiny",
        data=str(tmp_path / "pictures"),
        image_size=10,
        batch_size=6,
        epochs=2,
        width=4,
        hidden=8,
        cpu_threads=1,
        validation_fraction=0.25,
    )


class Run:
    """One order, carried out in this thread."""

    def __init__(self, config: RunConfig, folder: Path, card: Card | None, *, others_bytes: int = 0) -> None:
        self.memory: Cell[MemoryStats | None] = Cell(None)
        self.store, self.events, self.load = Store(), EventQueue(), CardLoad()
        self.token = ControlToken()
        self.folder = folder
        self.order = RunOrder(config, card)
        self.others_bytes = others_bytes
        self.most_used_bytes = 0
        self.published: list[RunStatus] = []
        self.feed = RunFeed(
            self.store,
            self.events,
            memory=self.memory,
            listener=None,
            publish=self._publish,
            on_checkpoint=lambda *_: None,
            notices=NoticeBoard(),
        )

    def _publish(self, status: RunStatus) -> None:
        self.published.append(status)
        self.most_used_bytes = max(self.most_used_bytes, self.load.used_bytes)

    def train(self) -> RunStatus:
        return train_order(
            self.order,
            sink=self.feed,
            token=self.token,
            checkpoints=self.folder,
            clock=SessionClock(),
            load_of=lambda _card: self.load,
            others_bytes=lambda: self.others_bytes,
        )


@pytest.mark.parametrize("card", [None, CARD], ids=["cpu", "simulated"])
def test_a_run_is_trained_where_it_was_ordered(
    config: RunConfig, tmp_path: Path, card: Card | None, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(config, tmp_path / "checkpoints", card)
    status = run.train()
    assert (status.state, status.step, status.epoch, status.skipped_files) == (RunState.FINISHED, 6, 2, 1)
    assert (tmp_path / "checkpoints" / FILE_NAME).is_file()
    assert run.store.history("steps").since(0).column("step").tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert run.store.history("validation").since(0).column("epoch").tolist() == [1.0, 2.0]
    assert f"Left out: {tmp_path}/pictures/dark/torn.png (not_an_image)" in caplog.messages
    memory = run.memory.get()
    if card is None:
        assert memory is None
        assert run.most_used_bytes == 0
    else:
        assert memory is not None
        assert memory.reserved_bytes >= 2 * MIB  # one small segment at least
        assert run.most_used_bytes >= memory.reserved_bytes + memory.outside_bytes
        assert run.load.process_bytes == 0  # all given back


def test_a_run_may_have_its_own_place_for_checkpoints(config: RunConfig, tmp_path: Path) -> None:
    own = replace(config, output_dir=str(tmp_path / "own"), epochs=1)
    Run(own, tmp_path / "checkpoints", None).train()
    assert (tmp_path / "own" / FILE_NAME).is_file()
    assert not (tmp_path / "checkpoints").exists()


def test_a_stop_while_data_are_read_ends_before_any_step(config: RunConfig, tmp_path: Path) -> None:
    run = Run(config, tmp_path / "checkpoints", None)
    run.token.stop(save=True)
    status = run.train()
    assert (status.state, status.step, status.run_name, status.epochs) == (RunState.STOPPED, 0, "tiny", 2)
    assert run.published == []


@pytest.mark.parametrize(("allowed", "cores"), [({3}, 1), ({0, 1, 5}, 3)])
def test_only_cores_that_may_be_used_count(monkeypatch: pytest.MonkeyPatch, allowed: set[int], cores: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed, raising=False)
    assert trainer._usable_cores() == cores


@pytest.mark.parametrize("count", [lambda: 4, lambda: None])
def test_without_affinity_all_cores_count(monkeypatch: pytest.MonkeyPatch, count: Callable[[], int | None]) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", count)
    assert trainer._usable_cores() == (count() or 1)
