"""The events of one step of a training that is running, in the form of a trace: what the timeline shows live."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from desktop_app.core.steps import Category, Phase
from desktop_app.memory.convolutions import ConvolutionCall
from desktop_app.memory.storage_tracker import Ledger
from desktop_app.memory.trace_data import TraceEvent
from desktop_app.memory.trace_recorder import TraceRecorder

RECORDED_STEP: Final = 1  # what lives before it is of step 0


class LivingBlock(NamedTuple):
    """Memory that was there before the step began."""

    handle: Any
    size_bytes: int
    category: Category
    op: str
    module: str


class StepRecording:
    """A ledger that passes everything on to another and writes it down. The loop sets ``phase``."""

    def __init__(self, ledger: Ledger, living: Iterable[LivingBlock]) -> None:
        self.ledger: Final = ledger
        self._recorder: Final = TraceRecorder()
        self._keys: Final[dict[int, int]] = {}  # by the identity of a handle, while it lives
        for block in living:
            self._write(block.handle, block.size_bytes, block.category, block.op, block.module)
        self._recorder.step = RECORDED_STEP

    def enter(self, phase: Phase) -> None:
        """What comes belongs to this phase."""
        self._recorder.phase = phase

    def finish(self) -> tuple[TraceEvent, ...]:
        """What lived before, then every event of the step."""
        return self._recorder.finish()

    def allocate(
        self,
        size_bytes: int,
        *,
        category: Category,
        op: str,
        module: str = "",
        convolution: ConvolutionCall | None = None,
    ) -> Any:
        handle = self.ledger.allocate(size_bytes, category=category, op=op, module=module, convolution=convolution)
        self._write(handle, size_bytes, category, op, module)
        return handle

    def free(self, handle: Any) -> None:
        key = self._keys.pop(id(handle), None)
        if key is not None:
            self._recorder.free(key)
        self.ledger.free(handle)

    def move(self, handle: Any, *, category: Category, module: str | None = None) -> None:
        key = self._keys.get(id(handle))
        if key is not None:
            self._recorder.move(key, category=category, module=module)
        self.ledger.move(handle, category=category, module=module)

    def _write(self, handle: Any, size_bytes: int, category: Category, op: str, module: str) -> None:
        self._keys[id(handle)] = self._recorder.allocate(size_bytes, category=category, op=op, module=module)
