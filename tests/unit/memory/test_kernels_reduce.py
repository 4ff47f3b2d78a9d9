"""The staging buffers of CUDA's reductions, against recorded sizes, and which ops end in that kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from desktop_app.memory.reduction import INDEXED_BYTES, staging_bytes
from tests.unit.memory.kernel_calls import H100, inside, made, meta, peak_bytes

HOPPER = {"sm_count": 132, "threads_per_sm": 2048}
COLUMNS = [("reduce.staging", 33_554_432), ("reduce.semaphores", 32)]  # of 4,096 x 1,024, recorded


# Recorded on a Hopper card; the reductions behind them are those of a GPT's training step.
@pytest.mark.parametrize(
    ("shape", "strides", "dims", "accumulator", "expected"),
    [
        ((1024, 1024), (1024, 1), (0,), 4, (8_388_608, 32)),
        ((2048, 1024), (1024, 1), (0,), 4, (16_777_216, 32)),
        ((4096, 1024), (1024, 1), (0,), 4, (33_554_432, 32)),
        ((524_288,), (1,), (), 4, (256, 4)),
        ((2048, 10_000), (1, 2048), (1,), 4, (138_412_032, 64)),
        ((2048, 10_000), (1, 2048), (1,), INDEXED_BYTES, (553_648_128, 64)),
    ],
)
def test_staging_buffers_of_reductions_are_those_of_recordings(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dims: tuple[int, ...],
    accumulator: int,
    expected: tuple[int, int],
) -> None:
    assert staging_bytes(shape, strides, dims, **HOPPER, accumulator_bytes=accumulator) == expected


def test_column_sums_pay_512_kib_per_64_rows_at_width_1024() -> None:
    for rows in (1024, 2048, 4096):
        assert staging_bytes((rows, 1024), (1024, 1), (0,), **HOPPER)[0] == rows // 64 * 512 * 1024


def test_small_reductions_and_reductions_of_nothing_need_no_buffer() -> None:
    assert staging_bytes((64, 1024), (1024, 1), (0,), **HOPPER) == (0, 0)
    assert staging_bytes((), (), (), **HOPPER) == (0, 0)
    assert staging_bytes((0, 1024), (1024, 1), (0,), **HOPPER) == (0, 0)
    assert staging_bytes((1024, 0), (1, 1), (0,), **HOPPER) == (0, 0)
    assert staging_bytes((1024, 1, 1), (1, 1, 1), (1,), **HOPPER) == (0, 0)


@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
    st.sampled_from([(22, 1024), (82, 1536), (132, 2048)]),
)
def test_any_reduction_of_any_contiguous_tensor_has_an_answer(
    shape: list[int], random: object, card: tuple[int, int]
) -> None:
    strides = [1] * len(shape)
    for index in range(len(shape) - 2, -1, -1):
        strides[index] = strides[index + 1] * shape[index + 1]
    for dim in range(len(shape)):
        buffer, semaphores = staging_bytes(shape, strides, (dim,), sm_count=card[0], threads_per_sm=card[1])
        assert buffer >= 0
        assert (buffer > 0) == (semaphores > 0)
        assert staging_bytes(shape, strides, (dim - len(shape),), sm_count=card[0], threads_per_sm=card[1]) == (
            buffer,
            semaphores,
        )


def test_the_innermost_kept_dimension_is_that_of_the_result() -> None:
    """TensorIterator orders kept dimensions by the result's strides: here not those of the input."""
    straight = staging_bytes((4096, 64, 16), (1024, 16, 1), (0,), **HOPPER)
    turned = staging_bytes((4096, 64, 16), (1024, 1, 64), (0,), **HOPPER)
    assert straight[0] == staging_bytes((4096, 1024), (1024, 1), (0,), **HOPPER)[0] == 33_554_432
    assert turned[0] != straight[0]


@pytest.mark.parametrize(
    "reduce",
    [
        lambda x: x.sum(0),
        lambda x: x.sum(0, keepdim=True),
        lambda x: x.sum(dim=[0]),
        lambda x: x.mean(0),
        lambda x: x.prod(0),
        lambda x: x.amax(0),
        lambda x: x.amin((0,)),
        lambda x: torch.linalg.vector_norm(x, 2, [0]),
        lambda x: x.norm(dim=0),
        lambda x: torch.nansum(x, 0),
        lambda x: x.any(0),  # the accumulator has the type of the input
    ],
)
def test_ops_that_reduce_pay_for_their_staging_buffer(reduce: Callable[[torch.Tensor], torch.Tensor]) -> None:
    columns = meta(4096, 1024)
    assert inside(lambda: reduce(columns)) == COLUMNS


@pytest.mark.parametrize(
    ("reduce", "wide"),
    [
        (lambda x: x.max(0), 16),
        (lambda x: x.min(0), 16),
        (lambda x: x.argmax(0), 16),
        (lambda x: x.var(0), 16),
        (lambda x: torch.var_mean(x, 0), 16),
        (lambda x: torch.aminmax(x, dim=0), 8),
    ],
)
def test_wider_accumulators_cost_more(reduce: Callable[[torch.Tensor], object], wide: int) -> None:
    columns = meta(4096, 1024)
    assert inside(lambda: reduce(columns)) == [("reduce.staging", wide // 4 * 33_554_432), ("reduce.semaphores", 32)]


def test_max_over_strided_logits_costs_seven_times_the_logits() -> None:
    """Recorded: 553,648,128 B for max(dim), 138,412,032 for sum over 2,048 x 10,000 logits of einsum's layout."""
    logits = meta(10_000, 2048).t()
    assert inside(lambda: logits.max(1))[0] == ("reduce.staging", 553_648_128)
    assert inside(lambda: logits.sum(1))[0] == ("reduce.staging", 138_412_032)
    assert 553_648_128 / (2048 * 10_000 * 4) > 6.7


def test_the_larger_of_two_tensors_is_no_reduction() -> None:
    columns = meta(4096, 1024)
    assert inside(lambda: torch.max(columns, columns)) == []


def test_a_reduction_of_sixteen_bits_sums_in_full_precision_without_a_cast() -> None:
    columns = meta(4096, 1024, dtype=torch.bfloat16)
    assert inside(lambda: columns.sum(0)) == COLUMNS
    assert inside(lambda: columns.sum(0, dtype=torch.float32)) == COLUMNS
    assert inside(lambda: columns.amax(0)) == [("reduce.staging", 33_554_432 // 2), ("reduce.semaphores", 32)]


def test_counting_true_values_copies_them_to_int64_first() -> None:
    """ReduceOps.cpp casts the input where the kernel cannot: the accuracy of a batch costs eight bytes an element."""
    hits = meta(300, 100, dtype=torch.bool)
    made_inside = inside(hits.sum)
    assert made(hits.sum) == [("sum", 8), *made_inside]
    assert made_inside[0] == ("to", 300 * 100 * 8)


def test_logsumexp_makes_a_full_copy_inside() -> None:
    logits = meta(512, 8000)
    assert peak_bytes(lambda: logits.logsumexp(-1)) == 512 * 8000 * 4 + 2 * 512 * 4


@pytest.mark.parametrize("loss", [functional.mse_loss, functional.smooth_l1_loss, functional.huber_loss])
def test_the_mean_of_an_elementwise_loss_needs_all_its_elements(loss: Callable[..., torch.Tensor]) -> None:
    one, other = meta(1000, 100), meta(1000, 100)
    assert (loss.__name__, 400_000) in inside(lambda: loss(one, other))
    assert inside(lambda: loss(one, other, reduction="none")) == []


def test_binary_cross_entropy_keeps_the_storage_of_all_its_elements() -> None:
    """Loss.cu resizes the losses to one number and hands back their storage."""
    one, other = meta(1000, 100), meta(1000, 100)
    assert made(lambda: functional.binary_cross_entropy(one, other))[0] == ("binary_cross_entropy", 400_000)
    assert peak_bytes(lambda: functional.binary_cross_entropy_with_logits(one, other)) >= 800_000


def test_foreach_norms_leave_one_number_per_chunk_of_65536() -> None:
    tensors = [meta(200_000), meta(10)]
    assert inside(lambda: torch._foreach_norm(tensors)) == [("foreach_norm.partial", 2 * 4 * 4)]


def test_the_same_reduction_on_real_tensors_costs_the_same() -> None:
    columns = torch.empty(4096, 1024)
    assert inside(lambda: columns.sum(0), device="cpu", card=H100) == COLUMNS
