"""Faults that grow: leaks of every shape, stairs, fragmentation. Each makes one labelled run from one draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from forecast_card import Rig
from forecast_runs import LONGEST, Draw, LabelledRun, Loop, UnfitError, labelled, lengths, room_for, runs_out

from desktop_app.core.forecasts import Cause
from desktop_app.core.units import MIB

Scene = Callable[..., LabelledRun]
_MOST_STEPS: Final = 1_600
_CLEAN_STEPS: Final = 60  # at least, before memory is fragmented enough to run out


def leak_line(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Every step keeps as much."""
    rng = draw.rng
    noise = float(rng.choice([0.0, 0.0, 0.3]))
    return _leak(draw, "line", lambda _, slope: max(512, int(slope * float(rng.lognormal(0.0, noise)))), tuning=tuning)


def leak_noisy(draw: Draw, *, tuning: bool) -> LabelledRun:
    """What is kept varies a lot: samples of different sizes."""
    rng = draw.rng
    return _leak(draw, "noisy", lambda _, slope: int(slope * float(rng.exponential(1.0))) // 512 * 512, tuning=tuning)


def leak_rare(draw: Draw, *, tuning: bool) -> LabelledRun:
    """One step in several keeps something: a branch that is not always taken."""
    rng = draw.rng
    every = int(rng.integers(2, 9))
    return _leak(draw, "rare", lambda _, slope: int(slope * every) if rng.random() < 1.0 / every else 0, tuning=tuning)


def leak_variable(draw: Draw, *, tuning: bool) -> LabelledRun:
    """A line under steps of every length."""
    return _leak(draw, "variable", lambda _, slope: max(512, int(slope)), tuning=tuning, varied=True)


def leak_late(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Long level, then a line: a new phase of the training has begun."""
    return _leak(
        draw, "late", lambda _, slope: max(512, int(slope)), tuning=tuning, starts=int(draw.rng.integers(150, 500))
    )


def _leak(
    draw: Draw,
    kind: str,
    kept: Callable[[int, float], int],
    *,
    tuning: bool,
    varied: bool = False,
    starts: int = 0,
) -> LabelledRun:
    largest = draw.rounded(LONGEST * draw.size) if varied else draw.size
    fill = float(draw.rng.uniform(0.4, 0.93)) * (0.8 if varied else 1.0)
    capacity, others = room_for(draw, fill, size=largest)
    steps = draw.log_uniform(90, 900)
    slope = (1.0 - fill) * capacity / steps
    rig = draw.rig(capacity, others_bytes=others, total_steps=int(3 * steps) + starts, per_epoch=None)
    rig.build()
    loop = Loop.drawn(rig, draw)
    loop.sizes = lengths(draw) if varied else None
    onset = [0]

    def scene() -> Iterator[int]:
        for number in loop.run(min(_MOST_STEPS, int(2 * steps) + 200) + starts):
            if number >= starts:
                onset[0] = onset[0] or len(rig.rows)
                size = kept(number, slope)
                loop.kept = (size,) if size > 0 else ()
            yield number

    oom = runs_out(rig, scene())
    return labelled(
        draw,
        rig,
        kind,
        Cause.LEAK,
        tuning=tuning,
        onset_row=onset[0],
        oom=oom,
        grows=True,
        grown_bytes_per_step=slope,
    )


def leak_epoch_ramp(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Meters keep what they are given until the epoch ends; a later epoch is too long for the card."""
    per_epoch = int(draw.log_uniform(120, 500))
    fill = float(draw.rng.uniform(0.5, 0.9))
    capacity, others = room_for(draw, fill)
    slope = (1.0 - fill) * capacity / (per_epoch * float(draw.rng.uniform(0.5, 0.85)))
    rig = draw.rig(capacity, others_bytes=others, total_steps=8 * per_epoch, per_epoch=per_epoch)
    rig.build()
    loop = Loop.drawn(rig, draw, per_epoch=per_epoch, quiet=True)

    def scene() -> Iterator[int]:
        for number in loop.run(2 * per_epoch):
            loop.kept = (int(slope),)
            yield number

    oom = runs_out(rig, scene())
    return labelled(draw, rig, "epoch_ramp", Cause.LEAK, tuning=tuning, onset_row=1, oom=oom, grows=True)


def leak_stairs(draw: Draw, *, tuning: bool) -> LabelledRun:
    """A riser every so many steps that no event explains: a table that is logged, a cache that is renewed."""
    return _stairs(draw, Cause.LEAK, tuning=tuning)


def validation_stairs(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Every validation leaves its outputs behind."""
    return _stairs(draw, Cause.VALIDATION, tuning=tuning)


def save_stairs(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Every save leaves a copy on the card."""
    return _stairs(draw, Cause.CHECKPOINT_SAVE, tuning=tuning)


def _stairs(draw: Draw, cause: Cause, *, tuning: bool) -> LabelledRun:
    rng = draw.rng
    risers, distance = int(rng.integers(5, 16)), int(draw.log_uniform(12, 80))
    fill = float(rng.uniform(0.4, 0.85))
    capacity, others = room_for(draw, fill)
    jump = int((1.0 - fill) * capacity / risers)
    rig = draw.rig(capacity, others_bytes=others, total_steps=3 * risers * distance)
    rig.build()
    loop = Loop.drawn(rig, draw, per_epoch=0, quiet=True)
    onset = [0]

    def scene() -> Iterator[int]:
        for number in loop.run(2 * (risers + 4) * distance):
            if (number + 1) % distance == 0:
                onset[0] = onset[0] or len(rig.rows)
                _rise(rig, draw, cause, jump)
            yield number

    oom = runs_out(rig, scene())
    return labelled(draw, rig, "stairs", cause, tuning=tuning, onset_row=onset[0], oom=oom, grows=True)


def _rise(rig: Rig, draw: Draw, cause: Cause, jump: int) -> None:
    if cause is Cause.VALIDATION:
        rig.validate(3, rig.setup.size, kept_after=jump)
    elif cause is Cause.CHECKPOINT_SAVE:
        rig.save(kept_after=jump)
    else:
        for size in (jump // 2, jump - jump // 2) if draw.chance(0.5) else (jump,):
            rig.hold(size)


def fragmentation_small(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Small blocks that live long move one by one from where they were made together into the midst of large ones.

    What is live stays level; idle memory grows in pieces that no request fits into.
    """
    return _fragmentation(draw, "small", tuning=tuning, pin=(1.1, 5.0), in_turn=True)


def fragmentation_large(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Fewer and larger blocks, renewed in no order: a cache of features."""
    return _fragmentation(draw, "large", tuning=tuning, pin=(2.0, 24.0), in_turn=False)


def _fragmentation(draw: Draw, kind: str, *, tuning: bool, pin: tuple[float, float], in_turn: bool) -> LabelledRun:
    rng = draw.rng
    spread = float(rng.uniform(0.05, 0.2))
    largest = draw.rounded(LONGEST * draw.size)
    per_step = int(rng.integers(1, 5))
    pins = int(per_step * draw.log_uniform(120, 300)) if in_turn else int(rng.integers(30, 120))
    need = draw.footprint(largest).live_peak_bytes + int(pins * sum(pin) / 2 * MIB)
    rig = draw.rig(float(rng.uniform(1.02, 1.4)) * need + draw.context_bytes, total_steps=1000)
    loop = Loop.drawn(rig, draw, per_epoch=0, quiet=True)
    loop.sizes = lengths(draw, spread=spread)
    onset = 0

    def scene() -> Iterator[int]:
        nonlocal onset
        rig.build()
        blocks = [rig.hold(int(rng.uniform(*pin) * MIB)) for _ in range(pins)]
        for number in loop.run(400):
            blocks.extend(loop.held)
            rig.let_go([blocks.pop(0 if in_turn else int(rng.integers(0, len(blocks)))) for _ in loop.held])
            if number >= 5:
                onset = onset or len(rig.rows)
                loop.kept = tuple(int(rng.uniform(*pin) * MIB) for _ in range(per_step))
            yield number

    oom = runs_out(rig, scene())
    if oom and not _fragments(rig):
        raise UnfitError
    return labelled(draw, rig, kind, Cause.FRAGMENTATION, tuning=tuning, onset_row=onset, oom=oom, grows=True)


def _fragments(rig: Rig) -> bool:
    """It did not begin too tight: idle memory grew for a while, and what is live did not."""
    steps = [row for row in rig.rows if row.phase == "step"]
    if len(steps) < _CLEAN_STEPS:
        return False
    quarter = len(steps) // 4
    idle = [sum(row.idle_split_bytes or 0 for row in part) / quarter for part in (steps[:quarter], steps[-quarter:])]
    return idle[1] > 1.25 * idle[0] + 64 * MIB


FAULTS: Final[tuple[tuple[Scene, int], ...]] = (
    (leak_line, 24),
    (leak_noisy, 10),
    (leak_rare, 8),
    (leak_variable, 10),
    (leak_late, 8),
    (leak_epoch_ramp, 8),
    (leak_stairs, 16),
    (validation_stairs, 20),
    (save_stairs, 20),
    (fragmentation_small, 34),
    (fragmentation_large, 28),
)
