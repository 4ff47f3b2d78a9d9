"""Storages whose place on a CUDA card shows only with the op or the death that comes next.

A dropout mask has one byte per element on CUDA and a float here. The sum of two gradients is taken in place there,
and so is what backward scatters into zeros; under a dispatch mode autograd works out of place and drops the first
operand at once.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, Final

import torch

from desktop_app.core.steps import Category, Phase

MASK_MAKER: Final = "empty_like"
SUM_MAKER: Final = "add"
# FunctionsManual.cpp writes these out of place as soon as a tensor may be a subclass, which a dispatch mode counts as.
SCATTERERS: Final = frozenset({"scatter", "scatter_add", "index_put", "index_add", "masked_fill", "index_fill"})


class StorageRef(weakref.ref):  # type: ignore[type-arg]
    """One booked storage. ``handle`` is ``None`` without memory: of size 0, or while its booking waits."""

    __slots__ = ("category", "drawn", "extras", "handle", "key", "module", "op", "partner", "size_bytes")

    category: Category
    extras: tuple[Any, ...]  # handles of what lives and dies with it
    handle: Any
    key: int
    module: str
    op: str
    size_bytes: int
    partner: StorageRef | None  # whose memory a sum takes over if it dies at once
    drawn: bool  # of what may be a dropout mask: it holds random numbers


class DropoutStep(Enum):
    """Where ``dropout`` on the CPU has got to, seen from the op after its ``empty_like``."""

    DRAWN = auto()
    SCALED = auto()
    APPLIED = auto()
    ENDED = auto()  # it was something else, or dropout in place, which keeps a float mask on CUDA too


def may_be_mask(output: torch.Tensor, phase: Phase) -> bool:
    """Whether an ``empty_like`` may become the mask of a dropout (in backward: of a recomputed one)."""
    return phase in (Phase.FORWARD, Phase.BACKWARD) and output.is_floating_point()


def dropout_step(func: Any, args: Any, mask: StorageRef) -> DropoutStep:
    """What the next op means for a storage that may be a mask."""
    aten = torch.ops.aten
    if not mask.drawn:
        return DropoutStep.DRAWN if func is aten.bernoulli_.float and _is(args[0], mask) else DropoutStep.ENDED
    if func is aten.div_.Scalar and _is(args[0], mask):
        return DropoutStep.SCALED
    return DropoutStep.APPLIED if func is aten.mul.Tensor and _is(args[1], mask) else DropoutStep.ENDED


def summed_in_place(args: Any, output: torch.Tensor, refs: Mapping[int, StorageRef]) -> StorageRef | None:
    """The first operand of a gradient sum, if CUDA would add into it once nobody else holds it.

    Autograd does not add into a view, whose base holds the storage too (input_buffer.cpp: can_accumulate_inplace): so
    the first sum of the gradients of two products, which come reshaped, takes a buffer of its own.
    """
    first, second = args[0], args[1]
    if not isinstance(second, torch.Tensor) or first.shape != second.shape or first.dtype != second.dtype:
        return None
    return None if first._is_view() else written_in_place(first, output, refs)  # noqa: SLF001


def written_in_place(first: torch.Tensor, output: torch.Tensor, refs: Mapping[int, StorageRef]) -> StorageRef | None:
    """The booked storage of a first operand that an op may write into: as large as the result."""
    ref = refs.get(first.untyped_storage()._cdata)  # noqa: SLF001
    if ref is None or ref.handle is None or ref.size_bytes != output.untyped_storage().nbytes():
        return None
    return ref


def _is(value: Any, ref: StorageRef) -> bool:
    return isinstance(value, torch.Tensor) and value.untyped_storage()._cdata == ref.key  # noqa: SLF001
