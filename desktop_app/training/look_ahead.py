"""The sizes of batches as memory sees them: of the next micro-batch, the largest of a step, the longest of an epoch.

Imported late: needs torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from torch import Tensor

from desktop_app.core.steps import BatchShape
from desktop_app.training.recipes.data import Batch, BatchSource, ShapedSource

if TYPE_CHECKING:
    from torch import nn

_BLOCK_BYTES: Final = 512  # every block of the caching allocator is a multiple of it (facts of the replica)
_IMAGE_DIMENSIONS: Final = 4  # (n, channels, height, width)
_SEQUENCE_DIMENSIONS: Final = (2, 3)  # (n, length) of numbers, (n, length, features)
_MOST_LOOKED_AT: Final = 200_000  # batches of an epoch: about a tenth of a second
_SIZES: Final = ("samples", "tokens", "pixels")


def shape_of(batch: Batch) -> BatchShape:
    """Samples, and pixels of images or tokens of sequences, padding included."""
    inputs = batch.inputs
    if inputs.dim() == _IMAGE_DIMENSIONS:
        return BatchShape(batch.samples, pixels=inputs.shape[0] * inputs.shape[2] * inputs.shape[3])
    numbers = not inputs.is_floating_point()
    if inputs.dim() in _SEQUENCE_DIMENSIONS and (numbers or inputs.dim() > min(_SEQUENCE_DIMENSIONS)):
        return BatchShape(batch.samples, tokens=inputs.shape[0] * inputs.shape[1])
    return BatchShape(batch.samples)


def part_of(shape: BatchShape, samples: int) -> BatchShape:
    """What is on the card when at most ``samples`` of the batch are computed at once."""
    if samples >= shape.samples:
        return shape
    sizes = {
        name: -(-size * samples // shape.samples)
        for name in ("tokens", "pixels")
        if (size := getattr(shape, name)) is not None
    }
    return BatchShape(samples, **sizes)


class LookAhead:
    """Knows the largest micro-batch that the card has borne. Runs in: trainer thread."""

    def __init__(self, source: BatchSource) -> None:
        self._source = source
        self._borne: dict[str, int] = {}
        self._of_step: BatchShape | None = None

    @property
    def of_step(self) -> BatchShape | None:
        """The largest micro-batch of the step under way, or of the last one."""
        return self._of_step

    def begin_step(self) -> None:
        """A step begins: no micro-batch of it has been borne."""
        self._of_step = None

    def is_larger(self, shape: BatchShape) -> bool:
        """It has more of something than any before it; false for the first one, which nothing is known of."""
        return bool(self._borne) and any(
            (getattr(shape, name) or 0) > self._borne.get(name, 0) for name in _SIZES if getattr(shape, name)
        )

    def note_borne(self, shape: BatchShape) -> None:
        """A micro-batch has gone forward and backward."""
        for name in _SIZES:
            self._borne[name] = max(self._borne.get(name, 0), getattr(shape, name) or 0)
        if self._of_step is None or _size(shape) > _size(self._of_step):
            self._of_step = shape

    def longest(self, *, epoch: int, first: int, per_step: int) -> tuple[BatchShape, int] | None:
        """The longest batch of the epoch from batch ``first`` on, and in how many steps of ``per_step`` batches it
        comes (1 is the next); ``None`` when the source cannot tell, or all batches are alike."""
        source = self._source
        if not isinstance(source, ShapedSource):
            return None
        last = min(source.batches - source.batches % per_step, first + _MOST_LOOKED_AT)
        shapes = [source.shape(epoch=epoch, index=index) for index in range(first, last)]
        if not shapes:
            return None
        at = max(range(len(shapes)), key=lambda index: _size(shapes[index]))
        if _size(shapes[at]) == _size(min(shapes, key=_size)):
            return None
        return shapes[at], at // per_step + 1


def state_bytes(model: nn.Module, optimizer_state: Mapping[str, Any] | None) -> int:
    """What a model with its optimizer state holds on a card, in blocks of the allocator."""
    tensors: Iterable[Tensor] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}.values()
    own = sum(block_bytes(tensor) for tensor in tensors)
    state = {} if optimizer_state is None else optimizer_state.get("state", {})
    kept = (value for of_parameter in state.values() for value in of_parameter.values())
    return own + sum(block_bytes(value) for value in kept if isinstance(value, Tensor) and value.dim() > 0)


def _size(shape: BatchShape) -> tuple[int, int, int]:
    return shape.tokens or 0, shape.pixels or 0, shape.samples


def block_bytes(tensor: Tensor) -> int:
    """What it holds on a card."""
    return -(-tensor.numel() * tensor.element_size() // _BLOCK_BYTES) * _BLOCK_BYTES
