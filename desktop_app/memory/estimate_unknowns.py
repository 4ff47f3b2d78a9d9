"""What is not known about a training on a card: context, workspaces, and how far a trace is off. Torch-free."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.convolutions import ConvolutionCall, workspace_bytes
from desktop_app.memory.estimate_outlook import Unknowns, Workspaces
from desktop_app.memory.overheads import CUDNN_SCALES, ContextPrior
from desktop_app.memory.trace_data import Trace

# Judgement, until fitted: each kind of value that the trace made up widens the band, since a size may hang on it.
_GUESS_WIDTH: Final = 0.01
_MOST_GUESS_WIDTH: Final = 0.05


@dataclass(frozen=True, slots=True)
class Spread:
    """Relative standard deviations of a replayed peak against a real card.

    ``residual``: with everything known. ``rungs``: what each rung of the tracing ladder adds.
    """

    residual: float = 0.02
    rungs: Mapping[str, float] = field(default_factory=lambda: {"native": 0.0, "shim": 0.0, "meta": 0.015})

    def rung_width(self, trace: Trace) -> float:
        """What this trace adds: its rung, and the values that it had to make up."""
        guessed = min(_MOST_GUESS_WIDTH, _GUESS_WIDTH * len(trace.guesses))
        return math.hypot(self.rungs.get(trace.rung, 0.0), guessed)

    def of(self, trace: Trace) -> float:
        return math.hypot(self.residual, self.rung_width(trace))


DEFAULT_SPREAD: Final = Spread()
EXACT: Final = Spread(residual=0.0, rungs={})


@dataclass(frozen=True, slots=True)
class ScaledRule:
    """The median rule for cuDNN's workspace, times a factor."""

    card: CardSpec
    probability: float = 1.0
    scale: float = 1.0

    def bytes_for(self, call: ConvolutionCall) -> int:
        return int(workspace_bytes(call, card=self.card) * self.scale)


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a training is to run, as far as it matters to what is not known.

    ``context_bytes``: read from the real card, ``None`` where it was not. ``workspaces_known``: a simulated card,
    which takes the median rule and no other.
    """

    card: CardSpec
    context_bytes: int | None = None
    workspaces_known: bool = False
    cudnn_benchmark: bool = False
    spread: Spread = DEFAULT_SPREAD

    def contexts(self) -> tuple[int, ...]:
        """Bytes outside the allocator, equally likely, ascending."""
        return ContextPrior.of(self.card).grid() if self.context_bytes is None else (self.context_bytes,)

    def unknowns(self, trace: Trace) -> Unknowns:
        return Unknowns(
            contexts=self.contexts(),
            workspaces=self._workspaces(),
            spread=0.0 if self.workspaces_known else self.spread.of(trace),
        )

    def rung_width(self, trace: Trace) -> float:
        return 0.0 if self.workspaces_known else self.spread.rung_width(trace)

    def _workspaces(self) -> tuple[Workspaces, ...]:
        if self.workspaces_known:
            return (ScaledRule(self.card),)
        return tuple(ScaledRule(self.card, probability, scale) for scale, probability in CUDNN_SCALES)
