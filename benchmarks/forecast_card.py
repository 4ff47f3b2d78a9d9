"""One training on one card whose allocator is the replica: real steps in, rows of a recorded run out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from forecast_shapes import PHASES, Shape, Work

from desktop_app.core.steps import Phase
from desktop_app.core.units import MIB
from desktop_app.forecast.trace_rows import TraceRow
from desktop_app.memory.allocator import Block, CachingAllocator, ReplicaOutOfMemoryError

__all__ = ["Block", "Footprint", "RanOutError", "ReplicaOutOfMemoryError", "Rig", "Setup", "footprint"]

_SAME_STEPS: Final = 2  # alike in a row, after which a third of the same size will be alike too
_BASIC: Final = dict.fromkeys(("reserved_bytes", "returnable_bytes", "outside_bytes"))


@dataclass(frozen=True, slots=True)
class Setup:
    """A training before anything happens. ``size`` is the usual micro-batch on the shape's axis."""

    shape: Shape
    size: float
    step_s: float
    context_bytes: int
    others_bytes: int
    capacity_bytes: int
    total_steps: int | None = None  # told to the forecaster
    steps_per_epoch: int | None = None
    basic: bool = False  # rows have the columns of every trace and no others
    spills: bool = False


@dataclass(frozen=True, slots=True)
class Footprint:
    """What steady steps of one size take in an allocator without limit."""

    live_bytes: int
    live_peak_bytes: int
    reserved_peak_bytes: int
    before_optimizer_bytes: int  # reserved when the first optimizer step begins
    optimizer_live_bytes: int  # live in that call, its demand included


class RanOutError(Exception):
    """Something else than the allocator has run out: the computer, or what lies beside the allocator."""


class Rig:
    """Carries out steps and other phases, and writes a row for each. Raises ``ReplicaOutOfMemoryError`` as they do."""

    def __init__(self, setup: Setup, rng: np.random.Generator) -> None:
        self.setup: Final = setup
        self.rng: Final = rng
        self.allocator = CachingAllocator(limit_bytes=None)
        self.rows: list[TraceRow] = []
        self.t_s = 0.0
        self.step = 0
        self.others_bytes = setup.others_bytes
        self.outside_bytes = setup.context_bytes
        self.host: dict[str, int] = {}  # columns about the computer, for every row
        self.slow = 1.0  # factor on the time of steps
        self.spilling = False  # the driver moves memory instead of refusing it
        self.empties_cache = False  # between steps, as some loops do
        self._persistent: list[Block] = []
        self._has_state = False
        self._alike = 0
        self._last: tuple[float, int, int, int, int] | None = None
        self._pace = setup.step_s

    # --- what happens --------------------------------------------------------------------------------------------

    def build(self, *, event: str = "") -> None:
        """The model comes onto the card."""
        self.set_limit()
        if self.setup.total_steps or self.setup.steps_per_epoch:
            parts = [f"total_steps={self.setup.total_steps}"] if self.setup.total_steps else []
            parts += [f"steps_per_epoch={self.setup.steps_per_epoch}"] if self.setup.steps_per_epoch else []
            event = ";".join(filter(None, (event, f"run:{','.join(parts)}")))
        for size in self.setup.shape.parameters_bytes:
            self._persistent.append(self.allocator.allocate(size))
        self.note(Phase.BUILD, event=event)

    def train(self, size: float | None = None, *, kept: tuple[int, ...] = (), announce: bool = False) -> list[Block]:
        """One step. ``kept`` are blocks allocated during forward that outlive it; they are given back.

        ``announce``: a row says beforehand which batch comes.
        """
        size = self.setup.size if size is None else size
        if announce:
            self.note(Phase.FORWARD, size=size)
        self.set_limit()
        self.allocator.reset_peaks()
        if self._alike >= _SAME_STEPS and not kept and self._last is not None and self._last[0] == size:
            self.allocator.live_peak_bytes, self.allocator.reserved_peak_bytes = self._last[2], self._last[3]
            held: list[Block] = []
        else:
            held = self._work(self.setup.shape.step, size, kept=kept)
        if self.empties_cache:
            self.allocator.empty_cache()
            self._alike = -1
        self._notice(size, kept)
        self.step += 1
        seconds = self._pace * self.slow * (0.4 + 0.6 * size / self.setup.size) * float(self.rng.lognormal(0.0, 0.04))
        self.t_s += seconds
        self._write(Phase.FORWARD, size=size, seconds=seconds)
        return held

    def hold(self, size_bytes: int) -> Block:
        """A block that stays, made between steps."""
        self._alike = 0
        self.set_limit()
        return self.allocator.allocate(size_bytes)

    def let_go(self, blocks: list[Block]) -> None:
        for block in blocks:
            self.allocator.free(block)
        if blocks:
            self._alike = 0

    def validate(
        self,
        batches: int,
        size: float,
        *,
        kept_per_batch: int = 0,
        graph: bool = False,
        demand: int | None = None,
        kept_after: int = 0,
    ) -> list[Block]:
        """``graph``: nobody said no_grad, so each batch costs what a forward pass of a step does."""
        self._alike = 0
        self.set_limit()
        self.allocator.reset_peaks()
        word = f"demand:bytes={demand};" if demand else ""
        self.note(Phase.VALIDATION, size=size, event=f"{word}progress:done=0,count={batches}")
        outputs: list[Block] = []
        work = self.setup.shape.step if graph else self.setup.shape.validation
        for done in range(1, batches + 1):
            self._forward_only(work, size, graph=graph)
            if kept_per_batch:
                outputs.append(self.allocator.allocate(kept_per_batch))
            self.t_s += 0.3 * self._pace
            if done < batches and (kept_per_batch or done == 1):
                self.note(Phase.VALIDATION, size=size, event=f"progress:done={done},count={batches}")
        self.let_go(outputs)
        kept = [self.allocator.allocate(kept_after)] if kept_after else []
        self.note(Phase.VALIDATION, event="phase_end")
        return kept

    def save(self, copy_bytes: int = 0, *, kept_after: int = 0, tell: bool = True) -> list[Block]:
        """``copy_bytes`` of state are copied on the card meanwhile; ``kept_after`` of them stay."""
        self._alike = 0
        self.set_limit()
        self.allocator.reset_peaks()
        event = f"demand:bytes={copy_bytes}" if copy_bytes and tell else ""
        self.note(Phase.SAVE, event=event)
        copies = [self.allocator.allocate(size) for size in pieces(copy_bytes)]
        self.t_s += 0.5
        self.let_go(copies)
        kept = [self.allocator.allocate(size) for size in pieces(kept_after)]
        self.note(Phase.SAVE, event="checkpoint_saved;phase_end")
        return kept

    def restart(self, *, to_step: int, event: str) -> None:
        """A new process: an empty allocator, the model built anew, steps counted from an earlier one."""
        self.allocator = CachingAllocator(limit_bytes=None)
        self._persistent, self._has_state, self._alike = [], False, 0
        self.t_s += 20.0
        self.step = to_step
        self.build(event=event)

    def unfreeze(self) -> None:
        """The next optimizer call makes its state (again): as if nothing had one yet."""
        self._has_state = False
        self._alike = 0

    @property
    def has_state(self) -> bool:
        return self._has_state

    def set_limit(self) -> None:
        """What the driver would give this process now."""
        if self.spilling:
            self.allocator.limit_bytes = None
            return
        left = self.setup.capacity_bytes - self.others_bytes - self.outside_bytes
        self.allocator.limit_bytes = max(left, 0)

    @property
    def device_bytes(self) -> int:
        return self.others_bytes + self.outside_bytes + self.allocator.reserved_bytes

    # --- rows ----------------------------------------------------------------------------------------------------

    def note(self, phase: Phase, *, size: float | None = None, event: str = "") -> None:
        """A row about a phase that begins, goes on or has ended."""
        self._write(phase, size=size, event=event, is_step=False)

    def telemetry(self, *, seconds: float = 1.0) -> None:
        """A row without a step: what the monitor sees once a second."""
        self.t_s += seconds
        self.rows.append(
            TraceRow(
                t_s=round(self.t_s, 3),
                device_used_bytes=min(self.device_bytes, self.setup.capacity_bytes),
                other_used_bytes=self.others_bytes,
                capacity_bytes=self.setup.capacity_bytes,
                spills=1 if self.setup.spills else None,
                **self.host,  # type: ignore[arg-type]
            )
        )

    def end_out_of_memory(self) -> None:
        self.rows.append(TraceRow(t_s=round(self.t_s, 3), step=self.step + 1, event="oom"))

    def _write(
        self, phase: Phase, *, size: float | None, event: str = "", is_step: bool = True, seconds: float | None = None
    ) -> None:
        allocator = self.allocator
        row = TraceRow(
            t_s=round(self.t_s, 3),
            step=self.step if is_step or phase is not Phase.FORWARD else self.step + 1,
            phase="step" if is_step else phase.value,
            live_after_bytes=allocator.live_bytes,
            live_peak_bytes=allocator.live_peak_bytes,
            reserved_peak_bytes=allocator.reserved_peak_bytes,
            idle_split_bytes=allocator.idle_split_bytes,
            alloc_retries=allocator.alloc_retries,
            device_used_bytes=min(self.device_bytes, self.setup.capacity_bytes),
            other_used_bytes=self.others_bytes,
            capacity_bytes=self.setup.capacity_bytes,
            step_s=seconds,
            event=event,
            reserved_bytes=allocator.reserved_bytes,
            returnable_bytes=allocator.returnable_bytes,
            outside_bytes=self.outside_bytes,
            spills=1 if self.setup.spills else None,
            **self.shape_columns(size),
            **self.host,
        )
        self.rows.append(replace(row, **_BASIC) if self.setup.basic else row)  # type: ignore[arg-type]

    def shape_columns(self, size: float | None) -> dict[str, int]:
        """The columns of a micro-batch of this size."""
        if size is None:
            return {}
        shape = self.setup.shape
        if shape.axis == "samples":
            return {"batch_samples": round(size)}
        return {"batch_samples": shape.samples, f"batch_{shape.axis}": round(size)}

    # --- the allocator -------------------------------------------------------------------------------------------

    def _work(self, work: Work, size: float, *, kept: tuple[int, ...]) -> list[Block]:
        sizes = self.setup.shape.sizes(work, size)
        blocks: list[Block | None] = [None] * len(sizes)
        held: list[Block] = []
        for phase in PHASES:
            order = work.order[phase]
            if phase is Phase.OPTIMIZER and not self._has_state:
                self._first_call()
            at = set(self.rng.integers(0, max(len(order), 1), len(kept)).tolist()) if phase is Phase.FORWARD else set()
            wanted = list(kept) if phase is Phase.FORWARD else []
            for place, key in enumerate(order):
                if key > 0:
                    blocks[key - 1] = self.allocator.allocate(sizes[key - 1])
                else:
                    block = blocks[-key - 1]
                    if block is not None:
                        self.allocator.free(block)
                if wanted and place in at:
                    held.append(self.allocator.allocate(wanted.pop()))
            held += [self.allocator.allocate(size_bytes) for size_bytes in wanted]
        return held

    def _first_call(self) -> None:
        """The optimizer makes its state. The trainer tells beforehand what that will take."""
        shape = self.setup.shape
        self.step += 1
        self.note(Phase.OPTIMIZER, event=f"demand:bytes={shape.optimizer_demand_bytes}")
        self.step -= 1
        for size_bytes in shape.state_bytes:
            self._persistent.append(self.allocator.allocate(size_bytes))
        self._has_state = True
        self._alike = -1

    def _forward_only(self, work: Work, size: float, *, graph: bool) -> None:
        sizes = self.setup.shape.sizes(work, size)
        blocks: dict[int, Block] = {}
        for key in work.order[Phase.FORWARD if graph else Phase.VALIDATION]:
            if key > 0:
                blocks[key] = self.allocator.allocate(sizes[key - 1])
            elif -key in blocks:
                self.allocator.free(blocks.pop(-key))
        for block in blocks.values():
            self.allocator.free(block)

    def _notice(self, size: float, kept: tuple[int, ...]) -> None:
        allocator = self.allocator
        now = (
            size,
            allocator.live_bytes,
            allocator.live_peak_bytes,
            allocator.reserved_peak_bytes,
            allocator.idle_split_bytes,
        )
        self._alike = self._alike + 1 if now == self._last and not kept else min(self._alike, 0)
        self._last = now


def pieces(size_bytes: int) -> list[int]:
    """A copy of a state, as tensors of it are: up to 32 MiB each."""
    whole, rest = divmod(size_bytes, 32 * MIB)
    return [32 * MIB] * whole + ([rest] if rest else [])


@lru_cache(maxsize=4096)
def footprint(shape: Shape, size: float) -> Footprint:
    """What a few steps of this size take when there is room without end."""
    setup = Setup(shape, size, 1.0, 0, 0, 1 << 50)
    rig = Rig(setup, np.random.default_rng(0))
    rig.build()
    rig.train()
    before = next(row for row in rig.rows if row.phase == Phase.OPTIMIZER.value)
    rig.train()
    rig.train()
    return Footprint(
        rig.allocator.live_bytes,
        rig.allocator.live_peak_bytes,
        rig.allocator.reserved_peak_bytes,
        before.reserved_bytes or 0,
        (before.live_after_bytes or 0) + shape.optimizer_demand_bytes,
    )
