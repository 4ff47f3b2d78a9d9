"""Ops that sort their indices first: gradients of embeddings, index_put with accumulation, and sorts themselves.

From ATen/native/cuda/Indexing.cu, Embedding.cu, EmbeddingBackwardKernel.cu and CUB's DeviceRadixSort; checked against
recorded allocations (n = 512 to 4,096).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from desktop_app.memory.kernels_plan import (
    Give,
    Kernels,
    Make,
    OpCall,
    Plan,
    Planner,
    Step,
    Take,
    bytes_of,
    copied,
    makes,
)

CUB_OP: Final = "cub.temporary"
INDEX_BYTES: Final = 8

# CUB's radix sort. One block sorts 256 threads × 9 pairs of 8 bytes; the onesweep kernels take tiles of 384 × 10,
# eight bits a pass; offsets are 64 bits wide because PyTorch counts in int64. Buffers are aligned to 256 bytes.
_SINGLE_TILE: Final = 256 * 9
_SWEEP_TILE: Final = 384 * 10
_RADIX_BITS: Final = 8
_RADIX: Final = 1 << _RADIX_BITS
_OFFSET_BYTES: Final = 8
_COUNTER_BYTES: Final = 4
_ALIGNED: Final = 256

_FEW_INDICES: Final = 3072  # Embedding.cu: below that no sort
_ROWS_PER_SEGMENT: Final = 10  # NROWS_PER_THREAD of EmbeddingBackwardKernel.cu
_SMALL_SORT: Final = 4096  # Sort.cpp: should_use_small_sort


def radix_sort_bytes(count: int, *, bits: int) -> int:
    """Temporary storage of ``cub::DeviceRadixSort::SortPairs`` for pairs of int64: 72,191 at 4,096 of 14 bits."""
    if count <= _SINGLE_TILE:
        return 1
    passes = -(-bits // _RADIX_BITS)
    blocks = -(-count // _SWEEP_TILE)
    sizes = [passes * _RADIX * _OFFSET_BYTES, blocks * _RADIX * _COUNTER_BYTES, passes * _COUNTER_BYTES]
    if passes > 1:
        sizes += [count * INDEX_BYTES] * 2
    return _ALIGNED - 1 + sum(-(-size // _ALIGNED) * _ALIGNED for size in sizes)


def _sort(first: int, count: int, *, largest: int) -> tuple[Step, ...]:
    """Sorted and original indices and the range they start from; ``first`` counts the takes before."""
    numbers = count * INDEX_BYTES
    return (
        Take("empty_like", numbers),
        Take("empty_like", numbers),
        Take("arange", numbers),
        Take(CUB_OP, radix_sort_bytes(count, bits=max(1, largest.bit_length()))),
        Give(first + 3),
        Give(first + 2),
    )


def _index_put(call: OpCall, kernels: Kernels) -> Plan | None:  # noqa: ARG001 - one signature for all
    """With ``accumulate``: by a sort of the linear indices. Without: the copies of indices that lie on the host."""
    target, indices, values = call.get("self"), call.get("indices"), call.get("values")
    made: tuple[Step, ...] = () if call.name.endswith("_") else (Make(0),)
    given = [index for index in indices if index is not None]
    if any(index.dtype in (torch.bool, torch.uint8) for index in given):
        return made or None
    steps: list[Step] = [
        Take("to", bytes_of(index)) for index in given if index.device != target.device and index.dim()
    ]
    if not call.get("accumulate", False):
        return (*made, *steps) if steps else None
    count = _broadcast(given)
    takes = len(steps)
    for position, index in enumerate(given):
        steps += [Take("remainder", index.numel() * INDEX_BYTES), Take("mul", index.numel() * INDEX_BYTES)]
        steps.append(Give(takes))
        if position:
            steps.append(Give(takes + 1))
        takes += 2
    wanted = count * _slice(target, indices)
    if values.numel() < wanted or not values.is_contiguous():
        steps.append(Take("clone", wanted * values.element_size()))
        takes += 1
    if count:
        rows = 1
        for size, index in zip(target.shape, indices, strict=False):
            rows *= size if index is not None else 1
        steps += _sort(takes, count, largest=max(1, rows - 1))
    return (*made, *steps)


def _broadcast(indices: Sequence[torch.Tensor]) -> int:
    """Elements of all of them broadcast together."""
    count = 1
    for dim in range(1, max(index.dim() for index in indices) + 1):
        count *= max(index.shape[-dim] for index in indices if index.dim() >= dim)
    return count


def _slice(target: torch.Tensor, indices: Sequence[Any]) -> int:
    """Elements that one combination of indices addresses."""
    size = 1
    for dim, length in enumerate(target.shape):
        if dim >= len(indices) or indices[dim] is None:
            size *= length
    return size


def _index(call: OpCall, kernels: Kernels) -> Plan | None:  # noqa: ARG001
    """Indices that lie on the host are copied to the card first."""
    source = call.get("self")
    steps = [
        Take("to", bytes_of(index))
        for index in call.get("indices")
        if index is not None and index.device != source.device and index.dim()
    ]
    return (*steps, Make(0)) if steps else None


def _embedding_backward(call: OpCall, kernels: Kernels) -> Plan:  # noqa: ARG001
    """Up to 3,072 indices one kernel adds directly; beyond, indices are sorted and rows summed by segments first."""
    grad, indices = call.get("grad_output"), call.get("indices")
    rows = int(call.get("num_weights"))
    count, numbers = indices.numel(), indices.numel() * indices.element_size()
    steps = list(copied(grad, wanted=not grad.is_contiguous()))
    by_frequency = bool(call.get("scale_grad_by_freq", False))
    if count <= _FEW_INDICES and not by_frequency:
        return (*steps, Make(0))
    steps += _sort(len(steps), count, largest=rows)
    if by_frequency:
        steps.append(Take("empty_like", numbers))
    segments = min(count, rows)
    partial = count // _ROWS_PER_SEGMENT + segments
    width = grad.shape[-1]
    number = indices.element_size()
    return (
        *steps,
        Make(0),
        Take("empty", numbers),  # where each segment begins
        Take("empty", INDEX_BYTES),
        Take("empty", segments * number),
        Take("empty", segments * number),
        Take("empty", INDEX_BYTES),
        Take("empty", partial * number),
        Take("empty", partial * width * max(4, grad.element_size())),  # summed in fp32
    )


def _sorted(call: OpCall, kernels: Kernels) -> Plan | None:  # noqa: ARG001
    """Rows of up to 4,096 values are sorted in place; longer ones by CUB, with a copy of keys and indices."""
    tensor = call.get("self")
    dim = call.get("dim", -1)
    if not tensor.dim() or tensor.shape[dim] <= _SMALL_SORT:
        return None
    count = tensor.numel()
    return (
        *makes(len(call.outputs)),
        Take("arange", count * INDEX_BYTES),
        Take(CUB_OP, radix_sort_bytes(count, bits=8 * tensor.element_size())),
    )


PLANNERS: Final[dict[str, Planner]] = {
    "index_put": _index_put,
    "index_put_": _index_put,
    "_index_put_impl_": _index_put,
    "_unsafe_index_put": _index_put,
    "index": _index,
    "_unsafe_index": _index,
    "embedding_dense_backward": _embedding_backward,
    "sort": _sorted,
    "argsort": _sorted,
}
