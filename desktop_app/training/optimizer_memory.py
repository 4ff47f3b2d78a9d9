"""What the first call of an optimizer's ``step`` will allocate, known before it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

    from desktop_app.core.steps import MemoryStats

# The caching allocator rounds every block up to this (c10/core/AllocatorConfig.h: kMinBlockSize).
_ROUND_BYTES: Final = 512


class Allocator(Protocol):
    """Where the optimizer's tensors lie; every ``TrainingDevice`` is one."""

    def stats(self) -> MemoryStats | None: ...


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


def looped_step_demand(optimizer: Optimizer) -> StepDemand | None:
    """The same, if it updated one tensor after the other; ``None`` for optimizers that are not known."""
    switched = [group for group in optimizer.param_groups if group.get("foreach")]
    for group in switched:
        group["foreach"] = False
    looped = first_step_demand(optimizer)
    for group in switched:
        group["foreach"] = True
    return looped


def looping_saves(optimizer: Optimizer) -> bool:
    """Whether updating one tensor after the other needs less at its peak than all at once: not where one tensor is
    most of the model. True for optimizers that are not known."""
    together, looped = first_step_demand(optimizer), looped_step_demand(optimizer)
    if together is None or looped is None:
        return any(group.get("foreach") for group in optimizer.param_groups)
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


class Rehearsal:
    """``rehearse_step`` where it can tell something new: not while the allocator is as it was before one that got all
    from the cache, since the update that follows is then served as the last one was. Runs in: trainer thread."""

    def __init__(self, device: Allocator) -> None:
        self._device = device
        self._served: MemoryStats | None = None  # before the last rehearsal, if that needed nothing of the driver

    def make(self, optimizer: Optimizer) -> None:
        """Before an update, with all gradients there. Raises what a full card raises."""
        before = self._device.stats()
        if before is not None and self._served is not None and _is_same(before, self._served):
            return
        self._served = None
        rehearse_step(optimizer)
        after = self._device.stats()
        if before is not None and after is not None and after.reserved_peak_bytes == before.reserved_peak_bytes:
            self._served = before if after.reserved_bytes == before.reserved_bytes else None

    def forget(self) -> None:
        """The update is another one from now on."""
        self._served = None


def _is_same(now: MemoryStats, before: MemoryStats) -> bool:
    """The same steps have led to the same blocks: equal in all that the allocator counts, peaks of the step too."""
    return (
        now.live_bytes == before.live_bytes
        and now.live_peak_bytes == before.live_peak_bytes
        and now.reserved_bytes == before.reserved_bytes
        and now.reserved_peak_bytes == before.reserved_peak_bytes
        and now.idle_split_bytes == before.idle_split_bytes
        and now.alloc_retries == before.alloc_retries
    )


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
