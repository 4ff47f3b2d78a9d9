"""Batches of images whose size changes from step to step, and a loader that forgets nothing. Imported late."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch.nn import functional

from desktop_app.core.steps import BatchShape
from desktop_app.training.recipes.data import Batch

if TYPE_CHECKING:
    from desktop_app.training.recipes.data import BatchSource


class ResizedBatches:
    """The batches of ``source``, squares of ``side_of(epoch, index)`` pixels."""

    def __init__(self, source: BatchSource, *, side_of: Callable[[int, int], int]) -> None:
        self._source = source
        self._side_of = side_of
        self._batch_samples: int | None = None

    @property
    def samples(self) -> int:
        return self._source.samples

    @property
    def batches(self) -> int:
        return self._source.batches

    def batch(self, *, epoch: int, index: int) -> Batch:
        batch = self._source.batch(epoch=epoch, index=index)
        return Batch(resized(batch.inputs, self._side_of(epoch, index)), batch.targets)

    def shape(self, *, epoch: int, index: int) -> BatchShape:
        """Known before the images are read; all batches have as many as the first."""
        if self._batch_samples is None:
            self._batch_samples = self._source.batch(epoch=epoch, index=0).samples
        samples = self._batch_samples
        return BatchShape(samples, pixels=samples * self._side_of(epoch, index) ** 2)


class CachedBatches:
    """The batches of ``source``, from images decoded at ``side`` pixels and kept in RAM, all of them for ever.

    ``MemoryError`` when more than ``room_bytes`` are kept: a demonstration must not fill the computer it runs on.
    """

    def __init__(self, source: BatchSource, *, side: int, room_bytes: int) -> None:
        self._source = source
        self._side = side
        self._room_bytes = room_bytes
        self._kept: dict[tuple[int, int], Tensor] = {}
        self._kept_bytes = 0

    @property
    def samples(self) -> int:
        return self._source.samples

    @property
    def batches(self) -> int:
        return self._source.batches

    def batch(self, *, epoch: int, index: int) -> Batch:
        batch = self._source.batch(epoch=epoch, index=index)
        decoded = self._kept.get((epoch, index))
        if decoded is None:
            decoded = resized(batch.inputs, self._side)
            self._kept_bytes += decoded.nbytes
            if self._kept_bytes > self._room_bytes:
                raise MemoryError(f"simulated limit: the cache of images would pass {self._room_bytes} bytes of RAM")
            self._kept[epoch, index] = decoded
        return Batch(resized(decoded, batch.inputs.shape[-1]), batch.targets)

    def clear(self) -> None:
        """Let go of everything."""
        self._kept.clear()


def resized(images: Tensor, side: int) -> Tensor:
    """Images of bytes (n, c, h, w), bilinearly at ``side`` pixels square."""
    if images.shape[-1] == side:
        return images
    return functional.interpolate(images, size=(side, side), mode="bilinear")


class _Pooling(nn.Module):
    """Any size to the one that the layers behind it take. ``keep`` gets a slice of what comes by, as doubles."""

    def __init__(self, side: int, *, keep: Callable[[Tensor], object] | None, kept_values: int) -> None:
        super().__init__()
        self._side = side
        self._keep = keep
        self._kept_values = kept_values

    def forward(self, features: Tensor) -> Tensor:
        if self._keep is not None and self.training:
            self._keep(features.detach().flatten()[: self._kept_values].double())
        return functional.adaptive_avg_pool2d(features, self._side)


def pooled(model: nn.Module, *, keep: Callable[[Tensor], object] | None = None, kept_values: int = 0) -> nn.Module:
    """The small network with a pooling to its own size before the linear layers, so that it takes any image."""
    if not isinstance(model, nn.Sequential):
        raise TypeError("only a network of layers in a row can be given a pooling")
    layers = list(model)
    flatten = next(index for index, layer in enumerate(layers) if isinstance(layer, nn.Flatten))
    linear = layers[flatten + 1]
    channels = next(layer.num_features for layer in reversed(layers) if isinstance(layer, nn.BatchNorm2d))
    assert isinstance(linear, nn.Linear)
    side = round((linear.in_features / channels) ** 0.5)
    layers.insert(flatten, _Pooling(side, keep=keep, kept_values=kept_values))
    return nn.Sequential(*layers)
