"""What a forecast costs, and whether it remembers too much: CPU time per update and memory over a long run.

    python benchmarks/forecast_cost.py [--steps N] [--long-steps N]

Feeds made-up runs as the forecaster's thread gets them: steps, a validation and a save after every epoch, surroundings
once a second. Prints CPU time per update with all causes (mean, median, P99, maximum), the share of a core that 20
steps/s would take, what each cause costs, and how much the process has grown over a run of a million steps. Budget:
2 ms per update, 1 % of a core at 20 steps/s (0.5 ms), no growth.

Times are those of one thread; other work on the same cores still stretches them. The reference beside them is a fixed
piece of work (sorting 2,000 floats): divide by it to compare two machines, or two moments of one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import psutil

from desktop_app.core.steps import MemoryStats, Phase, PhaseSample, StepSample, Surroundings
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import CAUSES, Forecaster

CAPACITY: Final = 6 * GIB
UPDATES_PER_S: Final = 20
EPOCH: Final = 250
JUDGED: Final = 16  # of the million steps, one in so many; the thread does the same with a backlog
Sample = StepSample | PhaseSample | Surroundings
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
    return GIB + 4 * GIB / 20 * (np.arange(count) // max(count // 20, 1))


RUNS: Final[dict[str, Run]] = {
    "flat": flat,
    "noise": noisy,
    "saw-tooth": saw,
    "leak": leak,
    "noisy leak": noisy_leak,
    "stairs": stairs,
}


def samples(troughs: np.ndarray, rng: np.random.Generator) -> Iterator[Sample]:
    """A run at ``UPDATES_PER_S``, batches of varying length, on a card and a computer that are never quite still."""
    reserved = 0
    for index, trough in enumerate(troughs):
        t_s, step = index / UPDATES_PER_S, index + 1
        tokens = int(rng.integers(2_000, 4_096))
        live, peak = int(trough), int(trough) + 512 * MIB * tokens // 4_096
        reserved = max(reserved, peak)
        stats = MemoryStats(live, peak, reserved, reserved, 0, 0, 0, 0, {})
        yield StepSample(
            t_s, step, 1 + index // EPOCH, None, None, 1e-3, None, 1.0 / UPDATES_PER_S, 64, stats, batch_tokens=tokens
        )
        if step % UPDATES_PER_S == 0:
            yield surroundings(t_s, reserved, rng)
        if step % EPOCH == 0:
            for phase in (Phase.VALIDATION, Phase.SAVE):
                yield PhaseSample(t_s, step, phase, stats)
                yield PhaseSample(t_s, step, phase, stats, ended=True)


def surroundings(t_s: float, reserved: int, rng: np.random.Generator) -> Surroundings:
    others, used = int(rng.integers(300, 340)) * MIB, int(rng.integers(20_000, 20_400)) * MIB
    return Surroundings(
        t_s=t_s,
        device_used_bytes=reserved + others + 300 * MIB,
        others_bytes=others,
        outside_bytes=300 * MIB,
        capacity_bytes=CAPACITY,
        host_used_bytes=used,
        host_total_bytes=64 * GIB,
        host_available_bytes=64 * GIB - used,
        own_rss_bytes=2 * GIB,
        children_rss_bytes=GIB,
        children=4,
    )


def feed(forecaster: Forecaster, sample: Sample) -> None:
    if isinstance(sample, StepSample):
        forecaster.update_step(sample)
    elif isinstance(sample, PhaseSample):
        forecaster.update_phase(sample)
    else:
        forecaster.update_surroundings(sample)


def cost_ms(run: Run, count: int) -> tuple[np.ndarray, float]:
    """CPU time of this thread for the update of each step; and per step with everything that comes between."""
    rng = np.random.default_rng(0)
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    costs: list[float] = []
    between = 0.0
    for sample in samples(run(rng, count), rng):
        begin = time.thread_time()
        feed(forecaster, sample)
        spent = 1e3 * (time.thread_time() - begin)
        if isinstance(sample, StepSample):
            costs.append(spent)
        else:
            between += spent
    return np.array(costs), (sum(costs) + between) / count


def cost_by_cause_ms(run: Run, count: int) -> dict[str, float]:
    """What leaving each cause alone with the core costs beyond the core by itself, per step."""
    rng = np.random.default_rng(0)
    made = list(samples(run(rng, count), rng))
    alone: dict[str, float] = {}
    for name, causes in (("core", ()), *((make().cause.value, (make,)) for make in CAUSES)):
        forecaster = Forecaster(capacity_bytes=CAPACITY, causes=causes)
        begin = time.thread_time()
        for sample in made:
            feed(forecaster, sample)
        alone[name] = 1e3 * (time.thread_time() - begin) / count
    core = alone.pop("core")
    return {"core": core, **{name: spent - core for name, spent in alone.items()}}


def reference_us() -> float:
    """A fixed piece of work, the least of many tries."""
    values = np.random.default_rng(0).random(2_000).tolist()
    tries = []
    for _ in range(50):
        begin = time.thread_time()
        sorted(values)
        tries.append(1e6 * (time.thread_time() - begin))
    return min(tries)


def growth_mib(run: Run, count: int) -> list[tuple[int, float]]:
    """Resident memory of this process after each tenth of a long run, beyond that after the first twentieth."""
    rng = np.random.default_rng(0)
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    process, begun = psutil.Process(), 0
    seen = []
    for sample in samples(run(rng, count), rng):
        if isinstance(sample, StepSample) and sample.step % JUDGED:
            forecaster.absorb_step(sample)
        else:
            feed(forecaster, sample)
        if not isinstance(sample, StepSample):
            continue
        if sample.step == count // 20:
            begun = process.memory_info().rss
        elif sample.step % (count // 10) == 0:
            seen.append((sample.step, (process.memory_info().rss - begun) / MIB))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=4_000, help="per run (default: %(default)s)")
    parser.add_argument("--long-steps", type=int, default=1_000_000, help="0: leave it out (default: %(default)s)")
    chosen = parser.parse_args()
    print(f"{len(CAUSES)} causes, {chosen.steps} steps; reference {reference_us():.0f} us")
    print(f"{'run':12} {'mean':>8} {'median':>8} {'P99':>8} {'max':>8}  ms CPU   {'core at 20/s':>12}")
    for name, run in RUNS.items():
        costs, all_in = cost_ms(run, chosen.steps)
        print(
            f"{name:12} {costs.mean():8.3f} {np.median(costs):8.3f} {np.quantile(costs, 0.99):8.3f} "
            f"{costs.max():8.3f} {all_in * UPDATES_PER_S / 10.0:18.2f} %"
        )
    print("\nms CPU per step by cause (noise | noisy leak)")
    quiet, loud = (cost_by_cause_ms(RUNS[name], chosen.steps // 2) for name in ("noise", "noisy leak"))
    for cause, spent in quiet.items():
        print(f"  {cause:22} {spent:8.3f} {loud[cause]:8.3f}")
    if chosen.long_steps:
        print(f"\n{'steps':>10} {'RSS MiB':>8}  grown since a twentieth of the run")
        for step, grown in growth_mib(noisy, chosen.long_steps):
            print(f"{step:10} {grown:8.2f}")


if __name__ == "__main__":
    main()
