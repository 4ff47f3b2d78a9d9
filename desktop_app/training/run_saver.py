"""Writes a run's checkpoint, and says so. Imported late: needs torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from desktop_app.core.events import EventKind, Level
from desktop_app.training.checkpoints import FILE_NAME, Checkpoint, Progress, save_checkpoint
from desktop_app.training.config import RunConfig
from desktop_app.training.recipes.data import PreparedData
from desktop_app.training.step import StepEngine

Post = Callable[..., None]


class RunSaver:
    """Saves the last whole step into ``output_dir``; without one, nothing. A disk that refuses ends no run."""

    def __init__(self, config: RunConfig, data: PreparedData, *, post: Post, saved: Callable[[str], None]) -> None:
        self._config = config
        self._data = data
        self._post = post
        self._saved = saved
        self._last: tuple[int, int] | None = None  # step and epoch of the newest file

    def is_due(self, progress: Progress) -> bool:
        """There is something learnt, by the model or by a rescue about the card, and a place to save it to, and it does
        not hold this very step already."""
        here = progress.step, progress.epoch
        has_learnt = progress.step > 0 or progress.micro_batch is not None or progress.looped_updates
        return self._config.output_dir is not None and has_learnt and self._last != here

    def save(self, progress: Progress, engine: StepEngine, *, by_host: bool = False) -> None:
        """Write ``last.pt``; whatever the disk says is an event. ``by_host``: tensor by tensor through the host's RAM,
        so that the card has to hold nothing for it."""
        assert self._config.output_dir is not None
        path = Path(self._config.output_dir) / FILE_NAME
        if engine.has_outputs and not math.isfinite(engine.loss()):
            self._post(EventKind.CHECKPOINT, Level.ERROR, "checkpoint.not_finite", path=str(path), step=progress.step)
            return
        try:
            save_checkpoint(path, self._content(progress, engine, by_host=by_host))
        except OSError as error:
            detail = " ".join(str(error.strerror or error).split())
            self._post(EventKind.CHECKPOINT, Level.ERROR, "checkpoint.failed", path=str(path), detail=detail)
            return
        self._last = progress.step, progress.epoch
        self._saved(str(path))
        self._post(EventKind.CHECKPOINT, Level.INFO, "checkpoint.saved", path=str(path), step=progress.step)
        if not by_host:
            engine.note_saved()

    def failed(self, detail: str, progress: Progress) -> None:
        """Say that there is no checkpoint of this step."""
        path = str(Path(self._config.output_dir or "") / FILE_NAME)
        self._post(EventKind.CHECKPOINT, Level.ERROR, "checkpoint.failed", path=path, detail=detail, step=progress.step)

    def _content(self, progress: Progress, engine: StepEngine, *, by_host: bool) -> Checkpoint:
        state = engine.whole_state()
        optimizer = engine.optimizer.state_dict()
        return Checkpoint(
            config=asdict(self._config),
            fingerprint=self._data.fingerprint,
            classes=self._data.info.classes,
            progress=progress,
            model=_on_host(state.model) if by_host else state.model,
            optimizer=_on_host(optimizer) if by_host else optimizer,
            random_state=state.random_state,
            device_random_state=state.device_random_state,
        )


def _on_host(value: Any) -> Any:
    """The same with every tensor in the host's memory."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, Mapping):
        return {name: _on_host(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_on_host(item) for item in value)
    return value
