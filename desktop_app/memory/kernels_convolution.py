"""Convolutions as cuDNN runs them: copies into its layout, and one workspace per kernel."""

from __future__ import annotations

from typing import Any, Final

import torch

from desktop_app.memory.card_limits import CUDNN_OP
from desktop_app.memory.convolutions import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, ConvolutionCall, workspace_bytes
from desktop_app.memory.kernels_plan import Give, Kernels, Make, OpCall, Plan, Planner, Step, Take, bytes_of
from desktop_app.memory.kernels_reduce import staging, sum_bytes

_FORMATS: Final = {4: torch.channels_last, 5: torch.channels_last_3d}


def _forward(call: OpCall, kernels: Kernels) -> Plan:
    """The result, copies of what is laid out otherwise, the workspace. A bias is added in place."""
    inputs, weight, output = call.get("input", call.get("self")), call.get("weight"), call.outputs[0]
    layout = _layout(inputs, weight)
    steps: list[Step] = [Make(0)]
    steps += [Take("clone", bytes_of(tensor)) for tensor in (inputs, weight) if _differs(tensor, layout)]
    steps += _workspace(describe(call, FORWARD, inputs, weight, output), kernels)
    return tuple(steps)


def _backward(call: OpCall, kernels: Kernels) -> Plan:
    """Gradients of the input, of the weight, and of the bias by a sum over everything but the channels."""
    grad, inputs, weight = call.get("grad_output"), call.get("input"), call.get("weight")
    wants: Any = call.get("output_mask")
    layout = _layout(inputs, weight)
    steps: list[Step] = [Take("clone", bytes_of(grad))] if _differs(grad, layout) else []
    for output, direction, other in ((0, INPUT_GRADIENT, weight), (1, WEIGHT_GRADIENT, inputs)):
        if not wants[output]:
            continue
        takes = sum(isinstance(step, Take) for step in steps)
        steps.append(Make(output))
        inner: list[Step] = [Take("clone", bytes_of(other))] if _differs(other, layout) else []
        inner += _workspace(describe(call, direction, inputs, weight, grad), kernels)
        steps += inner
        steps += [Give(takes + index) for index in range(len(inner))]
    if wants[2]:
        kept = 1  # the channels
        steps.append(Make(2))
        steps += staging(grad, [dim for dim in range(grad.dim()) if dim != kept], sum_bytes(grad.dtype), kernels)
    return tuple(steps)


def describe(
    call: OpCall, direction: str, inputs: torch.Tensor, weight: torch.Tensor, output: torch.Tensor
) -> ConvolutionCall:
    """One kernel's call. For a transposed convolution, in and out are those of the op, not of cuDNN."""
    dims = inputs.dim() - 2
    return ConvolutionCall(
        direction=direction,
        dtype=str(inputs.dtype).removeprefix("torch."),
        batch=inputs.shape[0],
        in_channels=inputs.shape[1],
        out_channels=output.shape[1],
        in_size=tuple(inputs.shape[2:]),
        out_size=tuple(output.shape[2:]),
        kernel=tuple(weight.shape[2:]),
        stride=_per_dim(call.get("stride"), dims),
        dilation=_per_dim(call.get("dilation"), dims),
        groups=int(call.get("groups", 1)),
        channels_last=_layout(inputs, weight) is not torch.contiguous_format,
        transposed=bool(call.get("transposed", False)),
    )


def _workspace(call: ConvolutionCall, kernels: Kernels) -> list[Step]:
    size_bytes = workspace_bytes(call, card=kernels.card)
    return [Take(CUDNN_OP, size_bytes, optional=True, convolution=call)]


def _per_dim(value: Any, dims: int) -> tuple[int, ...]:
    numbers = tuple(value) if value else (1,)
    return numbers * dims if len(numbers) == 1 else numbers


def _layout(inputs: torch.Tensor, weight: torch.Tensor) -> torch.memory_format:
    """cudnn_conv_suggest_memory_format: channels last as soon as one of the two is."""
    layout = _FORMATS.get(inputs.dim())
    if layout is not None and (_is_channels_last(inputs) or _is_channels_last(weight)):
        return layout
    return torch.contiguous_format


def _differs(tensor: torch.Tensor, layout: torch.memory_format) -> bool:
    return not tensor.is_contiguous(memory_format=layout)


def _is_channels_last(tensor: torch.Tensor) -> bool:
    """c10's is_channels_last_strides: where sizes of 1 leave it open, not."""
    sizes, strides = tensor.shape, tensor.stride()
    smallest = 0
    if strides[1] == 0:
        return False
    for dim in (1, *range(tensor.dim() - 1, 1, -1), 0):
        if sizes[dim] == 0 or strides[dim] < smallest:
            return False
        if dim == 0 and smallest == strides[1]:
            return False
        smallest = strides[dim] * max(1, sizes[dim])
    return True


PLANNERS: Final[dict[str, Planner]] = {
    "convolution": _forward,
    "_convolution": _forward,
    "convolution_overrideable": _forward,
    "cudnn_convolution": _forward,
    "convolution_backward": _backward,
    "convolution_backward_overrideable": _backward,
}
