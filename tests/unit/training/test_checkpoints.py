"""Checkpoints: whole or not at all, and never trusted."""

from __future__ import annotations

import os
import pickle
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from desktop_app.core.errors import FloodmarkError
from desktop_app.training.checkpoints import Checkpoint, Progress, load_checkpoint, save_checkpoint
from desktop_app.training.config import RunConfig
from desktop_app.training.resume import ResumePoint

from .doubles import NumberRecipe

CONFIG = RunConfig(batch_size=8)
RECIPE = NumberRecipe()
DATA = RECIPE.prepare(CONFIG)


def checkpoint(**changes: Any) -> Checkpoint:
    model = RECIPE.model(CONFIG, DATA.info)
    made = Checkpoint(
        config=asdict(CONFIG),
        fingerprint=DATA.fingerprint,
        classes=DATA.info.classes,
        progress=Progress(step=5, epoch=2, step_in_epoch=3, best_accuracy=0.75, loss_first=0.7),
        model=model.state_dict(),
        optimizer=RECIPE.optimizer(CONFIG, model).state_dict(),
        random_state=torch.get_rng_state(),
        device_random_state=None,
    )
    return replace(made, **changes)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "last.pt"
    saved = checkpoint()
    save_checkpoint(path, saved)
    loaded = load_checkpoint(path)
    assert loaded.progress == saved.progress
    assert loaded.classes == ("low", "high")
    assert loaded.config == asdict(CONFIG)
    assert all(torch.equal(loaded.model[name], value) for name, value in saved.model.items())
    assert [entry.name for entry in path.parent.iterdir()] == ["last.pt"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("PytorchStreamWriter failed")])
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    path = tmp_path / "last.pt"
    save_checkpoint(path, checkpoint())
    before = path.read_bytes()

    def fail(_content: object, stream: Any) -> None:
        stream.write(b"half of it")
        raise error

    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(OSError, match=r"No space left|cannot write"):
        save_checkpoint(path, checkpoint())
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["last.pt"]


def test_the_file_is_on_the_disk_before_it_takes_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real_sync, real_replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (calls.append("sync"), real_sync(handle)))
    monkeypatch.setattr(Path, "replace", lambda self, target: (calls.append("rename"), real_replace(self, target))[1])
    save_checkpoint(tmp_path / "last.pt", checkpoint())
    assert calls[:2] == ["sync", "rename"]


class _Runs:
    def __reduce__(self) -> Any:
        return os.system, ("true",)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "checkpoint.damaged"),
        (b"not a checkpoint", "checkpoint.damaged"),
        (b"PK\x03\x04" + bytes(100), "checkpoint.damaged"),
        (pickle.dumps(_Runs()), "checkpoint.damaged"),
    ],
)
def test_files_that_are_none(tmp_path: Path, content: bytes, code: str) -> None:
    path = tmp_path / "last.pt"
    path.write_bytes(content)
    with pytest.raises(FloodmarkError) as caught:
        load_checkpoint(path)
    assert caught.value.code == code
    assert str(caught.value).startswith(f"checkpoint {path}: ")
    assert "\n" not in str(caught.value)


def test_a_checkpoint_cannot_run_code(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    torch.save({"format": "floodmark-checkpoint", "version": 1, "model": _Runs()}, path)
    with pytest.raises(FloodmarkError) as caught:
        load_checkpoint(path)
    assert caught.value.code == "checkpoint.damaged"
    words = "it is damaged, or holds what no checkpoint holds; start the run anew"
    assert str(caught.value) == f"checkpoint {path}: {words}"


def test_cut_foreign_future_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"

    def code() -> str:
        with pytest.raises(FloodmarkError) as caught:
            load_checkpoint(path)
        return caught.value.code

    assert code() == "checkpoint.missing"
    save_checkpoint(path, checkpoint())
    path.write_bytes(path.read_bytes()[:-200])
    assert code() == "checkpoint.damaged"
    save_checkpoint(path, checkpoint())
    path.write_bytes(path.read_bytes().replace(b"\x80\x02}", b"\x80\x02\xff"))
    with pytest.raises(FloodmarkError, match=f"^checkpoint {path}: it is damaged, or .*; start the run anew$"):
        load_checkpoint(path)
    torch.save([1, 2], path)
    assert code() == "checkpoint.foreign"
    torch.save({"state_dict": {}}, path)
    assert code() == "checkpoint.foreign"
    torch.save({"format": "floodmark-checkpoint", "version": 2}, path)
    assert code() == "checkpoint.version"
    torch.save({"format": "floodmark-checkpoint", "version": 1}, path)
    with pytest.raises(FloodmarkError, match=f"^checkpoint {path}: a part of it is missing; start the run anew$"):
        load_checkpoint(path)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    save_checkpoint(path, checkpoint(classes=("a", "b")))
    with pytest.raises(FloodmarkError, match="is of another data: its classes are a, b"):
        ResumePoint(path, CONFIG, DATA)
    save_checkpoint(path, checkpoint(fingerprint="other"))
    with pytest.raises(FloodmarkError, match="its training images are not the same"):
        ResumePoint(path, CONFIG, DATA)
    save_checkpoint(path, checkpoint())
    point = ResumePoint(path, CONFIG, DATA)
    with pytest.raises(FloodmarkError) as caught:
        point.fill_model(torch.nn.Linear(3, 3))
    assert caught.value.code == "checkpoint.other_model"
    with pytest.raises(FloodmarkError) as caught:
        point.fill_optimizer(torch.optim.AdamW(torch.nn.Linear(3, 3).parameters()))
    assert caught.value.code == "checkpoint.other_optimizer"


def test_weights_alone_are_enough_and_switches_are_those_of_the_new_run(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    save_checkpoint(path, checkpoint(optimizer=None))
    model = RECIPE.model(CONFIG, DATA.info)
    optimizer = RECIPE.optimizer(replace(CONFIG, foreach=False), model)
    point = ResumePoint(path, CONFIG, DATA)
    point.fill_model(model)
    point.fill_optimizer(optimizer)
    assert not optimizer.state
    save_checkpoint(path, checkpoint())
    ResumePoint(path, CONFIG, DATA).fill_optimizer(optimizer)
    assert optimizer.param_groups[0]["foreach"] is False
    other = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    ResumePoint(path, replace(CONFIG, optimizer="sgd"), DATA).fill_optimizer(other)
    assert not other.state
