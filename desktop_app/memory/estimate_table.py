"""A trace in columns, ready to be replayed many times with other sizes. Torch-free."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from desktop_app.core.estimates import Int32Array, Int64Array
from desktop_app.core.steps import Category, Phase
from desktop_app.memory.allocator_replay import ReplayPlan
from desktop_app.memory.allocator_settings import MIN_BLOCK_BYTES
from desktop_app.memory.card_limits import CUDNN_OP
from desktop_app.memory.convolutions import ConvolutionCall
from desktop_app.memory.trace_data import Trace, TraceEvent

CATEGORIES: Final = tuple(Category)
PHASES: Final = tuple(Phase)

BoolArray = np.ndarray[tuple[int], np.dtype[np.bool_]]

_PHASE_INDEX: Final = {phase: index for index, phase in enumerate(PHASES)}
_CATEGORY_INDEX: Final = {category: index for index, category in enumerate(CATEGORIES)}
# What is a temporary when it dies in the phase that made it. The others keep their owner however short they live.
_MAY_BE_TEMPORARY: Final = tuple(
    _CATEGORY_INDEX[category]
    for category in (Category.ACTIVATIONS, Category.OPTIMIZER_STATE, Category.WORKSPACE, Category.OTHER)
)
_KERNEL_MARK: Final = "."  # in the op of what a kernel takes for itself: "cudnn.workspace", "reduce.staging"


@dataclass(frozen=True, slots=True, eq=False)
class EventTable:
    """Columns of equal length, one row per event of a trace, in order.

    ``plan``: the order, for replays. ``sizes_bytes``: as asked for; 0 in frees. ``partners``: the row of
    the free of an allocation, of the allocation of a free; the number of rows for what is never freed. ``calls``: the
    convolution whose workspace the row is, else −1. ``runs``: a number per uninterrupted stretch of one phase.
    """

    plan: ReplayPlan
    sizes_bytes: Int64Array
    allocates: BoolArray
    partners: Int64Array
    phases: Int32Array  # position in PHASES
    runs: Int32Array
    steps: Int32Array
    categories: Int32Array  # position in CATEGORIES
    calls: Int32Array
    modules: tuple[str, ...]
    ops: tuple[str, ...]
    convolutions: tuple[ConvolutionCall, ...]

    @classmethod
    def of(cls, trace: Trace) -> EventTable:
        """Raises ``ValueError`` for a trace that frees what does not live."""
        return cls.from_events(trace.events, trace.convolutions)

    @classmethod
    def from_events(cls, events: Sequence[TraceEvent], convolutions: tuple[ConvolutionCall, ...] = ()) -> EventTable:
        keys = tuple(event.key for event in events)
        plan = ReplayPlan.of(keys, optional=[row for row, event in enumerate(events) if _is_optional(event)])
        partners = _partners(plan)
        phases = np.array([_PHASE_INDEX[event.phase] for event in events], dtype=np.int32)
        steps = np.array([event.step for event in events], dtype=np.int32)
        runs = _runs(phases, steps)
        ops = tuple(event.op for event in events)
        allocates = np.array(keys, dtype=np.int64) > 0
        kernels = np.array([is_of_kernel(event) for event in events], dtype=bool)
        return cls(
            plan=plan,
            sizes_bytes=np.array([event.size_bytes if event.key > 0 else 0 for event in events], dtype=np.int64),
            allocates=allocates,
            partners=partners,
            phases=phases,
            runs=runs,
            steps=steps,
            categories=_categories(events, allocates, partners, runs, kernels),
            calls=np.array([event.convolution if event.key > 0 else -1 for event in events], dtype=np.int32),
            modules=tuple(event.module for event in events),
            ops=ops,
            convolutions=convolutions,
        )

    def __len__(self) -> int:
        return self.plan.events

    def resized(self, sizes_bytes: Int64Array, convolutions: tuple[ConvolutionCall, ...]) -> EventTable:
        """The same ops at other sizes."""
        return dataclasses.replace(self, sizes_bytes=sizes_bytes, convolutions=convolutions)

    def least_live_bytes(self) -> int:
        """A room below which nothing helps: the live peak in whole blocks, without what a kernel can do without."""
        rounded = -(-self.sizes_bytes // MIN_BLOCK_BYTES) * MIN_BLOCK_BYTES
        rounded[list(self.plan.optional)] = 0
        frees = np.flatnonzero(~self.allocates)
        rounded[frees] = -rounded[self.partners[frees]]
        return int(rounded.cumsum().max(initial=0))


def is_of_kernel(event: TraceEvent) -> bool:
    """Whether the event allocates what a kernel takes for itself.

    A storage that an op makes in the optimizer step is a workspace too, of the optimizer, until its end is known.
    """
    if event.key < 0:
        return False
    return _KERNEL_MARK in event.op or (event.category is Category.WORKSPACE and event.phase is not Phase.OPTIMIZER)


def _is_optional(event: TraceEvent) -> bool:
    """Without room for its workspace cuDNN takes an algorithm that needs none."""
    return event.key > 0 and event.op == CUDNN_OP


def _partners(plan: ReplayPlan) -> Int64Array:
    partners = np.full(plan.events, plan.events, dtype=np.int64)
    partners[plan.freed], partners[plan.frees] = plan.frees, plan.freed
    return partners


def _runs(phases: Int32Array, steps: Int32Array) -> Int32Array:
    changes = np.ones(len(phases), dtype=np.int32)
    changes[1:] = (phases[1:] != phases[:-1]) | (steps[1:] != steps[:-1])
    runs: Int32Array = np.cumsum(changes, dtype=np.int32) - 1
    return runs


def _categories(
    events: Sequence[TraceEvent], allocates: BoolArray, partners: Int64Array, runs: Int32Array, kernels: BoolArray
) -> Int32Array:
    """Owners, with temporaries told apart: born and dead in one stretch of a phase, and not a kernel's workspace."""
    categories = np.array([_CATEGORY_INDEX[event.category] for event in events], dtype=np.int32)
    freed = np.flatnonzero(allocates & (partners < len(events)))
    workspace = kernels[freed] & (categories[freed] == _CATEGORY_INDEX[Category.WORKSPACE])
    temporary = (runs[freed] == runs[partners[freed]]) & np.isin(categories[freed], _MAY_BE_TEMPORARY) & ~workspace
    categories[freed[temporary]] = _CATEGORY_INDEX[Category.TEMPORARIES]
    frees = np.flatnonzero(~allocates)
    categories[frees] = categories[partners[frees]]
    return categories
