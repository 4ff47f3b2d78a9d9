"""How good the forecast is: the corpus of labelled runs through the forecaster, as if each were live.

    python benchmarks/forecast_score.py [--quick] [--half tuning|untouched|both] [--json] [--failures 20]
    python benchmarks/forecast_score.py --scene leak_line --seed 4        # one run, alert by alert

Prints, per cause and pooled: recall, lead, ETA error, coverage of the 80 % interval, top-1 cause; false alarms per
24 h of healthy run time by kind; Brier scores against the base rate; and the acceptance, line by line.

Definitions. *recall*: an alert (likely or imminent) was raised, not before the fault began, and still open when the
replica refused. *early*: so at least 10 steps or 60 s before; within one call (a phase, a batch): before it.
*ETA error*: |ETA − true| / true in steps, from half-way between the fault's onset and the end to 10 steps before the
end; the median over a run, then over runs; no ETA counts as 1. *coverage*: share of these steps at which the truth
lay within P10 to P90. *Brier*: at 24 evenly spaced rows of each run, of those from which it could be known.
*false alarm*: an alert in a healthy run, or before the fault began in another.

The tuning half may be looked at; the untouched half has other models and other seeds and is only reported.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from multiprocessing import Pool
from typing import Any

import forecast_figures as figures
from forecast_corpus import SCENES, Plan, make, plans
from forecast_judge import Judged, judge
from forecast_runs import LabelledRun

from desktop_app.core.units import GIB
from desktop_app.forecast.trace_replay import TraceReplay

_QUICK_SHARE = 0.1


def score(plan: Plan) -> Judged:
    """Make one run and judge it. Runs in: a worker process."""
    return judge(make(plan), plan.scene.__name__)


def scored(wanted: Sequence[Plan], *, processes: int) -> list[Judged]:
    """In the order of the plans."""
    if processes <= 1:
        return [score(plan) for plan in wanted]
    found: list[Judged] = []
    with Pool(processes) as pool:
        for judged in pool.imap(score, wanted, chunksize=4):
            found.append(judged)
            if sys.stderr.isatty():
                print(f"\r{len(found)} of {len(wanted)} runs", end="", file=sys.stderr)
    return found


def lines(runs: Sequence[Judged]) -> Iterator[str]:
    """The report as text."""
    heads = [("n", 5), ("recall", 8), ("early", 7), ("lead", 7), ("lead s", 8), ("ETA err", 9), ("known", 7)]
    heads += [("80 %", 6), ("cause", 7), ("at end", 7)]
    yield f"{'cause':22}" + "".join(f"{head:>{width}}" for head, width in heads)
    for one in figures.by_cause(runs):
        yield (
            f"{one.group:22}{one.runs:5}{_share(one.recall):>8}{_share(one.early):>7}{_plain(one.lead_steps):>7}"
            f"{_plain(one.lead_s):>8}{_share(one.eta_error):>9}{_share(one.eta_known):>7}{_share(one.coverage):>6}"
            f"{_share(one.first_cause):>7}{_share(one.last_cause):>7}"
        )
    yield f"\n{'healthy':22}{'n':>5}{'hours':>9}{'updates':>9}{'alarms':>8}{'per 24 h':>10}"
    for group in figures.alarms(runs):
        yield (
            f"{group.group:22}{group.runs:5}{group.hours:9.1f}{group.updates:9}{group.alarms:8}{group.per_day:10.2f}"
        )
    yield f"\n{'Brier within':22}{'score':>9}{'base':>9}{'ratio':>8}{'rate':>8}"
    for brier in figures.brier(runs):
        yield f"{brier.horizon:22}{brier.score:9.4f}{brier.base:9.4f}{brier.ratio:8.2f}{brier.rate:8.3f}"
    yield ""
    for target in figures.targets(runs):
        yield f"{'pass' if target.passed else 'FAIL'}  {target.name:34}{target.value:8.3f}  {target.wanted}"


def failures(runs: Sequence[Judged], count: int) -> Iterator[str]:
    """The worst: false alarms, misses, late ones, wrong causes."""
    for run in [run for run in runs if run.false_alarms][:count]:
        yield f"false alarm  {run.scene} --seed {run.seed}  {run.shape}: {', '.join(run.false_alarms)}"
    missed = [run for run in runs if run.cause is not None and not run.early]
    for run in missed[:count]:
        what = "late" if run.found else "missed"
        lead = f"lead {run.lead_steps} steps, {_plain(run.lead_s)} s"
        yield f"{what:12} {run.scene} --seed {run.seed}  {run.shape}: {lead}"
    wrong = [run for run in runs if run.found and run.first_cause != run.cause]
    for run in wrong[:count]:
        yield f"wrong cause  {run.scene} --seed {run.seed}  {run.shape}: {run.first_cause}, at the end {run.last_cause}"
    slow = [run for run in runs if run.late_steps is not None and run.late_steps > 0]
    for run in slow[:count]:
        yield f"slow         {run.scene} --seed {run.seed}  {run.shape}: {run.late_steps} steps after it was due"


def show(run: LabelledRun) -> Iterator[str]:
    """One run, alert by alert."""
    rows = f"onset row {run.onset_row}, out at row {run.oom_row}"
    yield f"{run.name}: {run.shape}, {run.capacity_bytes / GIB:.2f} GiB, {rows}"
    replay = TraceReplay()
    for place, row in enumerate(run.rows[: run.oom_row]):
        update = replay.take(row)
        for alert in update.changes.raised:
            evidence = ", ".join(f"{name} {value:.4g}" for name, value in alert.evidence.items())
            yield (
                f"row {place} step {row.step} t {row.t_s}: {alert.severity} {alert.cause}, eta {alert.eta_steps} "
                f"({alert.eta_steps_low} to {alert.eta_steps_high}), {alert.action}; {evidence}"
            )
        for alert in update.changes.cleared:
            yield f"row {place} step {row.step}: over: {alert.cause}"
    end = replay.forecast
    chances = f"p {dict(end.p_oom)} run {end.p_oom_run:.3f}"
    yield f"at the end, step {end.step}: {end.severity} {end.cause}, eta {end.eta_steps}, {chances}"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}%"


def _wanted(options: argparse.Namespace) -> list[Plan]:
    half = None if options.half == "both" else options.half
    found = plans(half=half, share=_QUICK_SHARE if options.quick else 1.0)
    names = options.scene or [scene.__name__ for scene, _ in SCENES]
    return [plan for plan in found if any(plan.scene.__name__.startswith(name) for name in names)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the corpus")
    parser.add_argument("--half", choices=("tuning", "untouched", "both"), default="both")
    parser.add_argument("--scene", action="append", help="only scenes whose name begins so")
    parser.add_argument("--seed", type=int, help="with --scene: one run, alert by alert")
    parser.add_argument(
        "--failures", type=int, default=0, metavar="N", help="list up to N of each sort, tuning half only"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    wanted = _wanted(options)
    if options.seed is not None:
        for plan in wanted:
            if plan.seed == options.seed:
                print("\n".join(show(make(plan))))
        return 0
    runs = scored(wanted, processes=options.processes)
    halves = {"tuning": [run for run in runs if run.tuning], "untouched": [run for run in runs if not run.tuning]}
    report: dict[str, Any] = {name: figures.as_json(half) for name, half in halves.items() if half}
    if options.json:
        print(json.dumps(report, indent=1))
        return 0
    for name, half in halves.items():
        if half:
            print(f"\n=== {name} half: {len(half)} runs\n")
            print("\n".join(lines(half)))
    if options.failures:
        print()
        print("\n".join(failures(halves["tuning"], options.failures)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
