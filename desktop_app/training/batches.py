"""Batches made on demand from an array of images: seeded, augmented, the same for the same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import torch

from desktop_app.training.recipes.data import Batch

if TYPE_CHECKING:
    from torch import Tensor

# Odd 64-bit constants (Weyl and MurmurHash3 finalizer) spread neighbouring epochs and batches over all seeds.
_WEYL: Final = 0x9E3779B97F4A7C15
_MIX: Final = 0xFF51AFD7ED558CCD
# Largest shift of an image by chance, as a share of its side: 2 of 28 pixels.
_SHIFT_SHARE: Final = 1 / 14


class ImageStore(Protocol):
    """Images by number, as bytes (n, channels, side, side)."""

    @property
    def labels(self) -> Tensor: ...

    def read(self, indices: Tensor) -> Tensor: ...


class ImageBatches:
    """Batches of one part of the data. Training: another order each epoch, the last partial batch dropped;
    validation (``shuffle=False``): the given order, nothing dropped.

    Order and augmentation follow from seed, epoch and index alone, so nothing has to be saved to resume.
    """

    def __init__(self, images: ImageStore, *, batch_size: int, seed: int, shuffle: bool, augment: bool) -> None:
        self._images = images
        self._batch_size = batch_size
        self._seed = seed
        self._shuffle = shuffle
        self._augment = augment
        self._random = torch.Generator()
        self._order = torch.arange(self.samples)
        self._order_epoch: int | None = None

    @property
    def samples(self) -> int:
        return int(self._images.labels.shape[0])

    @property
    def batches(self) -> int:
        whole, rest = divmod(self.samples, self._batch_size)
        return whole if self._shuffle else whole + bool(rest)

    def batch(self, *, epoch: int, index: int) -> Batch:
        """Batch ``index`` (from 0) of ``epoch``; ``IndexError`` past the end."""
        if not 0 <= index < self.batches:
            raise IndexError(index)
        start = index * self._batch_size
        chosen = self._order_of(epoch)[start : start + self._batch_size]
        images = self._images.read(chosen)
        if self._augment:
            self._random.manual_seed(_mixed(self._seed, epoch, index + 1))
            images = augmented(images, random=self._random)
        return Batch(images, self._images.labels[chosen])

    def _order_of(self, epoch: int) -> Tensor:
        if self._shuffle and epoch != self._order_epoch:
            self._random.manual_seed(_mixed(self._seed, epoch, 0))
            self._order = torch.randperm(self.samples, generator=self._random)
            self._order_epoch = epoch
        return self._order


def augmented(images: Tensor, *, random: torch.Generator) -> Tensor:
    """Half of the images mirrored, and the whole batch shifted by up to a fourteenth of its side, edges repeated."""
    mirrored = torch.rand(images.shape[0], 1, 1, 1, generator=random) < 0.5
    images = torch.where(mirrored, images.flip(3), images)
    side = images.shape[-1]
    reach = max(1, round(side * _SHIFT_SHARE))
    down, right = torch.randint(-reach, reach + 1, (2,), generator=random).tolist()
    columns = torch.arange(side)
    rows = (columns + down).clamp_(0, side - 1)
    columns = (columns + right).clamp_(0, side - 1)
    return images.index_select(2, rows).index_select(3, columns)


def _mixed(seed: int, epoch: int, index: int) -> int:
    value = (seed * _WEYL + epoch) * _MIX + index
    value = (value ^ (value >> 33)) * _MIX
    return (value ^ (value >> 29)) & 0x7FFF_FFFF_FFFF_FFFF
