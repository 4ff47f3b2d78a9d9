"""Forecast, rescue and replica on a real card that acts as a smaller one; at most eight minutes.

    python -m tests.gpu.oom_on_card [--gib 8 12 16 24] [--out FOLDER] [--minutes 8]

``set_per_process_memory_fraction`` limits the allocator alone; nothing else may use much of the card. Every run is
made by the application's own loop with a real mistake in it, and a forecaster listens. A line says whether the cause
was alerted before the error; for the rescue (in doubles) whether it settled in its first step, with the losses of a run
configured so; for a run that is killed in the midst of a rescue whether its checkpoint can be resumed. The recording
of a few steps goes through the allocator replica event by event. ``--out`` gets a trace of each run (CSV, for
``floodmark forecast``), the recordings (pickle, for ``floodmark snapshot``) and what the replica made of them (JSON).

What there was no time for is said and is no success. Everything but the recording also runs on a simulated card
(``SimulatedCard``): that is how it is tested without one.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from desktop_app.core.steps import RunState
from desktop_app.core.units import GIB, MIB
from desktop_app.training.config import RunConfig

from .runs_on_card import Card, Listener, RealCard, SimulatedCard, doubles, train

ROOT: Final = Path(__file__).resolve().parents[2]
SCRIPT: Final = ("-m", "tests.gpu.oom_on_card")  # from ROOT, so that nothing need be installed
GIB_SIZES: Final = (8.0, 12.0, 16.0, 24.0)
# Activations of small-cnn (width 32) per sample of 28 x 28 pixels, by the simulated card; they grow with the pixels.
SAMPLE_BYTES: Final = 0.7 * MIB
LAST_RATIO: Final = 3.8**2  # pixels of the last batch of "largest-batches-last" over those of the first
_FULL_SHARE: Final = 0.6  # of the room, that a step takes in the run that is killed
_NARROW_SHARE: Final = 0.4  # of the room, that is left to it from its second epoch on
_KILL_PATIENCE_S: Final = 150.0


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
        lambda room: _cnn(room, batch=64, share=1.6 / LAST_RATIO),
    ),
    Case(
        "fragmentation",
        "fragmentation",
        "scatters-small-blocks",
        lambda room: _run(image_size=224, width=4, hidden=16, batch_size=max(8, 16 * room // GIB)),
    ),
)


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
    began_s, recipe = time.monotonic(), doubles()
    config = _cnn(card.room_bytes, batch=batch, share=1.5 / 2, on_oom="shrink")  # of doubles
    outcome, listener = train(config, card, most_steps=steps, recipe=recipe)
    rescues = outcome.status.rescues
    settled = {rescue.step for rescue in rescues} == {1}
    micro, accumulation = outcome.status.batch_size, outcome.status.accumulation
    wanted = replace(config, batch_size=micro, accumulation=accumulation, on_oom="end")
    _, configured = train(wanted, card, most_steps=steps, recipe=recipe)
    apart = max(
        (abs(a - b) for a, b in zip(listener.losses, configured.losses, strict=False)),
        default=math.inf,
    )
    compared = len(listener.losses) == len(configured.losses) == steps
    good = outcome.state is RunState.STOPPED and settled and micro < batch and compared and apart <= 1e-6
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


def die_in_rescue(card: Card, folder: Path) -> None:
    """A run on a card that is too small from its second epoch on, killed when the error has been caught."""
    config = _to_be_killed(card, folder)
    steps = [0]

    def on_each_step(step: int) -> None:
        steps[0] = step
        if (folder / "last.pt").exists():
            card.narrow(_NARROW_SHARE)

    def kill(_: object) -> None:
        print(steps[0], flush=True)
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

    train(config, card, on_each_step=on_each_step, name_cause=kill)


def _to_be_killed(card: Card, folder: Path) -> RunConfig:
    config = _cnn(card.room_bytes, batch=256, share=_FULL_SHARE, on_oom="shrink", output_dir=str(folder))
    return replace(config, epochs=2, checkpoint_every_epochs=1)


def check_kill(card: Card) -> Result:
    """A run that is killed in the midst of a rescue: is there a checkpoint, and does it go on from there to its end?"""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, *SCRIPT, "--die", name, *card.arguments()]
        died = subprocess.run(command, timeout=_KILL_PATIENCE_S, check=False, capture_output=True, cwd=ROOT)
        killed = died.returncode != 0 and (folder / "last.pt").is_file() and died.stdout.strip().isdigit()
        last = int(died.stdout) if killed else 0
        state, resumed = "not killed", 0
        if killed:
            narrow = card.narrower(_NARROW_SHARE)
            outcome, listener = train(_to_be_killed(card, folder), narrow, resume_from=folder / "last.pt")
            state, resumed = outcome.state.value, int(str(listener.rows[0]["step"])) if listener.rows else 0
        good = state == RunState.FINISHED and 0 < resumed <= last + 1
    detail = f"killed after step {last}, resumed at step {resumed}: {state}"
    seconds = time.monotonic() - began_s
    return Result("kill in a rescue", card.room_bytes / GIB, good, state, resumed, detail, seconds)


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
        stem = f"replica-{card.room_bytes / GIB:g}"
        (out / f"{stem}.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        (out / f"{stem}.pickle").write_bytes(pickle.dumps(without_stacks(content)))
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


def without_stacks(content: Any) -> Any:
    """A snapshot without the stacks of its events and blocks: a tenth of it, and nothing of whose machine it was."""
    if isinstance(content, dict):
        return {name: without_stacks(value) for name, value in content.items() if name not in ("frames", "history")}
    return [without_stacks(value) for value in content] if isinstance(content, list | tuple) else content


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
    yield lambda: check_kill(card)
    for case in CASES:
        yield lambda case=case: check_forecast(case, card, out=out)  # type: ignore[misc]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--gib", type=float, nargs="+", default=GIB_SIZES)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--die", type=Path, help=argparse.SUPPRESS)  # the process that check_kill starts
    parser.add_argument("--simulated-bytes", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.die is not None:
        simulated: int | None = options.simulated_bytes
        die_in_rescue(RealCard(options.gib[0]) if simulated is None else SimulatedCard(simulated), options.die)
        return 0
    import torch

    if not torch.cuda.is_available():
        print("no CUDA card")
        return 4
    total_gib = torch.cuda.get_device_properties(0).total_memory / GIB
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    ends_s = time.monotonic() + 60 * options.minutes
    results, left_out = [], 0
    sizes = [gib for gib in options.gib if gib <= total_gib]
    for gib in sorted(set(options.gib) - set(sizes)):
        print(f"{gib:g} GiB: larger than the card, left out")
    # One check on all sizes after the other: where time is short, each size has had the first ones.
    for number in range(len(list(checks(RealCard(1.0), out=None)))):
        for gib in sizes:
            if time.monotonic() > ends_s:
                left_out += 1
                continue
            result = guarded(list(checks(RealCard(gib), out=options.out))[number], gib=gib)
            results.append(result)
            mark = "ok  " if result.good else "MISS"
            print(
                f"{mark} {result.room_gib:4g} GiB {result.name:<16} {result.seconds:5.1f} s  {result.detail}",
                flush=True,
            )
    good = sum(result.good for result in results)
    print(f"{good} of {len(results)} as expected, {left_out} left out for want of time")
    return 0 if good == len(results) and results and not left_out else 1


def guarded(check: Callable[[], Result], *, gib: float) -> Result:
    """A check that breaks is a miss, and the others are made all the same."""
    began_s = time.monotonic()
    try:
        return check()
    except Exception as error:
        traceback.print_exc()
        detail = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        return Result("broken", gib, False, "failed", 0, detail, time.monotonic() - began_s)


if __name__ == "__main__":
    sys.exit(main())
