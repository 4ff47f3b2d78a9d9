"""Activations computed again instead of kept: every k-th of a model's repeated blocks."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any, Final

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.subject_parts import TrainingParts

# Repeated too, but side by side or within a block: experts of a mixture, heads, parts of an attention.
_NO_BLOCK: Final = re.compile(
    r"expert|mlp|ffn|feed_?forward|head|attention|attn|norm|embed|dropout|proj", re.IGNORECASE
)
_SMALLEST: Final = 2  # blocks in a row
_EVERY: Final = {"full": 1, "every_2": 2, "every_3": 3, "every_4": 4}


def apply_checkpointing(parts: TrainingParts, *, checkpointing: str) -> None:
    """Recompute every block (``full``), or the first of every two, three or four; ``none`` changes nothing.

    The model's own way is taken where it has one, else its repeated blocks run under ``torch.utils.checkpoint``
    (not reentrant). Raises ``TracerError`` (``bad_spec``) for a model without repeated blocks.
    """
    if checkpointing == "none":
        return
    every = _EVERY[checkpointing]
    if parts.checkpoint is not None and parts.checkpoint(every):
        return
    blocks = repeated_blocks(parts.model)
    if not blocks:
        raise TracerError("bad_spec", "Checkpointing needs repeated blocks, and this model has none that can be found.")
    for block in blocks[::every]:
        recompute(block)


def repeated_blocks(model: nn.Module) -> list[nn.Module]:
    """The blocks that a model is a stack of, in order: the innermost rows of two or more modules of one class."""
    return [block for row in _rows(model) for block in row]


def recompute(block: nn.Module) -> None:
    """Let a block keep only its inputs while it trains."""
    forward = block.forward

    @functools.wraps(forward)
    def run(*args: Any, **kwargs: Any) -> Any:
        if block.training and torch.is_grad_enabled():
            return checkpoint(forward, *args, use_reentrant=False, **kwargs)
        return forward(*args, **kwargs)

    block.forward = run


def _rows(module: nn.Module) -> Iterator[list[nn.Module]]:
    children = list(module.children())
    inner = [row for child in children for row in _rows(child)]
    if not inner and isinstance(module, (nn.Sequential, nn.ModuleList)) and _is_row(children):
        yield children
    yield from inner


def _is_row(children: list[nn.Module]) -> bool:
    kinds = {type(child) for child in children}
    if len(children) < _SMALLEST or len(kinds) > 1 or _NO_BLOCK.search(kinds.pop().__name__):
        return False
    return all(any(child.children()) and next(child.parameters(), None) is not None for child in children)
