"""Near-copies and the split: what belongs together stays on one side."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from desktop_app.training.recipes import near_copies
from desktop_app.training.recipes.builtin_images import load_cats_dogs
from desktop_app.training.recipes.near_copies import near_copy_groups
from desktop_app.training.recipes.split import stratified_split

SIDE = 24


def noise(count: int, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, SIDE, SIDE), dtype=np.uint8)


def colours_of(images: np.ndarray) -> np.ndarray:
    return np.repeat(images.mean(axis=(1, 2), dtype=np.float32)[:, None], 3, axis=1)


def groups_of(*images: np.ndarray) -> list[int]:
    stacked = np.stack(images)
    return near_copy_groups(stacked, colours_of(stacked)).tolist()


def test_copies_are_found_whatever_was_done_to_them() -> None:
    first, second, third = noise(3)
    mirrored = first[:, ::-1]
    darker = (first * 0.5).astype(np.uint8)
    paler = (128 + (first.astype(float) - 128) * 0.3).astype(np.uint8)
    grainy = np.clip(first.astype(int) + noise(1, seed=9)[0] // 16 - 8, 0, 255).astype(np.uint8)
    assert groups_of(first, second, mirrored, darker, third, paler, grainy) == [0, 1, 0, 0, 2, 0, 0]


def test_different_images_stay_apart() -> None:
    assert groups_of(*noise(40)) == list(range(40))


def test_flat_images_are_told_apart_by_colour() -> None:
    flat = [np.full((SIDE, SIDE), level, np.uint8) for level in (10, 10, 11, 20, 200)]
    assert groups_of(*flat) == [0, 0, 0, 1, 2]
    same_grey = np.stack([flat[0], flat[0]])
    red_and_blue = np.array([[90, 0, 0], [0, 0, 240]], np.float32)
    assert near_copy_groups(same_grey, red_and_blue).tolist() == [0, 1]


def test_a_set_that_is_alike_by_nature_is_not_one_group() -> None:
    """Sixty pictures of one shape with their own grain (correlation about 0.97): a looser look would join them all."""
    shape = noise(1, seed=5)[0].astype(float)
    random = np.random.default_rng(1)
    images = [np.clip(shape + random.normal(0, 13, shape.shape), 0, 255).astype(np.uint8) for _ in range(60)]
    assert max(np.bincount(groups_of(*images))) <= 24
    images[7] = images[3].copy()
    groups = groups_of(*images)
    assert groups[7] == groups[3]


def test_large_sets_find_the_same_copies_by_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    images = noise(300)
    images[100:150] = images[:50]
    images[150:200] = images[50:100, :, ::-1]
    grain = noise(50, seed=3) // 32
    images[200:250] = np.clip(images[:50].astype(int) + grain - 4, 0, 255)
    whole = near_copy_groups(images, colours_of(images))
    monkeypatch.setattr(near_copies, "_ALL_PAIRS", 10)
    assert near_copy_groups(images, colours_of(images)).tolist() == whole.tolist()
    assert len(set(whole.tolist())) == 150


def test_cats_and_dogs_as_documented() -> None:
    """The numbers in ``near_copies``: measured once, kept by this test."""
    images, _ = load_cats_dogs()
    groups = near_copy_groups(images, colours_of(images))
    sizes = np.bincount(groups)
    assert (len(sizes), sizes.max()) == (1889, 56)
    flat = images.reshape(len(images), -1)
    _, first, counts = np.unique(flat, axis=0, return_index=True, return_counts=True)
    assert (counts > 1).sum() == 11
    for place in first[counts > 1]:
        twins = np.flatnonzero((flat == flat[place]).all(axis=1))
        assert len(set(groups[twins].tolist())) == 1


def test_no_near_silhouette_straddles_the_split() -> None:
    """Independent of how groups are made: black and white, upright or mirrored, at most 16 of 784 pixels apart."""
    images, labels = load_cats_dogs()
    split = stratified_split(labels, near_copy_groups(images, colours_of(images)), fraction=0.2, seed=0)
    bits = (images > 127).astype(np.float32)
    train = bits[split.train].reshape(len(split.train), -1)
    for held_out in (bits[split.validation], bits[split.validation][:, :, ::-1]):
        other = held_out.reshape(len(held_out), -1)
        distance = train.sum(1)[:, None] + other.sum(1)[None] - 2 * train @ other.T
        assert distance.min() > 16
    assert np.bincount(labels[split.validation]).tolist() == [200, 200]


@settings(max_examples=150, deadline=None)
@given(
    st.integers(2, 60).flatmap(
        lambda count: st.tuples(
            hnp.arrays(np.int64, count, elements=st.integers(0, 3)),
            hnp.arrays(np.int64, count, elements=st.integers(0, 20)),
        )
    ),
    st.floats(0.01, 0.9),
    st.integers(0, 2**31 - 1),
)
def test_a_split_is_complete_disjoint_and_whole(
    data: tuple[np.ndarray, np.ndarray], fraction: float, seed: int
) -> None:
    labels, groups = data
    split = stratified_split(labels, groups, fraction=fraction, seed=seed)
    assert sorted([*split.train, *split.validation]) == list(range(len(labels)))
    assert not set(groups[split.train]) & set(groups[split.validation])
    again = stratified_split(labels, groups, fraction=fraction, seed=seed)
    assert again.validation.tolist() == split.validation.tolist()
    for label in set(labels.tolist()):
        own = labels == label
        assert (labels[split.train] == label).any()
        assert (labels[split.validation] == label).any() != (label in split.classes_without_validation)
        pure = {g for g in groups[own].tolist() if (labels[groups == g] == label).all()}
        if len(pure) > 1 or (pure and len(set(groups[own].tolist())) > 1):
            assert label not in split.classes_without_validation


def test_shares_are_exact_where_all_images_differ() -> None:
    labels = np.repeat([0, 1, 2], [100, 10, 3])
    split = stratified_split(labels, np.arange(113), fraction=0.2, seed=4)
    assert np.bincount(labels[split.validation]).tolist() == [20, 2, 1]


def test_a_mislabelled_copy_stays_in_training() -> None:
    labels = np.array([0, 0, 0, 1, 1, 1])
    groups = np.array([0, 1, 2, 2, 3, 4])  # the third and fourth image are copies in two classes
    for seed in range(20):
        split = stratified_split(labels, groups, fraction=0.4, seed=seed)
        assert {2, 3} <= set(split.train.tolist())
