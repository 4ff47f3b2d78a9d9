"""What is not known about a training on a card: context, workspaces, and how far a trace is off. Torch-free."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.estimate_outlook import Unknowns
from desktop_app.memory.overheads import LAZY, ContextPrior, WorkspaceScenario, workspace_scenarios
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.training_spec import TrainingSpec

# Judgement, until fitted: each kind of value that the trace made up widens the band, since a size may hang on it.
_GUESS_WIDTH: Final = 0.01
_MOST_GUESS_WIDTH: Final = 0.05


@dataclass(frozen=True, slots=True)
class Spread:
    """Relative standard deviations of a replayed peak against a real card.

    ``residual``: with everything known; fitted over 381 published peaks of models without and with convolutions, the
    latter with their scenarios of workspaces (docs/decisions/015). ``rungs``: what each rung of the ladder adds.
    """

    residual: float = 0.04
    rungs: Mapping[str, float] = field(default_factory=lambda: {"native": 0.0, "shim": 0.0, "meta": 0.015})

    def rung_width(self, trace: Trace) -> float:
        """What this trace adds: its rung, and the values that it had to make up."""
        guessed = min(_MOST_GUESS_WIDTH, _GUESS_WIDTH * len(trace.guesses))
        return math.hypot(self.rungs.get(trace.rung, 0.0), guessed)

    def of(self, trace: Trace) -> float:
        return math.hypot(self.residual, self.rung_width(trace))


DEFAULT_SPREAD: Final = Spread()


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and how a training is to run, as far as it matters to what is not known.

    ``context_bytes``: read from the real card, ``None`` where it was not. ``workspaces_known``: a simulated card,
    which takes the median rule and no other. ``software``: ``overheads.LAZY`` or ``EAGER``. ``ranks``: cards.
    """

    card: CardSpec
    context_bytes: int | None = None
    workspaces_known: bool = False
    cudnn_benchmark: bool = False
    ranks: int = 1
    software: str = LAZY
    spread: Spread = DEFAULT_SPREAD

    def of(self, spec: TrainingSpec) -> Setting:
        """The same place for another training."""
        return dataclasses.replace(self, cudnn_benchmark=spec.cudnn_benchmark, ranks=spec.world_size)

    def contexts(self) -> tuple[int, ...]:
        """Bytes outside the allocator, equally likely, ascending."""
        if self.context_bytes is not None:
            return (self.context_bytes,)
        return ContextPrior.of(self.card, software=self.software, ranks=self.ranks).grid()

    def unknowns(self, trace: Trace) -> Unknowns:
        return Unknowns(
            contexts=self.contexts(),
            workspaces=self._workspaces(),
            spread=0.0 if self.workspaces_known else self.spread.of(trace),
        )

    def rung_width(self, trace: Trace) -> float:
        return 0.0 if self.workspaces_known else self.spread.rung_width(trace)

    def _workspaces(self) -> tuple[WorkspaceScenario, ...]:
        if self.workspaces_known:
            return (WorkspaceScenario(1.0, 1.0, self.card),)
        return workspace_scenarios(self.card, benchmark=self.cudnn_benchmark)
