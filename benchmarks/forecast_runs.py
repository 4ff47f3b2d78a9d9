"""A labelled run, what it is drawn from, and the loop of a training around which faults are put."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from forecast_card import Block, Footprint, RanOutError, ReplicaOutOfMemoryError, Rig, Setup, footprint
from forecast_shapes import Shape, shapes

from desktop_app.core.forecasts import Cause
from desktop_app.core.units import MIB
from desktop_app.forecast.trace_rows import TraceRow


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """Rows, and what is true of them. Rows are counted from 0; ``None``: it never runs out.

    ``onset_row``: before it nothing could be known, and an alert is a false one. ``oom_row`` is the row that says it
    ran out; no row after it is given. ``grows``: there is a time to predict. ``call``: it runs out within one call
    (a phase, a batch) that is known beforehand. ``grown_bytes_per_step`` of a leak.
    """

    kind: str
    cause: Cause | None
    shape: str
    seed: int
    tuning: bool
    capacity_bytes: int
    rows: tuple[TraceRow, ...]
    onset_row: int | None = None
    oom_row: int | None = None
    grows: bool = False
    call: bool = False
    grown_bytes_per_step: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.cause.value if self.cause else 'healthy'}-{self.kind}-{self.seed}"

    @property
    def seconds(self) -> float:
        return self.rows[-1].t_s or 0.0


class UnfitError(Exception):
    """The draw did not lead to the run that its label says: draw again."""


@dataclass(slots=True)
class Draw:
    """Everything random about one run. ``attempt`` goes into the seed, so a draw that does not fit can be repeated."""

    shape: Shape
    name: str
    seed: int
    attempt: int = 0
    scene: str = ""
    rng: np.random.Generator = field(init=False)
    size: float = field(init=False)
    step_s: float = field(init=False)
    context_bytes: int = field(init=False)
    knows_length: bool = field(init=False)
    basic: bool = field(init=False)

    def __post_init__(self) -> None:
        label = zlib.crc32(f"{self.scene} {self.name}".encode())
        self.rng = rng = np.random.default_rng([label, self.seed, self.attempt])
        self.size = self.rounded(self.shape.high * rng.uniform(0.35, 1.1))
        self.step_s = self.log_uniform(0.1, 2.0)
        self.context_bytes = int(rng.uniform(250, 900)) * MIB
        self.knows_length = bool(rng.random() < 0.5)
        self.basic = bool(rng.random() < 0.5)

    def log_uniform(self, low: float, high: float) -> float:
        return float(np.exp(self.rng.uniform(np.log(low), np.log(high))))

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def rounded(self, size: float) -> float:
        """A size that a loader makes: whole samples, lengths in eights, images in steps of 16 pixels."""
        shape = self.shape
        if shape.axis == "samples":
            return float(max(1, round(size)))
        if shape.axis == "tokens":
            return float(max(8, round(size / shape.samples / 8) * 8) * shape.samples)
        edge = max(16, round((size / shape.samples) ** 0.5 / 16) * 16)
        return float(edge * edge * shape.samples)

    def footprint(self, size: float | None = None) -> Footprint:
        return footprint(self.shape, self.size if size is None else size)

    def others(self, capacity_bytes: float) -> int:
        """Other processes: nobody, a desktop, or somebody's job."""
        kind = self.rng.random()
        if kind < 0.4:
            return 0
        if kind < 0.8:
            return int(min(self.rng.uniform(100, 900) * MIB, 0.1 * capacity_bytes))
        return int(self.rng.uniform(0.1, 0.3) * capacity_bytes)

    def rig(
        self,
        capacity_bytes: float,
        *,
        others_bytes: int = 0,
        total_steps: int | None = None,
        per_epoch: int | None = None,
        spills: bool = False,
    ) -> Rig:
        """``total_steps`` and ``per_epoch`` are told to the forecaster in half of the runs."""
        setup = Setup(
            self.shape,
            self.size,
            self.step_s,
            self.context_bytes,
            others_bytes,
            int(capacity_bytes) // MIB * MIB,
            total_steps if self.knows_length else None,
            per_epoch if self.knows_length else None,
            self.basic,
            spills,
        )
        return Rig(setup, self.rng)


def room_for(draw: Draw, fill: float, *, size: float | None = None) -> tuple[int, int]:
    """Capacity and other processes' share of it, such that steady steps fill the card to ``fill``."""
    own = draw.context_bytes + draw.footprint(size).reserved_peak_bytes
    capacity = own / fill
    others = min(draw.others(capacity), int(0.25 * capacity))
    capacity = (own + others) / fill
    return int(capacity), others


@dataclass(slots=True)
class Loop:
    """Steps, epochs with a last partial batch, validation and saves that have room: what every training has."""

    rig: Rig
    draw: Draw
    per_epoch: int = 0  # 0: no epochs
    tail: float = 1.0  # size of an epoch's last batch
    validates: bool = False  # after each epoch
    saves: bool = False
    sizes: Callable[[int], float] | None = None  # of step i of the run
    announces: bool = False
    kept: tuple[int, ...] = ()  # what the next step keeps
    held: list[Block] = field(default_factory=list)  # by the newest step
    steps_done: int = 0

    @classmethod
    def drawn(cls, rig: Rig, draw: Draw, *, per_epoch: int | None = None, quiet: bool = False) -> Loop:
        """With epochs in most runs. ``quiet``: neither validation nor saves."""
        length = per_epoch if per_epoch is not None else int(draw.log_uniform(30, 300)) if draw.chance(0.7) else 0
        return cls(
            rig,
            draw,
            per_epoch=length,
            tail=float(draw.rng.uniform(0.1, 1.0)) if draw.chance(0.6) else 1.0,
            validates=not quiet and draw.chance(0.5),
            saves=not quiet and draw.chance(0.5),
        )

    def run(self, steps: int) -> Iterator[int]:
        """Each step's number, right after it."""
        for _ in range(steps):
            number = self.steps_done
            self.held = self.rig.train(self._size(number), kept=self.kept, announce=self.announces)
            self.kept = ()
            self.steps_done += 1
            if self.per_epoch and self.steps_done % self.per_epoch == 0:
                self._end_epoch()
            yield number

    def _size(self, number: int) -> float:
        size = self.sizes(number) if self.sizes is not None else self.rig.setup.size
        ends_epoch = self.per_epoch and (number + 1) % self.per_epoch == 0
        return self.draw.rounded(size * self.tail) if ends_epoch and self.tail < 1.0 else size

    def _end_epoch(self) -> None:
        if self.validates:
            self.rig.validate(3, self.rig.setup.size)
        if self.saves:
            self.rig.save()


def lengths(draw: Draw, *, spread: float | None = None) -> Callable[[int], float]:
    """Micro-batches padded to their longest sequence (or image): log-normal, with an upper end."""
    spread = float(draw.rng.uniform(0.1, 0.35)) if spread is None else spread
    rng, size = draw.rng, draw.size

    def drawn(_: int) -> float:
        return draw.rounded(min(size * float(rng.lognormal(-0.5 * spread, spread)), 1.3 * size))

    return drawn


LONGEST: Final = 1.3  # of ``lengths``, over the draw's size


def labelled(
    draw: Draw,
    rig: Rig,
    kind: str,
    cause: Cause | None,
    *,
    tuning: bool,
    onset_row: int | None,
    oom: bool,
    **more: object,
) -> LabelledRun:
    """Raises ``UnfitError`` where the run did not end as its label says."""
    if oom is (cause is None):
        raise UnfitError
    run = LabelledRun(
        kind,
        cause,
        draw.name,
        draw.seed,
        tuning,
        rig.setup.capacity_bytes,
        tuple(rig.rows),
        onset_row if oom else None,
        len(rig.rows) - 1 if oom else None,
    )
    return replace(run, **more)  # type: ignore[arg-type]


def runs_out(rig: Rig, scene: Iterator[object]) -> bool:
    """Carry it out; true when the replica has refused, or something else has run out."""
    try:
        for _ in scene:
            pass
    except (ReplicaOutOfMemoryError, RanOutError):
        rig.end_out_of_memory()
        return True
    return False


def named_shape(name: str) -> Shape:
    return shapes()[name]
