"""Runs in which all is well, of the kinds that look like trouble. None of them runs out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from forecast_around import host_columns
from forecast_card import Block, Rig
from forecast_faults import Scene
from forecast_runs import LONGEST, Draw, LabelledRun, Loop, UnfitError, labelled, lengths, room_for, runs_out

from desktop_app.core.steps import Phase
from desktop_app.core.units import GIB, MIB

_DAY_S: Final = 86_400.0
_CLEAR_STEPS: Final = 28  # fewer than the 40 within which a leak is to be flagged, less those of the start
_CLEAR_SHARE: Final = 0.007  # of the card: less than the 1 % that a leak may take


@dataclass(slots=True)
class _Held:
    """Something whose size is set anew at every step, in blocks: a cache, a meter."""

    rig: Rig
    blocks: list[Block] = field(default_factory=list)
    held_bytes: int = 0

    def set(self, wanted: float) -> None:
        if wanted - self.held_bytes >= 512:
            size = int(wanted - self.held_bytes)
            self.blocks.append(self.rig.hold(size))
            self.held_bytes += size
        elif wanted < 0.5 * self.held_bytes:
            self.rig.let_go(self.blocks)
            self.blocks, self.held_bytes = [], 0
            if wanted >= 512:
                self.set(wanted)


def _run(
    draw: Draw,
    kind: str,
    *,
    tuning: bool,
    fill: float,
    steps: int,
    each: Callable[[Loop, int], None] | None = None,
    varied: bool = False,
    per_epoch: int | None = None,
    largest: float | None = None,
    prepare: Callable[[Loop], None] | None = None,
    total_steps: int | None = None,
) -> LabelledRun:
    largest = draw.rounded(LONGEST * draw.size) if varied and largest is None else largest
    capacity, others = room_for(draw, fill * (0.75 if varied else 1.0), size=largest)
    rig = draw.rig(
        capacity,
        others_bytes=others,
        total_steps=total_steps if total_steps is not None else steps,
        per_epoch=per_epoch,
    )
    rig.build()
    loop = Loop.drawn(rig, draw, per_epoch=per_epoch)
    loop.sizes = lengths(draw) if varied else None
    if prepare is not None:
        prepare(loop)

    def scene() -> Iterator[int]:
        for number in loop.run(steps):
            if each is not None:
                each(loop, number)
            yield number

    oom = runs_out(rig, scene())
    return labelled(draw, rig, kind, None, tuning=tuning, onset_row=None, oom=oom)


def _room(draw: Draw, fill: float) -> float:
    """About what is free on the card at this fill."""
    own = draw.context_bytes + draw.footprint().reserved_peak_bytes
    return (1.0 - fill) * own / fill


def long_flat(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Nothing happens, for hours. A full card is no trouble."""
    draw.step_s = draw.log_uniform(5.0, 40.0)
    return _run(draw, "long_flat", tuning=tuning, fill=float(draw.rng.uniform(0.5, 0.985)), steps=3500)


def sawtooth(draw: Draw, *, tuning: bool) -> LabelledRun:
    """A cache fills and is emptied, again and again: troughs are level."""
    rng = draw.rng
    fill, period = float(rng.uniform(0.4, 0.85)), int(draw.log_uniform(5, 150))
    rise = float(rng.uniform(0.1, 0.5)) * _room(draw, fill)
    if period > _CLEAR_STEPS:
        # A first rise that takes longer than a leak may take to be flagged is one, unless it is small.
        rise = min(rise, _CLEAR_SHARE * _room(draw, fill) / (1.0 - fill))
    held: list[_Held] = []

    def each(loop: Loop, number: int) -> None:
        if not held:
            held.append(_Held(loop.rig))
        held[0].set(rise * (number % period) / period)

    return _run(draw, "sawtooth", tuning=tuning, fill=fill, steps=max(500, 5 * period), each=each)


def warm_up(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Grows for its first dozen steps, then stays."""
    rng = draw.rng
    fill, length = float(rng.uniform(0.4, 0.85)), int(rng.integers(5, 26))
    rise = float(rng.uniform(0.1, 0.35)) * _room(draw, fill)
    held: list[_Held] = []

    def each(loop: Loop, number: int) -> None:
        if not held:
            held.append(_Held(loop.rig))
        held[0].set(rise * min(number, length) / length)

    return _run(draw, "warm_up", tuning=tuning, fill=fill, steps=500, each=each)


def cache_stops(draw: Draw, *, tuning: bool) -> LabelledRun:
    """A cache of what has been seen grows ever more slowly, as new things become rare."""
    rng = draw.rng
    fill, constant = float(rng.uniform(0.4, 0.85)), draw.log_uniform(8, 90)
    rise = float(rng.uniform(0.08, 0.5)) * _room(draw, fill)
    lumps = int(rng.choice([512, 2 * MIB, 20 * MIB]))
    held: list[_Held] = []

    def each(loop: Loop, number: int) -> None:
        if not held:
            held.append(_Held(loop.rig))
        held[0].set(rise * (1.0 - math.exp(-number / constant)) // lumps * lumps)

    return _run(draw, "cache_stops", tuning=tuning, fill=fill, steps=600, each=each)


def evaluation_peaks(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Validation takes much more than training, each time the same, and gives it back."""
    rng = draw.rng
    fill, every = float(rng.uniform(0.4, 0.8)), int(draw.log_uniform(20, 120))
    batches = int(rng.integers(5, 40))
    each_bytes = int(float(rng.uniform(0.2, 0.8)) * _room(draw, fill) / batches)

    def each(loop: Loop, number: int) -> None:
        if (number + 1) % every == 0:
            loop.rig.validate(batches, draw.size, kept_per_batch=each_bytes)

    return _run(draw, "evaluation_peaks", tuning=tuning, fill=fill, steps=6 * every, each=each, per_epoch=0)


def variable_length(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Batches of every length, the longest with room; what is reserved grows and stays."""

    def prepare(loop: Loop) -> None:
        loop.announces = draw.chance(0.5)

    fill = float(draw.rng.uniform(0.4, 0.95))
    return _run(draw, "variable_length", tuning=tuning, fill=fill, steps=450, varied=True, prepare=prepare)


def noisy_neighbour(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Another program comes, goes and wanders, but there is room for both."""
    rng = draw.rng
    fill = float(rng.uniform(0.4, 0.8))
    room = _room(draw, fill)
    most, period = float(rng.uniform(0.2, 0.75)) * room, draw.log_uniform(10, 200)
    walk = [0.0]

    def each(loop: Loop, number: int) -> None:
        walk[0] = 0.97 * walk[0] + float(rng.normal(0.0, 0.02))
        on = 0.5 + 0.5 * math.tanh(4.0 * math.sin(number / period))
        loop.rig.others_bytes = int(loop.rig.setup.others_bytes + most * min(max(0.7 * on + walk[0], 0.0), 1.0))

    run = _run(draw, "noisy_neighbour", tuning=tuning, fill=fill, steps=800, each=each)
    if any((row.device_used_bytes or 0) >= run.capacity_bytes for row in run.rows):
        raise UnfitError
    return run


def restart(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Interrupted and resumed, several times, each time as before."""
    rng = draw.rng
    every = int(draw.log_uniform(60, 250))
    draw.step_s = draw.log_uniform(1.0, 20.0)

    def each(loop: Loop, number: int) -> None:
        if (number + 1) % every == 0:
            loop.rig.save()
            back = loop.rig.step - int(rng.integers(0, 20)) if draw.chance(0.5) else loop.rig.step
            loop.rig.restart(to_step=max(0, back), event="restart")
            loop.rig.note(Phase.BUILD, event="resume;phase_end")

    return _run(draw, "restart", tuning=tuning, fill=float(rng.uniform(0.4, 0.96)), steps=5 * every, each=each)


def start_search(draw: Draw, *, tuning: bool) -> LabelledRun:
    """cuDNN tries algorithms in the first steps: a high start, then far lower."""
    rng = draw.rng
    fill = float(rng.uniform(0.4, 0.9))
    extra = float(rng.uniform(0.3, 0.9)) * _room(draw, fill)
    length = int(rng.integers(1, 12))

    def each(loop: Loop, number: int) -> None:
        if number < length:
            loop.rig.let_go([loop.rig.hold(int(extra / (1 + number % 3)))])
            if number == length - 1:
                loop.rig.allocator.empty_cache()

    return _run(draw, "start_search", tuning=tuning, fill=fill, steps=500, each=each)


def epoch_ramps(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Meters keep what they are given until the epoch ends, and there is room for an epoch of it."""
    rng = draw.rng
    fill, per_epoch = float(rng.uniform(0.4, 0.85)), int(draw.log_uniform(60, 400))
    rise = float(rng.uniform(0.1, 0.7)) * _room(draw, fill)
    draw.knows_length = draw.knows_length or draw.chance(0.5)
    held: list[_Held] = []

    def each(loop: Loop, number: int) -> None:
        if not held:
            held.append(_Held(loop.rig))
        held[0].set(rise * ((number + 1) % per_epoch) / per_epoch)

    if not draw.knows_length:
        # Nobody can tell the first ramp from a leak that does not know how long an epoch is; it must be seen to end.
        rise = min(rise, _CLEAR_SHARE * _room(draw, fill) / (1.0 - fill))
    return _run(draw, "epoch_ramps", tuning=tuning, fill=fill, steps=4 * per_epoch, each=each, per_epoch=per_epoch)


def tiny_leak(draw: Draw, *, tuning: bool) -> LabelledRun:
    """True growth that would take ten days or more to matter."""
    rng = draw.rng
    draw.step_s = draw.log_uniform(2.0, 30.0)
    fill = float(rng.uniform(0.4, 0.95))
    slope = _room(draw, fill) * draw.step_s / (float(rng.uniform(10.0, 40.0)) * _DAY_S)

    def each(loop: Loop, _: int) -> None:
        owed[0] += slope
        if owed[0] >= 512:
            loop.kept = (int(owed[0]) // 512 * 512,)
            owed[0] -= loop.kept[0]

    owed = [0.0]
    return _run(draw, "tiny_leak", tuning=tuning, fill=fill, steps=1000, each=each, total_steps=20_000)


def tail_batches(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Short epochs, each with a last batch that is smaller."""

    def prepare(loop: Loop) -> None:
        loop.tail = float(draw.rng.uniform(0.05, 0.95))

    per_epoch = int(draw.log_uniform(4, 60))
    fill = float(draw.rng.uniform(0.4, 0.93))
    return _run(draw, "tail_batches", tuning=tuning, fill=fill, steps=500, per_epoch=per_epoch, prepare=prepare)


def saves_copy(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Saving copies the state on the card, has room and lets it go."""
    rng = draw.rng
    copy = sum(draw.shape.parameters_bytes) + sum(draw.shape.state_bytes)
    own = draw.context_bytes + draw.footprint().reserved_peak_bytes
    fill = float(rng.uniform(0.4, 0.95)) * own / (own + copy + 64 * MIB)
    every = int(draw.log_uniform(20, 150))

    def each(loop: Loop, number: int) -> None:
        if (number + 1) % every == 0:
            loop.rig.save(copy)

    return _run(draw, "saves_copy", tuning=tuning, fill=fill, steps=6 * every, each=each, per_epoch=0)


def host_busy(draw: Draw, *, tuning: bool) -> LabelledRun:
    """RAM goes up and down with caches and other programs; workers come anew each epoch."""
    rng = draw.rng
    total = int(rng.choice([16, 32, 64])) * GIB
    used, swing = float(rng.uniform(0.3, 0.6)), float(rng.uniform(0.02, 0.2))
    period = draw.log_uniform(15, 150)

    def each(loop: Loop, number: int) -> None:
        wave = swing * (0.5 + 0.5 * math.sin(number / period)) + 0.1 * (1.0 - math.exp(-number / 60.0))
        loop.rig.host = host_columns(draw, total, used * total, wave * total, kind="own")

    return _run(draw, "host_busy", tuning=tuning, fill=float(rng.uniform(0.4, 0.9)), steps=600, each=each)


def slow_loader(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Windows, a card near its top, and steps that wait for their data now and then: no spilling."""
    rng = draw.rng
    total = [0]

    def each(loop: Loop, number: int) -> None:
        if total[0] <= number and rng.random() < 0.02:
            total[0] = number + int(rng.integers(1, 12))
        loop.rig.slow = float(rng.uniform(2.0, 6.0)) if number < total[0] else 1.0

    return _run(draw, "slow_loader", tuning=tuning, fill=float(rng.uniform(0.4, 0.9)), steps=600, each=each)


def steady_pins(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Long-lived blocks come and go in the midst of the others, with room for what that wastes."""
    pins: list[Block] = []

    def each(loop: Loop, _: int) -> None:
        pins.extend(loop.held)
        if len(pins) > 20:
            loop.rig.let_go([pins.pop(int(draw.rng.integers(0, len(pins)))) for _ in loop.held])
        loop.kept = (int(draw.rng.uniform(1.1, 3.0) * MIB),)

    fill = float(draw.rng.uniform(0.35, 0.6))
    return _run(draw, "steady_pins", tuning=tuning, fill=fill, steps=400, each=each)


HEALTHY: Final[tuple[tuple[Scene, int], ...]] = (
    (long_flat, 120),
    (sawtooth, 50),
    (warm_up, 40),
    (cache_stops, 50),
    (evaluation_peaks, 40),
    (variable_length, 50),
    (noisy_neighbour, 50),
    (restart, 40),
    (start_search, 30),
    (epoch_ramps, 50),
    (tiny_leak, 40),
    (tail_batches, 30),
    (saves_copy, 30),
    (host_busy, 30),
    (slow_loader, 20),
    (steady_pins, 30),
)
