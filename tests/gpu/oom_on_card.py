"""Forecast, rescue and replica on a real card that acts as a smaller one; at most eight minutes.

    python tests/gpu/oom_on_card.py [--gib 8 12 16 24] [--out FOLDER] [--minutes 8]

``set_per_process_memory_fraction`` limits the allocator alone; nothing else may use much of the card. Every run is
made by the application's own loop with a real mistake in it, and a forecaster listens. A line says whether the cause
was alerted before the error; for the rescue whether the run finished, and with the losses of a run configured so. The
recording of a few steps goes through the allocator replica event by event. ``--out`` gets a trace of each run (CSV, for
``floodmark forecast``) and the recordings' figures (JSON).

Everything but the recording also runs on a simulated card (``SimulatedCard``): that is how it is tested without one.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from desktop_app.core.clock import SessionClock
from desktop_app.core.events import Event
from desktop_app.core.forecasts import Alert, AlertSeverity
from desktop_app.core.steps import MemoryStats, PhaseSample, RunState, RunStatus, StepSample, ValidationSample
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Forecaster, Update
from desktop_app.training.config import RunConfig
from desktop_app.training.control import ControlToken

GIB_SIZES: Final = (8.0, 12.0, 16.0, 24.0)
# Activations of small-cnn (width 32) per sample of 28 x 28 pixels, by the simulated card; they grow with the pixels.
SAMPLE_BYTES: Final = 0.7 * MIB
_LAST_RATIO: Final = 2.6**2  # pixels of the last batch of "largest-batches-last" over those of the first


class Card(Protocol):
    """Where the runs are made. ``room_bytes``: what the allocator may take."""

    @property
    def room_bytes(self) -> int: ...

    def device(self) -> Any:
        """A context manager that gives a ``TrainingDevice``."""


class RealCard:
    """The first CUDA card, acting as one of ``gib``."""

    def __init__(self, gib: float) -> None:
        self.room_bytes = int(gib * GIB)

    @contextmanager
    def device(self) -> Iterator[Any]:
        import torch

        from desktop_app.training.devices import CudaDevice

        device = CudaDevice(0)
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, self.room_bytes / total), 0)
        device.capacity_bytes = self.room_bytes
        try:
            yield device
        finally:
            device.close()
            torch.cuda.set_per_process_memory_fraction(1.0, 0)


class SimulatedCard:
    """A simulated card whose context and other processes leave ``room_bytes`` to the allocator."""

    def __init__(self, room_bytes: int) -> None:
        self.room_bytes = room_bytes

    @contextmanager
    def device(self) -> Iterator[Any]:
        from desktop_app.memory.overheads import CardSpec
        from desktop_app.memory.simulated_device import SimulatedDevice
        from desktop_app.training.devices import SimulatedCudaDevice

        card = CardSpec("Simulated", 24 * GIB, 24 * GIB, "ampere", (8, 6), 82)
        with SimulatedDevice(card) as memory:
            memory.set_others(card.capacity_bytes - memory.outside_bytes - self.room_bytes)
            yield SimulatedCudaDevice(memory)


@dataclass
class Listener:
    """The sink of a run: a forecaster, and a row of the trace for each step."""

    capacity_bytes: int
    outside_bytes: int
    alerts: list[Alert] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    rows: list[dict[str, object]] = field(default_factory=list)
    token: ControlToken = field(default_factory=ControlToken)
    most_steps: int = 10**9

    def __post_init__(self) -> None:
        self.forecaster = Forecaster(capacity_bytes=self.capacity_bytes, outside_bytes=self.outside_bytes)

    def on_status(self, status: RunStatus) -> None: ...
    def on_validation(self, sample: ValidationSample) -> None: ...
    def on_event(self, event: Event) -> None: ...

    def on_step(self, sample: StepSample) -> None:
        self._take(self.forecaster.update_step(sample))
        if sample.loss is not None:
            self.losses.append(sample.loss)
        self.rows.append(self._row(sample))
        if sample.step >= self.most_steps:
            self.token.stop(save=False)

    def on_phase(self, sample: PhaseSample) -> None:
        self._take(self.forecaster.update_phase(sample))

    def _take(self, update: Update) -> None:
        self.alerts += [alert for alert in update.changes.raised if alert.severity is not AlertSeverity.WATCH]

    def _row(self, sample: StepSample) -> dict[str, object]:
        memory = sample.memory
        assert memory is not None
        return {
            "t_s": round(sample.t_s, 4),
            "step": sample.step,
            "phase": "step",
            "live_after_bytes": memory.live_bytes,
            "live_peak_bytes": memory.live_peak_bytes,
            "reserved_peak_bytes": memory.reserved_peak_bytes,
            "idle_split_bytes": memory.idle_split_bytes,
            "alloc_retries": memory.alloc_retries,
            "capacity_bytes": self.capacity_bytes,
            "batch_samples": sample.batch_samples,
            "step_s": round(sample.step_s, 6),
        }


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    name: str
    room_gib: float
    good: bool
    state: str
    steps: int
    detail: str
    seconds: float


@dataclass(frozen=True)
class Case:
    """A run that must run out of memory, and the cause that must be alerted before."""

    name: str
    cause: str
    fault: str | None
    config: Callable[[int], RunConfig]


def side_for(sample_bytes: float) -> int:
    """Pixels of a side at which one sample's activations are so large."""
    return max(16, round(28 * math.sqrt(sample_bytes / SAMPLE_BYTES)))


def _cnn(room: int, *, batch: int, share: float, **settings: Any) -> RunConfig:
    """small-cnn whose activations of one batch are ``share`` of the room."""
    return _run(batch_size=batch, width=32, image_size=side_for(share * room / batch), **settings)


def _run(**settings: Any) -> RunConfig:
    fixed = {"augment": False, "log_every_steps": 1, "epochs": 200, "checkpoint_every_epochs": 0}
    return RunConfig(**{**fixed, **settings})


def _wide(room: int) -> RunConfig:
    """Parameters and gradients fit twice; two states and one copy more do not."""
    return _run(model="wide-mlp", hidden=round(math.sqrt(room / 4 / 4)), batch_size=16)


CASES: Final = (
    Case("first update", "first_optimizer_step", None, _wide),
    Case("leak", "leak", "keeps-loss-graph", lambda room: _cnn(room, batch=16, share=0.012)),
    Case("validation", "validation", "keeps-predictions", lambda room: _cnn(room, batch=64, share=0.03)),
    Case(
        "longest batch",
        "batch_shape",
        "largest-batches-last",
        lambda room: _cnn(room, batch=64, share=1.6 / _LAST_RATIO),
    ),
    Case(
        "fragmentation",
        "fragmentation",
        "scatters-small-blocks",
        lambda room: _run(image_size=224, width=4, hidden=16, batch_size=max(8, 16 * room // GIB)),
    ),
)


def train(config: RunConfig, card: Card, *, fault: str | None = None, most_steps: int = 3000) -> tuple[Any, Listener]:
    """One run to its end, with a forecaster listening."""
    from desktop_app.training.loop import Trainer
    from desktop_app.training.recipes.faults import FAULTS
    from desktop_app.training.recipes.recipe import RECIPES

    mistake = None if fault is None else FAULTS[fault]()
    recipe = RECIPES[config.recipe]
    data = recipe.prepare(config)
    if mistake is not None:
        data = mistake.alter_data(data)
    with card.device() as device:
        stats: MemoryStats = device.stats()
        listener = Listener(card.room_bytes + stats.outside_bytes, stats.outside_bytes, most_steps=most_steps)
        outcome = Trainer(
            recipe,
            config,
            data,
            device=device,
            sink=listener,
            token=listener.token,
            clock=SessionClock(),
            fault=mistake,
        ).run()
    return outcome, listener


def check_forecast(case: Case, card: Card, *, out: Path | None = None) -> Result:
    """Did the alert come before the error, and the right one first?"""
    began_s = time.monotonic()
    outcome, listener = train(case.config(card.room_bytes), card, fault=case.fault)
    causes = [alert.cause.value for alert in listener.alerts]
    error = outcome.oom
    good = outcome.state is RunState.OUT_OF_MEMORY and bool(causes) and causes[0] == case.cause
    first = listener.alerts[0].step if listener.alerts else None
    at = "-" if error is None else f"{error.step} ({error.phase.value})"
    detail = f"alerted {causes[:1] or 'nothing'} at step {first}, error at {at}"
    _write_trace(out, f"{case.name}-{card.room_bytes / GIB:g}", listener)
    return Result(
        case.name,
        card.room_bytes / GIB,
        good,
        outcome.state.value,
        outcome.status.step,
        detail,
        time.monotonic() - began_s,
    )


def check_rescue(card: Card, *, batch: int = 256, steps: int = 3, out: Path | None = None) -> Result:
    """A batch half as large again as the card: does the run settle in its first step, with the right losses?"""
    began_s = time.monotonic()
    config = _cnn(card.room_bytes, batch=batch, share=1.5, on_oom="shrink")
    outcome, listener = train(config, card, most_steps=steps)
    rescues = outcome.status.rescues
    settled = {rescue.step for rescue in rescues} == {1}
    micro, accumulation = outcome.status.batch_size, outcome.status.accumulation
    wanted = replace(config, batch_size=micro, accumulation=accumulation, on_oom="end")
    _, configured = train(wanted, card, most_steps=steps)
    apart = max(
        (abs(a - b) for a, b in zip(listener.losses, configured.losses, strict=False)),
        default=math.inf,
    )
    good = outcome.state is RunState.STOPPED and settled and micro < batch and apart < 1e-3  # fp32, other kernels
    _write_trace(out, f"rescue-{card.room_bytes / GIB:g}", listener)
    tries = [rescue.batch_size for rescue in rescues]
    detail = f"tried {tries}, settled at {micro} x {accumulation}, losses {apart:.1e} apart"
    return Result(
        "rescue",
        card.room_bytes / GIB,
        good,
        outcome.state.value,
        outcome.status.step,
        detail,
        time.monotonic() - began_s,
    )


def check_replica(card: Card, *, out: Path | None = None) -> Result:
    """A recording of four steps: does the replica place and reserve as CUDA did, event by event?"""
    import torch

    from desktop_app.memory.snapshot import parse_snapshot
    from desktop_app.memory.snapshot_history import find_beginning
    from desktop_app.memory.snapshot_replay import replay_recording

    began_s = time.monotonic()
    config = _cnn(card.room_bytes, batch=64, share=0.4)
    torch.cuda.init()
    torch.cuda.memory._record_memory_history(max_entries=400_000)
    try:
        outcome, _ = train(config, card, most_steps=4)
        content = torch.cuda.memory._snapshot()
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    snapshot = parse_snapshot(content, device=0)
    replay = replay_recording(snapshot, find_beginning(snapshot))
    figures = {
        "events": len(snapshot.events),
        "allocations": replay.allocations,
        "placed": replay.placed,
        "segment_events": replay.segment_events,
        "segments_right": replay.segments_right,
        "compared": replay.compared,
        "reserved_equal": replay.reserved_equal,
        "difference": None if replay.difference is None else asdict(replay.difference),
    }
    if out is not None:
        name = f"replica-{card.room_bytes / GIB:g}.json"
        (out / name).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    detail = f"{replay.placed}/{replay.allocations} placed, {replay.reserved_equal}/{replay.compared} reserved equal"
    return Result(
        "replica",
        card.room_bytes / GIB,
        replay.agrees,
        outcome.state.value,
        outcome.status.step,
        detail,
        time.monotonic() - began_s,
    )


def _write_trace(out: Path | None, name: str, listener: Listener) -> None:
    """At most a thousand rows, every n-th of a longer run."""
    if out is None or not listener.rows:
        return
    rows = listener.rows[:: max(1, -(-len(listener.rows) // 1000))]
    with (out / f"{name.replace(' ', '-')}.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def checks(card: Card, *, out: Path | None) -> Iterator[Callable[[], Result]]:
    """Everything that is looked at on one card."""
    yield lambda: check_rescue(card, out=out)
    yield lambda: check_replica(card, out=out)
    for case in CASES:
        yield lambda case=case: check_forecast(case, card, out=out)  # type: ignore[misc]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--gib", type=float, nargs="+", default=GIB_SIZES)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--minutes", type=float, default=8.0)
    options = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        print("no CUDA card")
        return 4
    total_gib = torch.cuda.get_device_properties(0).total_memory / GIB
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    ends_s = time.monotonic() + 60 * options.minutes
    results, left_out = [], 0
    for gib in options.gib:
        if gib > total_gib:
            print(f"{gib:g} GiB: larger than the card, left out")
            continue
        for check in checks(RealCard(gib), out=options.out):
            if time.monotonic() > ends_s:
                left_out += 1
                continue
            result = check()
            results.append(result)
            mark = "ok  " if result.good else "MISS"
            print(
                f"{mark} {result.room_gib:4g} GiB {result.name:<14} {result.seconds:5.1f} s  {result.detail}",
                flush=True,
            )
    good = sum(result.good for result in results)
    print(f"{good} of {len(results)} as expected, {left_out} left out for want of time")
    return 0 if good == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
