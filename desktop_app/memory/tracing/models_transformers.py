"""Models of transformers by name or folder, with random weights: nothing is downloaded."""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.models_construction import construct, import_library
from desktop_app.memory.tracing.models_grouped import teach_grouped_products
from desktop_app.memory.tracing.models_sequences import know_full_sequences
from desktop_app.memory.tracing.models_transformers_shapes import CHECKPOINTS, Checkpoint, checkpoint_named
from desktop_app.memory.tracing.models_transformers_tasks import (
    BASE,
    TASKS,
    WITH_CLASSES,
    Sizes,
    Task,
    batch_maker,
    choose_task,
    class_names,
    measure,
    task_of_class,
)
from desktop_app.memory.tracing.stage import Stage
from desktop_app.memory.tracing.subject_parts import Batch, TrainingParts
from desktop_app.memory.training_spec import TrainingSpec

_OFFLINE: Final = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
_POSITIONS: Final = re.compile(r"(^|[._])(position|positions|wpe)(_|$)")  # embed_positions, position_embeddings
_OWN_ARGUMENTS: Final = ("task", "target_length", "attn_implementation")


def transformers_parts(spec: TrainingSpec, *, name: str, stage: Stage) -> TrainingParts:
    """The model of a configuration with the head of its task, trained as ``Trainer`` does: the loss inside the model.

    ``name`` is a folder with a ``config.json``, a well-known checkpoint, a kind of model (``bert``) or a class
    (``BertForMaskedLM``). ``spec.arguments`` change the configuration; ``task``, ``target_length`` and
    ``attn_implementation`` are for us. Raises ``TracerError``: ``not_installed``, ``unknown_model``, ``bad_spec``.
    """
    teach_grouped_products()
    with _offline():
        transformers = import_library("transformers")
        know_full_sequences()
        config, wanted = _configuration(transformers, name)
        auto = import_library("transformers.models.auto.modeling_auto")
        task_name, class_name = _class(auto, config, spec, wanted=wanted, name=name)
        notes: list[str] = []
        task = TASKS[task_name] if task_name else BASE
        _configure(config, spec, task, notes)
        model = _build(transformers, config, class_name, spec, stage=stage)
    if task is BASE:
        config.floodmark_input = model.main_input_name
        notes.append(f"{class_name} has no loss of its own: the mean of its first output is taken")
    elif spec.classes is None and task_name is not None:
        notes.append(f"trained for {task_name.replace('_', ' ')} ({class_name})")
    sizes = measure(config, spec, notes, needs_tokens=_takes_tokens(model), positions=_positions(model))
    _refuse_unused(spec, task, task_name, sizes, name=name)
    return TrainingParts(
        model=model,
        batch=batch_maker(task.fields(sizes), task.extra),
        micro_step=_loss if task is not BASE else _mean,
        head=_head(model),
        checkpoint=lambda every: _checkpoint(model, every),
        notes=notes,
    )


def _loss(model: nn.Module, batch: Batch) -> torch.Tensor:
    """As ``Trainer.compute_loss``: the outputs are gone when the backward pass begins."""
    loss = model(**batch).loss
    if loss is None:
        raise TracerError("bad_model", f"{type(model).__name__} gave no loss: name another task.")
    value: torch.Tensor = loss
    return value


def _mean(model: nn.Module, batch: Batch) -> torch.Tensor:
    value: torch.Tensor = model(**batch)[0].float().mean()
    return value


@contextmanager
def _offline() -> Iterator[None]:
    """Nothing is asked of a hub, and nothing is printed."""
    before = {name: os.environ.get(name) for name in _OFFLINE}
    os.environ.update(_OFFLINE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _configuration(transformers: Any, name: str) -> tuple[Any, str]:
    """The configuration, and the class or task that goes with the name ("" where none does)."""
    if (Path(name) / "config.json").is_file():
        return _from_folder(transformers, name)
    known = checkpoint_named(name)
    if known is not None:
        return _from_shape(transformers, known), known.task
    kinds = import_library("transformers.models.auto.configuration_auto").CONFIG_MAPPING_NAMES
    if name in kinds:
        return _default(transformers, name), ""
    made = getattr(transformers, name, None) if name.isidentifier() else None
    if isinstance(made, type) and issubclass(made, nn.Module) and getattr(made, "config_class", None) is not None:
        return made.config_class(), name  # type: ignore[attr-defined]
    near = difflib.get_close_matches(name.lower(), [*CHECKPOINTS, *kinds], n=3, cutoff=0.5)
    hint = f"; near: {', '.join(near)}" if near else ""
    raise TracerError(
        "unknown_model",
        f"transformers {transformers.__version__} has no model {name!r}{hint}. "
        "A folder with its config.json is taken too; nothing is downloaded.",
    )


def _from_folder(transformers: Any, folder: str) -> tuple[Any, str]:
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (ValueError, OSError, KeyError) as error:
        raise TracerError("unknown_model", f"{folder}/config.json: {_line(error)}") from error
    architectures = getattr(config, "architectures", None) or [""]
    return config, str(architectures[0])


def _from_shape(transformers: Any, known: Checkpoint) -> Any:
    try:
        return transformers.AutoConfig.for_model(known.kind, **known.values)
    except ValueError as error:
        raise TracerError(
            "unknown_model", f"transformers {transformers.__version__} is too old or too new for {known.kind}."
        ) from error


def _default(transformers: Any, kind: str) -> Any:
    return transformers.AutoConfig.for_model(kind)


def _class(auto: Any, config: Any, spec: TrainingSpec, *, wanted: str, name: str) -> tuple[str | None, str]:
    """Task and class: what is asked for, else what the configuration names, else what the kind is for."""
    kind = config.model_type
    asked = spec.arguments.get("task")
    if asked is not None and asked not in TASKS:
        raise TracerError("bad_spec", f"There is no task {asked!r}; there are {', '.join(TASKS)}.")
    if asked is None and spec.classes is None and (task := task_of_class(auto, wanted)) is not None:
        return task, wanted
    task = asked or choose_task(auto, kind, classes=spec.classes)
    if task is None:
        base = auto.MODEL_MAPPING_NAMES.get(kind)
        if base is None:
            raise TracerError("bad_spec", f"transformers lists no class for {name}.")
        return None, base[0] if isinstance(base, (tuple, list)) else base
    found = class_names(auto, task).get(kind)
    if found is None:
        raise TracerError("bad_spec", f"transformers has no {task.replace('_', ' ')} for {kind}.")
    return task, found


def _configure(config: Any, spec: TrainingSpec, task: Task, notes: list[str]) -> None:
    """What the training says about the model. ``Trainer`` keeps no cache of keys and values (``use_cache``)."""
    for name, value in spec.arguments.items():
        if name in _OWN_ARGUMENTS:
            continue
        if not hasattr(config, name):
            raise TracerError("bad_spec", f"{type(config).__name__} has no {name!r}.")
        setattr(config, name, value)
    classes = spec.classes or task.classes
    if classes is not None:
        config.num_labels = classes
        if spec.classes is None:
            notes.append(f"{classes} classes are assumed")
    for part in (config, getattr(config, "text_config", None), getattr(config, "decoder", None)):
        if part is not None and hasattr(part, "use_cache"):
            part.use_cache = False
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = 0  # classifiers look for the last token that is none
    if getattr(config, "is_encoder_decoder", False) and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = config.pad_token_id
    if spec.image_size is not None:
        for part in (config, getattr(config, "vision_config", None)):
            if part is not None and hasattr(part, "image_size"):
                part.image_size = spec.image_size
    for part in (config, getattr(config, "text_config", None), getattr(config, "vision_config", None)):
        if part is not None:
            part.dtype = torch.float32  # weights are cast by the training, not by the file


def _build(transformers: Any, config: Any, class_name: str, spec: TrainingSpec, *, stage: Stage) -> nn.Module:
    made = getattr(transformers, class_name)
    options = {"attn_implementation": value} if (value := spec.arguments.get("attn_implementation")) else {}
    try:
        with _no_initialization(transformers):
            model: nn.Module = construct(lambda: made._from_config(config, **options), stage=stage)  # noqa: SLF001
    except (TypeError, ValueError, AttributeError, ImportError) as error:
        raise TracerError("bad_spec", f"{class_name} cannot be built from its configuration: {_line(error)}") from error
    return model


@contextmanager
def _no_initialization(transformers: Any) -> Iterator[None]:
    """Tie weights, draw none: they would have no values."""
    kind = transformers.PreTrainedModel
    name = "initialize_weights" if hasattr(kind, "initialize_weights") else "_initialize_weights"
    before = getattr(kind, name, None)
    if before is None:
        yield
        return
    setattr(kind, name, lambda *_, **__: None)
    try:
        yield
    finally:
        setattr(kind, name, before)


def _checkpoint(model: nn.Module, every: int) -> bool:
    """The model's own way, not reentrant as Trainer has it since 5.0. Old versions only know all layers."""
    if not getattr(model, "supports_gradient_checkpointing", False):
        return False
    if hasattr(model, "activation_checkpointing_enable"):
        model.activation_checkpointing_enable({"use_reentrant": False}, every_n_layers=every)  # type: ignore[operator]
        return True
    if every > 1:
        return False
    model.gradient_checkpointing_enable({"use_reentrant": False})  # type: ignore[operator]
    return True


def _takes_tokens(model: nn.Module) -> bool:
    return getattr(model, "main_input_name", "input_ids") == "input_ids"


def _positions(model: nn.Module) -> int | None:
    """The most tokens that have a learned position; ``None`` where positions are computed, and any number goes.

    RoBERTa's begin after the one of the padding; BART's and OPT's have two more than their configuration says.
    """
    counts = [
        module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
        for path, module in model.named_modules()
        if isinstance(module, nn.Embedding) and _POSITIONS.search(path) and "vision" not in path
    ]
    return min(counts, default=None)


def _refuse_unused(spec: TrainingSpec, task: Task, task_name: str | None, sizes: Sizes, *, name: str) -> None:
    """What the batches or the head do not depend on is said, not passed over."""
    longer = dataclasses.replace(sizes, length=sizes.length + 1, target_length=sizes.target_length + 1)
    larger = dataclasses.replace(sizes, height=sizes.height + 1, width=sizes.width + 1)
    fields = task.fields(sizes)
    for option, value, used in (
        ("sequence-length", spec.sequence_length, task.fields(longer) != fields),
        ("image-size", spec.image_size, task.fields(larger) != fields),
        ("classes", spec.classes, task_name in (*WITH_CLASSES, "token_classification")),
    ):
        if value is not None and not used:
            what = f" for {task_name.replace('_', ' ')}" if task_name else ""
            raise TracerError("bad_spec", f"transformers:{name}{what} has no use for --{option}: leave it out.")


def _head(model: nn.Module) -> tuple[str, ...]:
    """All that is not the base model, which every head of transformers wraps under one name."""
    prefix = getattr(model, "base_model_prefix", "")
    if not prefix or not hasattr(model, prefix):
        return ()
    return tuple(name for name, _ in model.named_children() if name != prefix)


def _line(error: Exception) -> str:
    arguments: Mapping[str, Any] | str = str(error)
    lines = str(arguments).strip().splitlines()
    return lines[0] if lines else type(error).__name__
