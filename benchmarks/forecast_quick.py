"""What a forecast costs, and whether it remembers too much: CPU time per update and memory over a long run.

    python benchmarks/forecast_quick.py [STEPS]

Feeds made-up runs step by step, as the forecaster's thread does, and prints CPU time per update (mean, median, P99,
maximum), the share of a core that 20 steps/s would take, and what the forecaster has allocated after a tenth of the
steps and at the end. Budget: 2 ms per update, 1 % of a core at 20 steps/s, no growth.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np

from desktop_app.core.steps import MemoryStats, StepSample
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Forecaster

CAPACITY = 6 * GIB
STEPS = 4_000
UPDATES_PER_S = 20
Run = Callable[[np.random.Generator, int], np.ndarray]


def flat(_: np.random.Generator, count: int) -> np.ndarray:
    return np.full(count, float(GIB))


def noisy(rng: np.random.Generator, count: int) -> np.ndarray:
    return GIB + np.abs(rng.normal(0.0, 50 * MIB, count))


def saw(_: np.random.Generator, count: int) -> np.ndarray:
    return GIB + 10 * MIB * (np.arange(count) % 25)


def leak(_: np.random.Generator, count: int) -> np.ndarray:
    return GIB + 4 * GIB / count * np.arange(count)


def noisy_leak(rng: np.random.Generator, count: int) -> np.ndarray:
    return leak(rng, count) + np.abs(rng.normal(0.0, 30 * MIB, count))


def stairs(_: np.random.Generator, count: int) -> np.ndarray:
    return GIB + 4 * GIB / 20 * (np.arange(count) // (count // 20))


RUNS: dict[str, Run] = {
    "flat": flat,
    "noise": noisy,
    "saw-tooth": saw,
    "leak": leak,
    "noisy leak": noisy_leak,
    "stairs": stairs,
}


def samples(troughs: np.ndarray) -> Iterator[StepSample]:
    reserved = 0
    for index, trough in enumerate(troughs):
        live, peak = int(trough), int(trough) + 512 * MIB
        reserved = max(reserved, peak)
        stats = MemoryStats(live, peak, reserved, reserved, 0, 0, 0, 0, {})
        yield StepSample(index * 0.05, index + 1, 1, None, None, 1e-3, None, 0.05, 64, stats)


def cost_ms(run: Run, count: int) -> np.ndarray:
    """CPU time of this thread for each update."""
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    costs = []
    for sample in samples(run(np.random.default_rng(0), count)):
        begin = time.thread_time()
        forecaster.update_step(sample)
        costs.append(1e3 * (time.thread_time() - begin))
    return np.array(costs)


def remembered_kib(run: Run, count: int) -> tuple[float, float]:
    """Allocated by the forecaster after a tenth of the steps and after all of them."""
    troughs = run(np.random.default_rng(0), count)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    held = []
    for sample in samples(troughs):
        forecaster.absorb_step(sample)
        if sample.step % 50 == 0:
            forecaster.update_step(sample)
        if sample.step in (count // 10, count):
            held.append((tracemalloc.get_traced_memory()[0] - before) / 1024)
    tracemalloc.stop()
    return held[0], held[1]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    print(f"{'run':12} {'mean':>8} {'median':>8} {'P99':>8} {'max':>8}  ms CPU   {'core at 20/s':>12}")
    for name, run in RUNS.items():
        costs = cost_ms(run, count)
        share = costs.mean() * UPDATES_PER_S / 10.0
        print(
            f"{name:12} {costs.mean():8.3f} {np.median(costs):8.3f} {np.quantile(costs, 0.99):8.3f} "
            f"{costs.max():8.3f} {share:18.2f} %"
        )
    print(f"\n{'run':12} {'10 %':>10} {'100 %':>10}  KiB held after {10 * count} steps")
    for name in ("flat", "noisy leak"):
        early, late = remembered_kib(RUNS[name], 10 * count)
        print(f"{name:12} {early:10.0f} {late:10.0f}")


if __name__ == "__main__":
    main()
