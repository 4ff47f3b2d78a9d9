"""What a run does when the card is full: free, put back, need less, go on. Imported late: needs torch."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from copy import copy
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from desktop_app.core.errors import FloodmarkError
from desktop_app.core.events import EventKind, Level
from desktop_app.core.steps import OomReport, Phase
from desktop_app.training.checkpoints import Progress
from desktop_app.training.config import RunConfig
from desktop_app.training.control import Shrink
from desktop_app.training.memory_errors import is_device_out_of_memory
from desktop_app.training.micro_batches import MicroBatches
from desktop_app.training.post_mortem import BESIDE_STEPS, OF_A_STEP, is_mostly_fixed
from desktop_app.training.recipes.data import PreparedData
from desktop_app.training.resume import ResumePoint
from desktop_app.training.step import device_random_state, random_state, set_random_state

if TYPE_CHECKING:
    from desktop_app.training.devices import TrainingDevice
    from desktop_app.training.step import StepEngine

_log = logging.getLogger(__name__)


class GaveUp(Exception):  # noqa: N818 - the end of a run, said in its report
    """Out of memory, and nothing is left that would need less. Never leaves ``training``."""

    def __init__(self, report: OomReport) -> None:
        super().__init__(report.message)
        self.report = report


class Board(Protocol):
    """Shows the micro-batch and the rescues of a run; ``StatusBoard`` is one."""

    def note_batch(self, batch_size: int, accumulation: int) -> None: ...
    def note_rescue(self, rescue: OomReport) -> None: ...


class Rescue:
    """Makes a run need less memory: after an out-of-memory error, or because it was asked to.

    ``largest_batch`` is what an estimate says would fit (``None``: not known); without it the micro-batch is halved.
    Runs in: trainer thread.
    """

    def __init__(
        self,
        config: RunConfig,
        data: PreparedData,
        *,
        device: TrainingDevice,
        board: Board,
        post: Callable[..., None],
        largest_batch: Callable[[], int | None] | None = None,
    ) -> None:
        self._config = config
        self._data = data
        self._device = device
        self._board = board
        self._post = post
        self._largest_batch = largest_batch or (lambda: None)
        self._last_good: _LastGood | None = None
        self.allowed = config.on_oom == "shrink"
        self.training = MicroBatches(whole=config.batch_size, accumulation=config.accumulation)
        held_out = data.validation
        self.validation = MicroBatches(whole=max(1, -(-held_out.samples // max(1, held_out.batches))))
        self.saves_by_host = False
        self._asked: tuple[int, int | None] | None = None  # step and bytes of the last one in forward or backward

    def begin(self, engine: StepEngine, progress: Progress, *, resumed_from: Path | None) -> None:
        """The run is built: take up what an earlier part of it has learnt about the card."""
        self.training.limit = progress.micro_batch
        self.validation.limit = progress.validation_batch
        if progress.looped_updates:
            engine.loop_updates()
        if self.allowed:
            engine.rehearses_updates = self._device.stats() is not None
            self._last_good = _LastGood(self._config, self._data, engine, progress, resumed_from=resumed_from)
        self._board.note_batch(self.training.size, self.training.accumulation)

    def note_checkpoint(self, path: Path) -> None:
        """The run could go back to here."""
        if self._last_good is not None:
            self._last_good.note_checkpoint(path)

    def micro_batch(self, phase: Phase) -> int:
        """Samples that the phase has on the card at once."""
        return self.validation.size if phase is Phase.VALIDATION else self.training.size

    def free(self, engine: StepEngine, *, workspaces: bool = True) -> None:
        """Let go of everything that the failed step has made. Not to be called inside an ``except`` block: an
        exception that is alive keeps the frames of the step alive."""
        engine.undo()
        self.free_cache(workspaces=workspaces)

    def free_cache(self, *, workspaces: bool = True) -> None:
        """Give back to the card what nobody holds; without ``workspaces`` those of the libraries stay where training
        has its place around them."""
        gc.collect()
        if workspaces:
            self._device.release()
        else:
            self._device.empty_cache()
        self._device.reset_peaks()

    def recover(self, engine: StepEngine, oom: OomReport, progress: Progress) -> tuple[OomReport, str]:
        """Back to the last whole step, needing less memory: what ``tell`` is to be told once that is saved. ``GaveUp``
        where it cannot need less."""
        if not self.allowed:
            raise GaveUp(oom)
        self.free(engine, workspaces=oom.phase not in BESIDE_STEPS)
        if oom.fits_no_batch or self._is_in_vain(engine, oom, progress):
            raise GaveUp(replace(oom, fits_no_batch=True))
        part = self._cure(engine, oom)
        if part is None:
            raise GaveUp(oom)
        progress.looped_updates = progress.looped_updates or part == "update"
        if not engine.optimizer_intact and not self._put_back(engine, progress):
            raise GaveUp(oom)
        self._store(progress)
        return replace(oom, rescued_batch_size=self.micro_batch(oom.phase)), part

    def tell(self, rescued: OomReport, part: str) -> None:
        """The run has survived this."""
        self._board.note_batch(self.training.size, self.training.accumulation)
        self._board.note_rescue(rescued)
        _log.warning(
            "Out of memory at step %d (%s): %s, micro-batch %s -> %s",
            rescued.step,
            rescued.phase.value,
            part,
            rescued.batch_size,
            rescued.rescued_batch_size,
        )
        self._post(
            EventKind.RESCUE,
            Level.WARNING,
            f"rescue.{part}",
            step=rescued.step,
            phase=rescued.phase.value,
            cause=rescued.cause,
            batch_before=rescued.batch_size,
            batch_after=rescued.rescued_batch_size,
            accumulation_after=self.training.accumulation,
            requested_bytes=rescued.requested_bytes,
        )

    def obey(self, part: Shrink, progress: Progress, *, to: int | None = None) -> None:
        """A rule or the user has asked for less memory, before anything has gone wrong. ``to``: so many samples of the
        training at most."""
        batches = self.validation if part is Shrink.VALIDATION else self.training
        before = batches.size
        if to is not None and to >= before:  # it has been made small enough meanwhile
            return
        if part is Shrink.SAVE:
            done, self.saves_by_host = not self.saves_by_host, True
        else:
            done = batches.shrink((to or self._largest_batch()) if part is Shrink.TRAINING else None)
        if done:
            self._store(progress)
            self.free_cache(workspaces=part is Shrink.TRAINING)
            self._board.note_batch(self.training.size, self.training.accumulation)
        self._post(
            EventKind.CHANGE,
            Level.INFO if done else Level.WARNING,
            "run.shrunk" if done else "run.not_shrunk",
            part=part.value,
            step=progress.step + (part is Shrink.TRAINING),
            batch_before=before,
            batch_after=batches.size,
            accumulation_after=self.training.accumulation,
        )

    def _cure(self, engine: StepEngine, oom: OomReport) -> str | None:
        """What is changed so that it may fit; ``None``: nothing is left to change, or it would change nothing."""
        if oom.phase is Phase.VALIDATION:
            # Where the training had to shrink, its size has fitted with gradients too.
            fits = self.training.size if self.training.limit is not None else None
            return "validation" if self.validation.shrink(fits) else None
        if oom.phase is Phase.OPTIMIZER and engine.loop_updates():
            return "update"  # smaller temporaries first: an update needs the same for any batch
        return "training" if self.training.shrink(self._largest_batch()) else None

    def _is_in_vain(self, engine: StepEngine, oom: OomReport, progress: Progress) -> bool:
        """A smaller batch is no cure: not one sample fits. Tried where little of what was live is the batch's."""
        if oom.phase not in OF_A_STEP or not engine.optimizer_intact:
            return False
        if oom.phase is Phase.OPTIMIZER:
            if engine.can_loop_updates:
                return False
        else:
            before, self._asked = self._asked, (oom.step, oom.requested_bytes)
            if not is_mostly_fixed(oom, asked_before=before == self._asked):
                return False
        return self._fits_one(engine, progress) is False

    def _fits_one(self, engine: StepEngine, progress: Progress) -> bool | None:
        """Whether the card has room for a step of one sample; ``None``: the model takes no single one."""
        index = progress.step_in_epoch * self._config.accumulation
        fits: bool | None = True
        engine.begin()
        try:
            batch = self._data.train.batch(epoch=progress.epoch, index=index)
            engine.try_step(replace(batch, inputs=batch.inputs[:1], targets=batch.targets[:1]))
        except Exception as error:
            fits = False if is_device_out_of_memory(error) else None
            _log.debug("A step of one sample: %s", error)
        self.free(engine)
        return fits

    def _put_back(self, engine: StepEngine, progress: Progress) -> bool:
        """After a torn update. False: there is no whole state to go back to."""
        if self._last_good is None:
            return False
        try:
            self._last_good.restore(engine, progress, self._device)
        except FloodmarkError as error:
            _log.warning("Cannot go back to the last checkpoint: %s", error.message)
            return False
        return True

    def _store(self, progress: Progress) -> None:
        """In the next checkpoint."""
        progress.micro_batch = self.training.limit
        progress.validation_batch = self.validation.limit


class _LastGood:
    """A whole state to go back to when an update was torn: the run's newest checkpoint, until there is one the state
    it began with, in the host's memory."""

    def __init__(
        self,
        config: RunConfig,
        data: PreparedData,
        engine: StepEngine,
        progress: Progress,
        *,
        resumed_from: Path | None,
    ) -> None:
        self._config = config
        self._data = data
        self._path = resumed_from
        self._progress = copy(progress)
        self._random = random_state()
        self._device_random = device_random_state(next(engine.model.parameters()).device)
        self._model = (
            {name: tensor.detach().to("cpu", copy=True) for name, tensor in engine.model.state_dict().items()}
            if resumed_from is None
            else {}
        )

    def note_checkpoint(self, path: Path) -> None:
        self._path = path
        self._model.clear()

    def restore(self, engine: StepEngine, progress: Progress, device: TrainingDevice) -> None:
        """Model, optimizer, random state and place in the data. ``FloodmarkError`` when the file is of no use."""
        engine.optimizer.state.clear()
        if self._path is None:
            engine.model.load_state_dict(self._model)
            saved, random, device_random = copy(self._progress), self._random, self._device_random
        else:
            point = ResumePoint(self._path, self._config, self._data)
            point.fill_model(engine.model)
            point.fill_optimizer(engine.optimizer)
            device.track_optimizer(engine.optimizer)
            saved = point.progress()
            random, device_random = point.checkpoint.random_state, point.checkpoint.device_random_state
        if progress.looped_updates:
            engine.loop_updates()
        for field in fields(Progress):
            if field.name not in ("micro_batch", "validation_batch", "looped_updates"):
                setattr(progress, field.name, getattr(saved, field.name))
        set_random_state(random, device_random, device.torch_device)
        engine.forget_step()
