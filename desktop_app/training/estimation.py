"""What a run will need on a card: its recipe as a job for the tracer, and the changes that its form can make.

Torch-free but for ``run_subject``, which the interpreter that traces calls.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from desktop_app.core.forecasts import Estimate, Lever
from desktop_app.memory.allocator_settings import DEFAULT_SETTINGS, AllocatorSettings
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.estimate import Progress, TraceSource, estimate
from desktop_app.memory.training_spec import TrainingSpec
from desktop_app.training.config import FieldKind, RunConfig, config_from_mapping, field_spec
from desktop_app.training.recipes.data import Batch, DataInfo
from desktop_app.training.recipes.recipe import RECIPES

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from desktop_app.memory.trace import TraceSubject
    from desktop_app.memory.trace_data import Trace

ENTRY: Final = f"entry:{__name__}:run_subject"

# Fields of a specification that a run has too, by its own name for them. What is not here, a run's form cannot change.
_RUN_FIELDS: Final[Mapping[str, str]] = {
    "batch_size": "batch_size",
    "accumulation": "accumulation",
    "precision": "precision",
    "optimizer": "optimizer",
    "foreach": "foreach",
    "grad_clip": "grad_clip",
}
_SETTLED: Final = frozenset({"foreach", "fused", "optimizer_arguments"})  # by the run, whatever its optimizer
# What the model and its data are made of: the trace of two runs that differ in nothing else is one trace.
_SUBJECT_FIELDS: Final = (
    "recipe", "model", "width", "hidden", "depth", "optimizer", "foreach", "momentum", "weight_decay", "accumulation",
)  # fmt: skip


def spec_of(config: RunConfig, info: DataInfo) -> TrainingSpec:
    """The run as a job for the tracer. Runs that need the same memory are the same job."""
    return TrainingSpec(
        model=ENTRY,
        arguments={
            "config": {name: getattr(config, name) for name in _SUBJECT_FIELDS},
            "info": {"classes": len(info.classes), "channels": info.channels, "image_size": info.image_size},
        },
        batch_size=config.batch_size,
        accumulation=config.accumulation,
        precision=config.precision,
        optimizer=config.optimizer,
        foreach=config.foreach,
        fused=False,
        grad_clip=config.grad_clip or None,
        image_size=info.image_size,
        classes=len(info.classes),
    )


def run_subject(config: Mapping[str, Any], info: Mapping[str, Any]) -> TraceSubject:
    """The recipe's own model, optimizer, batch and loss. Called by the tracer with the arguments of ``spec_of``."""
    run = config_from_mapping(config)
    data = DataInfo(
        classes=tuple(map(str, range(info["classes"]))),
        channels=info["channels"],
        image_size=info["image_size"],
        train_samples=1,
        validation_samples=1,
    )
    return _Loop(run, data).subject()


class _Loop:
    """The lifetimes of ``training.step``: what it keeps of one micro-step while the next one runs."""

    def __init__(self, config: RunConfig, data: DataInfo) -> None:
        self._recipe: Final = RECIPES[config.recipe]
        self._config: Final = config
        self._data: Final = data
        self._model: Final = self._recipe.model(config, data)
        self._micro_steps = 0
        self._losses: list[Tensor] = []
        self._outputs: tuple[Tensor, Tensor] | None = None  # logits and targets
        self._pending: tuple[Tensor, Tensor, Tensor] | None = None  # loss, logits and targets

    def subject(self) -> TraceSubject:
        from desktop_app.memory.trace import TraceSubject

        return TraceSubject(
            model=self._model,
            optimizer=self._recipe.optimizer(self._config, self._model),
            batch=self._batch,
            micro_step=self._micro_step,
            keeps_loss=False,
            keeps_norm=True,
        )

    def _batch(self, batch_size: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """A step begins with its first batch: then the outputs of the last one go."""
        if self._model.training and self._micro_steps % self._config.accumulation == 0:
            self._losses.clear()
            self._outputs = None
        example = self._recipe.example_batch(self._data, batch_size=batch_size, device=device)
        return example.inputs, example.targets

    def _micro_step(self, model: nn.Module, tensors: Any) -> Tensor:
        loss, logits = self._recipe.loss(model, Batch(*tensors))
        if not model.training:
            hits = (logits.argmax(1) == tensors[1]).sum()
            del hits
            return loss
        self._micro_steps += 1
        self._pending = loss.detach(), logits.detach(), tensors[1]
        _after_backward(loss, self._keep)
        return loss

    def _keep(self) -> None:
        assert self._pending is not None
        loss, logits, targets = self._pending
        self._losses.append(loss)
        self._outputs = logits, targets
        self._pending = None


def _after_backward(loss: Tensor, act: Callable[[], None]) -> None:
    """Call ``act`` once the backward pass that begins at ``loss`` is over."""
    from torch.autograd import Variable

    def queue(_: Tensor) -> None:
        Variable._execution_engine.queue_callback(act)  # noqa: SLF001 - as torch's own FSDP does

    loss.register_hook(queue)  # type: ignore[no-untyped-call]


def estimate_run(
    config: RunConfig,
    card: CardSpec,
    *,
    trace: TraceSource | None = None,
    info: DataInfo | None = None,
    others_bytes: int = 0,
    risk: float = 0.05,
    context_bytes: int | None = None,
    workspaces_known: bool = False,
    allocator: AllocatorSettings = DEFAULT_SETTINGS,
    with_levers: bool = True,
    changes: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Estimate:
    """The peak of a run on a card. ``info``: what the data are, where that is known already. ``changes``: fields of
    the specification that a run's form lacks. ``trace``: ``None`` traces in this process. See ``memory.estimate``.

    Raises ``FloodmarkError`` for data that cannot be read, ``TracerError`` where no trace comes about.
    """
    known = info or RECIPES[config.recipe].describe(config)
    source = trace or _trace_here
    answer = estimate(
        spec_of(config, known).changed(**(changes or {})),
        card,
        trace=lambda spec, on: source(as_run(spec, config, known), on),
        others_bytes=others_bytes,
        risk=risk,
        context_bytes=context_bytes,
        workspaces_known=workspaces_known,
        allocator=allocator,
        levers=with_levers,
        most_batch=max(1, known.train_samples // config.accumulation),
        progress=None if progress is None else lambda answer: progress(_with_changes(answer, config)),
    )
    return _with_changes(answer, config)


def as_run(spec: TrainingSpec, config: RunConfig, info: DataInfo) -> TrainingSpec:
    """The specification of a changed run, as the run itself would be: another optimizer with the run's own settings."""
    own, rest = _parted(_differences(spec, spec_of(config, info)))
    return spec_of(dataclasses.replace(config, **cast("dict[str, Any]", own)), info).changed(**rest)


def run_changes(lever: Lever, config: RunConfig) -> dict[str, object]:
    """What the lever changes in the run's form; nothing when the form cannot make all of it so."""
    own, rest = _parted(lever.settings)
    return {} if rest else {name: value for name, value in own.items() if getattr(config, name) != value}


def _with_changes(answer: Estimate, config: RunConfig) -> Estimate:
    """The same answer, its levers with the fields of the run's form that they change."""
    levers = tuple(dataclasses.replace(lever, changes=run_changes(lever, config)) for lever in answer.levers)
    return dataclasses.replace(answer, levers=levers)


def _differences(spec: TrainingSpec, base: TrainingSpec) -> dict[str, Any]:
    """Fields of ``spec`` that are not as in ``base``."""
    names = (item.name for item in dataclasses.fields(spec))
    return {name: value for name in names if (value := getattr(spec, name)) != getattr(base, name)}


def _parted(settings: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Settings that are fields of a run, by the run's names, and the rest. An optimizer that a run knows comes with the
    run's own arguments and kernels."""
    optimizer = settings.get("optimizer")
    settled = _SETTLED if optimizer is not None and _takes("optimizer", optimizer) else frozenset()
    own: dict[str, object] = {}
    rest: dict[str, object] = {}
    for name, value in settings.items():
        field = _RUN_FIELDS.get(name)
        if field is not None and _takes(field, value):
            own[field] = value
        elif name not in settled:
            rest[name] = value
    return own, rest


def _takes(field: str, value: object) -> bool:
    spec = field_spec(field)
    if spec.kind is FieldKind.FLAG:
        return isinstance(value, bool)
    if spec.choices:
        return value in spec.choices
    assert spec.minimum is not None
    assert spec.maximum is not None
    return isinstance(value, int | float) and not isinstance(value, bool) and spec.minimum <= value <= spec.maximum


def _trace_here(spec: TrainingSpec, card: CardSpec) -> Trace:
    from desktop_app.memory.tracing.child import trace_spec

    return trace_spec(spec, card)
