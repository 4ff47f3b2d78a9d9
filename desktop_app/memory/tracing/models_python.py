"""The user's own training: a function in a file of theirs that returns model, optimizer and step."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional

from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.models_construction import MetaForCuda, construct
from desktop_app.memory.tracing.stage import META, Stage
from desktop_app.memory.tracing.subject_parts import Batch, BatchMaker, MicroStep, TrainingParts
from desktop_app.memory.training_spec import TrainingSpec

EXPECTED: Final = "a model, or (model, optimizer, step), or (model, optimizer, step, batch), or a dict with these names"
_NAMES: Final = ("model", "optimizer", "step", "batch", "inputs", "head")
_SIZES: Final = ("image_size", "sequence_length", "classes")
_TOLD: Final = ("batch_size", "image_size", "sequence_length", "classes")  # of the spec, where the function asks


def python_parts(spec: TrainingSpec, *, name: str, stage: Stage) -> TrainingParts:
    """What ``FILE:FUNCTION`` returns; what it leaves out is chosen, and said.

    Raises ``TracerError``: ``bad_model``, ``function_missing``; and whatever the file itself raises.
    """
    file, _, function_name = name.rpartition(":")
    if not file or not function_name:
        raise TracerError("bad_model", f"python:{name} names no function: write python:FILE:FUNCTION.")
    module = _load(Path(file), shown=file)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise TracerError("function_missing", _no_function(module, file, function_name))
    where = f"{file}:{function_name}"
    arguments = _arguments(function, spec, where=where)
    try:
        returned = construct(lambda: function(**arguments), stage=stage)
    except SystemExit:
        raise TracerError("bad_model", f"{file}: {function_name} ended the program instead of returning.") from None
    named = _named(returned, where=f"{file}: {function_name}")
    parts = _parts(named, spec, stage, where=f"{file}: {function_name}")
    _refuse_unused(spec, {*arguments, *_asked_by_batch(named, parts.model, spec)}, where=where)
    return parts


def _load(path: Path, *, shown: str) -> ModuleType:
    """Import a file as Python would from its own folder; once, as long as it does not change."""
    if not path.is_file():
        raise TracerError("bad_model", f"There is no file {shown}.")
    path = path.resolve()
    name = path.stem if path.stem.isidentifier() else "user_training"
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    if known is not None or name in sys.stdlib_module_names:
        name = f"user_{name}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise TracerError("bad_model", f"{shown} is no Python file.")
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    try:
        found.loader.exec_module(module)
    except SystemExit:
        del sys.modules[name]
        raise TracerError(
            "bad_model", f"{shown} ended the program when it was imported: guard it by if __name__ == '__main__'."
        ) from None
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _no_function(module: ModuleType, file: str, wanted: str) -> str:
    own = [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    ]
    hint = f"; it has {', '.join(own)}" if own else ""
    return f"{file} has no function {wanted!r}{hint}."


def _arguments(function: Callable[..., Any], spec: TrainingSpec, *, where: str) -> dict[str, Any]:
    """The user's arguments by name, and what the form says where the function has a parameter for it."""
    told = {name: value for name in _TOLD if (value := getattr(spec, name)) is not None}
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return dict(spec.arguments)
    any_name = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    for name in spec.arguments:
        if name not in parameters and not any_name:
            raise TracerError("bad_spec", f"{where} takes no argument {name!r}.")
    given = {**{name: value for name, value in told.items() if name in parameters}, **spec.arguments}
    missing = [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and name not in given
    ]
    if missing:
        raise TracerError("bad_spec", f"{where} needs the argument {missing[0]!r}.")
    return given


def _named(returned: Any, *, where: str) -> dict[str, Any]:
    """What was returned, by name. In a tuple the order counts for functions only."""
    if isinstance(returned, nn.Module):
        return {"model": returned}
    if isinstance(returned, Mapping):
        unknown = [str(name) for name in returned if name not in _NAMES]
        if unknown:
            raise TracerError("bad_model", f"{where} returned {unknown[0]!r}; known names are {', '.join(_NAMES)}.")
        return dict(returned)
    if isinstance(returned, (tuple, list)):
        return _from_order(returned, where=where)
    _refuse_class(returned, where=where)
    values = {name: getattr(returned, name) for name in _NAMES if hasattr(returned, name)}
    if "model" not in values:
        raise TracerError("bad_model", f"{where} returned a {type(returned).__name__}; expected is {EXPECTED}.")
    return values


def _refuse_class(value: Any, *, where: str) -> None:
    """Of a class in place of what it makes, which could be called like a function."""
    for kind, what in ((torch.optim.Optimizer, "an optimizer"), (nn.Module, "a model")):
        if isinstance(value, type) and issubclass(value, kind):
            raise TracerError("bad_model", f"{where}: return {what}, not the class {value.__name__}.")


def _from_order(returned: tuple[Any, ...] | list[Any], *, where: str) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for value in returned:
        _refuse_class(value, where=where)
        if isinstance(value, nn.Module) and "model" not in named:
            named["model"] = value
        elif isinstance(value, torch.optim.Optimizer) and "optimizer" not in named:
            named["optimizer"] = value
        elif callable(value) and not isinstance(value, nn.Module):
            name = "batch" if "step" in named else "step"
            if name in named:
                raise TracerError("bad_model", f"{where} returned more than two functions; expected is {EXPECTED}.")
            named[name] = value
        elif isinstance(value, (torch.Tensor, tuple, list, Mapping)) and "inputs" not in named:
            named["inputs"] = value
        elif value is not None:
            raise TracerError(
                "bad_model", f"{where} returned a {type(value).__name__} too much; expected is {EXPECTED}."
            )
    return named


def _parts(named: dict[str, Any], spec: TrainingSpec, stage: Stage, *, where: str) -> TrainingParts:
    model, optimizer = named.get("model"), named.get("optimizer")
    for value in (model, optimizer):
        _refuse_class(value, where=where)
    if not isinstance(model, nn.Module):
        raise TracerError("bad_model", f"{where} returned no model (a torch.nn.Module); expected is {EXPECTED}.")
    if optimizer is not None and not isinstance(optimizer, torch.optim.Optimizer):
        kind = type(optimizer).__name__
        raise TracerError("bad_model", f"{where} returned as optimizer a {kind}, not a torch.optim.Optimizer.")
    for name, signature in (("step", "step(model, batch)"), ("batch", "batch(batch_size, device)")):
        if named.get(name) is not None and not callable(named[name]):
            raise TracerError(
                "bad_model", f"{where} returned as {name} a {type(named[name]).__name__}, not {signature}."
            )
    notes: list[str] = []
    head = named.get("head") or ()
    step = _checked(named["step"], where=where) if named.get("step") else _default_step(notes)
    return TrainingParts(
        model=model,
        optimizer=optimizer,
        batch=_batch(named, model, spec, notes=notes, where=where),
        micro_step=_without_cuda(step) if stage.rung == META else step,
        head=(head,) if isinstance(head, str) else tuple(head),
        notes=notes,
    )


def _batch(named: dict[str, Any], model: nn.Module, spec: TrainingSpec, *, notes: list[str], where: str) -> BatchMaker:
    """The user's own, or like their example, or of the size that the form says."""
    if named.get("batch") is not None:
        own: BatchMaker = named["batch"]
        return own
    example = named.get("inputs")
    if example is None:
        example = getattr(model, "example_input_array", None)  # Lightning's name for it
    if example is not None:
        return lambda batch_size, device: _like(example, batch_size, device, _first_size(example))
    if spec.image_size is not None:
        size = spec.image_size
        notes.append(f"batches are RGB images of {size} × {size} and one class each: the file gives none")
        return lambda count, device: (
            torch.empty(count, 3, size, size, device=device),
            torch.zeros(count, dtype=torch.int64, device=device),
        )
    if spec.sequence_length is not None:
        length = spec.sequence_length
        notes.append(f"batches are {length} tokens and as many targets: the file gives none")
        return lambda count, device: tuple(
            torch.zeros(count, length, dtype=torch.int64, device=device) for _ in range(2)
        )
    raise TracerError(
        "bad_model",
        f"{where} returned no batch: return batch(batch_size, device) too, or example tensors as inputs, "
        "or say an image size or a sequence length.",
    )


def _asked_by_batch(named: Mapping[str, Any], model: nn.Module, spec: TrainingSpec) -> tuple[str, ...]:
    """The size that a batch is made from where the user gives none."""
    given = (named.get("batch"), named.get("inputs"), getattr(model, "example_input_array", None))
    if any(value is not None for value in given):
        return ()
    return ("sequence_length",) if spec.image_size is None else ("image_size",)


def _refuse_unused(spec: TrainingSpec, used: set[str], *, where: str) -> None:
    """Sizes that neither the function nor the batch takes are said, not passed over."""
    for name in _SIZES:
        if getattr(spec, name) is not None and name not in used:
            option = name.replace("_", "-")
            raise TracerError("bad_spec", f"{where} takes no {name}: leave --{option} out, or give it that parameter.")


def _like(example: Any, batch_size: int, device: torch.device, first: int | None) -> Batch:
    """Tensors of the example's shapes and dtypes, with another first size where that is the example's batch."""
    if isinstance(example, torch.Tensor):
        shape = list(example.shape)
        if shape and shape[0] == first:
            shape[0] = batch_size
        return torch.zeros(shape, dtype=example.dtype, device=device)
    if isinstance(example, Mapping):
        return {name: _like(value, batch_size, device, first) for name, value in example.items()}
    if isinstance(example, (tuple, list)):
        return tuple(_like(value, batch_size, device, first) for value in example)
    return example


def _first_size(example: Any) -> int | None:
    if isinstance(example, torch.Tensor):
        return example.shape[0] if example.dim() else None
    values = example.values() if isinstance(example, Mapping) else example if isinstance(example, (tuple, list)) else ()
    return next((size for value in values if (size := _first_size(value)) is not None), None)


def _checked(step: Callable[..., Any], *, where: str) -> MicroStep:
    """The user's step, that must give a loss."""

    def run(model: nn.Module, batch: Batch) -> torch.Tensor:
        loss = step(model, batch)
        loss = getattr(loss, "loss", loss)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            kind = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
            raise TracerError(
                "bad_model", f"{where}: step(model, batch) must return the loss as one number, not {kind}."
            )
        return loss

    return run


def _without_cuda(step: MicroStep) -> MicroStep:
    """The step may move its batch to "cuda", which is meta here."""

    def run(model: nn.Module, batch: Batch) -> torch.Tensor:
        with MetaForCuda():
            return step(model, batch)

    return run


def _default_step(notes: list[str]) -> MicroStep:
    """Inputs into the model; its own loss, or cross entropy with integer targets, or else the mean of the output."""
    notes.append("the loss is the model's own, or cross entropy with integer targets, or the mean of the output")

    def run(model: nn.Module, batch: Batch) -> torch.Tensor:
        inputs, target = _split(batch)
        output = model(**inputs) if isinstance(inputs, Mapping) else model(*inputs)
        loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
        if isinstance(loss, torch.Tensor):
            return loss
        value = _first_tensor(output)
        if target is not None and value.dim() > target.dim():
            classes = value.shape[-1] if value.shape[:-1] == target.shape else value.shape[1]
            flat = value.reshape(-1, classes) if value.shape[:-1] == target.shape else value
            return functional.cross_entropy(flat, target.reshape(-1) if flat.dim() == 2 else target)
        return value.float().mean()

    return run


def _split(batch: Batch) -> tuple[Any, torch.Tensor | None]:
    """The last of several tensors is the target where it holds integers."""
    if isinstance(batch, Mapping):
        return batch, None
    values = list(batch) if isinstance(batch, (tuple, list)) else [batch]
    last = values[-1]
    if len(values) > 1 and isinstance(last, torch.Tensor) and last.dtype == torch.int64:
        return values[:-1], last
    return values, None


def _first_tensor(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, (tuple, list)) else ()
    for item in items:
        if isinstance(item, torch.Tensor):
            return item
    raise TracerError(
        "bad_model", f"The model returned a {type(value).__name__}: give a step(model, batch) that returns the loss."
    )
