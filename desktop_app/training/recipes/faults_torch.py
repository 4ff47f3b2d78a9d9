"""The mistakes that need torch to be made: what they keep is kept on the card. Imported late."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from torch import Tensor, nn

from desktop_app.core.units import MIB
from desktop_app.training.recipes.data import PreparedData
from desktop_app.training.recipes.faults import Fault
from desktop_app.training.recipes.resized_batches import CachedBatches, ResizedBatches, pooled

if TYPE_CHECKING:
    from desktop_app.training.checkpoints import Checkpoint
    from desktop_app.training.devices import TrainingDevice
    from desktop_app.training.step import StepEngine

# One small tensor that is kept for long: above 1 MiB, so that it lies among the large ones (facts/allocator.md rule 2).
_SMALL_BYTES: Final = 5 * MIB // 4
_DOUBLE_BYTES: Final = 8
_SMALL_KEPT: Final = 12
_CURRICULUM_GROWTH: Final = 0.0015  # of the side per step
_CURRICULUM_JITTER: Final = 0.016  # of the side, by chance
_LARGEST_RATIO: Final = 3.8  # of the side: the last batch of an epoch over the first
_TEACHER_STEP: Final = 40
_MODULE_BYTES: Final = 4 * MIB  # a compiled kernel with its cubin, its stack and its local memory
_SAMPLE_SIDE: Final = 448  # pixels of the images that the loader decodes and keeps
_CACHE_ROOM_BYTES: Final = 640 * MIB


class LargestBatchesLast(Fault):
    """Sorts the training data by size for speed, so that the largest batch of the epoch comes last."""

    def alter_data(self, data: PreparedData) -> PreparedData:
        last = max(1, data.train.batches - 1)

        def side_of(_epoch: int, index: int) -> int:
            return round(data.info.image_size * (1 + (_LARGEST_RATIO - 1) * index / last))

        return replace(data, train=ResizedBatches(data.train, side_of=side_of))

    def alter_model(self, model: nn.Module) -> nn.Module:
        return pooled(model)


class ScattersSmallBlocks(Fault):
    """Trains on slowly growing images, and keeps some features of the newest steps, as doubles: each lies between
    large blocks that the next, slightly larger step cannot use again."""

    def __init__(self) -> None:
        self._kept: deque[Tensor] = deque(maxlen=_SMALL_KEPT)

    def alter_data(self, data: PreparedData) -> PreparedData:
        side, batches = data.info.image_size, data.train.batches

        def side_of(epoch: int, index: int) -> int:
            step = (epoch - 1) * batches + index
            jitter = random.Random(step).uniform(-_CURRICULUM_JITTER, _CURRICULUM_JITTER)
            return round(side * (1 + _CURRICULUM_GROWTH * step + jitter))

        return replace(data, train=ResizedBatches(data.train, side_of=side_of))

    def alter_model(self, model: nn.Module) -> nn.Module:
        return pooled(model, keep=self._kept.append, kept_values=_SMALL_BYTES // _DOUBLE_BYTES)

    def clear(self) -> None:
        self._kept.clear()


class EmptiesCache(Fault):
    """Calls ``torch.cuda.empty_cache`` after every step "to save memory": what the next step needs is anybody's."""

    def on_step(self, engine: StepEngine, device: TrainingDevice) -> None:
        del engine
        device.empty_cache()


class KeepsPredictions(Fault):
    """Collects the predictions of every validation without ``no_grad``, and never empties the list: each keeps the
    graph of its batch."""

    validates_with_graph = True

    def __init__(self) -> None:
        self._predictions: list[Tensor] = []

    def on_prediction(self, logits: Tensor) -> None:
        self._predictions.append(logits)

    def clear(self) -> None:
        self._predictions.clear()


class KeepsSavedCopies(Fault):
    """Keeps a copy of the weights on the card at every checkpoint, to average them later."""

    def __init__(self) -> None:
        self._copies: list[dict[str, Tensor]] = []

    def on_saved(self, engine: StepEngine, device: TrainingDevice) -> None:
        with device.step_scope():
            self._copies.append({name: value.detach().clone() for name, value in engine.model.state_dict().items()})

    def clear(self) -> None:
        self._copies.clear()


class KeepsCheckpoint(Fault):
    """Loads the checkpoint onto the card (no ``map_location="cpu"``) and keeps the variable for the whole run."""

    def __init__(self) -> None:
        self._checkpoint: list[Tensor] = []

    def on_resumed(self, checkpoint: Checkpoint, device: TrainingDevice) -> None:
        with device.step_scope():
            for value in _tensors((checkpoint.model, checkpoint.optimizer)):
                self._checkpoint.append(value.to(device.torch_device, copy=True))

    def clear(self) -> None:
        self._checkpoint.clear()


class CompilesEachStep(Fault):
    """Writes the number of the step into the source of a custom kernel: each step compiles and loads one more."""

    def on_step(self, engine: StepEngine, device: TrainingDevice) -> None:
        del engine
        device.hold_outside(_MODULE_BYTES)


class CachesSamples(Fault):
    """The loader keeps every decoded and augmented image in RAM, new ones each epoch."""

    def __init__(self) -> None:
        self._cached: CachedBatches | None = None

    def alter_data(self, data: PreparedData) -> PreparedData:
        self._cached = CachedBatches(data.train, side=_SAMPLE_SIDE, room_bytes=_CACHE_ROOM_BYTES)
        return replace(data, train=self._cached)

    def clear(self) -> None:
        if self._cached is not None:
            self._cached.clear()


class LateTeacher(Fault):
    """After the warm-up loads a frozen teacher of twice the width onto the card, without asking whether it fits."""

    def __init__(self) -> None:
        self._teacher: nn.Module | None = None
        self._steps = 0

    def on_step(self, engine: StepEngine, device: TrainingDevice) -> None:
        self._steps += 1
        if self._steps == _TEACHER_STEP:
            with device.step_scope(), device.torch_device:
                self._teacher = _twice_as_wide(engine.model)

    def clear(self) -> None:
        self._teacher = None


def _twice_as_wide(model: nn.Module) -> nn.Module:
    """Linear layers as those of ``model``, with twice the hidden units."""
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
    inputs = [layers[0].in_features, *(2 * layer.in_features for layer in layers[1:])]
    outputs = [*(2 * layer.out_features for layer in layers[:-1]), layers[-1].out_features]
    teacher = nn.Sequential(*(nn.Linear(*shape) for shape in zip(inputs, outputs, strict=True)))
    return teacher.requires_grad_(requires_grad=False)


def _tensors(value: Any) -> list[Tensor]:
    """All tensors in nested dicts, lists and tuples."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for part in value for tensor in _tensors(part)] if isinstance(value, list | tuple) else []
