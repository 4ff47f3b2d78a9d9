"""Real mistakes for demonstrations. They are made in the loop as a user would make them in theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from torch import Tensor


class Fault(Protocol):
    """A mistake in the training. Objects belong to one run."""

    @property
    def retain_graph(self) -> bool:
        """Passed on to ``backward``."""

    def on_loss(self, loss: Tensor) -> None:
        """Called with the loss of each micro-step after its backward pass."""

    def clear(self) -> None:
        """Forget everything; called when the run has ended."""


class KeepsLossGraph:
    """Keeps every loss for a later average without ``detach``, and the graph with it: the activations of every
    step stay in memory. (``retain_graph``: without it, backward itself would free most of them.)"""

    retain_graph: Final = True

    def __init__(self) -> None:
        self._losses: list[Tensor] = []

    def on_loss(self, loss: Tensor) -> None:
        self._losses.append(loss)

    def clear(self) -> None:
        self._losses.clear()


FAULTS: Final[Mapping[str, Callable[[], Fault]]] = MappingProxyType({"keeps-loss-graph": KeepsLossGraph})
