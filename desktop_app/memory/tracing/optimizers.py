"""Optimizers by name: every class of ``torch.optim`` that a traced step can drive, and 8-bit Adam."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Final

import torch
from torch.optim import Optimizer

from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.optimizers_eight_bit import Adam8bit
from desktop_app.memory.training_spec import DEFAULT_OPTIMIZER, TrainingSpec

_REFUSED: Final = {
    "lbfgs": "lbfgs evaluates the loss many times within a step, as the values of the loss tell it; "
    "how often cannot be said without data",
    "sparseadam": "sparseadam is for sparse gradients, whose size depends on the data",
}
_NOT_IN_TORCH: Final = {
    "lion": "sgd with momentum keeps as much",
    "lamb": "adam keeps as much",
    "adabelief": "adam keeps as much",
    "sophia": "adam keeps as much",
}
# torch's own default is 0: hardly anybody trains without, and it is a copy of the parameters.
_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {"sgd": {"momentum": 0.9}}
_FUSED: Final = "fused"


def optimizer_class(name: str) -> type[Optimizer]:
    """The class of this name, in any case, with or without ``_`` and ``-``.

    Raises ``TracerError``: ``unknown_optimizer``, also for those that cannot be traced.
    """
    plain = _plain(name)
    if plain in _REFUSED:
        raise TracerError("unknown_optimizer", f"The optimizer {name} cannot be estimated: {_REFUSED[plain]}.")
    known = _classes()
    if plain in known:
        return known[plain]
    if plain in _NOT_IN_TORCH:
        raise TracerError("unknown_optimizer", f"torch.optim has no {name}; {_NOT_IN_TORCH[plain]}.")
    near = difflib.get_close_matches(plain, sorted(known), n=3, cutoff=0.6)
    hint = f"; near: {', '.join(near)}" if near else f"; there are {', '.join(sorted(known))}"
    raise TracerError("unknown_optimizer", f"No optimizer is called {name!r}{hint}.")


def make_optimizer(spec: TrainingSpec, parameters: Iterable[torch.Tensor]) -> Optimizer:
    """The optimizer that the training asks for, over parameters on their stage. Call it while that is running.

    Raises ``TracerError``: ``unknown_optimizer``, or ``bad_spec`` for arguments that it does not take.
    """
    chosen = spec.optimizer or DEFAULT_OPTIMIZER
    made = optimizer_class(chosen)
    arguments = {**_DEFAULTS.get(_plain(chosen), {}), **_arguments(spec, chosen)}
    taken = inspect.signature(made).parameters
    for name in arguments:
        if name not in taken:
            names = ", ".join(list(taken)[1:])
            raise TracerError("bad_spec", f"The optimizer {chosen} takes no {name!r}; it takes {names}.")
    try:
        return made(list(parameters), **arguments)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TracerError("bad_spec", f"The optimizer {chosen} cannot be made: {_line(error)}.") from error


def set_kernels(optimizer: Optimizer, spec: TrainingSpec) -> None:
    """The user's own optimizer with the kernels that the training asks for, where it has the choice."""
    for group in optimizer.param_groups:
        if spec.foreach is not None and "foreach" in group:
            group["foreach"] = spec.foreach
            if spec.foreach and group.get(_FUSED):
                group[_FUSED] = False
        if spec.fused is not None and _FUSED in group:
            group[_FUSED] = spec.fused
            if spec.fused:
                group["foreach"] = False


def kind_of(optimizer: Optimizer) -> str:
    """Its name in ``torch.optim``, in lower case; that of its own class where it is none of torch's."""
    kinds = type(optimizer).__mro__
    theirs = (kind for kind in kinds if kind.__module__.startswith("torch.optim") and kind is not Optimizer)
    return next(theirs, kinds[0]).__name__.lower()


def _classes() -> dict[str, type[Optimizer]]:
    ours = {"adam8bit": Adam8bit, "adamw8bit": Adam8bit}
    theirs = {
        name.lower(): value
        for name, value in vars(torch.optim).items()
        if isinstance(value, type) and issubclass(value, Optimizer) and value is not Optimizer
    }
    return {**{name: value for name, value in theirs.items() if name not in _REFUSED}, **ours}


def _arguments(spec: TrainingSpec, chosen: str) -> dict[str, Any]:
    """The user's own, lists from JSON as the tuples they were, and the choice of kernels where the class has one."""
    given = {
        name: tuple(value) if isinstance(value, list) else value for name, value in spec.optimizer_arguments.items()
    }
    taken = inspect.signature(optimizer_class(chosen)).parameters
    for name, value in (("foreach", spec.foreach), (_FUSED, spec.fused)):
        if value is None:
            continue
        if name in taken:
            given.setdefault(name, value)
        elif value:
            raise TracerError("bad_spec", f"The optimizer {chosen} has no {name} kernels.")
    if given.get(_FUSED) and given.get("foreach"):
        raise TracerError("bad_spec", "An optimizer is either fused or foreach, not both.")
    return given


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
