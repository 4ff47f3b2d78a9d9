"""The corpus of labelled runs for the forecast: real steps in the allocator replica, with faults and without.

    python benchmarks/forecast_corpus.py [--quick] [--half tuning|untouched] [--out DIR]

At least 60 runs of every cause and 700 healthy ones of 16 kinds, from traces of 16 models (``forecast_shapes.py``).
``--out`` writes each run as CSV, as ``floodmark forecast`` reads it, and ``labels.csv`` with what is true of them.
Without it, counts are printed.

Halves: a run belongs to the tuning half or to the untouched one by its number; the tuning half has even seeds and one
set of models, the untouched half odd seeds and the other, so that neither a seed nor a model is in both.
"""

from __future__ import annotations

import argparse
import csv
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from forecast_around import AROUND
from forecast_calls import CALLS
from forecast_faults import FAULTS, Scene
from forecast_healthy import HEALTHY
from forecast_runs import Draw, LabelledRun, UnfitError, named_shape
from forecast_shape_sets import of_half

from desktop_app.forecast.trace_rows import TRACE_COLUMNS

SCENES: Final = (*FAULTS, *CALLS, *AROUND, *HEALTHY)
_ATTEMPTS: Final = 60
_QUICK_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Plan:
    """One run still to be made."""

    scene: Scene
    seed: int
    tuning: bool


def plans(*, half: str | None = None, share: float = 1.0) -> list[Plan]:
    """``share`` of the corpus: of each scene at least two runs, one in each half."""
    found = []
    for scene, count in SCENES:
        wanted = max(2, round(count * share))
        found += [Plan(scene, seed, seed % 2 == 0) for seed in range(wanted)]
    return [plan for plan in found if half is None or plan.tuning is (half == "tuning")]


def make(plan: Plan) -> LabelledRun:
    """Carry it out. The same plan gives the same run everywhere."""
    names = of_half(tuning=plan.tuning)
    first = zlib.crc32(plan.scene.__name__.encode()) + plan.seed // 2  # scenes begin at different models
    for attempt in range(_ATTEMPTS):
        name = names[(first + attempt) % len(names)]
        try:
            draw = Draw(named_shape(name), name, plan.seed, attempt, plan.scene.__name__)
            return plan.scene(draw, tuning=plan.tuning)
        except UnfitError:
            continue
    raise RuntimeError(f"{plan.scene.__name__} with seed {plan.seed} has led to no run in {_ATTEMPTS} attempts")


def write_csv(run: LabelledRun, folder: Path) -> Path:
    """Columns that no row of the run has are left out."""
    columns = [name for name in TRACE_COLUMNS if any(getattr(row, name) not in (None, "") for row in run.rows)]
    path = folder / f"{run.name}.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in run.rows:
            values = [getattr(row, name) for name in columns]
            writer.writerow(["" if value is None else value for value in values])
    return path


_LABELS: Final = (
    "name",
    "kind",
    "cause",
    "shape",
    "seed",
    "tuning",
    "capacity_bytes",
    "onset_row",
    "oom_row",
    "seconds",
)


def _labels(runs: Iterator[LabelledRun], folder: Path) -> Iterator[LabelledRun]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_LABELS)
        for run in runs:
            write_csv(run, folder)
            writer.writerow([getattr(run, name) for name in _LABELS])
            yield run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    parser.add_argument("--half", choices=("tuning", "untouched"))
    parser.add_argument("--out", type=Path, help="folder for the CSV files")
    options = parser.parse_args()
    runs: Iterator[LabelledRun] = map(make, plans(half=options.half, share=_QUICK_SHARE if options.quick else 1.0))
    if options.out is not None:
        runs = _labels(runs, options.out)
    counts: Counter[str] = Counter()
    rows = hours = 0.0
    for run in runs:
        counts[run.cause.value if run.cause is not None else "healthy"] += 1
        rows += len(run.rows)
        hours += run.seconds / 3600.0 if run.cause is None else 0.0
    for cause, count in counts.items():
        print(f"{cause:22} {count:6}")
    print(f"{sum(counts.values())} runs, {rows:.0f} rows, {hours:.0f} h of healthy run time")


if __name__ == "__main__":
    main()
