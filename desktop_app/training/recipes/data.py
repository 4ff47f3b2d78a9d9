"""What recipes hand to the loop: facts about the data, batches, and where they come from. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from desktop_app.core.steps import BatchShape

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that looks like an image and cannot be used. ``reason`` is a code such as ``truncated``."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class DataInfo:
    """What a model has to know about its data, and what a window shows of it."""

    classes: tuple[str, ...]
    channels: int
    image_size: int
    train_samples: int
    validation_samples: int
    skipped: tuple[SkippedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class DataWarning:
    """Something about the data that does not stop a run and should be known."""

    code: str
    params: Mapping[str, object]


@dataclass(slots=True)
class Batch:
    """Samples of one micro-step: ``inputs`` (n, …) and ``targets`` (n,)."""

    inputs: Tensor
    targets: Tensor

    @property
    def samples(self) -> int:
        return int(self.targets.shape[0])


class BatchSource(Protocol):
    """Batches by number: the same numbers give the same batch, so a run resumes at any one of them."""

    @property
    def samples(self) -> int: ...

    @property
    def batches(self) -> int: ...

    def batch(self, *, epoch: int, index: int) -> Batch:
        """Batch ``index`` (from 0) of ``epoch`` (from 1), in host memory."""


@runtime_checkable
class ShapedSource(BatchSource, Protocol):
    """A source of batches of varying size that knows their sizes before it makes them."""

    def shape(self, *, epoch: int, index: int) -> BatchShape:
        """Size of the batch, padding included, without loading it: called for every batch when an epoch begins."""


@dataclass(frozen=True, slots=True)
class PreparedData:
    """Data ready to be learnt from. ``fingerprint`` tells whether a checkpoint belongs to it."""

    info: DataInfo
    train: BatchSource
    validation: BatchSource
    class_counts: tuple[int, ...]  # training samples of each class
    fingerprint: str
    warnings: tuple[DataWarning, ...] = field(default=())
