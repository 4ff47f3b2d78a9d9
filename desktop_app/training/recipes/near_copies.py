"""Which images are near-copies of one another, so that a split can keep them on one side.

Two images are near-copies when their grey patterns, brightness and contrast removed, correlate at least as much as a
threshold, upright or mirrored; copies of copies belong together (single linkage). Measured on the 2,000 silhouettes
of cats and dogs (28 × 28): 11 pairs are equal byte for byte, 12 pairs reach 0.995, and none of them is mirrored;
from about 0.975 down the pairs are different animals that sit alike. 0.96 gives 1,889 groups, the largest of 56
sitting cats, and holds every pair that differs in at most 16 of 784 pixels once black and white.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Groups = NDArray[np.int64]

# Loose first. A set whose images are alike by nature (X-rays, one product on white) would become a single group:
# then the next stricter threshold is tried. The last one only catches re-encoded or resized copies.
THRESHOLDS: Final = (0.96, 0.98, 0.99, 0.995, 0.999)
# A group may hold this share of its set, and always this many images, before the threshold is tightened.
_LARGEST_SHARE: Final = 0.1
_LARGEST_ALWAYS: Final = 24
# Contrast (grey levels) below which an image counts as flat: it has no pattern, only a colour.
_FLAT_CONTRAST: Final = 2.0
# Flat images are copies when all three mean colours differ by at most so many levels.
_FLAT_DISTANCE: Final = 2.0
# Up to here all pairs are compared; beyond, only pairs that share a hash bucket (below 1 % of copies at 0.99 missed).
_ALL_PAIRS: Final = 6000
_CHUNK: Final = 1024
_TABLES: Final = 8
_BITS: Final = 12


def near_copy_groups(thumbnails: NDArray[np.uint8], colours: Floats) -> Groups:
    """A group number for each image.

    ``thumbnails``: grey (n, side, side); ``colours``: mean red, green and blue (n, 3) in levels from 0 to 255.
    """
    patterns, mirrored, flat = _patterns(thumbnails)
    limit = max(_LARGEST_ALWAYS, int(_LARGEST_SHARE * len(thumbnails)))
    pairs = _alike_pairs(patterns, mirrored, flat)
    flat_pairs = _flat_pairs(colours, np.flatnonzero(flat))
    for threshold in THRESHOLDS:
        groups = _joined(len(thumbnails), [pairs[pairs[:, 2] >= threshold, :2].astype(np.int64), flat_pairs])
        if threshold == THRESHOLDS[-1] or np.bincount(groups).max(initial=0) <= limit:
            return groups
    raise AssertionError("the last threshold always answers")


def _patterns(thumbnails: NDArray[np.uint8]) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Unit vectors of each image upright and mirrored, and which images are flat (their vectors are 0)."""
    count = len(thumbnails)
    levels = thumbnails.astype(np.float32)
    levels -= levels.mean(axis=(1, 2), keepdims=True)
    contrast = levels.std(axis=(1, 2))
    flat = contrast < _FLAT_CONTRAST
    levels[flat] = 0.0
    norms = np.sqrt(np.square(levels).sum(axis=(1, 2), keepdims=True))
    levels /= np.where(norms > 0, norms, 1.0)
    mirrored = np.ascontiguousarray(levels[:, :, ::-1]).reshape(count, -1)
    return levels.reshape(count, -1), mirrored, flat


def _alike_pairs(patterns: Floats, mirrored: Floats, flat: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Rows (i, j, correlation) of all pairs at or above the loosest threshold."""
    patterned = np.flatnonzero(~flat)
    blocks = [patterned] if len(patterned) <= _ALL_PAIRS else _buckets(patterns, mirrored, patterned)
    found = [rows for block in blocks for rows in _pairs_within(patterns, mirrored, block)]
    return np.concatenate(found) if found else np.empty((0, 3))


def _pairs_within(patterns: Floats, mirrored: Floats, block: Groups) -> Iterator[NDArray[np.float64]]:
    upright, flipped = patterns[block], mirrored[block]
    for start in range(0, len(block), _CHUNK):
        queries = upright[start : start + _CHUNK]
        likeness = np.maximum(queries @ upright.T, queries @ flipped.T)
        first, second = np.nonzero(likeness >= THRESHOLDS[0])
        ordered = first + start < second
        first, second = first[ordered], second[ordered]
        yield np.column_stack([block[first + start], block[second], likeness[first, second]]).astype(np.float64)


def _buckets(patterns: Floats, mirrored: Floats, chosen: Groups) -> list[Groups]:
    """Sets of images that share the signs of a dozen random projections, upright or mirrored (SimHash)."""
    random = np.random.default_rng(0)
    buckets: list[Groups] = []
    both = np.concatenate([chosen, chosen])
    for _ in range(_TABLES):
        planes = random.standard_normal((patterns.shape[1], _BITS), dtype=np.float32)
        bits = np.concatenate([patterns[chosen] @ planes, mirrored[chosen] @ planes]) > 0
        keys = bits @ (1 << np.arange(_BITS))
        order = np.argsort(keys, kind="stable")
        edges = np.flatnonzero(np.diff(keys[order])) + 1
        buckets += [np.unique(both[part]) for part in np.split(order, edges) if len(part) > 1]
    return buckets


def _flat_pairs(colours: Floats, flat: Groups) -> Groups:
    """Pairs (i, j) of flat images of the same colour. Sorted by red, so that only a window is compared."""
    order = flat[np.argsort(colours[flat, 0], kind="stable")]
    ends = np.searchsorted(colours[order, 0], colours[order, 0] + _FLAT_DISTANCE, side="right")
    rows = [np.empty((0, 2), np.int64)]
    for position, image in enumerate(order):
        window = order[position + 1 : ends[position]]
        close = window[np.abs(colours[window] - colours[image]).max(axis=1, initial=0.0) <= _FLAT_DISTANCE]
        rows.append(np.column_stack([np.full_like(close, image), close]))
    return np.concatenate(rows)


def _joined(count: int, edges: Sequence[Groups]) -> Groups:
    """Connected components of the pairs, numbered from 0 in order of their first image."""
    parents = list(range(count))

    def root(image: int) -> int:
        while parents[image] != image:
            parents[image] = parents[parents[image]]
            image = parents[image]
        return image

    for pairs in edges:
        for first, second in pairs.tolist():
            low, high = sorted((root(first), root(second)))
            parents[high] = low
    return np.unique([root(image) for image in range(count)], return_inverse=True)[1].astype(np.int64)
