"""Ops that end in CUDA's generic reduction kernel: what they allocate beside their result.

From ATen/native/cuda/Reduce*.cu, ReduceOps.cpp and Loss.cpp. Sizes of the staging buffer: ``reduction``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from desktop_app.memory.kernels_plan import Kernels, Make, OpCall, Plan, Planner, Step, Take, bytes_of, makes
from desktop_app.memory.reduction import INDEXED_BYTES, SUM_BYTES, WELFORD_BYTES, staging_bytes

STAGING_OP: Final = "reduce.staging"
SEMAPHORES_OP: Final = "reduce.semaphores"

_LOW: Final = frozenset({torch.float16, torch.bfloat16})  # summed in fp32, also into a fp32 result without a cast
_FOREACH_NORM_CHUNK: Final = 65536  # kChunkSize of MultiTensorApply.cuh
_REDUCED: Final = (1, 2)  # at::Reduction: Mean, Sum


def staging(tensor: torch.Tensor, dims: Sequence[int], accumulator_bytes: int, kernels: Kernels) -> tuple[Step, ...]:
    """The staging buffer and its semaphores, where the kernel splits a reduction over blocks."""
    return staging_of(tensor.shape, tensor.stride(), dims, accumulator_bytes, kernels)


def staging_of(
    shape: Sequence[int], strides: Sequence[int], dims: Sequence[int], accumulator_bytes: int, kernels: Kernels
) -> tuple[Step, ...]:
    buffer, semaphores = staging_bytes(
        shape,
        strides,
        dims,
        sm_count=kernels.sms,
        threads_per_sm=kernels.threads,
        accumulator_bytes=accumulator_bytes,
    )
    return (Take(STAGING_OP, buffer), Take(SEMAPHORES_OP, semaphores)) if buffer else ()


def sum_bytes(dtype: torch.dtype) -> int:
    """Accumulator of a sum with a result of this dtype."""
    return SUM_BYTES if dtype in _LOW else dtype.itemsize


def _dims(call: OpCall) -> Sequence[int]:
    dims: Any = call.get("dim")
    if isinstance(dims, int):
        return (dims,)
    return dims or ()


def _sum(call: OpCall, kernels: Kernels) -> Plan | None:
    """sum, mean, prod, norm: a result of another dtype costs a cast copy first, but for 16 bit into fp32."""
    tensor, result = call.get("self"), call.outputs[0]
    steps = staging(tensor, _dims(call), sum_bytes(result.dtype), kernels)
    if tensor.dtype != result.dtype and not (tensor.dtype in _LOW and result.dtype is torch.float32):
        steps = (Take("to", tensor.numel() * result.element_size()), *steps)
    return (Make(0), *steps) if steps else None


def _extreme(call: OpCall, kernels: Kernels) -> Plan | None:
    """max and min: with their index where there are two results."""
    tensor = call.get("self")
    if call.get("other") is not None:  # the larger of two tensors
        return None
    size = INDEXED_BYTES if len(call.outputs) > 1 else tensor.element_size()
    steps = staging(tensor, _dims(call), size, kernels)
    return (*makes(len(call.outputs)), *steps) if steps else None


def _index(call: OpCall, kernels: Kernels) -> Plan | None:
    steps = staging(call.get("self"), _dims(call), INDEXED_BYTES, kernels)
    return (Make(0), *steps) if steps else None


def _truth(call: OpCall, kernels: Kernels) -> Plan | None:
    """any, all: the accumulator has the type of the input."""
    tensor = call.get("self")
    steps = staging(tensor, _dims(call), tensor.element_size(), kernels)
    return (Make(0), *steps) if steps else None


def _both(call: OpCall, kernels: Kernels) -> Plan | None:
    tensor = call.get("self")
    steps = staging(tensor, _dims(call), 2 * tensor.element_size(), kernels)
    return (*makes(2), *steps) if steps else None


def _variance(call: OpCall, kernels: Kernels) -> Plan | None:
    """WelfordData: mean, sum of squares, and the count twice."""
    tensor = call.get("self")
    size = 2 * WELFORD_BYTES if tensor.dtype is torch.float64 else WELFORD_BYTES
    steps = staging(tensor, _dims(call), size, kernels)
    return (*makes(len(call.outputs)), *steps) if steps else None


def _log_sum_exp(call: OpCall, kernels: Kernels) -> Plan:
    """logsumexp is made of ops that a dispatch mode does not see: largest values, a full copy, a sum."""
    tensor, result = call.get("self"), call.outputs[0]
    dims = _dims(call)
    return (
        Take("amax", bytes_of(result)),
        Take("sub", tensor.numel() * result.element_size()),
        Make(0),
        *staging_of(tensor.shape, tensor.stride(), dims, sum_bytes(result.dtype), kernels),
    )


def _elementwise_loss(call: OpCall, kernels: Kernels) -> Plan | None:
    """mse, smooth L1, Huber: the loss of every element is there before its mean is taken."""
    tensor = call.get("self")
    if call.get("reduction", 1) not in _REDUCED:
        return None
    return (
        Make(0),
        Take(call.name, bytes_of(tensor)),
        *staging_of((tensor.numel(),), (1,), (), sum_bytes(tensor.dtype), kernels),
    )


def _cross_entropy_of_probabilities(call: OpCall, kernels: Kernels) -> Plan | None:
    """binary_cross_entropy: the mean goes into the storage of the losses of all elements, which stays that large."""
    tensor = call.get("self")
    if call.get("reduction", 1) not in _REDUCED:
        return None
    return (
        Make(0, bytes_of(tensor)),
        Take("mean", tensor.element_size()),
        *staging_of((tensor.numel(),), (1,), (), sum_bytes(tensor.dtype), kernels),
    )


def _cross_entropy_with_logits(call: OpCall, kernels: Kernels) -> Plan | None:
    tensor, weight = call.get("self"), call.get("pos_weight")
    size_bytes = bytes_of(tensor)
    steps: list[Step] = [Take("log_sigmoid", size_bytes)]
    if weight is not None:
        steps.append(Take("mul", size_bytes))
    if call.get("reduction", 1) not in _REDUCED:
        return (*steps, Make(0))
    steps += [Take("rsub", size_bytes), Make(0)]
    return (*steps, *staging_of((tensor.numel(),), (1,), (), sum_bytes(tensor.dtype), kernels))


def _foreach_norm(call: OpCall, kernels: Kernels) -> Plan:  # noqa: ARG001 - one signature for all
    """ForeachReduceOp.cu: one partial result per chunk of the largest tensor, for every tensor."""
    tensors = call.get("self")
    chunks = max(-(-tensor.numel() // _FOREACH_NORM_CHUNK) for tensor in tensors)
    size = max(SUM_BYTES, max(tensor.element_size() for tensor in tensors))
    return (*makes(len(call.outputs)), Take("foreach_norm.partial", len(tensors) * chunks * size))


PLANNERS: Final[dict[str, Planner]] = {
    "sum": _sum,
    "nansum": _sum,
    "mean": _sum,
    "prod": _sum,
    "linalg_vector_norm": _sum,
    "norm": _sum,
    "amax": _extreme,
    "amin": _extreme,
    "max": _extreme,
    "min": _extreme,
    "argmax": _index,
    "argmin": _index,
    "any": _truth,
    "all": _truth,
    "aminmax": _both,
    "var": _variance,
    "std": _variance,
    "var_mean": _variance,
    "std_mean": _variance,
    "logsumexp": _log_sum_exp,
    "mse_loss": _elementwise_loss,
    "smooth_l1_loss": _elementwise_loss,
    "huber_loss": _elementwise_loss,
    "binary_cross_entropy": _cross_entropy_of_probabilities,
    "binary_cross_entropy_with_logits": _cross_entropy_with_logits,
    "_foreach_norm": _foreach_norm,
}
