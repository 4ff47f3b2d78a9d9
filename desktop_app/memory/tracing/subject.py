"""A training as it is asked for, built and changed, on the stage where it is traced."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch import nn
from torch.optim import Optimizer

from desktop_app.memory.trace import TraceSubject
from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.models_construction import ConstructionMode, trainable
from desktop_app.memory.tracing.models_entry import entry_parts
from desktop_app.memory.tracing.models_python import python_parts
from desktop_app.memory.tracing.models_timm import timm_parts
from desktop_app.memory.tracing.models_transformers import transformers_parts
from desktop_app.memory.tracing.optimizers import make_optimizer, optimizer_class, set_kernels
from desktop_app.memory.tracing.stage import Stage
from desktop_app.memory.tracing.subject_parts import Batch, BatchMaker, TrainingParts, last_layer
from desktop_app.memory.tracing.transforms_checkpointing import apply_checkpointing
from desktop_app.memory.tracing.transforms_freezing import freeze
from desktop_app.memory.tracing.transforms_lora import add_adapters
from desktop_app.memory.tracing.transforms_sharding import Sharding, shard
from desktop_app.memory.training_spec import TrainingSpec

_Source = Callable[..., TrainingParts]
_SOURCES: Final[dict[str, _Source]] = {
    "entry": entry_parts,
    "timm": timm_parts,
    "transformers": transformers_parts,
    "python": python_parts,
}
_PURE: Final = {"pure_bf16": torch.bfloat16, "pure_fp16": torch.float16}
_CHANNELS_LAST_DIM: Final = 4


def build_subject(spec: TrainingSpec, stage: Stage) -> TraceSubject:
    """The training on the stage: model, optimizer, batches and step, with every change that the spec asks for.

    Raises ``TracerError`` where it cannot be built as asked.
    """
    source, _, name = spec.model.partition(":")
    if source not in _SOURCES or not name:
        raise TracerError(
            "unknown_model",
            f"A model is timm:NAME, transformers:NAME or python:FILE:FUNCTION, not {spec.model!r}.",
        )
    parts = _SOURCES[source](spec, name=name, stage=stage)
    own = _OwnOptimizer(parts)
    with ConstructionMode():
        _change(parts, spec)
    own.adopt(parts.model, stage)
    sharding = shard(parts.model, spec, stage)
    with stage.running(precision=sharding.precision):
        optimizer = sharding.complete(_optimizer(spec, own, sharding))
    if type(optimizer).__module__.startswith("torch.optim"):
        _answer_certainly(optimizer, stage)
    return TraceSubject(
        model=parts.model,
        optimizer=optimizer,
        batch=_batch_maker(parts.batch, spec),
        micro_step=parts.micro_step,
        accumulation=spec.accumulation,
        precision=sharding.precision,
        grad_clip=spec.grad_clip,
        validates=spec.validates,
        set_to_none=spec.set_to_none,
        saves=spec.saves,
        keeps_loss=parts.keeps_loss,
        keeps_norm=parts.keeps_norm,
        notes=(*parts.notes, *sharding.notes),
    )


def _change(parts: TrainingParts, spec: TrainingSpec) -> None:
    """What is done to a model before it is moved to the card."""
    model, head = parts.model, parts.head or last_layer(parts.model)
    if spec.precision in _PURE:
        model.to(_PURE[spec.precision])
    if spec.frozen:
        freeze(model, frozen=spec.frozen, head=head)
    if spec.lora_rank is not None:
        add_adapters(model, rank=spec.lora_rank, head=head)
    if spec.channels_last:
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    apply_checkpointing(parts, checkpointing=spec.checkpointing)
    if not trainable(model):
        raise TracerError("bad_spec", f"{spec.model} has no parameter that is trained.")


class _OwnOptimizer:
    """The optimizer that came with the model, if one did: it follows the parameters to the stage."""

    def __init__(self, parts: TrainingParts) -> None:
        self.optimizer: Final = parts.optimizer
        self._known: Final = dict(parts.model.named_parameters())

    def adopt(self, model: nn.Module, stage: Stage) -> None:
        before = dict(model.named_parameters())
        stage.adopt(model)
        if self.optimizer is None:
            return
        moved = {id(before[name]): parameter for name, parameter in model.named_parameters()}
        for group in self.optimizer.param_groups:
            group["params"] = [moved.get(id(parameter), parameter) for parameter in group["params"]]
        states = self.optimizer.state
        for old in list(states):
            if id(old) in moved:
                states[moved[id(old)]] = _on_stage(states.pop(old), stage)

    def covers(self, parameters: Iterable[torch.Tensor]) -> bool:
        """Whether it has exactly what is to be trained (frozen parameters more do no harm)."""
        assert self.optimizer is not None
        has = {id(parameter) for group in self.optimizer.param_groups for parameter in group["params"]}
        return all(id(parameter) in has for parameter in parameters)


def _on_stage(values: dict[str, Any], stage: Stage) -> dict[str, Any]:
    """State that an optimizer makes in its constructor, as Adagrad does. Counters of steps are on the CPU and known."""
    holder = nn.Module()
    counters = {name: value.item() for name, value in values.items() if _is_counter(value)}
    for name, value in values.items():
        if isinstance(value, torch.Tensor) and name not in counters:
            holder.register_buffer(name, value)
    stage.adopt(holder)
    with stage.running():
        made = {name: torch.tensor(value, dtype=values[name].dtype, device="cpu") for name, value in counters.items()}
    return {**values, **dict(holder.named_buffers()), **made}


def _is_counter(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() == 0 and value.device.type == "cpu"


def _optimizer(spec: TrainingSpec, own: _OwnOptimizer, sharding: Sharding) -> Optimizer:
    """The user's own, unless another kind or other arguments are asked for or it does not know all that is trained.

    Raises ``TracerError`` for arguments of an optimizer that nobody named.
    """
    parameters = sharding.parameters
    mine = own.optimizer
    if mine is None:
        return make_optimizer(spec, parameters)
    if spec.optimizer is None:
        if spec.optimizer_arguments:
            kind = type(mine).__name__
            raise TracerError(
                "bad_spec", f"The training has its own {kind}: name the optimizer by --optimizer to give it arguments."
            )
    elif spec.optimizer_arguments or not isinstance(mine, optimizer_class(spec.optimizer)):
        return make_optimizer(spec, parameters)
    if not own.covers(parameters):  # adapters came
        kind = type(mine).__name__.lower()
        knows = inspect.signature(optimizer_class(kind)).parameters  # AdamW's defaults hold more than it takes
        taken = {
            name: value for name, value in mine.defaults.items() if name in knows and name not in ("foreach", "fused")
        }
        return make_optimizer(spec.changed(optimizer=kind, optimizer_arguments=taken), parameters)
    kept = {id(parameter) for parameter in parameters}
    for group in mine.param_groups:
        group["params"] = [parameter for parameter in group["params"] if id(parameter) in kept]
    set_kernels(mine, spec)
    return mine


def _answer_certainly(optimizer: Optimizer, stage: Stage) -> None:
    """What torch's own optimizers read back (Adafactor's norms) changes values only: zero will do, and is no guess."""
    step = optimizer.step

    @functools.wraps(step)
    def run(*args: Any, **kwargs: Any) -> Any:
        with stage.made_up.certain():
            return step(*args, **kwargs)

    optimizer.step = run  # type: ignore[method-assign]


def _batch_maker(make: BatchMaker, spec: TrainingSpec) -> BatchMaker:
    """Batches in the dtype of pure precision and in the model's memory format."""
    dtype = _PURE.get(spec.precision)
    if dtype is None and not spec.channels_last:
        return make

    def convert(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if dtype is not None and value.is_floating_point():
                value = value.to(dtype)
            if spec.channels_last and value.dim() == _CHANNELS_LAST_DIM:
                value = value.to(memory_format=torch.channels_last)
            return value
        if isinstance(value, dict):
            return {name: convert(item) for name, item in value.items()}
        if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
            return type(value)(convert(item) for item in value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            changes = {item.name: convert(getattr(value, item.name)) for item in dataclasses.fields(value)}
            return dataclasses.replace(value, **changes)
        return value

    def batch(batch_size: int, device: torch.device) -> Batch:
        return convert(make(batch_size, device))

    return batch
