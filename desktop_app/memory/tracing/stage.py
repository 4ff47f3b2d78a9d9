"""Where a training is traced without a GPU: the three rungs behind one door.

``native``: fake CUDA tensors on a machine whose driver shows a card. ``shim``: the same where the C++ shim stands in
for the card. ``meta``: meta tensors, with CUDA's choices written out.
"""

from __future__ import annotations

import importlib
from collections import Counter
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

import torch
from torch import nn

from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.tracing.shim import shim_state
from desktop_app.memory.tracing.stage_guesses import Guesses

NATIVE: Final = "native"
SHIM: Final = "shim"
META: Final = "meta"
RUNGS: Final = (NATIVE, SHIM, META)


class Stage(Protocol):
    """The world that a traced training runs in. One thread at a time."""

    rung: str
    device: torch.device  # cuda:0 (fake) on native and shim, meta on meta
    made_up: Guesses

    @property
    def guesses(self) -> Counter[str]:
        """Values made up, by op: .item(), nonzero, …"""

    @property
    def kernels(self) -> dict[str, str]:
        """What was assumed where CUDA has a choice, as ``{"attention": "flash"}``."""

    def make(self, func: Any, args: Any, kwargs: Any) -> Any:
        """``func(*args, **kwargs)`` for an op whose results are new storages."""

    def view(self, func: Any, args: Any, kwargs: Any) -> Any:
        """``func(*args, **kwargs)`` for an op that gives views of its first argument."""

    def building(self) -> AbstractContextManager[None]:
        """Construct models here: weights without values. What needs values in a constructor raises."""

    def adopt(self, model: nn.Module) -> nn.Module:
        """The model itself, its parameters and buffers now on ``device``; ties and memory formats kept."""

    def running(self, *, precision: str = "fp32") -> AbstractContextManager[None]:
        """What a card would answer, for the time of a trace. ``precision`` as in ``TrainingSpec``."""

    def autocast(self, precision: str) -> AbstractContextManager[None]:
        """The autocast region of one forward pass; close it before ``backward()``."""


def best_rung() -> str:
    """The best rung that this process can stand on."""
    if torch.cuda.is_available() and torch.version.hip is None:
        return NATIVE
    return SHIM if shim_state().loaded else META


def import_late_parts() -> None:
    """Import what torch imports at the first optimizer step or meta kernel anyway, as long as torch itself took.

    In the middle of a trace the import machinery's frames would keep the tensors of the first step alive.
    """
    importlib.import_module("torch._dynamo")


def open_stage(card: CardSpec | None, *, rung: str | None = None, attention: str = "auto") -> Stage:
    """The stage for one card. ``rung`` asks for one rung; ``None`` takes the best there is.

    ``attention``: "auto" chooses as CUDA does, else the kernel that is taken wherever it can be. Raises ``ValueError``
    for a rung that this process cannot stand on.
    """
    import_late_parts()
    best = best_rung()
    chosen = rung or best
    if chosen not in RUNGS:
        raise ValueError(f"rung must be one of {', '.join(RUNGS)}, got {chosen!r}")
    if chosen not in (best, META):
        raise ValueError(f"no {chosen} rung here: {_why_not(chosen)}")
    if chosen == META:
        from desktop_app.memory.tracing.stage_meta import MetaStage

        return MetaStage(card, attention=attention)
    from desktop_app.memory.tracing.stage_fake import FakeCudaStage

    return FakeCudaStage(card, rung=chosen, attention=attention)


def _why_not(rung: str) -> str:
    if rung == NATIVE:
        return "torch sees no card"
    return shim_state().reason or "a card is visible"
