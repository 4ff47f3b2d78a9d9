"""Storages whose place on a CUDA card shows only with the op or the death that comes next.

A dropout mask has one byte per element on CUDA and a float here. The sum of two gradients is taken in place there;
under a dispatch mode autograd adds out of place and drops the first of the two at once.
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
# The first sum of two of its results takes a buffer of its own: 112 of 112 in recorded training steps.
_PRODUCT: Final = "bmm"


class StorageRef(weakref.ref):  # type: ignore[type-arg]
    """One booked storage. ``handle`` is ``None`` without memory: of size 0, or while its booking waits."""

    __slots__ = ("category", "drawn", "handle", "key", "op", "partner", "size_bytes")

    category: Category
    handle: Any
    key: int
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
    """The first operand of a gradient sum, if CUDA would add into it once nobody else holds it."""
    first, second = args[0], args[1]
    if not isinstance(second, torch.Tensor) or first.shape != second.shape or first.dtype != second.dtype:
        return None
    ref, other = (refs.get(tensor.untyped_storage()._cdata) for tensor in (first, second))  # noqa: SLF001
    if ref is None or ref.handle is None or ref.size_bytes != output.untyped_storage().nbytes():
        return None
    return None if ref.op == _PRODUCT and other is not None and other.op == _PRODUCT else ref


def _is(value: Any, ref: StorageRef) -> bool:
    return isinstance(value, torch.Tensor) and value.untyped_storage()._cdata == ref.key  # noqa: SLF001
