"""Two optimizer steps of a training on meta tensors: what it allocates and frees, with no data and no GPU.

The same tracker and rules as on the simulated card, so that both tell the same story. Rules of its own, each for a
trap of a machine without a GPU: mixed precision and attention by ``cuda_autocast``; ``foreach`` switched on where
CUDA would (``_choose_foreach``); gradient clipping with the foreach kernels that meta tensors are refused. Not
traced: fused optimizers, ``GradScaler``, and autocast regions that the model opens itself.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import torch

from desktop_app.core.steps import Category, Phase
from desktop_app.memory.cuda_autocast import cuda_lowering
from desktop_app.memory.lowering import Kind, Lowering, OpRule, Transient
from desktop_app.memory.meta_kernels import META_KERNELS
from desktop_app.memory.overheads import CardSpec
from desktop_app.memory.storage_tracker import StorageTracker
from desktop_app.memory.tensor_sources import tensors_in
from desktop_app.memory.trace_errors import UntraceableError as UntraceableError
from desktop_app.memory.trace_events import Trace, TraceEvent

STEPS: Final = 2  # the fifth is like the second; the first alone is up to 26 % too low
_PRECISIONS: Final = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
_EPSILON: Final = 1e-6  # torch.nn.utils.clip_grad


@dataclass(frozen=True, eq=False)
class TraceSubject:
    """One training, ready to be traced. ``micro_step`` is forward only: model and batch to the loss.

    ``batch(batch_size, device)`` gives any nesting of tensors with the shapes and dtypes of a real micro-batch.
    The trace applies ``precision`` around ``micro_step``; it must not open autocast itself.
    """

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    batch: Callable[[int, torch.device], Any]
    micro_step: Callable[[torch.nn.Module, Any], torch.Tensor]
    accumulation: int = 1
    precision: str = "fp32"
    grad_clip: float | None = None
    validates: bool = True


class TraceTarget(Protocol):
    """What can be traced."""

    def build(self) -> TraceSubject:
        """A fresh subject; called inside ``torch.device("meta")``. Weights need no values."""


class _Recorder:
    """A ledger that writes events instead of memory."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []
        self.step = 0
        self.phase = Phase.BUILD
        self._categories: list[Category] = []  # by id, the last one known

    def allocate(self, size_bytes: int, *, category: Category, op: str) -> int:
        self._categories.append(category)
        handle = len(self._categories)
        self.events.append(TraceEvent(handle, size_bytes, op, self.phase, self.step, category))
        return handle

    def free(self, handle: int) -> None:
        self.events.append(TraceEvent(-handle, 0, "", self.phase, self.step, self._categories[handle - 1]))

    def move(self, handle: int, *, category: Category) -> None:
        self._categories[handle - 1] = category

    def borrow(self, transient: Transient, *, category: Category) -> None:
        handles = [self.allocate(size, category=category, op=transient.op) for size in transient.sizes_bytes]
        for handle in handles:
            self.free(handle)

    def finish(self) -> tuple[TraceEvent, ...]:
        """All events, each with the owner its storage ended with."""
        return tuple(event._replace(category=self._categories[abs(event.key) - 1]) for event in self.events)


class _MetaTracker(StorageTracker):  # type: ignore[no-untyped-call]
    """Stops at the first op that needs data, and spares in-place ops their work: nothing comes of it."""

    def _call(self, func: Any, rule: OpRule, args: Any, kwargs: Any) -> Any:
        if rule.in_place and self._is_here(args[0]):
            return args[0] if func._schema.returns else None  # noqa: SLF001
        try:
            if rule.kind is Kind.FRESH:
                return META_KERNELS.call(func, args, kwargs)
            return super()._call(func, rule, args, kwargs)
        except NotImplementedError as error:
            raise UntraceableError(str(func), str(error).splitlines()[0]) from None
        except RuntimeError:
            if torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags:
                raise UntraceableError(str(func)) from None
            raise

    def _is_here(self, value: Any) -> bool:
        first = value[0] if isinstance(value, (tuple, list)) and value else value
        return isinstance(first, torch.Tensor) and first.device.type == self._device_type


class _Run:
    """The loop of a training, reduced to what memory sees."""

    def __init__(self, subject: TraceSubject, *, batch_size: int, card: CardSpec | None) -> None:
        if subject.precision not in _PRECISIONS:
            raise ValueError(f"precision must be one of {sorted(_PRECISIONS)}, got {subject.precision!r}")
        self.recorder: Final = _Recorder()
        self._tracker: Final = _MetaTracker(self.recorder, lowering=Lowering(card), device_type="meta")
        self._subject: Final = subject
        self._batch_size: Final = batch_size
        self._capability: Final = card.compute_capability if card else None
        self._batch: Any = None
        self._loss: torch.Tensor | None = None

    def go(self) -> tuple[TraceEvent, ...]:
        subject = self._subject
        self._enter(Phase.BUILD)
        self._tracker.track_model(subject.model)
        self._tracker.track_optimizer(subject.optimizer)
        _choose_foreach(subject.optimizer)
        subject.model.train()
        for step in range(1, STEPS + 1):
            self.recorder.step = step
            for _ in range(subject.accumulation):
                self._micro_step()
            self._optimizer_step()
        if subject.validates:
            self._validate()
        return self.recorder.finish()

    def close(self) -> None:
        """Take the hooks off the model: they and the tracker hold each other."""
        self._tracker.close()

    def _micro_step(self) -> None:
        """The batch before goes when the loader's next one takes its name, so before that is on the card."""
        self._enter(Phase.FORWARD)
        self._batch = None
        self._batch = self._new_batch()
        with self._tracker:
            self._loss = self._forward()
            self._enter(Phase.BACKWARD)
            loss = self._loss / self._subject.accumulation if self._subject.accumulation > 1 else self._loss
            loss.backward()  # type: ignore[no-untyped-call]

    def _optimizer_step(self) -> None:
        self._enter(Phase.OPTIMIZER)
        with self._tracker:
            if self._subject.grad_clip is not None:
                _clip(self._subject.model, self._subject.grad_clip)
            self._subject.optimizer.step()
            self._tracker.sort_state()
            self._enter(Phase.ZERO)
            self._subject.optimizer.zero_grad(set_to_none=True)

    def _validate(self) -> None:
        self._batch = self._loss = None
        self._enter(Phase.VALIDATION)
        self._subject.model.eval()
        self._batch = self._new_batch()
        with self._tracker, torch.no_grad():
            self._loss = self._forward()
        self._batch = self._loss = None

    def _forward(self) -> torch.Tensor:
        with cuda_lowering(_PRECISIONS[self._subject.precision], capability=self._capability):
            return self._subject.micro_step(self._subject.model, self._batch)

    def _new_batch(self) -> Any:
        batch = self._subject.batch(self._batch_size, torch.device("meta"))
        for tensor in tensors_in(batch):
            self._tracker.place(tensor, category=Category.INPUTS, op="to")
        return batch

    def _enter(self, phase: Phase) -> None:
        self._tracker.phase = self.recorder.phase = phase


def trace_training(target: TraceTarget, *, batch_size: int, card: CardSpec | None = None) -> Trace:
    """Trace two steps and a validation batch. ``card`` decides workspaces, staging buffers and attention kernels.

    Raises ``UntraceableError`` where an op needs data, and ``ValueError`` for a batch size below 1. Uses no random
    numbers and only state of its own thread, but for the garbage collector, which rests meanwhile.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    with _COLLECTOR_REST:
        with torch.device("meta"):
            subject = target.build()
        run = _Run(subject, batch_size=batch_size, card=card)
        try:
            return Trace(events=run.go(), batch_size=batch_size)
        finally:
            run.close()


def _choose_foreach(optimizer: torch.optim.Optimizer) -> None:
    """Multi-tensor kernels where nothing else was asked for: the default on CUDA, off for meta parameters."""
    for group in optimizer.param_groups:
        if "foreach" in group and group["foreach"] is None and not group.get("fused") and not group["differentiable"]:
            group["foreach"] = True


def _clip(model: torch.nn.Module, max_norm: float) -> None:
    """``torch.nn.utils.clip_grad_norm_`` as it runs on CUDA: by ``foreach``, which it refuses on meta tensors."""
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    if gradients:
        total_norm = _total_norm(gradients)
        coefficient = max_norm / (total_norm + _EPSILON)
        torch._foreach_mul_(gradients, torch.clamp(coefficient, max=1.0))


def _total_norm(gradients: list[torch.Tensor]) -> torch.Tensor:
    """The single norms live until the total is there, as in ``torch.nn.utils.get_total_norm``."""
    norms = torch._foreach_norm(gradients, 2.0)  # noqa: SLF001
    total_norm: torch.Tensor = torch.linalg.vector_norm(torch.stack(norms), 2.0)
    return total_norm


def trace_ops(run: Callable[[Callable[[Phase], None]], None], *, card: CardSpec | None = None) -> Trace:
    """Trace any piece of work on meta tensors. ``run`` is called under ``torch.device("meta")`` with a function that
    it calls when a phase begins; it starts in the forward phase. For checking single ops and layers.
    """
    recorder = _Recorder()
    tracker = _MetaTracker(recorder, lowering=Lowering(card), device_type="meta")

    def enter(phase: Phase) -> None:
        tracker.phase = recorder.phase = phase

    enter(Phase.FORWARD)
    with _COLLECTOR_REST, tracker, torch.device("meta"):
        run(enter)
    tracker.close()
    return Trace(events=recorder.finish(), batch_size=1)


class _Rest:
    """Keeps the cyclic collector off while any thread traces: its kills would come at another op in every trace."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._traces = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._traces:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._traces += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._traces -= 1
            if not self._traces and self._was_enabled:
                gc.enable()


_COLLECTOR_REST: Final = _Rest()
