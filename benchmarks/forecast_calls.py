"""Faults that come with one call: the first optimizer step, a batch, a validation, a save, a resumed run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from forecast_card import Rig
from forecast_faults import Scene
from forecast_runs import LONGEST, Draw, LabelledRun, Loop, UnfitError, labelled, lengths, runs_out

from desktop_app.core.forecasts import Cause
from desktop_app.core.steps import Phase
from desktop_app.core.units import MIB


def optimizer_first(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Forward and backward have room, the state of the optimizer has not."""
    fp = draw.footprint()
    # By arithmetic alone there is no room: what fails by a hair, by how memory is cut up, nobody can be sure of.
    low, high = fp.before_optimizer_bytes, max(fp.optimizer_live_bytes, fp.live_peak_bytes)
    if high - low < 32 * MIB:
        raise UnfitError
    own = low + 4 * MIB + float(draw.rng.uniform(0.0, 0.85)) * (high - low - 4 * MIB) + draw.context_bytes
    others = draw.others(own)
    rig = draw.rig(own + others, others_bytes=others, total_steps=1000)
    rig.build()
    loop = Loop.drawn(rig, draw, quiet=True)
    oom = runs_out(rig, loop.run(3))
    if oom and not (rig.rows[-2].phase == "optimizer" or rig.step == 1):
        raise UnfitError
    return _call(draw, rig, "first", Cause.FIRST_OPTIMIZER_STEP, oom=oom, tuning=tuning, onset="optimizer")


def optimizer_unfrozen(draw: Draw, *, tuning: bool) -> LabelledRun:
    """The backbone trains from some step on: its state is made then."""
    fp = draw.footprint()
    state = sum(draw.shape.state_bytes)
    short = state - (fp.reserved_peak_bytes - fp.live_peak_bytes)
    if short < 64 * MIB:
        raise UnfitError
    own = fp.reserved_peak_bytes + draw.context_bytes + float(draw.rng.uniform(0.0, 0.85)) * (short - 16 * MIB)
    others = draw.others(own)
    rig = draw.rig(own + others, others_bytes=others, total_steps=1000)
    rig.build()
    loop = Loop.drawn(rig, draw, quiet=True)
    at = int(draw.rng.integers(30, 200))

    def scene() -> Iterator[int]:
        for number in loop.run(at + 4):
            if number == at:
                rig.unfreeze()
            yield number

    oom = runs_out(rig, scene())
    if rig.step < at:
        raise UnfitError
    return _call(draw, rig, "unfrozen", Cause.FIRST_OPTIMIZER_STEP, oom=oom, tuning=tuning, onset="optimizer")


def batch_announced(draw: Draw, *, tuning: bool) -> LabelledRun:
    """One far longer batch than any before; the loader says what comes next."""
    return _long_batch(draw, "announced", tuning=tuning, known_from_start=False)


def batch_known(draw: Draw, *, tuning: bool) -> LabelledRun:
    """The loader has looked through all lengths before the run."""
    return _long_batch(draw, "known", tuning=tuning, known_from_start=True)


def _long_batch(draw: Draw, kind: str, *, tuning: bool, known_from_start: bool) -> LabelledRun:
    rng = draw.rng
    varied = draw.chance(0.6)
    usual = draw.rounded(LONGEST * draw.size) if varied else draw.size
    longest = draw.rounded(float(rng.uniform(1.5, 3.0)) * usual)
    low, high = draw.footprint(usual).reserved_peak_bytes, draw.footprint(longest).live_peak_bytes
    own = float(draw.context_bytes) + (low * 1.35 if varied else low + 8 * MIB)
    own += float(rng.uniform(0.0, 0.9)) * max(0.0, high + draw.context_bytes - own)
    others = draw.others(own)
    at = int(rng.integers(30, 250))
    rig = draw.rig(own + others, others_bytes=others, total_steps=400)
    step = f",step={at + 1}" if draw.chance(0.5) else ""
    columns = ",".join(f"{name.removeprefix('batch_')}={value}" for name, value in rig.shape_columns(longest).items())
    rig.build(event=f"longest_batch:{columns}{step}" if known_from_start else "")
    loop = Loop.drawn(rig, draw, quiet=True, per_epoch=0)
    loop.announces = not known_from_start
    often = lengths(draw) if varied else lambda _: draw.size
    loop.sizes = lambda number: longest if number == at else often(number)
    oom = runs_out(rig, loop.run(at + 1))
    if rig.step < at:
        raise UnfitError
    # Known from the start: from when a few steps have shown what a batch costs. Else with the row that says so.
    onset = 6 if known_from_start else None
    return _call(draw, rig, kind, Cause.BATCH_SHAPE, oom=oom, tuning=tuning, onset="forward", row=onset)


def batch_sorted(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Sorted by length: the worst comes last."""
    return _rising(draw, "sorted", tuning=tuning, powers=float(draw.rng.uniform(0.7, 1.5)), jump=1)


def batch_growing(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Larger batches or images from time to time, on purpose."""
    return _rising(draw, "growing", tuning=tuning, powers=1.0, jump=int(draw.rng.integers(15, 40)))


def _rising(draw: Draw, kind: str, *, tuning: bool, powers: float, jump: int) -> LabelledRun:
    rng = draw.rng
    steps = int(draw.log_uniform(150, 500))
    first, last = draw.rounded(0.3 * draw.size), draw.rounded(1.6 * draw.size)
    need = draw.footprint(last).live_peak_bytes + draw.context_bytes
    others = draw.others(need)
    rig = draw.rig(float(rng.uniform(0.7, 0.95)) * need + others, others_bytes=others, total_steps=steps)
    rig.build()
    loop = Loop.drawn(rig, draw, quiet=True, per_epoch=0)
    loop.announces = True

    def size(number: int) -> float:
        share = min(1.0, (number // jump * jump / steps)) ** powers
        return draw.rounded(first + share * (last - first))

    loop.sizes = size
    oom = runs_out(rig, loop.run(steps))
    if rig.step < 60:
        raise UnfitError
    return labelled(draw, rig, kind, Cause.BATCH_SHAPE, tuning=tuning, onset_row=1, oom=oom, grows=jump == 1, call=True)


def validation_demand(draw: Draw, *, tuning: bool) -> LabelledRun:
    """The first validation, of which the trainer knows what it will take at least."""
    fp = draw.footprint()
    demand = int(float(draw.rng.uniform(1.1, 2.0)) * (fp.reserved_peak_bytes - fp.live_bytes)) + 64 * MIB
    own = float(draw.context_bytes) + fp.reserved_peak_bytes + 24 * MIB
    own += float(draw.rng.uniform(0.0, 0.85)) * max(0.0, fp.live_bytes + demand - fp.reserved_peak_bytes - 24 * MIB)
    others = draw.others(own)
    at = int(draw.rng.integers(20, 200))
    rig = draw.rig(own + others, others_bytes=others, total_steps=600, per_epoch=at)
    rig.build()
    loop = Loop.drawn(rig, draw, quiet=True, per_epoch=0)

    def scene() -> Iterator[int]:
        yield from loop.run(at)
        rig.validate(1, draw.size, demand=demand, kept_per_batch=demand)

    oom = runs_out(rig, scene())
    return _call(draw, rig, "demand", Cause.VALIDATION, oom=oom, tuning=tuning, onset="validation")


def validation_outputs(draw: Draw, *, tuning: bool) -> LabelledRun:
    """All outputs are joined on the card while validating; how many batches there are is known."""
    rng = draw.rng
    fp = draw.footprint()
    own = draw.context_bytes + fp.reserved_peak_bytes * float(rng.uniform(1.02, 1.5)) + 16 * MIB
    others = draw.others(own)
    batches = int(draw.log_uniform(40, 250))
    room = own - draw.context_bytes - fp.live_bytes
    each = int(room / (batches * float(rng.uniform(0.3, 0.9))))
    at = int(rng.integers(20, 150))
    rig = draw.rig(own + others, others_bytes=others, total_steps=600, per_epoch=at)
    rig.build()
    loop = Loop.drawn(rig, draw, quiet=True, per_epoch=0)

    def scene() -> Iterator[int]:
        yield from loop.run(at)
        rig.validate(batches, draw.size, kept_per_batch=each)

    oom = runs_out(rig, scene())
    if oom and rig.rows[-2].phase != "validation":
        raise UnfitError
    return _call(draw, rig, "outputs", Cause.VALIDATION, oom=oom, tuning=tuning, onset="validation", skip=3)


def validation_again(draw: Draw, *, tuning: bool) -> LabelledRun:
    """The first one had room; since then a part of it went to something that stays."""
    rng = draw.rng
    fp = draw.footprint()
    each = int(0.4 * (fp.reserved_peak_bytes - fp.live_bytes)) + 16 * MIB
    peak = fp.live_bytes + 6 * each
    if peak < fp.reserved_peak_bytes + 96 * MIB:
        each = (fp.reserved_peak_bytes + 96 * MIB - fp.live_bytes) // 6
        peak = fp.live_bytes + 6 * each
    own = draw.context_bytes + 1.06 * peak + 64 * MIB
    lost = int(own - draw.context_bytes - fp.live_bytes - 6 * each + float(rng.uniform(0.3, 0.8)) * each)
    others = draw.others(own)
    every = int(rng.integers(30, 120))
    rig = draw.rig(own + others, others_bytes=others, total_steps=600, per_epoch=every)
    rig.build()
    loop = Loop.drawn(rig, draw, quiet=True, per_epoch=0)
    onset = [0]

    def scene() -> Iterator[int]:
        for number in loop.run(3 * every):
            if (number + 1) % every == 0:
                rig.validate(6, draw.size, kept_per_batch=each)
            if number == every + every // 2:
                onset[0] = len(rig.rows)
                rig.hold(lost)
            yield number

    oom = runs_out(rig, scene())
    if oom and (rig.step < 2 * every - 1 or rig.rows[-2].phase != "validation"):
        raise UnfitError
    return _call(draw, rig, "again", Cause.VALIDATION, oom=oom, tuning=tuning, onset="validation", row=onset[0])


def save_demand(draw: Draw, *, tuning: bool) -> LabelledRun:
    """State is copied on the card for saving, and there is no room for a copy."""
    copy = sum(draw.shape.parameters_bytes) + (sum(draw.shape.state_bytes) if draw.chance(0.6) else 0)
    fp = draw.footprint()
    copy += fp.reserved_peak_bytes - fp.live_bytes if draw.chance(0.5) else 0
    own = float(draw.context_bytes) + fp.reserved_peak_bytes + 8 * MIB
    own += float(draw.rng.uniform(0.0, 0.85)) * max(0.0, fp.live_bytes + copy - fp.reserved_peak_bytes - 8 * MIB)
    others = draw.others(own)
    at = int(draw.rng.integers(20, 250))
    rig = draw.rig(own + others, others_bytes=others, total_steps=1000)
    rig.build()
    loop = Loop.drawn(rig, draw, quiet=True, per_epoch=0)

    def scene() -> Iterator[int]:
        yield from loop.run(at)
        rig.save(copy)

    oom = runs_out(rig, scene())
    return _call(draw, rig, "demand", Cause.CHECKPOINT_SAVE, oom=oom, tuning=tuning, onset="save")


def save_shift(draw: Draw, *, tuning: bool) -> LabelledRun:
    """The first save leaves its copy; the next step finds no room for its peak."""
    fp = draw.footprint()
    copy = sum(draw.shape.parameters_bytes) + sum(draw.shape.state_bytes)
    idle = fp.reserved_peak_bytes - fp.live_peak_bytes
    if copy < idle + 128 * MIB:
        raise UnfitError
    own = float(draw.context_bytes) + fp.reserved_peak_bytes + 8 * MIB
    own += float(draw.rng.uniform(0.0, 0.8)) * (copy - idle - 96 * MIB)
    others = draw.others(own)
    at = int(draw.rng.integers(40, 250))
    rig = draw.rig(own + others, others_bytes=others, total_steps=1000)
    rig.build()
    loop = Loop.drawn(rig, draw, quiet=True, per_epoch=0)

    def scene() -> Iterator[int]:
        yield from loop.run(at)
        rig.save(kept_after=copy)
        yield from loop.run(10)

    oom = runs_out(rig, scene())
    if oom and (rig.step != at or rig.rows[-2].phase != "save" or "phase_end" not in rig.rows[-2].event):
        raise UnfitError
    return _call(draw, rig, "shift", Cause.CHECKPOINT_SAVE, oom=oom, tuning=tuning, onset="save")


def resume_kept(draw: Draw, *, tuning: bool) -> LabelledRun:
    """A run that had room goes on from its checkpoint, which stays on the card beside the model."""
    fp = draw.footprint()
    copy = sum(draw.shape.parameters_bytes) + sum(draw.shape.state_bytes)
    if copy < fp.reserved_peak_bytes - fp.live_peak_bytes + 96 * MIB:
        raise UnfitError
    own = float(draw.context_bytes) + fp.reserved_peak_bytes + 8 * MIB
    own += float(draw.rng.uniform(0.0, 0.5)) * (fp.live_peak_bytes + copy - fp.reserved_peak_bytes)
    others = draw.others(own)
    at = int(draw.rng.integers(40, 200))
    rig = draw.rig(own + others, others_bytes=others, total_steps=1000)
    rig.build()
    loop = Loop.drawn(rig, draw, quiet=True, per_epoch=0)
    onset = [0]

    def scene() -> Iterator[int]:
        yield from loop.run(at)
        rig.save()
        rig.restart(to_step=at, event="restart")
        onset[0] = len(rig.rows)
        _load(rig, copy)
        yield from loop.run(10)

    oom = runs_out(rig, scene())
    if rig.step < at or not onset[0]:
        raise UnfitError
    return _call(draw, rig, "kept", Cause.RESUME, oom=oom, tuning=tuning, onset="build", row=onset[0])


def resume_load(draw: Draw, *, tuning: bool) -> LabelledRun:
    """A fresh process loads a checkpoint onto the card, of which the trainer knows the size."""
    copy = sum(draw.shape.parameters_bytes) + sum(draw.shape.state_bytes)
    model = sum(draw.shape.parameters_bytes)
    if copy < 64 * MIB:
        raise UnfitError
    own = draw.context_bytes + model + float(draw.rng.uniform(0.2, 0.85)) * copy
    others = draw.others(own)
    rig = draw.rig(own + others, others_bytes=others, total_steps=1000)
    rig.build()
    rig.step = int(draw.rng.integers(100, 5000))
    oom = runs_out(rig, iter(lambda: _load(rig, copy, tell=True), None))
    return _call(draw, rig, "load", Cause.RESUME, oom=oom, tuning=tuning, onset="build")


def resume_grows(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Each time the run is interrupted and goes on it holds more than the time before."""
    fp = draw.footprint()
    times = int(draw.rng.integers(4, 8))
    fill = float(draw.rng.uniform(0.55, 0.85))
    own = (draw.context_bytes + fp.reserved_peak_bytes) / fill
    more = int((1.0 - fill) * own / times) + 8 * MIB
    others = draw.others(own)
    rig = draw.rig(own + others, others_bytes=others, total_steps=3000)
    rig.build()
    loop = Loop.drawn(rig, draw, quiet=True, per_epoch=0)
    onset = [0]

    def scene() -> Iterator[int]:
        for time in range(times + 6):
            yield from loop.run(int(draw.rng.integers(25, 60)))
            rig.save()
            rig.restart(to_step=rig.step, event="restart")
            if time == 2:
                onset[0] = len(rig.rows)
            for _ in range(time + 1):
                rig.hold(more)
            rig.note(Phase.BUILD, event="resume;phase_end")

    oom = runs_out(rig, scene())
    if not onset[0]:
        raise UnfitError
    return _call(draw, rig, "grows", Cause.RESUME, oom=oom, tuning=tuning, onset="build", row=onset[0])


def _load(rig: Rig, copy_bytes: int, *, tell: bool = False) -> int:
    if tell:
        rig.note(Phase.BUILD, event=f"resume;demand:bytes={copy_bytes}")
    held = 0
    while held < copy_bytes:
        rig.hold(min(32 * MIB, copy_bytes - held))
        held += 32 * MIB
    rig.note(Phase.BUILD, event="resume;phase_end")
    return held


def _call(
    draw: Draw,
    rig: Rig,
    kind: str,
    cause: Cause,
    *,
    oom: bool,
    tuning: bool,
    onset: str,
    row: int | None = None,
    skip: int = 0,
) -> LabelledRun:
    """``onset`` is the phase whose last row but ``skip`` is the first from which it could be known."""
    if row is None:
        places = [place for place, made in enumerate(rig.rows) if made.phase == onset]
        first = next((place for place in places if rig.rows[place].step == rig.rows[places[-1]].step), 0)
        row = min(first + skip, len(rig.rows) - 2)
    return labelled(draw, rig, kind, cause, tuning=tuning, onset_row=row, oom=oom, call=True)


CALLS: Final[tuple[tuple[Scene, int], ...]] = (
    (optimizer_first, 44),
    (optimizer_unfrozen, 20),
    (batch_announced, 24),
    (batch_known, 20),
    (batch_sorted, 12),
    (batch_growing, 8),
    (validation_demand, 20),
    (validation_outputs, 20),
    (validation_again, 8),
    (save_demand, 26),
    (save_shift, 16),
    (resume_kept, 26),
    (resume_load, 20),
    (resume_grows, 16),
)
