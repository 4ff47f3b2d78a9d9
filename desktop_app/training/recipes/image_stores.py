"""Where images live while they are learnt from: all in memory, or decoded when asked for. Imported late."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from desktop_app.core.errors import FloodmarkError
from desktop_app.training.recipes.decoding import UnusableImageError, decode


class MemoryImages:
    """One part of images (n, channels, h, w) of bytes held in memory once for all parts, resized to ``side`` when
    asked for where they differ. ``places``: (m,) the part's images among all."""

    def __init__(self, images: Tensor, labels: Tensor, *, places: Tensor, side: int) -> None:
        self._images = images
        self._places = places
        self._side = side
        self.labels = labels

    def read(self, indices: Tensor) -> Tensor:
        chosen = self._images.index_select(0, self._places[indices])
        if chosen.shape[-1] == self._side:
            return chosen
        resized = functional.interpolate(
            chosen.float(), size=(self._side, self._side), mode="bilinear", align_corners=False
        )
        return resized.round_().to(torch.uint8)


class FolderImages:
    """Images decoded when asked for; the most recent ones stay, up to ``cache_bytes``."""

    def __init__(self, paths: Sequence[Path], labels: Tensor, *, channels: int, side: int, cache_bytes: int) -> None:
        self._paths = paths
        self._channels = channels
        self._side = side
        self._kept: OrderedDict[int, Tensor] = OrderedDict()
        self._keep = cache_bytes // (channels * side * side)
        self.labels = labels

    def read(self, indices: Tensor) -> Tensor:
        return torch.stack([self._one(index) for index in indices.tolist()])

    def _one(self, index: int) -> Tensor:
        image = self._kept.pop(index, None)
        if image is None:
            image = self._decoded(self._paths[index])
        self._kept[index] = image
        if len(self._kept) > self._keep:
            self._kept.popitem(last=False)
        return image

    def _decoded(self, path: Path) -> Tensor:
        """A file that was good before the run and is no longer cannot be replaced by another one: the run ends."""
        try:
            return torch.from_numpy(decode(path, channels=self._channels, side=self._side).pixels)
        except UnusableImageError as error:
            raise FloodmarkError(
                "data.file_changed",
                f"{path} can no longer be read ({error.reason}); it was fine when the run began: restore it and resume",
                params={"path": str(path), "reason": error.reason},
            ) from None
