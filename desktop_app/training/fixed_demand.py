"""What a step of a training holds whatever its batch: parameters, gradients, the optimizer's state. Needs torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from desktop_app.core.steps import Category, MemoryStats
from desktop_app.memory.oom_reading import read_oom
from desktop_app.training.look_ahead import block_bytes, state_bytes
from desktop_app.training.optimizer_memory import first_step_demand, looped_step_demand

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

# Messages round what is free to two decimals: by 5 MiB at most where it is GiB.
_ROUNDED: Final = 0.005


@dataclass(frozen=True, slots=True)
class FixedDemand:
    """Bytes in blocks of the allocator, as they are live together at the peak of an update.

    ``temporaries_bytes``: of an update made tensor by tensor where that needs less. Less than all of this cannot do.
    """

    parameters_bytes: int  # and buffers
    gradients_bytes: int
    state_bytes: int
    temporaries_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.parameters_bytes + self.gradients_bytes + self.state_bytes + self.temporaries_bytes

    @property
    def owners(self) -> Mapping[Category, int]:
        return {
            Category.PARAMETERS: self.parameters_bytes,
            Category.GRADIENTS: self.gradients_bytes,
            Category.OPTIMIZER_STATE: self.state_bytes,
            Category.TEMPORARIES: self.temporaries_bytes,
        }


def fixed_demand(model: nn.Module, optimizer: Optimizer) -> FixedDemand:
    """Of an optimizer that is not known: its state as far as it is there."""
    own = state_bytes(model, None)
    there = state_bytes(model, {"state": optimizer.state}) - own
    gradients = sum(block_bytes(p) for group in optimizer.param_groups for p in group["params"] if p.requires_grad)
    whole, looped = first_step_demand(optimizer), looped_step_demand(optimizer)
    if whole is None or looped is None:
        return FixedDemand(own, gradients, there, 0)
    temporaries = min(whole.temporary_bytes, looped.temporary_bytes)
    return FixedDemand(own, gradients, there + whole.state_bytes, temporaries)


def allocator_room(message: str, memory: MemoryStats | None) -> int | None:
    """What the allocator had at most when it failed with ``message``: its own, and what the card had free. Rounded up
    by as much as the message may have rounded; ``None`` where it does not say."""
    reading = read_oom(message)
    if memory is None or reading is None or reading.free_bytes is None:
        return None
    room = memory.reserved_bytes + round(reading.free_bytes * (1 + _ROUNDED))
    return room if reading.allowed_bytes is None else min(room, reading.allowed_bytes)
