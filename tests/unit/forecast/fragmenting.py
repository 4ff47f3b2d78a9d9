"""Trainings in the allocator's replica whose long-lived blocks move into the midst of large segments, and others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from desktop_app.core.steps import MemoryStats, StepSample
from desktop_app.core.units import MIB
from desktop_app.memory.allocator import Block, CachingAllocator, ReplicaOutOfMemoryError

from .traces import step

LAYERS: Final = 12


class Training:
    """Steps of varied length. ``pins`` blocks live long; of these ``renewed`` are made anew in each forward pass."""

    def __init__(
        self, seed: int, *, limit_mib: float | None, pins: int = 240, renewed: int = 0, spread: float = 0.12
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.allocator = CachingAllocator(limit_bytes=None if limit_mib is None else int(limit_mib * MIB))
        self.renewed, self.spread = renewed, spread
        for size in self.rng.uniform(2, 40, 30):
            self.allocator.allocate(int(size * MIB))
        self.pins = [self._pin() for _ in range(pins)]
        self.oom_step: int | None = None

    def _pin(self) -> Block:
        return self.allocator.allocate(int(self.rng.uniform(1.1, 5.0) * MIB))

    def samples(self, count: int) -> Iterator[StepSample]:
        """Until the end, or until it runs out."""
        for number in range(1, count + 1):
            try:
                self._work()
            except ReplicaOutOfMemoryError:
                self.oom_step = number
                return
            yield replace(step(number, self._stats(), step_s=0.5))

    def _work(self) -> None:
        allocator, length = self.allocator, float(self.rng.lognormal(0.0, self.spread))
        allocator.reset_peaks()
        held: list[Block] = []
        new = set(self.rng.choice(LAYERS, self.renewed, replace=False).tolist())
        for layer in range(LAYERS):
            held.append(allocator.allocate(int(length * (80.0 if layer % 3 else 200.0) * MIB)))
            allocator.free(allocator.allocate(int(length * 60.0 * MIB)))
            if layer in new:
                self.pins.append(self._pin())
        for block in reversed(held):
            gradient = allocator.allocate(block.size_bytes)
            allocator.free(block)
            allocator.free(gradient)
        for _ in range(self.renewed):
            allocator.free(self.pins.pop(0))

    def _stats(self) -> MemoryStats:
        allocator = self.allocator
        return MemoryStats(
            live_bytes=allocator.live_bytes,
            live_peak_bytes=allocator.live_peak_bytes,
            reserved_bytes=allocator.reserved_bytes,
            reserved_peak_bytes=allocator.reserved_peak_bytes,
            idle_split_bytes=allocator.idle_split_bytes,
            returnable_bytes=allocator.returnable_bytes,
            alloc_retries=allocator.alloc_retries,
            outside_bytes=0,
            peak_categories={},
        )
