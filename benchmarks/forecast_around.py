"""Faults around the run: a neighbour on the card, memory outside the allocator, the computer's RAM, spilling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from forecast_card import RanOutError
from forecast_faults import Scene
from forecast_runs import LONGEST, Draw, LabelledRun, Loop, UnfitError, labelled, lengths, room_for, runs_out

from desktop_app.core.forecasts import Cause
from desktop_app.core.units import GIB

_KILLED_BELOW: Final = 0.02  # of the RAM: where Linux's killer has acted in the reports that gave a figure


def neighbour_line(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Another job on the card grows; ours gives its cache back between steps and needs it again."""
    return _neighbour(draw, "line", tuning=tuning, stairs=1, empties=True)


def neighbour_stairs(draw: Draw, *, tuning: bool) -> LabelledRun:
    """The same, in large pieces."""
    return _neighbour(draw, "stairs", tuning=tuning, stairs=int(draw.rng.integers(10, 40)), empties=True)


def neighbour_lengths(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Ours has batches of every length, so now and then it needs more than it holds."""
    return _neighbour(draw, "lengths", tuning=tuning, stairs=1, empties=True, varied=True)


def _neighbour(draw: Draw, kind: str, *, tuning: bool, stairs: int, empties: bool, varied: bool = False) -> LabelledRun:
    rng = draw.rng
    fill = float(rng.uniform(0.4, 0.85))
    capacity, others = room_for(draw, fill, size=draw.rounded(LONGEST * draw.size) if varied else None)
    steps = max(draw.log_uniform(90, 600), 90 / draw.step_s)
    slope = (1.0 - fill) * capacity / steps
    starts = int(rng.integers(5, 200))
    rig = draw.rig(capacity, others_bytes=others, total_steps=int(3 * steps) + starts)
    rig.empties_cache = empties
    rig.build()
    loop = Loop.drawn(rig, draw, quiet=True)
    loop.sizes = lengths(draw) if varied else None
    onset = [0]
    noise = float(rng.choice([0.0, 0.2, 1.0]))

    def scene() -> Iterator[int]:
        for number in loop.run(int(1.6 * steps) + starts + 50):
            if number >= starts:
                onset[0] = onset[0] or len(rig.rows)
                wanted = others + slope * ((number - starts) // stairs * stairs + float(rng.normal(0.0, noise)))
                free = capacity - rig.outside_bytes - rig.allocator.reserved_bytes
                rig.others_bytes = int(max(others, min(wanted, free)))
            yield number

    oom = runs_out(rig, scene())
    return labelled(draw, rig, kind, Cause.NEIGHBOUR, tuning=tuning, onset_row=onset[0], oom=oom, grows=True)


def outside_line(draw: Draw, *, tuning: bool) -> LabelledRun:
    """What the process holds beside its allocator grows with every step."""
    return _outside(draw, "line", tuning=tuning, stairs=1)


def outside_stairs(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Kernels are compiled, communicators made: in pieces."""
    return _outside(draw, "stairs", tuning=tuning, stairs=int(draw.rng.integers(10, 40)))


def _outside(draw: Draw, kind: str, *, tuning: bool, stairs: int) -> LabelledRun:
    rng = draw.rng
    fill = float(rng.uniform(0.4, 0.9))
    capacity, others = room_for(draw, fill)
    steps = max(draw.log_uniform(90, 600), 90 / draw.step_s)
    slope = (1.0 - fill) * capacity / steps
    starts = int(rng.integers(5, 100))
    rig = draw.rig(capacity, others_bytes=others, total_steps=int(3 * steps) + starts)
    rig.build()
    loop = Loop.drawn(rig, draw, quiet=True)
    onset = [0]

    def scene() -> Iterator[int]:
        for number in loop.run(int(1.3 * steps) + starts + 50):
            if number >= starts:
                onset[0] = onset[0] or len(rig.rows)
                rig.outside_bytes = draw.context_bytes + int(slope * ((number - starts) // stairs * stairs))
                if rig.device_bytes > rig.setup.capacity_bytes:
                    raise RanOutError
            yield number

    oom = runs_out(rig, scene())
    return labelled(draw, rig, kind, Cause.OUTSIDE_ALLOCATOR, tuning=tuning, onset_row=onset[0], oom=oom, grows=True)


def host_own(draw: Draw, *, tuning: bool) -> LabelledRun:
    """The process itself fills the RAM."""
    return _host(draw, "own", tuning=tuning)


def host_workers(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Its loader workers do."""
    return _host(draw, "workers", tuning=tuning)


def host_more_workers(draw: Draw, *, tuning: bool) -> LabelledRun:
    """More workers every epoch."""
    return _host(draw, "more_workers", tuning=tuning)


def host_commit(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Windows: the commit charge rises to its limit, RAM stays as it is."""
    return _host(draw, "commit", tuning=tuning)


def _host(draw: Draw, kind: str, *, tuning: bool) -> LabelledRun:
    rng = draw.rng
    capacity, others = room_for(draw, float(rng.uniform(0.3, 0.9)))
    total = int(rng.choice([16, 32, 64, 128])) * GIB
    used = float(rng.uniform(0.2, 0.7)) * total
    steps = max(draw.log_uniform(120, 500), 120 / draw.step_s)
    slope = (total * (1.0 - _KILLED_BELOW) - used) / steps
    starts = int(rng.integers(5, 100))
    rig = draw.rig(capacity, others_bytes=others, total_steps=int(3 * steps) + starts)
    loop = Loop.drawn(rig, draw, quiet=True)
    per_epoch = int(rng.integers(15, 40))
    onset = [0]

    def tell(grown: float, epochs: int) -> None:
        rig.host = host_columns(draw, total, used, grown, kind=kind, epochs=epochs)

    def scene() -> Iterator[int]:
        tell(0.0, 0)
        rig.build()
        for number in loop.run(int(1.3 * steps) + starts + 50):
            grown, epochs = max(0.0, slope * (number - starts)), max(0, number - starts) // per_epoch
            if kind == "more_workers":
                grown = slope * per_epoch * epochs
            if number >= starts:
                onset[0] = onset[0] or len(rig.rows)
            tell(grown, epochs)
            if used + grown > (1.0 - _KILLED_BELOW) * total:
                raise RanOutError
            yield number

    oom = runs_out(rig, scene())
    return labelled(draw, rig, kind, Cause.HOST_MEMORY, tuning=tuning, onset_row=onset[0], oom=oom, grows=True)


def host_columns(
    draw: Draw, total: int, used: float, grown: float, *, kind: str, epochs: int = 0, wander: float = 0.004
) -> dict[str, int]:
    """Figures of the computer when ``grown`` bytes have come on top of ``used``; page caches and others wander."""
    noise = float(draw.rng.normal(0.0, wander)) * total
    in_ram = 0.0 if kind == "commit" else grown
    now = min(max(used + in_ram + noise, 0.0), float(total))
    own, workers = 0.4 * used, 0.3 * used
    own += grown if kind in ("own", "commit") and kind != "commit" else 0.0
    workers += grown if kind in ("workers", "more_workers") else 0.0
    columns = {
        "host_used_bytes": int(now),
        "host_total_bytes": total,
        "host_available_bytes": int(total - now),
        "own_rss_bytes": int(own),
        "children_rss_bytes": int(workers),
        "children": 4 * (1 + epochs) if kind == "more_workers" else 4,
    }
    if kind == "commit":
        columns |= {"commit_used_bytes": int(min(used + grown, total)), "commit_limit_bytes": total}
    return columns


def spill_batch(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Windows: longer batches from some step on do not fit; the driver moves memory, and steps take far longer."""
    usual = draw.size
    larger = draw.rounded(float(draw.rng.uniform(1.4, 2.0)) * usual)
    own = draw.context_bytes + draw.footprint(usual).reserved_peak_bytes
    more = draw.context_bytes + draw.footprint(larger).reserved_peak_bytes
    others = draw.others(own)
    capacity = own + others + float(draw.rng.uniform(0.15, 0.8)) * (more - own)
    return _spill(draw, "batch", int(capacity), others, tuning=tuning, size_after=larger)


def spill_neighbour(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Windows: another program takes what is left, and more."""
    fill = float(draw.rng.uniform(0.6, 0.95))
    capacity, others = room_for(draw, fill)
    more = int((1.0 - fill + float(draw.rng.uniform(0.03, 0.2))) * capacity)
    return _spill(draw, "neighbour", capacity, others, tuning=tuning, others_after=others + more)


def spill_leak(draw: Draw, *, tuning: bool) -> LabelledRun:
    """Windows: a level run that a single jump has put over the top: nothing is refused, all is slow."""
    fill = float(draw.rng.uniform(0.6, 0.95))
    capacity, others = room_for(draw, fill)
    jump = int((1.0 - fill + float(draw.rng.uniform(0.02, 0.15))) * capacity)
    return _spill(draw, "jump", capacity, others, tuning=tuning, jump=jump)


def _spill(
    draw: Draw,
    kind: str,
    capacity: int,
    others: int,
    *,
    tuning: bool,
    size_after: float | None = None,
    others_after: int | None = None,
    jump: int = 0,
) -> LabelledRun:
    """The run "runs out" ``_TO_NOTICE`` slow steps after the first one: by then it should have been said."""
    at = int(draw.rng.integers(40, 250))
    rig = draw.rig(capacity, others_bytes=others, total_steps=2000, spills=True)
    rig.spilling = True
    rig.build()
    loop = Loop.drawn(rig, draw, per_epoch=0, quiet=True)
    loop.sizes = lambda number: size_after if size_after is not None and number >= at else draw.size
    factor = float(draw.rng.uniform(3.0, 10.0))
    onset: list[int] = []

    def scene() -> Iterator[int]:
        for number in loop.run(at + 40):
            if rig.device_bytes > rig.setup.capacity_bytes:
                rig.slow = factor
                onset.append(len(rig.rows))
            if number == at and others_after is not None:
                rig.others_bytes = others_after
            if number == at and jump:
                rig.hold(jump)
            if len(onset) > _TO_NOTICE:
                raise RanOutError
            yield number

    oom = runs_out(rig, scene())
    if rig.step < at or not onset:
        raise UnfitError
    return labelled(draw, rig, kind, Cause.SPILL, tuning=tuning, onset_row=onset[0] - 1, oom=oom)


_TO_NOTICE: Final = 20
AROUND: Final[tuple[tuple[Scene, int], ...]] = (
    (neighbour_line, 24),
    (neighbour_stairs, 18),
    (neighbour_lengths, 20),
    (outside_line, 34),
    (outside_stairs, 28),
    (host_own, 18),
    (host_workers, 18),
    (host_more_workers, 14),
    (host_commit, 12),
    (spill_batch, 22),
    (spill_neighbour, 20),
    (spill_leak, 20),
)
