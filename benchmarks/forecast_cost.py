"""What a forecast costs, and whether it remembers too much: CPU time per update and memory over a long run.

    python benchmarks/forecast_cost.py [--steps N] [--long-steps N] [--each-step]

Feeds made-up runs as the forecaster's thread gets them: steps, a validation and a save after every epoch, surroundings
once a second. Prints CPU time per update with all causes (mean, median, P99, maximum), the share of a core that 20
steps/s would take, the same of a sample of telemetry, what each cause costs, and how much the process has grown over a
run of a million steps. Budget: 2 ms per update, 1 % of a core at 20 steps/s (0.5 ms), no growth.

Times are those of one thread; other work on the same cores still stretches them. The reference beside them is a fixed
piece of work (sorting 2,000 floats) between the updates of the same run: divide by it (the last column: mean over
reference) to compare two machines, or two moments of one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import psutil

from desktop_app.core.steps import MemoryStats, Phase, PhaseSample, StepSample, Surroundings
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import CAUSES, Forecaster
from desktop_app.forecast.worker import CALM_STEPS, is_calm

CAPACITY: Final = 6 * GIB
UPDATES_PER_S: Final = 20
EPOCH: Final = 250
REFERENCE_EVERY: Final = 64  # samples
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


@dataclass
class Costs:
    """CPU time of this thread in ms: of the update of each step, each phase and each sample of telemetry."""

    steps: list[float] = field(default_factory=list)
    absorbed: list[float] = field(default_factory=list)  # steps that are evidence only
    phases: list[float] = field(default_factory=list)
    around: list[float] = field(default_factory=list)
    references: list[float] = field(default_factory=list)

    @property
    def per_step(self) -> float:
        """With everything that comes between steps."""
        spent = sum(self.steps) + sum(self.absorbed) + sum(self.phases) + sum(self.around)
        return spent / (len(self.steps) + len(self.absorbed))

    def line(self, name: str, spent: list[float]) -> str:
        cost, reference = np.array(spent), float(np.median(self.references))
        return (
            f"{name:22} {cost.mean():8.3f} {np.median(cost):8.3f} {np.quantile(cost, 0.99):8.3f} {cost.max():8.3f} "
            f"{reference:10.3f} {cost.mean() / reference:9.2f}"
        )


def cost_ms(run: Run, count: int, *, growing: bool = False, each_step: bool = False) -> Costs:
    """``growing``: what others hold, what lies outside the allocator, and RAM grow until they are full. Unless
    ``each_step``, steps are evidence only where the forecaster's thread takes two together: while all is calm."""
    rng = np.random.default_rng(0)
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    costs = Costs()
    for index, sample in enumerate(samples(run(rng, count), rng)):
        if growing and isinstance(sample, Surroundings):
            sample = grown(sample, sample.t_s * UPDATES_PER_S / count)
        evidence_only = isinstance(sample, StepSample) and sample.step % CALM_STEPS and not each_step
        evidence_only = evidence_only and is_calm(forecaster.forecast())
        begin = time.thread_time()
        if isinstance(sample, StepSample) and evidence_only:
            forecaster.absorb_step(sample)
        else:
            feed(forecaster, sample)
        spent = 1e3 * (time.thread_time() - begin)
        kind = costs.steps if isinstance(sample, StepSample) else costs.phases
        kind = costs.absorbed if evidence_only else kind
        (costs.around if isinstance(sample, Surroundings) else kind).append(spent)
        if index % REFERENCE_EVERY == 0:
            costs.references.append(reference_ms())
    return costs


def grown(sample: Surroundings, share: float) -> Surroundings:
    """``share`` of three growths that end at the brim."""
    ram = int(share * 40 * GIB)
    return replace(
        sample,
        others_bytes=(sample.others_bytes or 0) + int(share * 3 * GIB),
        outside_bytes=(sample.outside_bytes or 0) + int(share * GIB),
        host_used_bytes=(sample.host_used_bytes or 0) + ram,
        host_available_bytes=(sample.host_available_bytes or 0) - ram,
    )


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


_UNSORTED: Final = np.random.default_rng(0).random(2_000).tolist()


def reference_ms() -> float:
    """A fixed piece of work."""
    begin = time.thread_time()
    sorted(_UNSORTED)
    return 1e3 * (time.thread_time() - begin)


def resident_mib(run: Run, count: int) -> Iterator[tuple[int, float]]:
    """Resident memory of this process after a hundredth and after each tenth of a long run."""
    rng = np.random.default_rng(0)
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    process = psutil.Process()
    for sample in samples(run(rng, count), rng):
        if isinstance(sample, StepSample) and sample.step % JUDGED:
            forecaster.absorb_step(sample)
        else:
            feed(forecaster, sample)
        if isinstance(sample, StepSample) and (sample.step == count // 100 or sample.step % (count // 10) == 0):
            yield sample.step, process.memory_info().rss / MIB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=4_000, help="per run (default: %(default)s)")
    parser.add_argument("--each-step", action="store_true", help="a forecast for every step, near or far")
    parser.add_argument("--long-steps", type=int, default=1_000_000, help="0: leave it out (default: %(default)s)")
    chosen = parser.parse_args()
    print(f"{len(CAUSES)} causes, {chosen.steps} steps; ms of CPU time")
    print(f"{'run':22} {'mean':>8} {'median':>8} {'P99':>8} {'max':>8} {'reference':>10} {'in refs.':>9}  core at 20/s")
    for name, run in RUNS.items():
        costs = cost_ms(run, chosen.steps, each_step=chosen.each_step)
        print(f"{costs.line(name, costs.steps)} {costs.per_step * UPDATES_PER_S / 10.0:11.2f} %")
    for name, growing in (("telemetry, calm", False), ("telemetry, growing", True)):
        costs = cost_ms(flat, 2 * chosen.steps, growing=growing, each_step=chosen.each_step)
        print(f"{costs.line(name, costs.around)} {costs.per_step * UPDATES_PER_S / 10.0:11.2f} %")
    print("\nms CPU per step by cause (noise | noisy leak)")
    quiet, loud = (cost_by_cause_ms(RUNS[name], chosen.steps // 2) for name in ("noise", "noisy leak"))
    for cause, spent in quiet.items():
        print(f"  {cause:22} {spent:8.3f} {loud[cause]:8.3f}")
    if chosen.long_steps:
        print(f"\n{'steps':>10} {'RSS MiB':>8}")
        for step, resident in resident_mib(noisy, chosen.long_steps):
            print(f"{step:10} {resident:8.2f}", flush=True)


if __name__ == "__main__":
    main()
