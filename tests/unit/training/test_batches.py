"""Batches by number: the same numbers, the same batch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from desktop_app.training.batches import ImageBatches, augmented


class Store:
    """Ten images whose pixels are their number."""

    labels = torch.arange(10)

    def read(self, indices: Tensor) -> Tensor:
        return indices.to(torch.uint8)[:, None, None, None].expand(-1, 1, 4, 4).clone()


def batches(*, shuffle: bool = True, augment: bool = False, seed: int = 0) -> ImageBatches:
    return ImageBatches(Store(), batch_size=4, seed=seed, shuffle=shuffle, augment=augment)


def order(source: ImageBatches, epoch: int) -> list[int]:
    return [n for index in range(source.batches) for n in source.batch(epoch=epoch, index=index).targets.tolist()]


def test_training_drops_the_partial_batch_and_validation_does_not() -> None:
    assert batches().batches == 2
    held_out = batches(shuffle=False)
    assert held_out.batches == 3
    assert order(held_out, 1) == order(held_out, 2) == list(range(10))
    with pytest.raises(IndexError):
        batches().batch(epoch=1, index=2)


def test_each_epoch_has_its_own_order_and_always_the_same() -> None:
    first = order(batches(), 1)
    assert len(set(first)) == 8
    assert order(batches(), 2) != first
    assert order(batches(seed=1), 1) != first
    jumping = batches()
    assert jumping.batch(epoch=2, index=1).targets.tolist() == order(batches(), 2)[4:]
    assert jumping.batch(epoch=1, index=0).targets.tolist() == first[:4]


def test_no_sample_is_left_out_for_ever() -> None:
    source = batches()
    assert set().union(*(order(source, epoch) for epoch in range(1, 10))) == set(range(10))


def test_images_and_labels_stay_together() -> None:
    batch = batches().batch(epoch=3, index=1)
    assert batch.inputs[:, 0, 0, 0].tolist() == batch.targets.tolist()
    assert batch.samples == 4


def test_augmentation_depends_on_the_numbers_alone() -> None:
    images = torch.randint(0, 256, (8, 1, 28, 28), dtype=torch.uint8)
    store = Store()
    store.labels = torch.arange(8)
    store.read = lambda indices: images[indices]  # type: ignore[method-assign]
    make = lambda: ImageBatches(store, batch_size=4, seed=0, shuffle=True, augment=True)  # noqa: E731
    first, second = make(), make()
    second.batch(epoch=1, index=0)
    assert torch.equal(first.batch(epoch=2, index=1).inputs, second.batch(epoch=2, index=1).inputs)


def test_augmentation_mirrors_about_half_and_shifts_by_two_pixels_at_most() -> None:
    marked = torch.zeros(64, 1, 28, 28, dtype=torch.uint8)
    marked[:, :, 14, 6] = 255
    random = torch.Generator().manual_seed(1)
    mirrored = 0
    for _ in range(20):
        result = augmented(marked, random=random)
        assert result.shape == marked.shape
        assert result.dtype == torch.uint8
        _, _, rows, columns = torch.nonzero(result, as_tuple=True)
        assert len(rows) == 64  # each mark is still there, once
        assert ((rows - 14).abs() <= 2).all()
        left = columns < 14
        assert ((columns - torch.where(left, 6, 21)).abs() <= 2).all()
        mirrored += int((~left).sum())
    assert 520 < mirrored < 760  # 1,280 fair coins: 640 ± 3.3 standard deviations


def test_edges_are_repeated_not_wrapped() -> None:
    """A column of one colour at the left edge never turns up at the right one."""
    striped = torch.zeros(2, 1, 28, 28, dtype=torch.uint8)
    striped[:, :, :, 0] = 9
    for seed in range(20):
        result = augmented(striped, random=torch.Generator().manual_seed(seed))
        for image in result:
            assert not (image[0, :, :4] == 9).any() or not (image[0, :, -4:] == 9).any()
