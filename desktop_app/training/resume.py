"""Put a checkpoint back into a run, or say in one line why it belongs to another one. Imported late: needs torch."""

from __future__ import annotations

from pathlib import Path

from torch import nn
from torch.optim import Optimizer

from desktop_app.core.errors import FloodmarkError
from desktop_app.training.checkpoints import Checkpoint, Progress, load_checkpoint
from desktop_app.training.config import RunConfig
from desktop_app.training.recipes.data import PreparedData


class ResumePoint:
    """A checkpoint that suits the data of this run. ``FloodmarkError`` at construction when it cannot."""

    def __init__(self, path: Path, config: RunConfig, data: PreparedData) -> None:
        self._path = path
        self._config = config
        self.checkpoint: Checkpoint = load_checkpoint(path)
        if self.checkpoint.classes != data.info.classes:
            raise self._other("data", f"its classes are {', '.join(self.checkpoint.classes)[:80]}")
        if self.checkpoint.fingerprint != data.fingerprint:
            raise self._other("data", "its training images are not the same, or the seed or the split is another")

    def progress(self) -> Progress:
        """Where to go on. With another number of samples per step the epoch begins again: its steps would not be
        the same ones."""
        progress = self.checkpoint.progress
        saved = self.checkpoint.config
        effective = saved.get("batch_size"), saved.get("accumulation")
        if effective[0] != self._config.batch_size:  # whoever chooses another one means it
            progress.micro_batch = None
        if effective[0] and effective[1] and self._config.effective_batch != effective[0] * effective[1]:  # type: ignore[operator]
            progress.step_in_epoch = 0
        return progress

    def fill_model(self, model: nn.Module) -> None:
        """Weights and buffers."""
        try:
            model.load_state_dict(dict(self.checkpoint.model))
        except (RuntimeError, TypeError, AttributeError):
            raise self._other("model", "its tensors have other names or shapes") from None

    def fill_optimizer(self, optimizer: Optimizer) -> None:
        """The optimizer's state; nothing when the file has only weights, or is of another optimizer."""
        state = self.checkpoint.optimizer
        if state is None or self.checkpoint.config.get("optimizer") != self._config.optimizer:
            return
        switches = [{**group, "params": None} for group in optimizer.param_groups]
        try:
            optimizer.load_state_dict(dict(state))
        except (ValueError, KeyError, TypeError):
            raise self._other("optimizer", "its state has other shapes") from None
        # The file's switches (decay, foreach, momentum) give way to those of this run.
        for group, own in zip(optimizer.param_groups, switches, strict=True):
            group.update({name: value for name, value in own.items() if name != "params"})

    def _other(self, part: str, detail: str) -> FloodmarkError:
        return FloodmarkError(
            f"checkpoint.other_{part}",
            f"checkpoint {self._path} is of another {part}: {detail}; start with the settings it was written with",
            params={"path": str(self._path), "detail": detail},
        )
