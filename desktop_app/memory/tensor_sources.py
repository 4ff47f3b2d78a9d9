"""Where a training keeps its tensors: in a batch, a model, an optimizer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of a batch or an argument list: in tuples, lists, mappings and dataclasses."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, Mapping):
        yield from tensors_in(tuple(value.values()))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from tensors_in(tuple(getattr(value, field.name) for field in dataclasses.fields(value)))


def storage_of(tensor: torch.Tensor) -> torch.UntypedStorage:
    """Where a tensor lies; of one that is shared out among cards (``DTensor``) the part on this one."""
    storage: torch.UntypedStorage = getattr(tensor, "_local_tensor", tensor).untyped_storage()
    return storage


def moved_tensors(model: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Parameters and buffers in the order in which ``model.to(device)`` moves them."""
    for child in model.children():
        yield from moved_tensors(child)
    yield from model.parameters(recurse=False)
    yield from model.buffers(recurse=False)


def state_of(optimizer: torch.optim.Optimizer) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Parameters with their state on the card: step counts of optimizers neither fused nor capturable do not lie there.

    State may be wrapped in a tensor of several, as that of 8-bit optimizers is.
    """
    counts_on_card = any(group.get("fused") or group.get("capturable") for group in optimizer.param_groups)
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if name != "step" or counts_on_card:
                for tensor in tensors_in(value):
                    yield parameter, tensor


def state_tensors(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    """State that lies on the card."""
    for _, tensor in state_of(optimizer):
        yield tensor


def state_size(optimizer: torch.optim.Optimizer) -> int:
    """How many pieces of state there are: it grows in the first step and then no more."""
    return sum(len(state) for state in optimizer.state.values())
