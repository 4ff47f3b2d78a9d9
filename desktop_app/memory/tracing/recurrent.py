"""LSTM, GRU and plain recurrent layers as cuDNN runs them: one call for all steps, with a reserve kept for backward.

Fake CUDA tensors have no such kernel and meta tensors take the layers apart, step by step. What cuDNN reserves is
not documented; assumed are the values that backward needs for every step, layer and direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import torch

from desktop_app.memory.tracing.stage_answers import patch

# Values per hidden unit and step: the gates, the cell, its tanh, the output; what enters a gate twice in a GRU.
_RESERVED: Final = {"lstm": 7, "gru": 6, "rnn_tanh": 2, "rnn_relu": 2}
_ARGUMENTS: Final = 8  # after the input, of a call without packed sequences
_GATES: Final = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@contextmanager
def cudnn_recurrent(device_type: str) -> Iterator[None]:
    """Inside, recurrent layers on this device are one op each; packed sequences are left to torch."""
    with ExitStack() as stack:
        for mode in _RESERVED:
            stock = getattr(torch._VF, mode)  # noqa: SLF001 - where nn.RNNBase finds its kernels
            patch(stack, torch._VF, mode, _replacement(mode, stock, device_type))  # noqa: SLF001
        yield


def _replacement(mode: str, stock: Callable[..., Any], device_type: str) -> Callable[..., Any]:
    def run(inputs: torch.Tensor, *args: Any) -> Any:
        if inputs.device.type != device_type or len(args) != _ARGUMENTS or not isinstance(args[2], bool):
            return stock(inputs, *args)
        states, weights, _, layers, dropout, train, bidirectional, batch_first = args
        hidden = states if isinstance(states, (tuple, list)) else (states,)
        if torch.is_autocast_enabled("cuda"):  # everything in 16 bit, the weights in one new buffer
            dtype = torch.get_autocast_dtype("cuda")
            inputs, hidden = inputs.to(dtype), [state.to(dtype) for state in hidden]
            weights = [weight.to(dtype) for weight in weights]
        shape = _Shape(mode, layers, 2 if bidirectional else 1, batch_first, train, dropout > 0)
        out: Any = _Recurrent.apply(shape, inputs, len(hidden), *hidden, *weights)  # type: ignore[no-untyped-call]
        return out

    return run


class _Shape:
    """What of a layer is not in its tensors."""

    def __init__(
        self,
        mode: str,
        layers: int,
        directions: int,
        batch_first: bool,  # noqa: FBT001 - torch's order
        train: bool,  # noqa: FBT001
        drops: bool,  # noqa: FBT001
    ) -> None:
        self.mode, self.layers, self.directions = mode, layers, directions
        self.batch_first, self.train, self.drops = batch_first, train, drops


class _Recurrent(torch.autograd.Function):
    """Makes what ``_cudnn_rnn`` and its backward make, in their order."""

    @staticmethod
    def forward(ctx: Any, shape: _Shape, inputs: torch.Tensor, states: int, *tensors: torch.Tensor) -> Any:
        hidden, weights = tensors[:states], tensors[states:]
        steps_first = not shape.batch_first
        steps, batch = inputs.shape[:2] if steps_first else (inputs.shape[1], inputs.shape[0])
        width = hidden[0].shape[-1]  # of the projection, where there is one
        cell = hidden[-1].shape[-1]
        if not steps_first:
            inputs = inputs.transpose(0, 1).contiguous()
        output = inputs.new_empty(steps, batch, width * shape.directions)
        last = [state.new_empty(state.shape) for state in hidden]
        per_step = steps * batch * cell * shape.directions
        workspace = inputs.new_empty(per_step * _GATES[shape.mode])
        del workspace
        values = per_step * shape.layers * _RESERVED[shape.mode]
        if shape.drops:
            values += per_step * (shape.layers - 1)
        reserve = inputs.new_empty(values if shape.train else 0)
        ctx.shape, ctx.states = shape, states
        ctx.save_for_backward(inputs, output, reserve, *hidden, *weights)
        return (output if steps_first else output.transpose(0, 1), *last)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        inputs, output, reserve, *tensors = ctx.saved_tensors
        shape, hidden, weights = ctx.shape, tensors[: ctx.states], tensors[ctx.states :]
        del gradients, output, reserve
        to_inputs = torch.empty_like(inputs)
        to_hidden = [torch.empty_like(state) for state in hidden]
        steps, batch = inputs.shape[:2]
        workspace = inputs.new_empty(steps * batch * hidden[-1].shape[-1] * shape.directions * _GATES[shape.mode])
        del workspace
        whole = inputs.new_empty(sum(weight.numel() for weight in weights))  # one buffer, as the weights are
        to_weights, offset = [], 0
        for weight in weights:
            to_weights.append(whole[offset : offset + weight.numel()].view(weight.shape))
            offset += weight.numel()
        if shape.batch_first:
            to_inputs = to_inputs.transpose(0, 1)
        return (None, to_inputs, None, *to_hidden, *to_weights)
