"""What the first call of an optimizer's ``step`` will allocate, known before it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

# The caching allocator rounds every block up to this (c10/core/AllocatorConfig.h: kMinBlockSize).
_ROUND_BYTES: Final = 512


@dataclass(frozen=True, slots=True)
class StepDemand:
    """Bytes of one optimizer step on the device: state made in it that stays, and temporaries at its peak."""

    state_bytes: int
    temporary_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.state_bytes + self.temporary_bytes


def first_step_demand(optimizer: Optimizer) -> StepDemand | None:
    """State missing so far, and temporaries, of Adam, AdamW and SGD; ``None`` for other optimizers.

    Read from torch 2.13's ``optim/adam.py`` and ``optim/sgd.py``: Adam keeps two tensors like each parameter (its step
    count stays on the CPU unless capturable or fused), SGD one if it has momentum. Foreach makes one more copy of all
    parameters (the root of the second moment, or gradient plus decay, never both at once); the loop makes two of
    the largest.
    """
    import torch

    if not isinstance(optimizer, torch.optim.Adam | torch.optim.AdamW | torch.optim.SGD):
        return None
    groups = [_group_demand(optimizer, group) for group in optimizer.param_groups]
    # Groups are updated one after the other: their temporaries never meet.
    return StepDemand(sum(group.state_bytes for group in groups), max(group.temporary_bytes for group in groups))


def looping_saves(optimizer: Optimizer) -> bool:
    """Whether updating one tensor after the other needs less at its peak than all at once: not where one tensor is
    most of the model. True for optimizers that are not known."""
    together = first_step_demand(optimizer)
    switched = [group for group in optimizer.param_groups if group.get("foreach")]
    if together is None or not switched:
        return bool(switched)
    for group in switched:
        group["foreach"] = False
    looped = first_step_demand(optimizer)
    for group in switched:
        group["foreach"] = True
    assert looped is not None
    return looped.temporary_bytes < together.temporary_bytes


def rehearse_step(optimizer: Optimizer) -> None:
    """Ask the device for what ``step`` will ask it for, in the same order, and let go of it.

    An update that runs out of memory half-way leaves moments and parameters that belong to different steps. After this
    its blocks are in the cache; a device that is full says so here, where nothing has been changed yet. Nothing for
    optimizers that ``first_step_demand`` does not know.
    """
    import torch

    if not isinstance(optimizer, torch.optim.Adam | torch.optim.AdamW | torch.optim.SGD):
        return
    state: list[Tensor] = []
    for group in optimizer.param_groups:
        parameters = [p for p in cast("list[Tensor]", group["params"]) if p.grad is not None]
        state += _missing_state(optimizer, group, parameters)
        _rehearse_temporaries(group, parameters)


def state_ballast(optimizer: Optimizer) -> list[Tensor]:
    """Tensors like the state that the first update will make. Held until then, they show in the first step what later
    ones need, and keep a place for it that lies not among the activations. Empty for optimizers that are not known."""
    import torch

    if not isinstance(optimizer, torch.optim.Adam | torch.optim.AdamW | torch.optim.SGD):
        return []
    return [
        tensor
        for group in optimizer.param_groups
        for tensor in _missing_state(optimizer, group, [p for p in group["params"] if p.requires_grad])
    ]


def _missing_state(optimizer: Optimizer, group: Mapping[str, object], parameters: list[Tensor]) -> list[Tensor]:
    import torch

    kept = 2 if "betas" in group else int(bool(group["momentum"]))
    return [torch.empty_like(p) for p in parameters if not optimizer.state.get(p) for _ in range(kept)]


def _rehearse_temporaries(group: Mapping[str, object], parameters: list[Tensor]) -> None:
    import torch

    sizes = [p.numel() * p.element_size() for p in parameters]
    if not sizes:
        return
    if group.get("foreach"):
        count = (_adam_temporaries if "betas" in group else _sgd_temporaries)(group, sizes) // sum(sizes)
        held = [torch.empty_like(p) for _ in range(count) for p in parameters]
    else:
        largest = parameters[sizes.index(max(sizes))]
        count = (_adam_temporaries if "betas" in group else _sgd_temporaries)(group, sizes) // max(sizes)
        held = [torch.empty_like(largest) for _ in range(count)]
    held.clear()


def _group_demand(optimizer: Optimizer, group: Mapping[str, object]) -> StepDemand:
    parameters = [p for p in cast("list[Tensor]", group["params"]) if p.requires_grad]
    sizes = [_rounded(p.numel() * p.element_size()) for p in parameters]
    missing = sum(size for p, size in zip(parameters, sizes, strict=True) if not optimizer.state.get(p))
    if "betas" in group:
        on_device = bool(group.get("capturable") or group.get("fused"))
        counters = sum(not optimizer.state.get(p) for p in parameters) * _ROUND_BYTES * on_device
        return StepDemand(2 * missing + counters, _adam_temporaries(group, sizes))
    keeps_momentum = bool(group["momentum"])
    return StepDemand(missing if keeps_momentum else 0, _sgd_temporaries(group, sizes))


def _adam_temporaries(group: Mapping[str, object], sizes: list[int]) -> int:
    if group.get("fused"):
        return 0
    if group.get("foreach"):
        return sum(sizes)
    decayed = bool(group["weight_decay"]) and not group.get("decoupled_weight_decay")
    return (3 if decayed else 2) * max(sizes, default=0)


def _sgd_temporaries(group: Mapping[str, object], sizes: list[int]) -> int:
    if group.get("fused") or not group["weight_decay"]:
        return 0
    return sum(sizes) if group.get("foreach") else max(sizes, default=0)


def _rounded(size_bytes: int) -> int:
    return -(-size_bytes // _ROUND_BYTES) * _ROUND_BYTES
