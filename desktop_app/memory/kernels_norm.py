"""Temporaries inside the normalizations of CUDA.

From ATen/native/cuda: layer_norm_kernel.cu, group_norm_kernel.cu, Normalization.cu.
"""

from __future__ import annotations

from typing import Final

import torch

from desktop_app.memory.kernels_plan import Kernels, Make, OpCall, Plan, Planner, Step, Take, copied, makes
from desktop_app.memory.kernels_reduce import staging_of, sum_bytes

_FLOAT: Final = 4
_PARTIAL_SINCE: Final = (2, 8)  # weight gradients of tall inputs in two passes
_TALL: Final = 64 * 1024
_WARP: Final = 32
_ROWS_PER_BLOCK: Final = 32
_LARGEST_GRID: Final = 64 * 1024 // 2


def _layer_norm_backward(call: OpCall, kernels: Kernels) -> Plan | None:
    """Weight and bias gradients of tall and narrow inputs: partial sums by blocks of rows, then a sum of those."""
    grad, inputs = call.get("grad_out", call.get("grad_output")), call.get("input")
    shape = call.get("normalized_shape")
    columns = 1
    for size in shape:
        columns *= size
    rows = inputs.numel() // max(1, columns)
    wants = call.get("output_mask") or (True,) * len(call.outputs)
    copies = [tensor for tensor in (grad, inputs) if not tensor.is_contiguous()]
    steps: list[Step] = [step for tensor in copies for step in copied(tensor, wanted=True)]
    partial = kernels.release >= _PARTIAL_SINCE and rows > _TALL and columns // _WARP < kernels.sms // 2
    if not partial and not steps:
        return None
    if wants[0]:
        steps.append(Make(0))
    blocks = min(_LARGEST_GRID // -(-columns // _WARP), -(-rows // _ROWS_PER_BLOCK))
    weights = [index for index in range(1, len(call.outputs)) if wants[index]]
    for index in weights if partial else ():
        size = call.outputs[index].element_size()
        steps += [Take("empty", columns * size), Take("partial", blocks * columns * size)]
    for index in weights:
        steps.append(Make(index))
        if partial:
            bytes_each = sum_bytes(call.outputs[index].dtype)
            steps += staging_of((blocks, columns), (columns, 1), (0,), bytes_each, kernels)
    return tuple(steps)


def _group_norm(call: OpCall, kernels: Kernels) -> Plan:  # noqa: ARG001 - one signature for all
    """Scale and shift of every channel of every sample, in fp32."""
    samples = int(call.get("N")) * int(call.get("C"))
    return (*makes(3), Take("empty", samples * _FLOAT), Take("empty", samples * _FLOAT))


def _group_norm_backward(call: OpCall, kernels: Kernels) -> Plan:  # noqa: ARG001
    """Two sums and three coefficients per channel or group of every sample, in fp32."""
    samples, groups = int(call.get("N")) * int(call.get("C")), int(call.get("N")) * int(call.get("group"))
    made = tuple(Make(index) for index, output in enumerate(call.outputs) if isinstance(output, torch.Tensor))
    sizes = (samples, samples, samples, groups, groups)
    return (*made, *(Take("empty", size * _FLOAT) for size in sizes))


PLANNERS: Final[dict[str, Planner]] = {
    "native_layer_norm_backward": _layer_norm_backward,
    "_fused_rms_norm_backward": _layer_norm_backward,
    "native_group_norm": _group_norm,
    "native_group_norm_backward": _group_norm_backward,
}
