"""Parameters that are not trained."""

from __future__ import annotations

import difflib
from typing import Final

from torch import nn

from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.subject_parts import is_within

BACKBONE: Final = "backbone"


def freeze(model: nn.Module, *, frozen: tuple[str, ...], head: tuple[str, ...]) -> None:
    """Freeze the parameters under these prefixes of names; ``backbone`` is all but the head, and what is tied to it.

    Raises ``TracerError`` (``bad_spec``) for a prefix that nothing has, and where nothing is left to train.
    """
    named = list(model.named_parameters(remove_duplicate=False))  # a tied parameter has several names
    names = [name for name, _ in named]
    for prefix in frozen:
        if prefix != BACKBONE and not any(is_within(name, (prefix,)) for name in names):
            near = difflib.get_close_matches(prefix, sorted(_prefixes(names)), n=3, cutoff=0.5)
            hint = f"; near: {', '.join(near)}" if near else ""
            raise TracerError("bad_spec", f"No parameter's name begins with {prefix!r}{hint}.")
    prefixes = tuple(prefix for prefix in frozen if prefix != BACKBONE)
    heads = {id(parameter) for name, parameter in named if is_within(name, head)}
    for name, parameter in named:
        if is_within(name, prefixes) or (BACKBONE in frozen and id(parameter) not in heads):
            parameter.requires_grad_(False)  # noqa: FBT003
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise TracerError("bad_spec", f"With {', '.join(frozen)} frozen nothing is left to train.")


def _prefixes(names: list[str]) -> set[str]:
    parts = [name.split(".") for name in names]
    return {".".join(words[:length]) for words in parts for length in range(1, len(words) + 1)}
