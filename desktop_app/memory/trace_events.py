"""What an allocator makes of a trace, and the trace of one training at every batch size. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from desktop_app.core.steps import Category, Phase
from desktop_app.memory.allocator import Block, CachingAllocator, ReplicaOutOfMemoryError
from desktop_app.memory.card_limits import CUDNN_OP
from desktop_app.memory.estimate_family import TraceFamily
from desktop_app.memory.trace_data import ModuleFacts, Trace, TraceEvent

__all__ = [
    "ModuleFacts",
    "ReplayedPeaks",
    "Trace",
    "TraceEvent",
    "TraceFamily",
    "replay_peaks",
]


@dataclass(frozen=True, slots=True)
class ReplayedPeaks:
    """What a replay reached. ``out_of_memory`` ends it early. ``phases`` has the largest reserve while in a phase."""

    live_peak_bytes: int
    reserved_peak_bytes: int
    live_peak_index: int
    out_of_memory: bool
    phases: dict[Phase, int]
    categories: dict[Category, int]


def replay_peaks(
    events: Sequence[TraceEvent],
    sizes_bytes: Sequence[int] | None = None,
    *,
    limit_bytes: int | None = None,
    cudnn_scale: float = 1.0,
    detail: bool = False,
) -> ReplayedPeaks:
    """Replay in a fresh allocator. ``sizes_bytes`` replaces the events' own sizes; ``cudnn_scale`` the guess of cuDNN.

    ``detail`` fills ``categories`` (live bytes by owner at the live peak) and ``phases``, each as if the cache had
    been emptied before it: what that phase itself needs.
    """
    allocator = CachingAllocator(limit_bytes=limit_bytes)
    blocks: dict[int, Block] = {}
    peak_bytes, peak_index, out_of_memory = 0, -1, False
    for index, event in enumerate(events):
        if event.key < 0:
            block = blocks.pop(-event.key, None)
            if block is not None:
                allocator.free(block)
            continue
        size_bytes = event.size_bytes if sizes_bytes is None else sizes_bytes[index]
        guess = event.op == CUDNN_OP
        if guess:
            size_bytes = int(size_bytes * cudnn_scale)
            if not size_bytes:
                continue
        try:
            blocks[event.key] = allocator.allocate(size_bytes)
        except ReplicaOutOfMemoryError:
            if guess:  # cuDNN goes on with an algorithm that needs no workspace
                continue
            out_of_memory = True
            break
        if allocator.live_bytes > peak_bytes:
            peak_bytes, peak_index = allocator.live_bytes, index
    return ReplayedPeaks(
        live_peak_bytes=allocator.live_peak_bytes,
        reserved_peak_bytes=allocator.reserved_peak_bytes,
        live_peak_index=peak_index,
        out_of_memory=out_of_memory,
        phases=_phase_needs(events) if detail else {},
        categories=_owners_at(events, peak_index) if detail else {},
    )


def _phase_needs(events: Sequence[TraceEvent]) -> dict[Phase, int]:
    allocator = CachingAllocator()
    blocks: dict[int, Block] = {}
    needs: dict[Phase, int] = {}
    phase: Phase | None = None
    for event in events:
        if event.phase is not phase:
            phase = event.phase
            allocator.empty_cache()
            needs[phase] = max(needs.get(phase, 0), allocator.reserved_bytes)
        if event.key > 0:
            blocks[event.key] = allocator.allocate(event.size_bytes)
            needs[phase] = max(needs[phase], allocator.reserved_bytes)
        else:
            allocator.free(blocks.pop(-event.key))
    return needs


def _owners_at(events: Sequence[TraceEvent], index: int) -> dict[Category, int]:
    """Live bytes by owner after the event, in blocks of the allocator."""
    allocator = CachingAllocator()
    blocks: dict[int, tuple[Block, Category]] = {}
    for event in events[: index + 1]:
        if event.key > 0:
            blocks[event.key] = (allocator.allocate(event.size_bytes), event.category)
        else:
            allocator.free(blocks.pop(-event.key)[0])
    owners = dict.fromkeys(Category, 0)
    for block, category in blocks.values():
        owners[category] += block.size_bytes
    return owners
