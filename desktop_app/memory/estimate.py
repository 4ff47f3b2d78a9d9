"""What a training will need on a card before its first step: a distribution, a verdict and the largest batch.

Two steps are traced by whoever can (``TraceSource``), replayed in the allocator replica, and joined with what is not
known. Torch-free.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from desktop_app.core.forecasts import Estimate, Lever
from desktop_app.core.steps import Phase
from desktop_app.memory.advice import find_levers
from desktop_app.memory.allocator_settings import DEFAULT_SETTINGS, AllocatorSettings
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.estimate_outlook import Outlook
from desktop_app.memory.estimate_replay import owners_at
from desktop_app.memory.estimate_steady import steady
from desktop_app.memory.estimate_table import PHASES, EventTable
from desktop_app.memory.estimate_unknowns import DEFAULT_SPREAD, Setting, Spread
from desktop_app.memory.formula import FormulaFacts, estimate_by_formula
from desktop_app.memory.largest_batch import MOST, BatchAnswer, BatchSearch
from desktop_app.memory.module_tree import module_tree
from desktop_app.memory.overheads import LAZY
from desktop_app.memory.step_timeline import step_timeline
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.trace_errors import UntraceableError
from desktop_app.memory.training_spec import TrainingSpec

TraceSource: TypeAlias = Callable[[TrainingSpec, CardSpec], Trace]
Progress: TypeAlias = Callable[[Estimate], None]

PENDING: Final = "pending"  # of an answer whose largest batch is still being searched
WARN_RETURNS_CACHE: Final = "returns_cache"  # it runs, but has to give its cache back to the driver again and again
WARN_NOT_CONFIRMED: Final = "batch_search_limited"  # the largest batch is what was seen to fit, not the limit
WARN_LIMITED_BY_DATA: Final = "batch_limited_by_data"
WARN_SEARCH_ENDED: Final = "batch_search_ended"  # the largest batch is where the search ends: that many or more


def estimate(
    spec: TrainingSpec,
    card: CardSpec,
    *,
    trace: TraceSource,
    others_bytes: int = 0,
    risk: float = 0.05,
    context_bytes: int | None = None,
    workspaces_known: bool = False,
    levers: bool = False,
    progress: Progress | None = None,
    most_batch: int | None = None,
    allocator: AllocatorSettings = DEFAULT_SETTINGS,
    software: str = LAZY,
    spread: Spread = DEFAULT_SPREAD,
    facts: FormulaFacts | None = None,
) -> Estimate:
    """Estimate one training on one card.

    ``others_bytes``: held by other processes now. ``risk``: accepted probability that the largest batch does not run.
    ``context_bytes`` replaces the prior where it has been read from the real card; with ``workspaces_known`` too (a
    simulated card) the answer is exact. ``most_batch``: there are no more samples. ``software``: how CUDA loads
    kernels (``overheads.LAZY``, ``EAGER``). ``facts``: what is known of a model that cannot be traced, where the
    tracer does not know it. ``progress`` gets the answer as it grows: first with ``PENDING`` among its warnings, then
    with the largest batch, then after each lever; what it raises ends the estimate.

    What cannot be traced is estimated by formula, or abstained from: the verdict is ``CANNOT_SAY``. Raises
    ``TracerError`` where no trace came about for another reason.
    """
    started_s = time.perf_counter()
    setting = Setting(card, context_bytes, workspaces_known, software=software, spread=spread).of(spec)
    try:
        base = trace(spec, card)
    except UntraceableError as error:
        seconds = time.perf_counter() - started_s
        if facts is None and error.facts:
            facts = FormulaFacts(**error.facts)
        return estimate_by_formula(spec, setting, facts, op=error.op, others_bytes=others_bytes, seconds=seconds)
    room_bytes = max(0, card.capacity_bytes - others_bytes)
    outlook = Outlook(EventTable.of(steady(base)), setting.unknowns(base), room_bytes=room_bytes, settings=allocator)
    job = _Job(spec, setting, base, outlook, others_bytes, allocator, started_s, progress)
    answer = job.first_answer()
    job.tell(dataclasses.replace(answer, warnings=(*answer.warnings, PENDING)))
    search = BatchSearch(
        lambda batch: trace(spec.changed(batch_size=batch), card),
        outlook.unknowns,
        room_bytes=room_bytes,
        risk=risk,
        most=MOST if most_batch is None else max(1, most_batch),
        settings=allocator,
    )
    answer = job.with_batch(answer, search.run(base), most_batch=most_batch)
    if not levers:
        return answer
    job.tell(answer)
    found: list[Lever] = []
    for lever in find_levers(spec, setting, outlook, base, source=trace, allocator=allocator):
        found.append(lever)
        answer = dataclasses.replace(answer, levers=tuple(sorted(found, key=lambda lever: -lever.saved_bytes)))
        job.tell(answer)
    return answer


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """One estimate on its way."""

    spec: TrainingSpec
    setting: Setting
    trace: Trace
    outlook: Outlook
    others_bytes: int
    allocator: AllocatorSettings
    started_s: float
    progress: Progress | None

    def tell(self, answer: Estimate) -> None:
        if self.progress is not None:
            self.progress(answer)

    def first_answer(self) -> Estimate:
        """Everything but the largest batch and the levers."""
        outlook, trace, middle = self.outlook, self.trace, self.outlook.middle
        peak_index = middle.peak_index
        phases = outlook.phases()
        return Estimate(
            live_peak_bytes=outlook.live(),
            reserved_peak_bytes=outlook.reserved(),
            device_peak_bytes=outlook.device(),
            capacity_bytes=self.setting.card.capacity_bytes,
            others_bytes=self.others_bytes,
            fits_probability=outlook.fits_probability,
            verdict=outlook.verdict(),
            batch_size=trace.batch_size,
            largest_batch=None,
            peak_phase=PHASES[int(outlook.table.phases[peak_index])] if peak_index >= 0 else Phase.BUILD,
            phases={phase: peaks.device.p50 for phase, peaks in phases.items()},
            categories=owners_at(outlook.table, middle, peak_index),
            context_bytes=outlook.unknowns.context_bytes,
            idle_bytes=middle.reserved_peak_bytes - middle.live_peak_bytes,
            optimizer_demand_bytes=trace.optimizer_demand_bytes(),
            rung=trace.rung,
            seconds=time.perf_counter() - self.started_s,
            warnings=(*trace.warnings, *((WARN_RETURNS_CACHE,) if outlook.gives_back else ())),
            phase_peaks=phases,
            modules=module_tree(trace.modules, outlook.table, middle, index=peak_index),
            timeline=step_timeline(outlook.table, middle, title=self.spec.model),
            kernels_assumed=trace.kernels_assumed,
            guesses=trace.guesses,
            rung_width=self.setting.rung_width(trace),
        )

    def with_batch(self, answer: Estimate, found: BatchAnswer, *, most_batch: int | None) -> Estimate:
        warnings = list(answer.warnings)
        if not found.confirmed:
            warnings.append(WARN_NOT_CONFIRMED)
        if most_batch is not None and found.largest == most_batch and found.next_batch is None:
            warnings.append(WARN_LIMITED_BY_DATA)
        if most_batch is None and found.largest == MOST and found.next_batch is None:
            warnings.append(WARN_SEARCH_ENDED)
        seconds = time.perf_counter() - self.started_s
        return dataclasses.replace(answer, largest_batch=found.largest, warnings=tuple(warnings), seconds=seconds)
