"""Writes down what a training does to memory: the ledger of a trace."""

from __future__ import annotations

from desktop_app.core.steps import Category, Phase
from desktop_app.memory.convolutions import ConvolutionCall
from desktop_app.memory.trace_data import TraceEvent


class TraceRecorder:
    """A ledger that writes events instead of memory. The loop sets ``phase`` and ``step``."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []
        self.convolutions: list[ConvolutionCall] = []
        self.step = 0
        self.phase = Phase.BUILD
        self._categories: list[Category] = []  # by key, the last one known
        self._modules: list[str] = []
        self._known: dict[ConvolutionCall, int] = {}

    def allocate(
        self,
        size_bytes: int,
        *,
        category: Category,
        op: str,
        module: str = "",
        convolution: ConvolutionCall | None = None,
    ) -> int:
        self._categories.append(category)
        self._modules.append(module)
        key = len(self._categories)
        call = -1
        if convolution is not None:
            call = self._known.setdefault(convolution, len(self.convolutions))
            if call == len(self.convolutions):
                self.convolutions.append(convolution)
        self.events.append(TraceEvent(key, size_bytes, op, self.phase, self.step, category, module, call))
        return key

    def free(self, handle: int) -> None:
        self.events.append(TraceEvent(-handle, 0, "", self.phase, self.step, self._categories[handle - 1]))

    def move(self, handle: int, *, category: Category, module: str | None = None) -> None:
        self._categories[handle - 1] = category
        if module is not None:
            self._modules[handle - 1] = module

    def finish(self) -> tuple[TraceEvent, ...]:
        """All events, each with the owner its storage ended with."""
        categories, modules = self._categories, self._modules
        return tuple(
            TraceEvent(key, size_bytes, op, phase, step, categories[abs(key) - 1], modules[abs(key) - 1], call)
            for key, size_bytes, op, phase, step, _, _, call in self.events  # ``_replace`` takes four times as long
        )
