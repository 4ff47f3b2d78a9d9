"""A trace as data: what two steps of a training allocate and free. Free of torch and numpy, as the child is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from desktop_app.core.steps import Category, Phase
from desktop_app.memory.allocator_settings import MIN_BLOCK_BYTES
from desktop_app.memory.convolutions import ConvolutionCall


class TraceEvent(NamedTuple):
    """``key`` > 0 allocates ``size_bytes`` (as asked for, before rounding), −``key`` frees that storage.

    ``category`` is the owner the storage ended with; ``step`` counts from 1, 0 is before the first. ``module`` is the
    name in ``named_modules()`` of who made it, "" where nobody did. ``convolution`` is the position of the call in
    ``Trace.convolutions`` for a workspace of cuDNN (``op`` is ``CUDNN_OP``, ``size_bytes`` the median guess), else −1.
    """

    key: int
    size_bytes: int
    op: str
    phase: Phase
    step: int
    category: Category
    module: str = ""
    convolution: int = -1


def renamed(event: TraceEvent, key: int, *, step: int) -> TraceEvent:
    """The same event under another key and in another step. ``_replace`` takes four times as long."""
    return TraceEvent(
        key, event.size_bytes, event.op, event.phase, step, event.category, event.module, event.convolution
    )


class ModuleFacts(NamedTuple):
    """One module of the traced model, as ``named_modules()`` lists it."""

    path: str
    kind: str  # class name
    parameters: int  # of its own, without children


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Everything two steps and one validation batch do to the allocator."""

    events: tuple[TraceEvent, ...]
    batch_size: int
    convolutions: tuple[ConvolutionCall, ...] = ()
    modules: tuple[ModuleFacts, ...] = ()
    rung: str = "meta"  # "native", "shim", "meta"
    kernels_assumed: tuple[str, ...] = ()
    guesses: Mapping[str, int] = field(default_factory=dict)  # values made up, by op
    warnings: tuple[str, ...] = ()
    optimizer: str = ""  # the class that steps, in lower case: "adamw"
    torch_version: str = ""
    seconds: float = 0.0

    def optimizer_demand_bytes(self) -> int:
        """What the first optimizer step allocates on top of what is live before it: its state and temporaries."""
        live_bytes = peak_bytes = 0
        sizes: dict[int, int] = {}
        for event in self.events:
            if event.step == 1 and event.phase is Phase.OPTIMIZER:
                if event.key > 0:
                    sizes[event.key] = -(-event.size_bytes // MIN_BLOCK_BYTES) * MIN_BLOCK_BYTES
                    live_bytes += sizes[event.key]
                    peak_bytes = max(peak_bytes, live_bytes)
                else:
                    live_bytes -= sizes.get(-event.key, 0)
        return peak_bytes
