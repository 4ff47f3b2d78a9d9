"""What one op does to CUDA's memory, step by step: its outputs, and what lives beside them while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import torch

from desktop_app.memory.card_limits import sm_count, threads_per_sm
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.convolutions import ConvolutionCall


class Take(NamedTuple):
    """Memory that lives only inside the op. ``optional``: without room the kernel does without it."""

    op: str
    size_bytes: int
    optional: bool = False
    convolution: ConvolutionCall | None = None


class Give(NamedTuple):
    """The ``take``-th ``Take`` of the plan ends. Those that no step ends, end with the op."""

    take: int


class Make(NamedTuple):
    """An output gets its memory. ``size_bytes``: what CUDA takes where it is not the size of the storage at hand.
    0: not on the card. ``op``: whose output it is on CUDA where that is another op.
    """

    output: int
    size_bytes: int | None = None
    op: str | None = None


class Keep(NamedTuple):
    """Memory that lives as long as an output: one that CUDA makes and the op at hand does not."""

    op: str
    size_bytes: int
    output: int


Step = Take | Give | Make | Keep
Plan = tuple[Step, ...]


class OpCall:
    """One call of an op, its arguments by the names of the schema."""

    __slots__ = ("_args", "_kwargs", "_positions", "name", "outputs")

    def __init__(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None,
        outputs: Sequence[Any],
        positions: Mapping[str, int],
    ) -> None:
        self.name = name
        self.outputs = outputs
        self._args = args
        self._kwargs = kwargs
        self._positions = positions

    def get(self, name: str, default: Any = None) -> Any:
        """An argument; ``default`` where it is not given or the op has none of this name."""
        if self._kwargs and name in self._kwargs:
            return self._kwargs[name]
        position = self._positions.get(name)
        return self._args[position] if position is not None and position < len(self._args) else default


@dataclass(frozen=True, slots=True)
class Kernels:
    """What the rules must know of the card and of the torch whose kernels run."""

    card: CardSpec | None
    sms: int
    threads: int
    capability: tuple[int, int] | None
    release: tuple[int, int]  # of torch

    @classmethod
    def of(cls, card: CardSpec | None) -> Kernels:
        spec = card or CardSpec("generic", capacity_bytes=1, total_bytes=1)
        return cls(card, sm_count(spec), threads_per_sm(spec), spec.compute_capability, torch_release())


Planner = Callable[[OpCall, Kernels], Plan | None]  # None: the outputs and nothing else

_RELEASE_PARTS: Final = 2


def torch_release() -> tuple[int, int]:
    """Major and minor number of the installed torch."""
    numbers = torch.__version__.split(".")[:_RELEASE_PARTS]
    return int(numbers[0]), int(numbers[1])


def bytes_of(tensor: torch.Tensor) -> int:
    """Size of its elements as a new tensor."""
    return tensor.numel() * tensor.element_size()


def copied(tensor: torch.Tensor, *, wanted: bool) -> tuple[Step, ...]:
    """``tensor.contiguous()`` where it must copy."""
    return (Take("clone", bytes_of(tensor)),) if wanted else ()


def makes(count: int) -> tuple[Step, ...]:
    """All outputs, in order."""
    return tuple(Make(index) for index in range(count))
