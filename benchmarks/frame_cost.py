"""What one frame of the chart stack costs, from a thousand to a million rows of history.

Prints CPU milliseconds a frame (drawing into the offscreen raster included) as p50 and p95, the ratio to the shortest
history, and to the same frames without the shades of throttled time. Every frame moves the window by a pixel or more,
so that every panel draws: the worst case. A million rows are ten million points of the nine curves and the shades.
Budget (design.md §11): p95 ≤ 16 ms, flat. Run: ``python benchmarks/frame_cost.py [--rows 1000 1000000]``.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from dataclasses import dataclass

import numpy as np

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from desktop_app.core.clock import SessionClock
from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.forecasts import Forecast
from desktop_app.core.steps import STEP_COLUMNS, VALIDATION_COLUMNS, RunState, RunStatus
from desktop_app.core.store import Cell, Store
from desktop_app.core.telemetry import GPU_FIELDS, Card, Reading
from desktop_app.core.units import GIB
from desktop_app.services.facade import TelemetryStatus
from desktop_app.ui import theme
from desktop_app.ui.charts.chart_stack import ChartStack
from desktop_app.ui.charts.throttling import Throttle

BUDGET_MS = 16.0
SAMPLE_HZ = 5.0
WIDTH, HEIGHT = 1110, 718  # the stack's place in a window of 1440 × 900
UUID = "GPU-benchmark"
WINDOWS = ((60.0, "1 min"), (900.0, "15 min"), (0.0, "all"))


class Moving:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Bench:
    """The part of a workspace that the charts read."""

    def __init__(self, rows: int) -> None:
        self.moving = Moving()
        self.clock = SessionClock(monotonic=self.moving, anchor_wall_s=1.79e9, origin_s=0.0)
        self.store = Store()
        self.steps = self.store.declare("steps", STEP_COLUMNS)
        self.validation = self.store.declare("validation", VALIDATION_COLUMNS)
        self.gpu = self.store.declare(f"gpu:{UUID}", GPU_FIELDS)
        self.events = EventQueue()
        limits = {"temperature_slowdown_c": 93.0, "power_limit_w": 120.0}
        card = Card(UUID, "Benchmark", 0, None, simulated=True, total_bytes=6 * GIB, **limits)
        self.cards = Cell((card,))
        self.card_uuid = Cell[str | None](UUID)
        self.readings = Cell({UUID: {"memory_used_bytes": Reading(4.5 * GIB), "power_w": Reading(117.0)}})
        self.telemetry = Cell(TelemetryStatus())
        self.run = Cell(RunStatus(RunState.RUNNING))
        self.forecast: Cell[Forecast | None] = Cell(None)
        self._random = np.random.default_rng(7)
        self._step = 0
        self._fill(rows)

    def _fill(self, rows: int) -> None:
        """``rows`` telemetry rows and as many steps, ending at the same time."""
        end_s = rows / SAMPLE_HZ
        noise = self._random.standard_normal((4, rows))
        for index in range(rows):
            self._sample((index + 1) / SAMPLE_HZ, noise[:, index])
        for index in range(rows):
            self._train(end_s - (rows - 1 - index) / SAMPLE_HZ)
        self.moving.now_s = end_s

    def _sample(self, t_s: float, noise: np.ndarray) -> None:
        values = dict.fromkeys(GPU_FIELDS, float("nan"))
        values.update(
            utilization_percent=min(100.0, 95.0 + 2 * noise[0]),
            memory_used_bytes=4.5 * GIB + 2e7 * noise[1],
            temperature_c=70 + 0.5 * noise[2],
            power_w=117 + 2 * noise[3],
            throttle_thermal_percent=30.0 if t_s % 600 < 60 else 0.0,
            throttle_power_percent=60.0 if t_s % 40 < 20 else 0.0,
        )
        self.gpu.append(t_s, values)

    def _train(self, t_s: float) -> None:
        self._step += 1
        noise = math.sin(self._step * 12.9898) * 0.05
        loss = 0.15 + 0.6 * math.exp(-self._step / 5000) + noise
        row = {"step": self._step, "epoch": 1, "loss": loss, "learning_rate": 3e-3, "grad_norm": 1 + 4 * noise}
        self.steps.append(t_s, {**row, "live_peak_bytes": 3.6 * GIB + 1e9 * noise})
        if self._step % 500 == 0:
            self.validation.append(t_s, {"step": self._step, "epoch": 1, "loss": loss, "accuracy": 0.9})
            self.events.post(Event(t_s, EventKind.EPOCH, Level.INFO, "epoch.finished", {"epoch": self._step // 500}))

    def advance(self, seconds: float) -> None:
        """Time passes; what comes in is what comes between two frames at 10 Hz: one sample, two steps, a forecast."""
        self.moving.now_s += seconds
        self._sample(self.moving.now_s, self._random.normal(size=4))
        self._train(self.moving.now_s - 0.02)
        self._train(self.moving.now_s)
        self.forecast.set(leak(self.moving.now_s, self._step))


def leak(now_s: float, step: int) -> Forecast:
    return Forecast(
        t_s=now_s,
        step=step,
        device_bytes=int(4.5 * GIB),
        capacity_bytes=6 * GIB,
        eta_steps=160.0,
        eta_s=100.0,
        eta_low_s=80.0,
        eta_high_s=140.0,
    )


@dataclass(frozen=True, slots=True)
class Cost:
    rows: int
    p50_ms: float
    p95_ms: float
    refresh_ms: float  # the median part that makes paths, without painting
    shades: int  # on show in each panel at the end


def measure(app: QApplication, bench: Bench, *, rows: int, frames: int, span_s: float) -> tuple[Cost, Cost]:
    """CPU time of ``frames`` frames with ``span_s`` seconds on show (0: everything), without shades and with them.

    The two take turns, so that a machine that slows down slows both.
    """
    stacks = []
    for causes in (frozenset[Throttle](), frozenset(Throttle)):
        stack = ChartStack(bench, theme.DARK)  # type: ignore[arg-type]  # the part that it reads
        stack.resize(WIDTH, HEIGHT)
        stack.set_shades(causes)
        stack.show()
        stack.set_span_s(span_s)
        for _ in range(rows // 800 + 2):  # the smoothed loss takes in a long history bit by bit
            stack.refresh_texts()
        stacks.append(stack)
    step_s = max(0.2, 1.5 * (span_s or bench.moving.now_s) / WIDTH)
    times: list[list[tuple[float, float]]] = [[], []]
    for frame in range(frames + 5):
        bench.advance(step_s)
        for stack, taken in zip(stacks, times, strict=True):
            start = time.process_time()
            stack.refresh()
            made = time.process_time()
            app.processEvents()
            if frame >= 5:
                taken.append((1e3 * (time.process_time() - start), 1e3 * (made - start)))
    costs = []
    for stack, taken in zip(stacks, times, strict=True):
        frame_ms, refresh_ms = np.array(taken).T
        p50, p95 = np.percentile(frame_ms, (50, 95))
        costs.append(Cost(rows, float(p50), float(p95), float(np.median(refresh_ms)), len(stack.bands)))
        stack.close()
        stack.deleteLater()
    return costs[0], costs[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=240.0, help="stop before a longer history after this time")
    arguments = parser.parse_args()
    app = QApplication.instance() or QApplication([])
    theme.apply(app, theme.DARK)
    began = time.monotonic()
    print(f"7 panels, 9 curves, {WIDTH} × {HEIGHT}, {arguments.frames} frames, CPU ms a frame")
    names = f"{'window':>8} {'rows':>9} {'p50':>7} {'p95':>7} {'of it paths':>12} {'ratio':>6}"
    print(f"{names} {'shades':>7} {'to none':>8}")
    worst = 0.0
    first: dict[float, float] = {}
    for rows in arguments.rows:
        if time.monotonic() - began > arguments.seconds:
            print(f"{rows:>18} rows left out: {arguments.seconds:.0f} s are over")
            continue
        bench = Bench(rows)
        for span_s, name in WINDOWS:
            bare, cost = measure(app, bench, rows=rows, frames=arguments.frames, span_s=span_s)
            ratio = cost.p50_ms / first.setdefault(span_s, cost.p50_ms)
            worst = max(worst, cost.p95_ms)
            times = f"{cost.p50_ms:>7.1f} {cost.p95_ms:>7.1f} {cost.refresh_ms:>12.1f} {ratio:>6.2f}"
            shaded = f"{cost.shades:>7} {cost.p50_ms / bare.p50_ms:>8.2f}"
            print(f"{name:>8} {rows:>9} {times} {shaded}", flush=True)
    print(f"worst p95 {worst:.1f} ms, budget {BUDGET_MS:.0f} ms: {'met' if worst <= BUDGET_MS else 'MISSED'}")
    return 0 if worst <= BUDGET_MS else 1


if __name__ == "__main__":
    raise SystemExit(main())
