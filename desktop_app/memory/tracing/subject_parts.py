"""What every source of models hands over: the parts of a training, before it is changed and put on a stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import nn

Batch: TypeAlias = Any  # any nesting of tensors
BatchMaker: TypeAlias = Callable[[int, torch.device], Batch]
MicroStep: TypeAlias = Callable[[nn.Module, Batch], torch.Tensor]


@dataclass(slots=True, kw_only=True)
class TrainingParts:
    """One training in parts. The model has no values and is on no device yet.

    ``head``: prefixes of the parameter names of the task's own last layers. ``checkpoint``: the model's own way to
    recompute every k-th block, that says whether it could. ``keeps_loss``, ``keeps_norm``: as in ``TraceSubject``.
    ``notes``: what was assumed, one line each.
    """

    model: nn.Module
    batch: BatchMaker
    micro_step: MicroStep
    optimizer: torch.optim.Optimizer | None = None
    head: tuple[str, ...] = ()
    checkpoint: Callable[[int], bool] | None = None
    keeps_loss: bool = True
    keeps_norm: bool = False
    notes: list[str] = field(default_factory=list)


def last_layer(model: nn.Module) -> tuple[str, ...]:
    """The head of a model that nothing is known of: its last child with parameters."""
    name, children = "", [(name, child) for name, child in model.named_children() if _has_parameters(child)]
    while len(children) == 1:  # a wrapper around the model proper
        name, inner = f"{name}{children[0][0]}.", children[0][1]
        children = [(child_name, child) for child_name, child in inner.named_children() if _has_parameters(child)]
    return (f"{name}{children[-1][0]}",) if children else ()


def is_within(name: str, prefixes: tuple[str, ...]) -> bool:
    """Whether a module or parameter name is one of the prefixes or below one, by whole words between dots."""
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def _has_parameters(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None
