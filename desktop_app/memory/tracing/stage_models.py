"""Models without values: their parameters and buffers put elsewhere, with ties, marks and memory formats kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Make = Callable[[torch.Tensor], torch.Tensor]


def replace_tensors(model: nn.Module, make: Make) -> None:
    """Put ``make(tensor)`` in place of every parameter and buffer; one that is there twice stays one.

    A tensor that ``make`` gives back is left as it is. Optimizers and hooks on the old parameters do not follow.
    """
    made: dict[int, tuple[Any, Any]] = {}  # by id of the old one, which is kept alive meanwhile
    for module in model.modules():
        for name, parameter in module._parameters.items():  # noqa: SLF001 - as nn.Module._apply does
            if parameter is not None:
                module._parameters[name] = _once(made, parameter, lambda old: _parameter(old, make))  # noqa: SLF001
        for name, buffer in module._buffers.items():  # noqa: SLF001
            if buffer is not None:
                module._buffers[name] = _once(made, buffer, make)  # noqa: SLF001


def _once(made: dict[int, tuple[Any, Any]], old: Any, make: Callable[[Any], Any]) -> Any:
    known = made.get(id(old))
    if known is None:
        known = made[id(old)] = (old, make(old))
    return known[1]


def _parameter(old: nn.Parameter, make: Make) -> nn.Parameter:
    data = old.detach()
    new_data = make(data)
    if new_data is data:
        return old
    new = nn.Parameter(new_data, requires_grad=old.requires_grad)
    for name, value in old.__dict__.items():  # marks that libraries leave, as _no_weight_decay
        new.__dict__.setdefault(name, value)
    if old.grad is not None:
        new.grad = make(old.grad)
    return new


def empty_as(tensor: torch.Tensor, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A meta tensor of the same layout."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype or tensor.dtype, device="meta")
