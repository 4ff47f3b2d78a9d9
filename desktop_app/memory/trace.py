"""Two optimizer steps of a training on a stage without a GPU: what it allocates and frees, with no data.

The same tracker and rules as on the simulated card, so that both tell the same story. What makes CUDA's choices come
out on a machine without CUDA is the stage's business (``memory.tracing``); here is the loop, and its lifetimes.
"""

from __future__ import annotations

import functools
import gc
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final, Protocol

import torch

from desktop_app.core.steps import Category, Phase
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.lowering import Kind, Lowering, OpRule
from desktop_app.memory.storage_tracker import StorageTracker
from desktop_app.memory.tensor_sources import tensors_in
from desktop_app.memory.trace_data import ModuleFacts, Trace, TraceEvent
from desktop_app.memory.trace_errors import UntraceableError
from desktop_app.memory.trace_recorder import TraceRecorder
from desktop_app.memory.tracing.optimizers import kind_of
from desktop_app.memory.tracing.recurrent import cudnn_recurrent
from desktop_app.memory.tracing.shim import shim_state
from desktop_app.memory.tracing.stage import META, Stage, open_stage
from desktop_app.memory.tracing.stage_answers import autocast_dtype
from desktop_app.memory.tracing.stage_guesses import NO_GUESS

__all__ = [
    "STEPS",
    "WARN_NO_SHIM",
    "TraceSubject",
    "TraceTarget",
    "UntraceableError",
    "trace",
    "trace_ops",
    "trace_training",
]

WARN_NO_SHIM: Final = "no_shim"  # traced on meta tensors because of what follows the colon
STEPS: Final = 2  # the fifth is like the second; the first alone is up to 26 % too low


@dataclass(frozen=True, eq=False)
class TraceSubject:
    """One training, ready to be traced: model and optimizer are on the stage. ``micro_step`` is forward only.

    ``batch(batch_size, device)`` gives any nesting of tensors with the shapes and dtypes of a real micro-batch.
    The trace opens the autocast region of ``precision`` around ``micro_step``, and scales the loss under "fp16".
    """

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    batch: Callable[[int, torch.device], Any]
    micro_step: Callable[[torch.nn.Module, Any], torch.Tensor]
    accumulation: int = 1
    precision: str = "fp32"
    grad_clip: float | None = None
    validates: bool = True
    set_to_none: bool = True  # zero_grad
    saves: bool = False
    keeps_loss: bool = True  # until the next one is there, as a loop's variable does
    keeps_norm: bool = False  # of the gradients, until the next step begins
    notes: tuple[str, ...] = ()  # what was assumed of the model, for the trace's warnings


class TraceTarget(Protocol):
    """What can be traced on meta tensors in this process."""

    def build(self) -> TraceSubject:
        """A fresh subject; called where models are built without values."""


@functools.cache
def _is_wrapper(kind: type) -> bool:
    return hasattr(kind, "__tensor_flatten__")


class _TraceTracker(StorageTracker):  # type: ignore[no-untyped-call]
    """Makes up what needs data, and spares in-place ops their work: nothing comes of it.

    Autograd works in a thread of its own on fake CUDA tensors while the one that called it waits, so every op says
    anew which thread sees deaths at once.
    """

    def __init__(self, ledger: TraceRecorder, *, lowering: Lowering, stage: Stage) -> None:
        super().__init__(ledger, lowering=lowering, device_type=stage.device.type, by_module=True)
        self._stage: Final = stage

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _DEVICE_OF:  # fake tensors ask four times per op
            return args[0].fake_device
        if func is _VALUE_OF and type(args[0]) is torch.Tensor and args[0].device.type == "cpu":
            with torch._C._DisableTorchDispatch():  # noqa: SLF001 - the step counts of optimizers, one by one
                return func(*args)
        if any(map(_is_wrapper, types)):
            return NotImplemented  # a sharded tensor first says what is done to its part on this card
        self._owner = threading.get_ident()
        return super().__torch_dispatch__(func, types, args, kwargs)

    def _call(self, func: Any, rule: OpRule, args: Any, kwargs: Any) -> Any:
        if rule.in_place and self._is_here(args[0]):
            return args[0] if func._schema.returns else None  # noqa: SLF001
        try:
            made = self._stage.made_up.answer(func, args, kwargs, _run)
            if made is not NO_GUESS:
                return made
            if rule.kind is Kind.FRESH:
                return self._stage.make(func, args, kwargs)
            if rule.kind is Kind.VIEW and not rule.in_place and not func._schema.is_mutable:  # noqa: SLF001
                return self._stage.view(func, args, kwargs)
            return super()._call(func, rule, args, kwargs)
        except NotImplementedError as error:
            raise UntraceableError(str(func), str(error).splitlines()[0]) from None
        except RuntimeError as error:
            by_value = torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags
            if by_value or _NO_FAKE in str(error):
                raise UntraceableError(str(func), str(error).splitlines()[0]) from None
            raise

    def _is_here(self, value: Any) -> bool:
        first = value[0] if isinstance(value, (tuple, list)) and value else value
        return isinstance(first, torch.Tensor) and first.device.type == self._device_type


_NO_FAKE: Final = "no fake impl"  # of a custom op whose author has not said what it makes
_DEVICE_OF: Final = torch.ops.prim.device.default
_VALUE_OF: Final = torch.ops.aten._local_scalar_dense.default  # noqa: SLF001


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    return func(*args, **kwargs)


class _Run:
    """The loop of a training, reduced to what memory sees."""

    def __init__(self, subject: TraceSubject, *, stage: Stage, batch_size: int, card: CardSpec | None) -> None:
        autocast_dtype(subject.precision)  # raises for an unknown one
        self.recorder: Final = TraceRecorder()
        self._tracker: Final = _TraceTracker(self.recorder, lowering=Lowering(card), stage=stage)
        self._subject: Final = subject
        self._stage: Final = stage
        self._batch_size: Final = batch_size
        self._scaler: Any = None
        self._batch: Any = None
        self._loss: torch.Tensor | None = None
        self._norm: torch.Tensor | None = None

    def go(self) -> tuple[TraceEvent, ...]:
        subject = self._subject
        with self._stage.running(precision=subject.precision), cudnn_recurrent(self._stage.device.type):
            self._enter(Phase.BUILD)
            self._scaler = torch.amp.GradScaler("cuda", enabled=subject.precision == "fp16")
            self._tracker.track_model(subject.model)
            self._tracker.track_optimizer(subject.optimizer)
            subject.model.train()
            for step in range(1, STEPS + 1):
                self.recorder.step = step
                self._norm = None
                for _ in range(subject.accumulation):
                    self._micro_step()
                self._optimizer_step()
            if subject.validates:
                self._validate()
            if subject.saves:
                self._save()
            self._tracker.settle_frees()
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
            self._scaler.scale(loss).backward()
        if not self._subject.keeps_loss:
            del loss
            self._loss = None

    def _optimizer_step(self) -> None:
        self._enter(Phase.OPTIMIZER)
        with self._tracker:
            if self._subject.grad_clip is not None:
                self._scaler.unscale_(self._subject.optimizer)
                parameters = self._subject.model.parameters()
                norm = torch.nn.utils.clip_grad_norm_(parameters, self._subject.grad_clip)
                self._norm = norm if self._subject.keeps_norm else None
                del norm
            with self._stage.made_up.certain() if self._scaler.is_enabled() else nullcontext():
                self._scaler.step(self._subject.optimizer)
            self._scaler.update()
            self._tracker.sort_state()
            self._enter(Phase.ZERO)
            self._subject.optimizer.zero_grad(set_to_none=self._subject.set_to_none)

    def _validate(self) -> None:
        self._batch = self._loss = self._norm = None
        self._enter(Phase.VALIDATION)
        self._subject.model.eval()
        self._batch = self._new_batch()
        with self._tracker, torch.no_grad():
            self._loss = self._forward()
        self._batch = self._loss = None

    def _save(self) -> None:
        """``torch.save`` copies storage after storage to the host, which takes nothing on the card."""
        self._enter(Phase.SAVE)
        with self._tracker:
            state = self._subject.model.state_dict(), self._subject.optimizer.state_dict()
            del state

    def _forward(self) -> torch.Tensor:
        with self._stage.autocast(self._subject.precision):
            return self._subject.micro_step(self._subject.model, self._batch)

    def _new_batch(self) -> Any:
        batch = self._subject.batch(self._batch_size, self._stage.device)
        for tensor in tensors_in(batch):
            self._tracker.place(tensor, category=Category.INPUTS, op="to")
        return batch

    def _enter(self, phase: Phase) -> None:
        """What has died belongs to the phase before."""
        self._tracker.settle_frees()
        self._tracker.phase = self.recorder.phase = phase


def trace(subject: TraceSubject, *, stage: Stage, card: CardSpec | None, batch_size: int) -> Trace:
    """Trace two steps, and a validation batch and a save where the subject has them.

    ``card`` decides workspaces and staging buffers, the stage which kernels are taken. Raises ``UntraceableError``
    where an op cannot do without data, and ``ValueError`` for a batch size below 1 or an unknown precision. The
    garbage collector rests meanwhile.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    started_s = time.perf_counter()
    with _COLLECTOR_REST:
        run = _Run(subject, stage=stage, batch_size=batch_size, card=card)
        try:
            events = run.go()
        finally:
            run.close()
    return Trace(
        events=events,
        batch_size=batch_size,
        convolutions=tuple(run.recorder.convolutions),
        modules=_module_facts(subject.model),
        rung=stage.rung,
        kernels_assumed=tuple(f"{what}: {kernel}" for what, kernel in stage.kernels.items()),
        guesses=dict(stage.guesses),
        warnings=(*subject.notes, *_rung_notes(stage)),
        optimizer=kind_of(subject.optimizer),
        torch_version=str(torch.__version__),
        seconds=time.perf_counter() - started_s,
    )


def trace_training(target: TraceTarget, *, batch_size: int, card: CardSpec | None = None) -> Trace:
    """Trace on meta tensors in this process. Raises as ``trace`` does."""
    stage = open_stage(card, rung=META)
    with stage.building():
        subject = target.build()
    stage.adopt(subject.model)
    return trace(subject, stage=stage, card=card, batch_size=batch_size)


def trace_ops(
    run: Callable[[Callable[[Phase], None]], None], *, card: CardSpec | None = None, stage: Stage | None = None
) -> Trace:
    """Trace any piece of work. ``run`` is called with the stage's device as the default one and with a function that
    it calls when a phase begins; it starts in the forward phase. For checking single ops and layers.
    """
    stage = stage or open_stage(card, rung=META)
    recorder = TraceRecorder()
    tracker = _TraceTracker(recorder, lowering=Lowering(card), stage=stage)

    def enter(phase: Phase) -> None:
        tracker.settle_frees()
        tracker.phase = recorder.phase = phase

    enter(Phase.FORWARD)
    with _COLLECTOR_REST, stage.running():
        with tracker, stage.device:
            run(enter)
        tracker.settle_frees()
    tracker.close()
    calls = tuple(recorder.convolutions)
    return Trace(events=recorder.finish(), batch_size=1, convolutions=calls, rung=stage.rung)


def _rung_notes(stage: Stage) -> tuple[str, ...]:
    """Why not a better rung, where it was tried."""
    state = shim_state()
    return (f"{WARN_NO_SHIM}:{state.reason}",) if stage.rung == META and state.tried and not state.loaded else ()


def _module_facts(model: torch.nn.Module) -> tuple[ModuleFacts, ...]:
    return tuple(
        ModuleFacts(path, type(module).__name__, sum(item.numel() for item in module.parameters(recurse=False)))
        for path, module in model.named_modules()
    )


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
