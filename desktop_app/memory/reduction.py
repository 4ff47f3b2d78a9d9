"""The staging buffer of CUDA's generic reduction kernel: memory that no tensor shows.

Transcribed from ATen/native/cuda/Reduce.cuh (setReduceConfig) and checked against recorded allocations. A strided
reduction with few outputs is split over many blocks, which leave their partial results in global memory.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Final

MAX_THREADS: Final = 512  # MAX_NUM_THREADS
WARP: Final = 32
VECTOR: Final = 4  # input_vec_size and the largest output vector
SUM_BYTES: Final = 4  # accumulator of fp32 and 16-bit sums and norms
INDEXED_BYTES: Final = 16  # accumulator of max and min with their index
WELFORD_BYTES: Final = 16  # WelfordData of fp32: mean, squares, count as int32 and as float
_SPLIT_FROM: Final = 256  # below this many values per thread no further split
_VALUES_FOR_BLOCK: Final = 16


@dataclass(frozen=True, slots=True)
class _Dim:
    size: int
    stride: int
    reduced: bool


def staging_bytes(
    sizes: Sequence[int],
    strides: Sequence[int],
    reduced: Collection[int],
    *,
    sm_count: int,
    threads_per_sm: int,
    accumulator_bytes: int = SUM_BYTES,
) -> tuple[int, int]:
    """Bytes of the buffer and of its semaphores, (0, 0) when one block per output is enough.

    ``strides`` count elements; ``reduced`` are dimensions of the input, all of them when empty.
    """
    dims = frozenset(dim % len(sizes) for dim in reduced) if sizes and reduced else frozenset(range(len(sizes)))
    return _staging(tuple(sizes), tuple(strides), dims, sm_count, threads_per_sm, accumulator_bytes)


@lru_cache(maxsize=1024)
def _staging(
    sizes: tuple[int, ...], strides: tuple[int, ...], reduced: frozenset[int], sms: int, per_sm: int, accumulator: int
) -> tuple[int, int]:
    dims = _coalesce(sizes, strides, reduced)
    inputs = outputs = 1
    for dim in dims:
        if dim.reduced:
            inputs *= dim.size
        else:
            outputs *= dim.size
    if inputs < _SPLIT_FROM or outputs == 0:
        return 0, 0
    fast = all(dim.reduced for dim in dims) or (_first(dims, reduced=True).stride < _first(dims, reduced=False).stride)
    vector = 1 if fast else _output_vector(dims)
    width, height = _block(inputs, outputs, fast=fast, vector=vector, flat=len(dims) == 1 and dims[0].stride == 1)
    step_in, step_out = (width, 1) if fast else (1, width)
    split_rows = ceil(inputs / step_in) >= min(16 * height, _SPLIT_FROM)
    if split_rows:
        step_in *= height
    else:
        step_out *= height
    grid = ceil((outputs // vector) / step_out)
    blocks = _blocks_per_output(ceil(inputs / step_in), grid, sms * (per_sm // (width * height)))
    if not split_rows or blocks <= 1:
        return 0, 0
    return accumulator * outputs * blocks * (1 if fast else width * vector), 4 * grid


def _coalesce(sizes: tuple[int, ...], strides: tuple[int, ...], reduced: frozenset[int]) -> list[_Dim]:
    """Dimensions as TensorIterator orders them, neighbours of one kind merged where memory is contiguous.

    Reduced dimensions first, by stride; kept ones by their stride in the result, which is contiguous.
    """
    dims = [_Dim(sizes[index], strides[index], index in reduced) for index in reversed(range(len(sizes)))]
    dims = [dim for dim in dims if dim.size != 1]
    inner = sorted((dim for dim in dims if dim.reduced), key=lambda dim: dim.stride)
    return _merged(inner) + _merged([dim for dim in dims if not dim.reduced])


def _merged(dims: list[_Dim]) -> list[_Dim]:
    merged: list[_Dim] = []
    for dim in dims:
        last = merged[-1] if merged else None
        if last is not None and last.stride * last.size == dim.stride:
            merged[-1] = _Dim(last.size * dim.size, last.stride, last.reduced)
        else:
            merged.append(dim)
    return merged


def _first(dims: list[_Dim], *, reduced: bool) -> _Dim:
    """The innermost of the reduced or of the kept dimensions."""
    return next(dim for dim in dims if dim.reduced == reduced)


def _output_vector(dims: list[_Dim]) -> int:
    """Outputs that one thread takes: only where the kept dimension is contiguous and everything divides."""
    kept = _first(dims, reduced=False)
    if kept.stride != 1:
        return 1
    for vector in (VECTOR, VECTOR // 2):
        if kept.size % vector == 0 and all(dim is kept or dim.stride % vector == 0 for dim in dims):
            return vector
    return 1


def _block(inputs: int, outputs: int, *, fast: bool, vector: int, flat: bool) -> tuple[int, int]:
    """Width and height of a block, in threads."""
    dim0, dim1 = (inputs, outputs) if fast else (outputs // vector, inputs)
    if fast and flat and dim0 > 128:
        dim0 //= VECTOR
    limit = MAX_THREADS // vector
    power0, power1 = min(_power_of_two(dim0), limit), min(_power_of_two(dim1), limit)
    width = min(power0, WARP)
    height = min(power1, limit // width)
    return min(power0, limit // height), height


def _power_of_two(number: int) -> int:
    return 1 << (max(number, 1).bit_length() - 1)


def _blocks_per_output(values: int, grid: int, target: int) -> int:
    """``ctas_per_output``: split further while the card is not full and a thread has many values."""
    if values < _SPLIT_FROM or grid > target:
        return 1
    return max(min(ceil(target / grid), ceil(values / _VALUES_FOR_BLOCK)), ceil(values / _SPLIT_FROM))
