"""Checkpoints: written whole or not at all, read without running code, resumable at the next batch."""

from __future__ import annotations

import contextlib
import os
import pickle
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from desktop_app.core.errors import FloodmarkError

if TYPE_CHECKING:
    from torch import Tensor

FILE_NAME: Final = "last.pt"
_FORMAT: Final = "floodmark-checkpoint"
_VERSION: Final = 1
# What torch.load and the pieces below it raise for files that are not checkpoints.
_UNREADABLE: Final = (
    OSError,
    RuntimeError,
    EOFError,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    IndexError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
)


@dataclass(slots=True)
class Progress:
    """Where a run is, in numbers only. ``step`` counts optimizer steps done; ``epoch`` counts from 1, and
    ``step_in_epoch`` the steps done in it.

    ``micro_batch`` and ``validation_batch``: limits that a rescue or a rule has set; ``None``: the config's.
    ``looped_updates``: it has given up updating all tensors at once.
    """

    step: int = 0
    epoch: int = 1
    step_in_epoch: int = 0
    validated_epoch: int = 0
    epochs_since_best: int = 0
    best_accuracy: float | None = None
    last_accuracy: float | None = None
    loss_first: float | None = None
    loss_last: float | None = None
    trained_s: float = 0.0
    micro_batch: int | None = None
    validation_batch: int | None = None
    looped_updates: bool = False


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All that a run needs to go on. ``optimizer`` is ``None`` in a file of weights only."""

    config: Mapping[str, object]
    fingerprint: str
    classes: tuple[str, ...]
    progress: Progress
    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Any] | None
    random_state: Tensor
    device_random_state: Tensor | None


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write beside, flush to the disk, then take the place of the old file. ``OSError`` leaves the old file alone."""
    import torch

    content = {
        "format": _FORMAT,
        "version": _VERSION,
        **{field.name: getattr(checkpoint, field.name) for field in fields(checkpoint)},
        "classes": list(checkpoint.classes),
        "config": dict(checkpoint.config),
        "progress": asdict(checkpoint.progress),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as stream:
            try:
                torch.save(content, stream)
            except RuntimeError as error:  # torch's writer wraps what the disk said
                raise OSError(f"cannot write {beside}: {' '.join(str(error).split())}") from None
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
    _sync_folder(path.parent)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint onto the CPU. ``FloodmarkError`` when it is missing, damaged, foreign or from the future."""
    import torch

    if not path.is_file():
        raise _unusable("checkpoint.missing", path, "there is no such file; check the path")
    if not zipfile.is_zipfile(path):  # torch's old format has an unpickler of its own: keep away from it
        raise _unusable("checkpoint.damaged", path, "it is cut off or no checkpoint at all; start the run anew")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE:
        raise _unusable(
            "checkpoint.damaged", path, "it is damaged, or holds what no checkpoint holds; start the run anew"
        ) from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise _unusable("checkpoint.foreign", path, "it is not a checkpoint of Floodmark; give its last.pt")
    if content.get("version") != _VERSION:
        raise _unusable("checkpoint.version", path, "another version of Floodmark wrote it; use that version")
    try:
        progress = Progress(**content["progress"])
        rest = {
            field.name: content[field.name] for field in fields(Checkpoint) if field.name not in ("progress", "classes")
        }
        return Checkpoint(progress=progress, classes=tuple(content["classes"]), **rest)
    except (KeyError, TypeError):
        raise _unusable("checkpoint.damaged", path, "a part of it is missing; start the run anew") from None


def _unusable(code: str, path: Path, message: str) -> FloodmarkError:
    return FloodmarkError(code, f"checkpoint {path}: {message}", params={"path": str(path)})


def _sync_folder(folder: Path) -> None:
    """Make the new name durable. Windows cannot open folders, and some file systems refuse: then the rename is as
    good as it gets."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
