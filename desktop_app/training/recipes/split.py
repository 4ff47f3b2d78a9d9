"""Training and validation parts: stratified, seeded, and no near-copy on the other side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Split:
    """Sorted numbers of the samples of both parts, and classes that have no validation sample."""

    train: Indices
    validation: Indices
    classes_without_validation: tuple[int, ...]


def stratified_split(labels: Indices, groups: Indices, *, fraction: float, seed: int) -> Split:
    """Give each class its share of validation samples, whole groups at a time.

    ``labels``, ``groups``: (n,) class and group numbers. A group with samples of several classes (a mislabelled copy)
    goes to training, and so does a class that is one single group.
    """
    random = np.random.default_rng(seed)
    count = int(labels.max(initial=-1)) + 1
    mixed = _mixed_groups(labels, groups)
    chosen: list[int] = []
    empty: list[int] = []
    for label in range(count):
        own, sizes = np.unique(groups[(labels == label) & ~mixed[groups]], return_counts=True)
        total = int((labels == label).sum())
        picked = _pick(own, sizes, total=total, target=max(1, round(fraction * total)), random=random)
        chosen += picked
        if not picked:
            empty.append(label)
    held_out = np.isin(groups, chosen)
    return Split(np.flatnonzero(~held_out), np.flatnonzero(held_out), tuple(empty))


def _pick(own: Indices, sizes: Indices, *, total: int, target: int, random: np.random.Generator) -> list[int]:
    """Groups by chance until the target is reached, never past it; at least the smallest one where two exist."""
    picked: list[int] = []
    taken = 0
    for position in random.permutation(len(own)):
        if taken + sizes[position] <= min(target, total - 1):
            picked.append(int(own[position]))
            taken += int(sizes[position])
    if not picked and len(own) and sizes.min() < total:
        picked.append(int(own[sizes.argmin()]))
    return picked


def _mixed_groups(labels: Indices, groups: Indices) -> NDArray[np.bool_]:
    """For each group number, whether it holds samples of more than one class."""
    pairs = np.unique(np.column_stack([groups, labels]), axis=0)
    return np.bincount(pairs[:, 0], minlength=int(groups.max(initial=-1)) + 1) > 1
