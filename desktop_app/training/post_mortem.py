"""What is known of an out-of-memory error, in strings and numbers. Imported late: needs torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from desktop_app.core.steps import Category, OomReport, Phase
from desktop_app.training.fixed_demand import allocator_room, fixed_demand
from desktop_app.training.memory_errors import requested_bytes

if TYPE_CHECKING:
    from desktop_app.training.devices import TrainingDevice
    from desktop_app.training.step import StepEngine

OF_A_STEP: Final = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
BESIDE_STEPS: Final = (Phase.VALIDATION, Phase.SAVE)
_OF_THE_BATCH: Final = (Category.ACTIVATIONS, Category.INPUTS, Category.TEMPORARIES, Category.OTHER)


def write_post_mortem(
    message: str,
    *,
    t_s: float,
    step: int,
    phase: Phase,
    device: TrainingDevice,
    engine: StepEngine | None,
    batch_size: int,
) -> OomReport:
    """To be called while what was live still is. ``step`` is the last whole one. Nobody has named a cause yet."""
    memory = device.stats()
    owners = {} if memory is None else _with_ballast(memory.peak_categories, engine)
    least = None if engine is None else fixed_demand(engine.model, engine.optimizer).total_bytes
    room = allocator_room(message, memory)
    report = OomReport(
        t_s=t_s,
        step=step + (phase not in BESIDE_STEPS),
        phase=phase,
        message=message,
        requested_bytes=requested_bytes(message),
        capacity_bytes=device.capacity_bytes,
        memory=memory,
        cause=None,
        largest_owners=_ranked(owners),
        batch_size=batch_size,
        least_bytes=least,
        room_bytes=room,
    )
    too_large = phase in OF_A_STEP and least is not None and room is not None and least > room
    return as_too_large(report, engine) if too_large else report


def as_too_large(report: OomReport, engine: StepEngine | None) -> OomReport:
    """No batch fits: what a step needs, where that is more than was live."""
    owners = {Category(name): size for name, size in report.largest_owners}
    needed = {} if engine is None else fixed_demand(engine.model, engine.optimizer).owners
    largest = {category: max(owners.get(category, 0), needed.get(category, 0)) for category in {**owners, **needed}}
    return replace(report, fits_no_batch=True, largest_owners=_ranked(largest))


def is_mostly_fixed(report: OomReport, *, asked_before: bool = False) -> bool:
    """Of what was live and asked for, less than half belongs to the batch: a smaller one may not help.
    ``asked_before``: as much was asked for with a larger batch, so that is not the batch's."""
    if report.memory is None or not report.largest_owners:
        return False
    owners = dict(report.largest_owners)
    asked = report.requested_bytes or 0
    of_batch = sum(owners.get(category.value, 0) for category in _OF_THE_BATCH) + (0 if asked_before else asked)
    return 2 * of_batch < sum(owners.values()) + asked


def _with_ballast(peak: Mapping[Category, int], engine: StepEngine | None) -> dict[Category, int]:
    """What stands in for the optimizer's state is its state, where the device took it for something else."""
    owners = dict(peak)
    missing = 0 if engine is None else engine.ballast_bytes - owners.get(Category.OPTIMIZER_STATE, 0)
    moved = min(max(missing, 0), owners.get(Category.ACTIVATIONS, 0))
    if moved:
        owners[Category.OPTIMIZER_STATE] = owners.get(Category.OPTIMIZER_STATE, 0) + moved
        owners[Category.ACTIVATIONS] -= moved
    return owners


def _ranked(owners: Mapping[Category, int]) -> tuple[tuple[str, int], ...]:
    ranked = sorted(owners.items(), key=lambda item: -item[1])
    return tuple((category.value, size) for category, size in ranked if size)
