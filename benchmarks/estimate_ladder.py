"""The ladder: the largest batch of each training that ran on a card, against P(fits) of every rung.

What the software of the ladder held outside the allocator is fitted like that of the other tables, without the model
that is judged. A ladder says only on which side of the card each rung was, so that the constant, and how far a replay
is off, are distributions by how likely they make it all: docs/decisions/033.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import estimate_truth as truth
import numpy as np
from estimate_sets import RTX_3090, outlook_of
from estimate_traces import Job, Traces

from desktop_app.core.units import MIB
from desktop_app.memory.estimate_family import TraceFamily
from desktop_app.memory.estimate_outlook import FloatArray, workspace_sizes
from desktop_app.memory.estimate_replay import replay_table
from desktop_app.memory.estimate_table import EventTable
from desktop_app.memory.overheads import workspace_scenarios
from desktop_app.memory.training_spec import TrainingSpec

# timm's benchmark script on torch 1.12: momentum without weight decay, the attention of its time, cudnn.benchmark on.
# It calls zero_grad() as it is, which kept the gradients until torch 2.0.
LADDER = {
    "optimizer": "sgd",
    "optimizer_arguments": {"lr": 1e-4, "momentum": 0.9, "foreach": False},
    "set_to_none": False,
    "validates": False,
    "precision": "fp16",
    "attention": "math",
    "cudnn_benchmark": True,
}
BATCHES = (8, 32)
RISK = 0.05
_CONTEXTS_MIB = np.arange(800, 4001, 50)
_SPREADS = np.array((0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05))
_POINTS = 21  # odd: the one in the middle is the median
_WILD = 0.01  # rungs whose outcome no constant explains
_EXACT = 0.002  # of the smallest room


@dataclass(frozen=True, slots=True)
class Rung:
    """One row of the ladder: the rung that is called the largest to run, and P(fits) of every rung."""

    row: truth.LadderRow
    estimated: int | None
    chances: dict[int, float]
    context_mib: int
    spread: float

    @property
    def distance(self) -> int:
        """Rungs below the truth; negative where something is said to run that did not."""
        position = len(truth.RUNGS) if self.estimated is None else truth.RUNGS.index(self.estimated)
        return position - truth.RUNGS.index(self.row.largest)


@dataclass(frozen=True, slots=True)
class _Traced:
    row: truth.LadderRow
    family: TraceFamily
    needs_mib: dict[int, float]  # the smallest room of the largest rung that ran, and of the next one


def ladder_jobs(rows: Sequence[truth.LadderRow]) -> list[Job]:
    return [(_spec(row, batch), RTX_3090) for row in rows for batch in BATCHES]


def _spec(row: truth.LadderRow, batch: int) -> TrainingSpec:
    return TrainingSpec(
        model=f"timm:{row.model}", image_size=row.image, channels_last=row.channels_last, batch_size=batch, **LADDER
    )


def judge_ladder(traces: Traces, rows: Sequence[truth.LadderRow]) -> list[Rung]:
    """From two traces of each training, at the batch sizes of the ladder."""
    traces.ask(ladder_jobs(rows))
    traced = []
    for row in rows:
        pair = [traces.get(_spec(row, batch), RTX_3090) for batch in BATCHES]
        if pair[0] is None or pair[1] is None:
            continue
        family = TraceFamily.between(pair[0], pair[1])
        if family is None:
            traces.errors[f"timm:{row.model}"] = "two batch sizes do different things"
            continue
        place = truth.RUNGS.index(row.largest)
        decisive = truth.RUNGS[max(0, place - 1) : place + 1]
        traced.append(_Traced(row, family, {rung: _smallest_room(family.at(rung)) / MIB for rung in decisive}))
    likelihoods = [_likelihoods(one) for one in traced]
    found = []
    for one in traced:
        others = [each for other, each in zip(traced, likelihoods, strict=True) if other.row.model != one.row.model]
        if others:
            found.append(_judge(one, *_posterior(np.sum(others, axis=0))))
    return found


def _posterior(likelihoods: FloatArray) -> tuple[tuple[int, ...], float]:
    """Equally likely contexts in MiB, and the expected spread: two hundred outcomes leave some doubt about both."""
    weights = np.exp(likelihoods - likelihoods.max())
    passed = np.cumsum(weights.sum(axis=1)) / weights.sum()
    middles = (np.arange(_POINTS) + 0.5) / _POINTS
    contexts = tuple(int(_CONTEXTS_MIB[place]) for place in np.searchsorted(passed, middles))
    return contexts, float((weights.sum(axis=0) * _SPREADS).sum() / weights.sum())


def _judge(one: _Traced, contexts_mib: tuple[int, ...], spread: float) -> Rung:
    chances: dict[int, float] = {}
    scenarios = workspace_scenarios(RTX_3090, benchmark=True)
    contexts = tuple(context * MIB for context in contexts_mib)
    for rung in truth.RUNGS:  # until it is sure: what is smaller fits too
        outlook = outlook_of(one.family.at(rung), RTX_3090, contexts, scenarios, spread)
        chances[rung] = outlook.fits_probability
        if chances[rung] >= 1 - 1e-6:
            break
    for rung in truth.RUNGS[len(chances) :]:
        chances[rung] = 1.0
    estimated = next((rung for rung in truth.RUNGS if chances[rung] >= 1 - RISK), None)
    return Rung(one.row, estimated, chances, contexts_mib[_POINTS // 2], spread)


def _smallest_room(table: EventTable) -> int:
    """The least that the allocator can live in, bytes: with workspaces by the rule where there is room for them."""
    sizes = workspace_sizes(table, workspace_scenarios(RTX_3090, benchmark=True)[1])
    low, high = table.least_live_bytes(), replay_table(table, sizes).reserved_peak_bytes
    if low > 2 * RTX_3090.capacity_bytes or not replay_table(table, sizes, limit_bytes=low).out_of_memory:
        return low
    while high - low > _EXACT * high:
        middle = (low + high) // 2
        if replay_table(table, sizes, limit_bytes=middle).out_of_memory:
            low = middle
        else:
            high = middle
    return high


def _likelihoods(one: _Traced) -> FloatArray:
    """Logarithms of how likely this row's outcomes are, by context (rows) and spread (columns)."""
    room = RTX_3090.capacity_bytes / MIB - _CONTEXTS_MIB[:, None]
    normal = np.vectorize(NormalDist().cdf)
    total = np.zeros((len(_CONTEXTS_MIB), len(_SPREADS)))
    for rung, need in one.needs_mib.items():
        runs = normal((room / need - 1) / _SPREADS[None, :])
        chance = runs if rung <= one.row.largest else 1 - runs
        total += np.log(_WILD / 2 + (1 - _WILD) * chance)
    return total
