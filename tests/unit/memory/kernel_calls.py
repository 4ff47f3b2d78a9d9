"""Single ops on meta tensors, and what they take from the card beside their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from desktop_app.core.steps import Phase
from desktop_app.core.units import GIB
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.lowering import Lowering
from desktop_app.memory.storage_tracker import StorageTracker
from desktop_app.memory.trace_data import TraceEvent
from desktop_app.memory.trace_recorder import TraceRecorder

H100 = CardSpec("H100", 80 * GIB, 80 * GIB, "Hopper", (9, 0), 132)
A100 = CardSpec("A100", 40 * GIB, 40 * GIB, "Ampere", (8, 0), 108)
T4 = CardSpec("T4", 15 * GIB, 15 * GIB, "Turing", (7, 5), 40)


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, device="meta")


def record(
    work: Callable[[], Any], *, card: CardSpec = H100, phase: Phase = Phase.FORWARD, device: str = "meta"
) -> tuple[tuple[TraceEvent, ...], TraceRecorder]:
    """Events of this work up to the moment it is done; its result is alive then."""
    recorder = TraceRecorder()
    tracker = StorageTracker(recorder, lowering=Lowering(card), device_type=device)
    tracker.phase = phase
    with tracker:
        result = work()
    events = recorder.finish()
    tracker.close()
    del result
    return events, recorder


def made(work: Callable[[], Any], **options: Any) -> list[tuple[str, int]]:
    """Allocations in order: op and bytes."""
    events, _ = record(work, **options)
    return [(event.op, event.size_bytes) for event in events if event.key > 0]


def inside(work: Callable[[], Any], **options: Any) -> list[tuple[str, int]]:
    """Allocations that are gone when the work is done."""
    events, _ = record(work, **options)
    freed = {-event.key for event in events if event.key < 0}
    return [(event.op, event.size_bytes) for event in events if event.key in freed]


def peak_bytes(work: Callable[[], Any], **options: Any) -> int:
    """The most that is alive at once, without rounding."""
    events, _ = record(work, **options)
    sizes: dict[int, int] = {}
    live = peak = 0
    for event in events:
        if event.key > 0:
            sizes[event.key] = event.size_bytes
            live += event.size_bytes
            peak = max(peak, live)
        else:
            live -= sizes[-event.key]
    return peak
