"""From the options of ``floodmark estimate`` to what is to be estimated on what. Torch-free."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from desktop_app.core.errors import ConfigError
from desktop_app.core.forecasts import Estimate
from desktop_app.memory.allocator_settings import DEFAULT_SETTINGS, AllocatorSettings
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.estimate import Progress, estimate
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.tracer_process import TracerProcess
from desktop_app.memory.training_spec import DEFAULT_OPTIMIZER, TrainingSpec
from desktop_app.services.estimate_cards import EstimateCard, exact_context_bytes, named_card
from desktop_app.training.config import RunConfig, field_spec, load_config
from desktop_app.training.estimation import estimate_run, spec_of
from desktop_app.training.recipes.data import DataInfo
from desktop_app.training.recipes.recipe import RECIPES

# Option: field of the run it replaces.
_RUN_FIELDS: Final[Mapping[str, str]] = {
    "batch": "batch_size",
    "accumulation": "accumulation",
    "precision": "precision",
    "optimizer": "optimizer",
    "foreach": "foreach",
    "image_size": "image_size",
    "grad_clip": "grad_clip",
}
# Option: field of the specification, for models that are no recipe of ours; the second half for recipes too.
_SPEC_FIELDS: Final[Mapping[str, str]] = {
    "batch": "batch_size",
    "precision": "precision",
    "optimizer": "optimizer",
    "foreach": "foreach",
    "grad_clip": "grad_clip",
    "image_size": "image_size",
    "accumulation": "accumulation",
    "sequence_length": "sequence_length",
    "classes": "classes",
}
_SHARED_FIELDS: Final[Mapping[str, str]] = {
    "fused": "fused",
    "checkpointing": "checkpointing",
    "attention": "attention",
    "lora": "lora_rank",
    "sharding": "sharding",
    "cards": "world_size",
}
PYTHON_VARIABLE: Final = "FLOODMARK_PYTHON"
_KINDS: Final = ("timm:", "transformers:", "python:")


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOrder:
    """One estimate. ``config`` and ``info``: the run and its data, where it is one of ours; then ``spec`` is made from
    them and ``changes``."""

    spec: TrainingSpec
    card: EstimateCard
    risk: float
    with_levers: bool
    time_limit_s: float
    rung: str | None = None
    python: Path | None = None
    context_bytes: int | None = None
    is_simulated: bool = False
    allocator: AllocatorSettings = DEFAULT_SETTINGS
    config: RunConfig | None = None
    info: DataInfo | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)


def make_order(options: argparse.Namespace) -> EstimateOrder:
    """Raises ``ConfigError`` for what does not go together, ``NoSuchDeviceError`` for a card that is not there."""
    if options.fused and options.foreach:
        raise ConfigError("cli.estimate", "--fused and --foreach exclude each other.")
    config = _config(options)
    info = None if config is None else _info(config, options)
    changes: dict[str, Any] = {}
    if config is None or info is None:
        spec = _spec(options)
    else:
        changes = {**_given(options, _SHARED_FIELDS), **_switches(options)}
        spec = _checked(spec_of(config, info), changes)
    is_simulated = config is not None and config.device == "simulated" and options.gpu is None
    name = options.gpu or (config.card if config is not None else None)
    card = named_card(name, capacity_bytes=options.capacity_bytes)
    context_bytes: int | None = options.context_bytes
    if is_simulated and context_bytes is None:
        context_bytes = exact_context_bytes(card.spec)
    if options.others_bytes is not None:
        card = dataclasses.replace(card, others_bytes=options.others_bytes)
    return EstimateOrder(
        spec=spec,
        card=card,
        risk=options.risk,
        with_levers=not options.no_levers,
        time_limit_s=options.time_limit,
        rung=options.rung,
        python=options.python or (_setting() if config is None else None),
        context_bytes=context_bytes,
        is_simulated=is_simulated,
        allocator=DEFAULT_SETTINGS if is_simulated else _allocator(options.alloc_conf),
        config=config,
        info=info,
        changes=changes,
    )


def carry_out(order: EstimateOrder, *, progress: Progress | None = None) -> Estimate:
    """The answer, traced in a child that is gone afterwards. ``TracerError`` where no trace comes about."""
    with TracerProcess(order.python, time_limit_s=order.time_limit_s) as tracer:

        def trace(spec: TrainingSpec, card: CardSpec) -> Trace:
            return tracer.trace(spec, card, rung=order.rung)

        options: dict[str, Any] = {
            "trace": trace,
            "others_bytes": order.card.others_bytes,
            "risk": order.risk,
            "context_bytes": order.context_bytes,
            "workspaces_known": order.is_simulated,
            "allocator": order.allocator,
            "progress": progress,
        }
        card = order.card.spec
        if order.config is None:
            return estimate(order.spec, card, levers=order.with_levers, **options)
        return estimate_run(
            order.config, card, info=order.info, changes=order.changes, with_levers=order.with_levers, **options
        )


def _allocator(text: str | None) -> AllocatorSettings:
    """The allocator as the training's own environment sets it, or as the command line says."""
    try:
        return AllocatorSettings.from_environment(os.environ) if text is None else AllocatorSettings.parse(text)
    except ValueError as error:
        where = "PYTORCH_ALLOC_CONF" if text is None else "--alloc-conf"
        raise ConfigError("cli.estimate", f"{where}: {error}.") from None


def _setting() -> Path | None:
    """The user's own Python for models that are not ours, where ``--python`` does not say another."""
    return Path(text) if (text := os.environ.get(PYTHON_VARIABLE)) else None


def _config(options: argparse.Namespace) -> RunConfig | None:
    """The run, from its file or by the name of one of our models; ``None`` for every other model."""
    if (options.config is None) == (options.model is None):
        raise ConfigError("cli.estimate", "Give either a run file or --model, e.g. --model timm:resnet50.")
    if options.config is not None:
        config = load_config(options.config)
    elif options.model in field_spec("model").choices:
        config = RunConfig(model=options.model)
    elif options.model.startswith(_KINDS):
        return None
    else:
        ours = " or ".join(field_spec("model").choices)
        raise ConfigError(
            "cli.model",
            f"--model takes timm:NAME, transformers:NAME, python:FILE:FUNCTION, {ours}; not {options.model!r}.",
        )
    _refuse_foreign(options)
    changes = {own: value for name, own in _RUN_FIELDS.items() if (value := getattr(options, name)) is not None}
    return dataclasses.replace(config, **changes)


def _refuse_foreign(options: argparse.Namespace) -> None:
    """What a recipe of ours has no use for is said, not passed over."""
    if options.python is not None:
        raise ConfigError(
            "trace.recipe_needs_own_python",
            "Floodmark trains its own models in its own Python, so they are traced there: leave --python out.",
        )
    for name in ("sequence_length", "model_arg", "optimizer_arg"):
        if getattr(options, name):
            raise ConfigError("cli.estimate", f"--{name.replace('_', '-')} is not for Floodmark's own models.")


def _spec(options: argparse.Namespace) -> TrainingSpec:
    changes = _given(options, {**_SPEC_FIELDS, **_SHARED_FIELDS})
    if not options.model.startswith("python:"):  # a function may bring its own
        changes.setdefault("optimizer", DEFAULT_OPTIMIZER)
    changes["arguments"] = dict(options.model_arg)
    changes["optimizer_arguments"] = dict(options.optimizer_arg)
    return _checked(TrainingSpec(model=options.model), {**changes, **_switches(options)})


def _info(config: RunConfig, options: argparse.Namespace) -> DataInfo:
    info = RECIPES[config.recipe].describe(config)
    if options.classes is None:
        return info
    return dataclasses.replace(info, classes=tuple(map(str, range(options.classes))))


def _given(options: argparse.Namespace, fields: Mapping[str, str]) -> dict[str, Any]:
    return {own: value for name, own in fields.items() if (value := getattr(options, name)) is not None}


def _switches(options: argparse.Namespace) -> dict[str, Any]:
    """Only what was asked for: the rest stays as the run has it."""
    frozen = tuple(prefix for text in options.freeze for prefix in text.split(",") if prefix)
    asked = {
        "set_to_none": (options.keep_gradients, False),
        "channels_last": (options.channels_last, True),
        "validates": (options.no_validation, False),
        "saves": (options.saves, True),
        "cudnn_benchmark": (options.cudnn_benchmark, True),
        "frozen": (bool(frozen), frozen),
    }
    return {name: value for name, (given, value) in asked.items() if given}


def _checked(spec: TrainingSpec, changes: Mapping[str, Any]) -> TrainingSpec:
    sharding, cards = changes.get("sharding", "none"), changes.get("world_size", 1)
    if (sharding != "none") != (cards > 1):
        raise ConfigError("cli.estimate", "--sharding and --cards (2 or more) go together.")
    try:
        return spec.changed(**changes)
    except ValueError as error:
        raise ConfigError("cli.estimate", f"{str(error)[:1].upper()}{str(error)[1:]}.") from None
