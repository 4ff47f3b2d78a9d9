"""Image models of timm by name, with random weights: nothing is downloaded."""

from __future__ import annotations

import difflib
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional

from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.models_construction import construct, import_library
from desktop_app.memory.tracing.stage import Stage
from desktop_app.memory.tracing.subject_parts import Batch, TrainingParts
from desktop_app.memory.training_spec import TrainingSpec

_CLASSES: Final = 1000  # ImageNet's, for models that timm keeps without a head
_SIZE: Final = (3, 224, 224)


def timm_parts(spec: TrainingSpec, *, name: str, stage: Stage) -> TrainingParts:
    """The model ``timm.create_model`` makes, trained by cross entropy on images of the size it was trained with.

    Raises ``TracerError``: ``not_installed``, ``unknown_model`` with near names, ``bad_spec`` for arguments or an
    image size that the model does not take.
    """
    timm = import_library("timm")
    _check_name(timm, name)
    if spec.sequence_length is not None:
        raise TracerError("bad_spec", f"timm:{name} takes images: leave --sequence-length out.")
    notes: list[str] = []
    defaults = _defaults(timm, name)
    arguments = dict(spec.arguments)
    classes = spec.classes or (None if defaults.get("num_classes", _CLASSES) else _CLASSES)
    if classes is not None:
        arguments.setdefault("num_classes", classes)
        if spec.classes is None:
            notes.append(f"{name} has no classifier of its own: one of {classes} classes is added")
    channels, height, width = (int(size) for size in defaults.get("input_size") or _SIZE)
    if spec.image_size is not None:
        height = width = spec.image_size
        if defaults.get("fixed_input_size"):
            arguments.setdefault("img_size", spec.image_size)
    channels = int(arguments.get("in_chans", channels))
    model = _build(timm, name, arguments, stage)
    classes = int(getattr(model, "num_classes", 0)) or classes or _CLASSES

    def batch(batch_size: int, device: torch.device) -> Batch:
        images = torch.empty(batch_size, channels, height, width, device=device)
        return images, torch.zeros(batch_size, dtype=torch.int64, device=device)

    def checkpoint(every: int) -> bool:
        return every == 1 and _checkpoint(model)

    return TrainingParts(
        model=model, batch=batch, micro_step=cross_entropy, head=_head(model), checkpoint=checkpoint, notes=notes
    )


def cross_entropy(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Cross entropy of images and classes. Several outputs (distillation, auxiliary heads) add their losses up."""
    images, targets = batch
    outputs = model(images)
    losses = [functional.cross_entropy(logits, targets) for logits in _logits(outputs)]
    loss = losses[0]
    for other in losses[1:]:
        loss = loss + other
    return loss


def _logits(outputs: Any) -> list[torch.Tensor]:
    """Two-dimensional outputs; where there are none, feature maps averaged over all but their first two dimensions."""
    found = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    if isinstance(outputs, dict):
        found = list(outputs.values())
    tensors = [output for output in found if isinstance(output, torch.Tensor)]
    flat = [output for output in tensors if output.dim() == 2]
    return flat or [output.flatten(2).mean(2) for output in tensors if output.dim() > 2]


def _check_name(timm: Any, name: str) -> None:
    """A name may carry a tag of weights (``.augreg_in21k``), which decides on the classes; a source it may not."""
    plain = name.split(".")[0]
    known = timm.list_models()
    if ":" in name or "/" in name:
        raise TracerError("unknown_model", f"{name!r} would have to be downloaded; name a model of timm itself.")
    if plain not in known and not timm.is_model(plain):
        near = difflib.get_close_matches(plain, known, n=3, cutoff=0.5)
        hint = f"; near: {', '.join(near)}" if near else ""
        raise TracerError("unknown_model", f"timm {timm.__version__} has no model {plain!r}{hint}.")


def _defaults(timm: Any, name: str) -> dict[str, Any]:
    """The model's ``default_cfg``, from before it is built: it says how."""
    try:
        found = timm.get_pretrained_cfg(name, allow_unregistered=True)
    except RuntimeError as error:  # the tag after the dot
        raise TracerError("unknown_model", f"timm {timm.__version__}: {str(error).splitlines()[0]}") from error
    values = found.to_dict() if hasattr(found, "to_dict") else dict(getattr(found, "__dict__", {}))
    return {str(key): value for key, value in values.items()}


def _build(timm: Any, name: str, arguments: dict[str, Any], stage: Stage) -> nn.Module:
    try:
        model: nn.Module = construct(lambda: timm.create_model(name, pretrained=False, **arguments), stage=stage)
    except (TypeError, ValueError, AssertionError) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise TracerError(
            "bad_spec", f"timm:{name} cannot be built with {arguments or 'its defaults'}: {line}"
        ) from error
    return model


def _checkpoint(model: nn.Module) -> bool:
    switch = getattr(model, "set_grad_checkpointing", None)
    if switch is None:
        return False
    try:
        switch(enable=True)
    except (AssertionError, NotImplementedError, TypeError):
        return False
    return True


def _head(model: nn.Module) -> tuple[str, ...]:
    """Names of what ``get_classifier`` gives back."""
    try:
        found = model.get_classifier()  # type: ignore[operator]
    except (AttributeError, NotImplementedError, TypeError):
        return ()
    wanted = [found] if isinstance(found, nn.Module) else list(found) if isinstance(found, (tuple, list)) else []
    return tuple(path for path, module in model.named_modules() if path and any(module is item for item in wanted))
