"""The recipe ``image-folder``: classify images by the folder they lie in."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from desktop_app.core.errors import FloodmarkError
from desktop_app.training.config import RunConfig, field_spec
from desktop_app.training.control import RunCancelled
from desktop_app.training.output_folder import check_output_folder
from desktop_app.training.recipes import builtin_images
from desktop_app.training.recipes.data import Batch, DataInfo, DataWarning, PreparedData, SkippedFile
from desktop_app.training.recipes.folder_scan import FolderListing, empty_class, list_folder
from desktop_app.training.recipes.near_copies import near_copy_groups
from desktop_app.training.recipes.split import Split, stratified_split

if TYPE_CHECKING:
    from torch import Tensor, device, nn
    from torch.optim import Optimizer

    from desktop_app.training.batches import ImageStore
    from desktop_app.training.recipes.decoding import DecodedImage

# Decoded images up to this size stay in memory; larger sets are decoded batch by batch.
_MEMORY_BYTES: Final = 1 << 30
# Images looked at to tell grey from colour, and how many in all.
_LOOKS_PER_CLASS: Final = 4
_LOOKS: Final = 32
_DECODERS: Final = min(8, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class _Images:
    """All usable images before the split. ``names``: what a sample is called, for the fingerprint."""

    classes: tuple[str, ...]
    channels: int
    labels: NDArray[np.int64]
    thumbnails: NDArray[np.uint8]
    colours: NDArray[np.float32]
    names: tuple[str, ...]
    pixels: NDArray[np.uint8] | None  # None: too large for memory
    paths: tuple[Path, ...]
    skipped: tuple[SkippedFile, ...] = ()


class ImageFolder:
    """Images in one folder per class, or the built-in cats and dogs."""

    name: Final = "image-folder"

    def describe(self, config: RunConfig) -> DataInfo:
        """Classes, channels and expected sample counts from file names alone. ``FloodmarkError`` as ``prepare``, as far
        as the counts tell."""
        if config.data in _BUILTIN:
            counts = [builtin_images.SAMPLES_PER_CLASS] * len(builtin_images.CLASSES)
            info = _info(config, builtin_images.CLASSES, 3 if config.channels == "rgb" else 1, counts, ())
        else:
            listing = list_folder(_root(config), builtin=_BUILTIN)
            counts, skipped = listing.counts(), tuple(listing.skipped)
            info = _info(config, listing.classes, _channels(config, listing), counts, skipped)
        _check_counts(config, info, counts)
        return info

    def prepare(self, config: RunConfig, *, cancelled: Callable[[], bool] | None = None) -> PreparedData:
        """Decode everything once, keep near-copies together, split. ``FloodmarkError`` before any training."""
        check_output_folder(config)
        asked = cancelled or (lambda: False)
        images = _builtin(config) if config.data in _BUILTIN else _folder(config, asked)
        groups = near_copy_groups(images.thumbnails, images.colours)
        if asked():
            raise RunCancelled
        split = stratified_split(images.labels, groups, fraction=config.validation_fraction, seed=config.seed)
        info = DataInfo(
            images.classes,
            images.channels,
            config.image_size,
            len(split.train),
            len(split.validation),
            images.skipped,
        )
        _check_counts(config, info, np.bincount(images.labels).tolist())
        return _prepared(config, images, split, info)

    def model(self, config: RunConfig, info: DataInfo) -> nn.Module:
        """See ``models.image_model``."""
        from desktop_app.training.recipes.models import image_model

        return image_model(config, info)

    def optimizer(self, config: RunConfig, model: nn.Module) -> Optimizer:
        """See ``models.build_optimizer``."""
        from desktop_app.training.recipes.models import build_optimizer

        return build_optimizer(config, model)

    def example_batch(self, info: DataInfo, *, batch_size: int, device: str | device) -> Batch:
        """Black images of the first class: bytes (n, channels, side, side) and int64 targets (n,)."""
        import torch

        shape = (batch_size, info.channels, info.image_size, info.image_size)
        return Batch(
            torch.zeros(shape, dtype=torch.uint8, device=device),
            torch.zeros(batch_size, dtype=torch.int64, device=device),
        )

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """Mean cross-entropy (scalar) and logits (n, classes)."""
        from torch.nn import functional

        logits: Tensor = model(batch.inputs)
        return functional.cross_entropy(logits, batch.targets), logits


_BUILTIN: Final = field_spec("data").choices


def _root(config: RunConfig) -> Path:
    """The data folder; ``~`` is the user's own, where the system knows it."""
    with contextlib.suppress(RuntimeError):
        return Path(config.data).expanduser()
    return Path(config.data)


def _info(
    config: RunConfig, classes: tuple[str, ...], channels: int, counts: list[int], skipped: tuple[SkippedFile, ...]
) -> DataInfo:
    """Counts as the split will make them unless near-copies or broken files stand in its way."""
    held_out = sum(min(count - 1, max(1, round(config.validation_fraction * count))) for count in counts)
    return DataInfo(classes, channels, config.image_size, sum(counts) - held_out, held_out, skipped)


def _channels(config: RunConfig, listing: FolderListing) -> int:
    """1 or 3. A few images, spread over each class, decide for ``auto``."""
    if config.channels != "auto":
        return 3 if config.channels == "rgb" else 1
    from desktop_app.training.recipes.decoding import has_colour

    labels = np.array(listing.labels)
    places: list[int] = []
    for label in range(len(listing.classes)):
        own = np.flatnonzero(labels == label)
        places += own[np.linspace(0, len(own) - 1, min(len(own), _LOOKS_PER_CLASS)).astype(int)].tolist()
    return 3 if any(has_colour(listing.files[place]) for place in places[:_LOOKS]) else 1


def _builtin(config: RunConfig) -> _Images:
    pixels, labels = builtin_images.load_cats_dogs()
    channels = 3 if config.channels == "rgb" else 1
    means = pixels.mean(axis=(1, 2), dtype=np.float32)
    return _Images(
        classes=builtin_images.CLASSES,
        channels=channels,
        labels=labels,
        thumbnails=pixels,
        colours=np.repeat(means[:, None], 3, axis=1),
        names=tuple(f"{config.data}/{index}" for index in range(len(labels))),
        pixels=np.repeat(pixels[:, None], channels, axis=1),
        paths=(),
    )


def _folder(config: RunConfig, cancelled: Callable[[], bool]) -> _Images:
    listing = list_folder(_root(config), builtin=_BUILTIN, cancelled=cancelled)
    channels = _channels(config, listing)
    shape = len(listing.files), channels, config.image_size, config.image_size
    pixels = np.empty(shape, np.uint8) if math.prod(shape) <= _MEMORY_BYTES else None
    good: list[int] = []
    decoded: list[DecodedImage] = []
    for index, result in enumerate(_decode_all(config, listing.files, channels, cancelled)):
        if isinstance(result, str):
            listing.skipped.append(SkippedFile(str(listing.files[index]), result))
            continue
        if pixels is not None:
            pixels[len(good)] = result.pixels
        good.append(index)
        decoded.append(result.without_pixels())
    labels = np.array(listing.labels, np.int64)[good]
    for label, name in enumerate(listing.classes):
        if not (labels == label).any():
            raise empty_class(listing.root / name, listing.skipped)
    paths = tuple(listing.files[index] for index in good)
    return _Images(
        classes=listing.classes,
        channels=channels,
        labels=labels,
        thumbnails=np.stack([image.thumbnail for image in decoded]),
        colours=np.array([image.colour for image in decoded], np.float32),
        names=tuple(path.relative_to(listing.root).as_posix() for path in paths),
        pixels=None if pixels is None else pixels[: len(good)],
        paths=paths,
        skipped=tuple(listing.skipped),
    )


def _decode_all(
    config: RunConfig, files: list[Path], channels: int, cancelled: Callable[[], bool]
) -> Iterator[DecodedImage | str]:
    """Each file decoded, or the reason why not, in order. Pillow lets go of the interpreter while it decodes."""
    from desktop_app.training.recipes.decoding import UnusableImageError, decode

    def one(path: Path) -> DecodedImage | str:
        if cancelled():
            raise RunCancelled
        try:
            return decode(path, channels=channels, side=config.image_size)
        except UnusableImageError as error:
            return error.reason

    waiting = iter(files)
    with ThreadPoolExecutor(_DECODERS, thread_name_prefix="decoder") as pool:
        # In blocks, so that a stop does not wait for a hundred thousand files.
        while block := list(islice(waiting, 64 * _DECODERS)):
            yield from pool.map(one, block)


def _check_counts(config: RunConfig, info: DataInfo, counts: list[int]) -> None:
    """``counts``: images of each class, before the split."""
    if info.validation_samples == 0 and 1 in counts:
        alone = info.classes[counts.index(1)]
        raise FloodmarkError(
            "data.one_image",
            f"data {config.data}: class {alone} has only one image; it needs at least two different ones, one to learn "
            "from and one for validation",
            params={"data": config.data, "class": alone},
        )
    if info.validation_samples == 0:
        raise FloodmarkError(
            "data.only_copies",
            f"data {config.data}: the images of each class are near-copies of one another, so none can be kept "
            "for validation; add different images",
            params={"data": config.data},
        )
    if info.train_samples < config.effective_batch:
        made_of = f"batch_size {config.batch_size} × accumulation {config.accumulation}"
        raise FloodmarkError(
            "data.fewer_than_batch",
            f"data {config.data}: {info.train_samples} training images are fewer than one step of "
            f"{config.effective_batch} ({made_of}); lower batch_size or add images",
            params={
                "data": config.data,
                "train_samples": info.train_samples,
                "effective_batch": config.effective_batch,
                "images": sum(counts),
            },
        )


def _prepared(config: RunConfig, images: _Images, split: Split, info: DataInfo) -> PreparedData:
    from desktop_app.training.batches import ImageBatches

    train = ImageBatches(
        _store(config, images, split.train),
        batch_size=config.batch_size,
        seed=config.seed,
        shuffle=True,
        augment=config.augment,
    )
    validation = ImageBatches(
        _store(config, images, split.validation),
        batch_size=config.batch_size,
        seed=config.seed,
        shuffle=False,
        augment=False,
    )
    missing = tuple(
        DataWarning("data.class_without_validation", {"class": images.classes[label]})
        for label in split.classes_without_validation
    )
    counts = np.bincount(images.labels[split.train], minlength=len(images.classes))
    return PreparedData(info, train, validation, tuple(counts.tolist()), _fingerprint(config, images, split), missing)


def _store(config: RunConfig, images: _Images, part: NDArray[np.int64]) -> ImageStore:
    import torch

    from desktop_app.training.recipes.image_stores import FolderImages, MemoryImages

    labels = torch.from_numpy(images.labels[part])
    if images.pixels is not None:
        return MemoryImages(
            torch.from_numpy(images.pixels), labels, places=torch.from_numpy(part), side=config.image_size
        )
    return FolderImages(
        [images.paths[index] for index in part],
        labels,
        channels=images.channels,
        side=config.image_size,
        cache_bytes=_MEMORY_BYTES // 2,
    )


def _fingerprint(config: RunConfig, images: _Images, split: Split) -> str:
    """Equal for equal training samples in equal order."""
    digest = hashlib.sha256(repr((images.classes, images.channels, config.image_size)).encode())
    for index in split.train:
        digest.update(images.names[index].encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest()
