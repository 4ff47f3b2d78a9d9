"""A CUDA device that is not there: the memory a real CPU training would hold on it, and its out-of-memory errors."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, NoReturn, Self

import torch

from desktop_app.core.load import CardLoad
from desktop_app.core.steps import Category, MemoryStats, Phase
from desktop_app.memory.allocator import Block, CachingAllocator, ReplicaOutOfMemoryError
from desktop_app.memory.convolutions import ConvolutionCall
from desktop_app.memory.cuda_autocast import cuda_lowering
from desktop_app.memory.lowering import Lowering
from desktop_app.memory.oom_message import format_oom_message
from desktop_app.memory.overheads import CardSpec, ContextPrior
from desktop_app.memory.step_recording import LivingBlock, StepRecording
from desktop_app.memory.storage_tracker import StorageTracker
from desktop_app.memory.trace_data import TraceEvent

# What torch says when a driver call other than the allocator's finds no memory (cudaErrorMemoryAllocation).
_DRIVER_REFUSES: Final = "CUDA error: out of memory"
CATEGORIES: Final = tuple(Category)
_INDEX: Final = {category: index for index, category in enumerate(CATEGORIES)}


class _CardLedger:
    """Books storages in the allocator replica, counts them by owner, and says what torch says when it is full."""

    def __init__(self, card: CardSpec, *, outside_bytes: int, load: CardLoad | None, spills: bool) -> None:
        self.allocator: Final = CachingAllocator(total_bytes=card.total_bytes)
        self.others_bytes = 0
        self.outside_bytes = outside_bytes
        self.peak_counts = [0] * len(CATEGORIES)
        self._counts = [0] * len(CATEGORIES)
        self._owners: dict[Block, int] = {}
        self._peak_bytes = 0
        self._card: Final = card
        self._spill_bytes: Final = card.capacity_bytes if spills else 0
        self._load: Final = load
        self._reserved_bytes = -1
        self.report()

    def set_others(self, others_bytes: int) -> None:
        """What is left for the allocator never falls below nothing; what it holds it keeps."""
        self.others_bytes = others_bytes
        capacity_bytes = self._card.capacity_bytes + self._spill_bytes
        self.allocator.limit_bytes = max(0, capacity_bytes - self.outside_bytes - others_bytes)

    def hold_outside(self, size_bytes: int) -> bool:
        """More for this process outside the allocator; ``False``: the driver has no room for it."""
        others_bytes, outside_bytes = self.others_bytes, self.outside_bytes + size_bytes
        if self.allocator.reserved_bytes + outside_bytes + others_bytes > self._card.capacity_bytes + self._spill_bytes:
            return False
        self.outside_bytes = outside_bytes
        self.set_others(others_bytes)
        self.report()
        return True

    @property
    def spilled_bytes(self) -> int:
        """What of this process lies in the computer's RAM because the card is full."""
        held_bytes = self.allocator.reserved_bytes + self.outside_bytes + self.others_bytes
        return max(0, held_bytes - self._card.capacity_bytes) if self._spill_bytes else 0

    def allocate(
        self,
        size_bytes: int,
        *,
        category: Category,
        op: str,  # noqa: ARG002 - the trace wants to know, as with what follows
        module: str = "",  # noqa: ARG002
        convolution: ConvolutionCall | None = None,  # noqa: ARG002
    ) -> Block:
        refusal: ReplicaOutOfMemoryError | None = None
        try:
            block = self.allocator.allocate(size_bytes)
        except ReplicaOutOfMemoryError as error:
            refusal = error.with_traceback(None)
        if refusal is not None:  # outside the except block: a context would keep the frames and their tensors alive
            self._refuse(refusal)
        index = _INDEX[category]
        self._owners[block] = index
        self._counts[index] += block.size_bytes
        if self.allocator.live_bytes > self._peak_bytes:
            self._peak_bytes = self.allocator.live_bytes
            self.peak_counts = self._counts.copy()
        if self.allocator.reserved_bytes != self._reserved_bytes:
            self.report()
        return block

    def free(self, handle: Block) -> None:
        self._counts[self._owners.pop(handle)] -= handle.size_bytes
        self.allocator.free(handle)

    def move(self, handle: Block, *, category: Category, module: str | None = None) -> None:  # noqa: ARG002
        self._counts[self._owners[handle]] -= handle.size_bytes
        self._owners[handle] = index = _INDEX[category]
        self._counts[index] += handle.size_bytes

    def living(self) -> Iterator[tuple[Block, Category]]:
        """Everything that is allocated, with its owner."""
        return ((block, CATEGORIES[index]) for block, index in list(self._owners.items()))

    def reset_peaks(self) -> None:
        self.allocator.reset_peaks()
        self._peak_bytes = self.allocator.live_bytes
        self.peak_counts = self._counts.copy()

    def empty_cache(self) -> None:
        self.allocator.empty_cache()
        self.report()

    def report(self) -> None:
        """Tell the simulated card, when something has changed that it can see."""
        self._reserved_bytes = self.allocator.reserved_bytes
        if self._load is not None:
            self._load.set_memory(reserved_bytes=self._reserved_bytes, outside_bytes=self.outside_bytes)

    def leave(self) -> None:
        """The process has ended: nothing of it is on the card."""
        if self._load is not None:
            self._load.set_memory(reserved_bytes=0, outside_bytes=0)

    def _refuse(self, refusal: ReplicaOutOfMemoryError) -> NoReturn:
        self.report()
        process_bytes = self.allocator.reserved_bytes + self.outside_bytes
        message = format_oom_message(
            refusal.segment_bytes,
            total_bytes=self._card.total_bytes,
            free_bytes=max(0, self._card.capacity_bytes - process_bytes - self.others_bytes),
            allocated_bytes=self.allocator.live_bytes,
            reserved_bytes=self.allocator.reserved_bytes,
            process_bytes=process_bytes,
        )
        raise torch.OutOfMemoryError(message)


class SimulatedDevice:
    """A card's memory under a training that really runs on the CPU. Its tensors stay what they are.

    What the card holds is what CUDA would hold: every storage made inside ``scope()``, what was handed to ``place``,
    ``track_model`` and ``track_optimizer``, and the workspaces of the libraries. When it is full the op that asked
    raises ``torch.OutOfMemoryError`` in torch's words. ``seed`` 0 has the median context, others draw one.

    ``spills``: as Windows' driver does it, a full card is no error; as much again as it holds goes to RAM.

    Runs in: trainer thread; ``set_others`` may be called from any. ``load`` says when others hold more or less.
    """

    def __init__(
        self,
        card: CardSpec,
        *,
        others_bytes: int = 0,
        load: CardLoad | None = None,
        seed: int = 0,
        spills: bool = False,
    ) -> None:
        self.card: Final = card
        context_bytes = min(ContextPrior.of(card).draw(seed), card.capacity_bytes)
        self._ledger: Final = _CardLedger(card, outside_bytes=context_bytes, load=load, spills=spills)
        self._load: Final = load
        self._tracker: Final = StorageTracker(self._ledger, lowering=Lowering(card))
        self._closed = False
        self._model: weakref.ref[torch.nn.Module] | None = None
        self._wants_step = False
        self._recording: StepRecording | None = None
        self._recorded: tuple[TraceEvent, ...] | None = None
        self.set_others(others_bytes)
        if load is not None:
            load.watch_others(self.set_others)

    @property
    def outside_bytes(self) -> int:
        """What this process holds outside its allocator: the context, and what ``hold_outside`` has added."""
        return self._ledger.outside_bytes

    @property
    def spilled_share(self) -> float:
        """Share of what this process holds that lies in RAM because the card is full."""
        ledger = self._ledger
        return ledger.spilled_bytes / max(1, ledger.allocator.reserved_bytes + ledger.outside_bytes)

    def hold_outside(self, size_bytes: int) -> None:
        """Load a module, open a handle: memory that the caching allocator knows nothing of. Raises when it is full."""
        if not self._ledger.hold_outside(size_bytes):
            raise RuntimeError(_DRIVER_REFUSES)

    def empty_cache(self) -> None:
        """``torch.cuda.empty_cache``."""
        self._tracker.settle_frees()
        self._ledger.empty_cache()

    def scope(self) -> AbstractContextManager[object]:
        """Around forward, backward and optimizer: what they make is on the card. Not re-entrant."""
        return self._tracker

    @contextmanager
    def autocast(self, dtype: torch.dtype | None) -> Iterator[None]:
        """CUDA's mixed precision (``None``: none) for CPU tensors, where ``autocast("cpu")`` has other lists."""
        if dtype is None:
            yield
            return
        with cuda_lowering(dtype, capability=self.card.compute_capability):
            yield

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """``tensor.to("cuda")``: a tensor with a storage of its own, booked as input. Raises when the card is full."""
        whole = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
        copy = tensor if whole else tensor.clone()
        if not self._tracker.place(copy, category=Category.INPUTS, op="to") and copy.numel():
            copy = tensor.clone()
            self._tracker.place(copy, category=Category.INPUTS, op="to")
        return copy

    def phase(self, phase: Phase) -> None:
        """The training enters this phase."""
        before = self._tracker.phase
        if before is Phase.OPTIMIZER:
            self._tracker.sort_state()
        if self._recording is not None and before is Phase.ZERO and phase is not Phase.ZERO:
            self._finish_recording()
        if self._wants_step and phase is Phase.FORWARD and before not in (Phase.FORWARD, Phase.BACKWARD):
            self._begin_recording()
        if self._recording is not None:
            self._tracker.settle_frees()
            self._recording.enter(phase)
        self._tracker.phase = phase

    def record_step(self) -> None:
        """Write down the next full optimizer step. Costs that step a tenth of its tracking, and no other anything.

        Callable from any thread; ``recorded_step`` has the events when the step is over.
        """
        self._recorded = None
        self._wants_step = True

    def recorded_step(self) -> tuple[TraceEvent, ...] | None:
        """What lived before the recorded step, as events of step 0, then what it did. ``None`` until it is over."""
        return self._recorded

    def _begin_recording(self) -> None:
        self._wants_step = False
        model = self._model() if self._model is not None else None
        if model is not None:
            self._tracker.watch_modules(model)
        storages = {ref.handle: ref for ref in self._tracker.living()}
        living = [
            LivingBlock(block, block.size_bytes, category, "", "")
            if (ref := storages.get(block)) is None
            else LivingBlock(block, ref.size_bytes, category, ref.op, ref.module)
            for block, category in self._ledger.living()
        ]
        self._recording = StepRecording(self._ledger, living)
        self._tracker.ledger = self._recording

    def _finish_recording(self) -> None:
        recording = self._recording
        self._leave_recording()
        if recording is not None:
            self._recorded = recording.finish()

    def _leave_recording(self) -> None:
        """Also where the step came to no end: nothing of it is left behind."""
        self._tracker.settle_frees()
        self._tracker.ledger = self._ledger
        self._tracker.leave_modules()
        self._recording = None

    def track_model(self, model: torch.nn.Module) -> None:
        """``model.to("cuda")``. Raises when the card is full."""
        self._model = weakref.ref(model)
        self._tracker.track_model(model)

    def track_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """State that is there already goes to the card; what it makes later is recognised as its state."""
        self._tracker.track_optimizer(optimizer)

    def stats(self) -> MemoryStats:
        """The allocator now, with the peaks since ``reset_peaks``."""
        self._tracker.settle_frees()
        allocator = self._ledger.allocator
        return MemoryStats(
            live_bytes=allocator.live_bytes,
            live_peak_bytes=allocator.live_peak_bytes,
            reserved_bytes=allocator.reserved_bytes,
            reserved_peak_bytes=allocator.reserved_peak_bytes,
            idle_split_bytes=allocator.idle_split_bytes,
            returnable_bytes=allocator.returnable_bytes,
            alloc_retries=allocator.alloc_retries,
            outside_bytes=self.outside_bytes,
            peak_categories=dict(zip(CATEGORIES, self._ledger.peak_counts, strict=True)),
        )

    def reset_peaks(self) -> None:
        """``torch.cuda.reset_peak_memory_stats``."""
        self._tracker.settle_frees()
        self._ledger.reset_peaks()

    def set_others(self, others_bytes: int) -> None:
        """Other processes hold this much now: the allocator's next segment must fit in what they leave."""
        if others_bytes < 0:
            raise ValueError(f"others_bytes must not be negative, got {others_bytes}")
        self._ledger.set_others(others_bytes)

    def release(self) -> None:
        """After an out-of-memory error, outside its ``except``: collect, and give the cache back to the driver.

        cuBLAS's workspaces too: they stay for the life of the process where they were first needed, in the midst of a
        full card, and keep whole segments from going back.
        """
        gc.collect()
        self._leave_recording()
        self._tracker.settle_frees()
        self._tracker.clear_cublas()
        self._ledger.empty_cache()

    def close(self) -> None:
        """The process leaves the card. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._load is not None:
            self._load.watch_others(None)
        self._tracker.close()
        self._ledger.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
