"""What sorting indices costs: index_put with accumulation, gradients of embeddings. Recorded sizes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from desktop_app.core.steps import Phase
from desktop_app.memory.kernels_sort import radix_sort_bytes
from tests.unit.memory.kernel_calls import inside, made, meta, peak_bytes, record

BACKWARD = Phase.BACKWARD


def test_temporary_storage_of_cubs_radix_sort() -> None:
    """Recorded for a vocabulary of 10,000 (14 bits): 1 B up to 2,048 indices, 72,191 B for 4,096."""
    assert [radix_sort_bytes(count, bits=14) for count in (1, 512, 2048)] == [1, 1, 1]
    assert radix_sort_bytes(4096, bits=14) == 72_191


@given(st.integers(1, 1 << 22), st.integers(1, 63))
def test_a_larger_sort_needs_no_less(count: int, bits: int) -> None:
    assert radix_sort_bytes(count, bits=bits) <= radix_sort_bytes(count + 1, bits=bits)
    assert radix_sort_bytes(count, bits=bits) <= radix_sort_bytes(count, bits=bits + 1)


@pytest.mark.parametrize(("batch", "cub"), [(4, 1), (32, 72_191)])
def test_the_gradient_of_weight_by_ids_takes_five_buffers_of_indices_and_cub(batch: int, cub: int) -> None:
    """12 of 12 training recordings: remainder, mul, two empty_like, arange, all of 8 n bytes."""
    weight = meta(10_000, 2560).requires_grad_()
    ids = meta(batch, 128, dtype=torch.int64)
    numbers = batch * 128 * 8
    taken = weight[ids]
    gradient = torch.empty_like(taken)
    names = ["remainder", "mul", "empty_like", "empty_like", "arange"]
    expected = [(name, numbers) for name in names] + [("cub.temporary", cub)]
    assert inside(lambda: taken.backward(gradient), phase=BACKWARD) == expected  # type: ignore[no-untyped-call]


def test_a_gradient_that_is_not_contiguous_is_copied_once() -> None:
    """Recorded: 5,242,880 B at 512 tokens of 2,560."""
    weight = meta(10_000, 2560).requires_grad_()
    taken = weight[meta(512, dtype=torch.int64)]
    gradient = meta(2560, 512).t()
    taken_inside = inside(lambda: taken.backward(gradient), phase=BACKWARD)  # type: ignore[no-untyped-call]
    assert [entry for entry in taken_inside if entry[0] == "clone"] == [("clone", 5_242_880)]


def test_scattered_gradients_are_written_in_place() -> None:
    """Out of place only because a dispatch mode is active: a second buffer that no recording has."""
    for work in (
        lambda x: x.max(-1).values.sum(),
        lambda x: x[:, torch.zeros(64, dtype=torch.int64, device="meta")].sum(),
        lambda x: x.gather(1, torch.zeros(64, 1, dtype=torch.int64, device="meta")).sum(),
    ):
        inputs = meta(64, 1000).requires_grad_()
        loss = work(inputs)
        sizes = [size for _, size in made(loss.backward, phase=BACKWARD)]
        assert sizes.count(64 * 1000 * 4) == 1


def test_two_index_tensors_are_made_linear_one_after_the_other() -> None:
    logits = meta(512, 10_000).requires_grad_()
    rows, columns = (meta(512, dtype=torch.int64) for _ in range(2))
    loss = logits[rows, columns].sum()
    names = [op for op, _ in inside(loss.backward, phase=BACKWARD) if op in ("remainder", "mul")]
    assert names == ["remainder", "mul"] * 2


def test_indices_on_the_host_are_copied_in_forward_and_again_in_backward() -> None:
    """Recorded four times for ``x[torch.arange(n), t]``: 8 n bytes each."""
    logits = meta(256, 100).requires_grad_()
    rows, columns = torch.arange(256), meta(256, dtype=torch.int64)
    kept: list[torch.Tensor] = []
    assert ("to", 256 * 8) in inside(lambda: kept.append(logits[rows, columns].sum()))
    assert ("to", 256 * 8) in inside(kept[0].backward, phase=BACKWARD)


def embedding_gradient(count: int, width: int = 64, rows: int = 1000) -> list[tuple[str, int]]:
    weight = meta(rows, width).requires_grad_()
    out = functional.embedding(meta(count, dtype=torch.int64), weight)
    gradient = torch.empty_like(out)
    return inside(lambda: out.backward(gradient), phase=BACKWARD)  # type: ignore[no-untyped-call]


def test_an_embedding_of_few_tokens_needs_nothing_beside_its_gradient() -> None:
    assert embedding_gradient(3072) == []


def test_an_embedding_of_many_tokens_sums_rows_by_segments() -> None:
    """EmbeddingBackwardKernel.cu: segments of ten rows, at most one more per row of the table, summed in fp32."""
    taken = embedding_gradient(8192)
    numbers = 8192 * 8
    assert taken[:3] == [("empty_like", numbers), ("empty_like", numbers), ("arange", numbers)]
    assert taken[-1] == ("empty", (8192 // 10 + 1000) * 64 * 4)
    half = meta(1000, 64, dtype=torch.bfloat16).requires_grad_()
    out = functional.embedding(meta(8192, dtype=torch.int64), half)
    gradient = torch.empty_like(out)
    taken = inside(lambda: out.backward(gradient), phase=BACKWARD)  # type: ignore[no-untyped-call]
    assert taken[-1] == ("empty", (8192 // 10 + 1000) * 64 * 4)


def test_the_range_and_cub_are_gone_before_the_gradient_is_there() -> None:
    weight = meta(1000, 64).requires_grad_()
    out = functional.embedding(meta(8192, dtype=torch.int64), weight)
    gradient = torch.empty_like(out)
    events, _ = record(lambda: out.backward(gradient), phase=BACKWARD)  # type: ignore[no-untyped-call]
    keys = [event.key for event in events]
    named = {event.op: event.key for event in events if event.key > 0}
    assert keys.index(-named["cub.temporary"]) < keys.index(named["embedding_dense_backward"])
    assert keys.index(-named["arange"]) < keys.index(named["embedding_dense_backward"])


def test_writing_without_accumulation_sorts_nothing() -> None:
    def work() -> torch.Tensor:
        target = meta(100, 10)
        target[meta(5, dtype=torch.int64)] = 1.0
        return target

    assert "cub.temporary" not in {op for op, _ in made(work)}


def test_long_rows_are_sorted_with_a_copy_and_short_ones_in_place() -> None:
    assert [op for op, _ in inside(lambda: meta(8, 4096).sort())] == ["empty"]
    assert peak_bytes(lambda: meta(1, 100_000).sort()) > 100_000 * (4 + 4 + 8 + 8)
