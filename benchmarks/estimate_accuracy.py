"""How far the estimate is from published peaks, and what it costs.

    python benchmarks/estimate_accuracy.py [--python ENVIRONMENT] [--quick] [--only SET …] [--rung meta]

``--python``: an interpreter with torch, timm and transformers; without them their sets are left out, and said so.
``--quick``: a tenth of every set. Traces are kept in the folder for temporary files, so that a second run only
replays. Published peaks are read from ``../shared/truth`` where they are. Constants of the software of a table
are fitted without the model that is judged; the rule for workspaces without any model of these rows.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import estimate_costs as costs
import estimate_ladder as ladder
import estimate_sets as sets
import estimate_truth as truth
from estimate_traces import Traces

QUICK = 10  # every tenth row
_SETS = ("op", "cnn", "timm", "ladder", "bert", "speed", "batch")
_BINS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_HEAD = f"{'set':34}{'n':>5}{'median':>9}{'P90':>9}{'P95':>9}{'worst':>9}{'bias':>9}{'s/trace':>9}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, help="interpreter or environment that traces")
    parser.add_argument("--quick", action="store_true", help="a tenth of every set")
    parser.add_argument("--only", nargs="+", choices=_SETS, default=list(_SETS), metavar="SET", help=", ".join(_SETS))
    parser.add_argument("--rung", choices=("native", "shim", "meta"), help="how to trace; as chosen where not said")
    parser.add_argument("--tracers", type=int, default=2, help="tracing at once")
    options = parser.parse_args()
    started = time.perf_counter()
    has_truth = truth.TRUTH.is_dir()
    if not has_truth:
        print(f"no published peaks at {truth.TRUTH}: only what the estimate costs")
    with Traces(options.python, tracers=options.tracers, rung=options.rung) as traces:
        for name in _SETS:
            if name in options.only and (has_truth or name in ("speed", "batch")):
                _RUN[name](traces, options)
        for model, error in sorted(traces.errors.items()):
            print(f"not traced: {model}: {error[:110]}")
    print(f"\n{time.perf_counter() - started:.0f} s in all")
    return 0


def _some(rows: Sequence[object], options: argparse.Namespace) -> list[object]:
    return list(rows[::QUICK]) if options.quick else list(rows)


def print_row(name: str, errors: Sequence[float], seconds: float | None = None) -> None:
    """One line of the table; errors are signed and relative."""
    if not errors:
        print(f"{name:34}{0:>5}")
        return
    sizes = sorted(abs(error) for error in errors)
    cells = (quantile(sizes, 0.5), quantile(sizes, 0.9), quantile(sizes, 0.95), sizes[-1])
    shown = "".join(f"{100 * cell:8.2f}%" for cell in cells)
    cost = "" if seconds is None else f"{seconds:9.1f}"
    print(f"{name:34}{len(errors):>5}{shown}{100 * statistics.median(errors):+8.2f}%{cost}")


def quantile(values: Sequence[float], share: float) -> float:
    """Of ascending values, straight between neighbours."""
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (place - low) * (values[high] - values[low])


def _print_judged(name: str, judged: Sequence[sets.Judged], *, worst: int = 0) -> None:
    seconds = statistics.median(one.seconds for one in judged) if judged else None
    print_row(name, [one.error for one in judged], seconds)
    for one in sorted(judged, key=lambda one: -abs(one.error))[:worst]:
        print(f"    {one.model:40} {one.batch:4} {one.measured:8.0f} MiB {100 * one.error:+7.1f}%")


def _op(traces: Traces, options: argparse.Namespace) -> None:  # noqa: ARG001
    print(f"\n{_HEAD}")
    found = costs.op_peaks()
    if found is None:
        print("op level: needs torch in the interpreter that runs this")
        return
    published = truth.op_rows()
    errors = [(mib - other) / other for mib, (_, other) in zip(found, published, strict=True)]
    print_row("op level, live peak", errors)
    for (name, _), error in zip(published, errors, strict=True):
        if abs(error) > 0.002:
            print(f"    {name:40} {100 * error:+7.2f}%")


def _cnn(traces: Traces, options: argparse.Namespace) -> None:
    rows = truth.cnn_rows(tuple(sets.CNN_CARDS))
    judged = sets.judge_cnns(traces, [row for row in rows if not options.quick or row.batch == 16])
    print(f"\n{_HEAD}")
    _print_judged("five-card CNNs: 46, 80, 82 SM", judged, worst=5)


def _timm(traces: Traces, options: argparse.Namespace) -> None:
    rows, left_out = truth.timm_rows()
    print(f"\nruns that did not hold what they name: {dict(left_out)}")
    judged = sets.judge_timm(traces, _some(rows, options))
    print(_HEAD)
    _print_judged("timm on A100", judged, worst=20)
    covered = [one.measured <= one.p95 for one in judged]
    slack = sorted((one.p95 - one.measured) / one.measured for one in judged)
    if judged:
        print(
            f"    P95 covers {100 * sum(covered) / len(covered):.1f} %, median slack {100 * quantile(slack, 0.5):.1f} %"
        )


def _ladder(traces: Traces, options: argparse.Namespace) -> None:
    rungs = ladder.judge_ladder(traces, _some(truth.ladder_rows(), options))
    if not rungs:
        print("\nladder: no row could be traced")
        return
    count = len(rungs)
    near = sum(abs(rung.distance) <= 1 for rung in rungs)
    print(
        f"\nladder, RTX 3090, mixed precision: {count} rows, within one rung {100 * near / count:.1f} %, "
        f"exact {100 * sum(rung.distance == 0 for rung in rungs) / count:.1f} %, "
        f"said to run but did not {100 * sum(rung.distance < 0 for rung in rungs) / count:.1f} % "
        f"(at a risk of {100 * ladder.RISK:.0f} %)"
    )
    pairs = [(rung.chances[size], size <= rung.row.largest) for rung in rungs for size in truth.RUNGS]
    print(
        f"    outside the allocator {statistics.median(rung.context_mib for rung in rungs):.0f} MiB, "
        f"spread {100 * statistics.median(rung.spread for rung in rungs):.1f} % (medians, each without its own model)"
    )
    for rung in rungs:
        if rung.distance < 0:
            print(f"    {rung.row.model} said to run at {rung.estimated}, ran at {rung.row.largest}")
    print("reliability of P(fits), rungs of all rows:")
    for low, high in pairwise(_BINS):
        inside = [(chance, ran) for chance, ran in pairs if low <= chance < high or (high == 1.0 and chance == 1.0)]
        if inside:
            said = statistics.mean(chance for chance, _ in inside)
            ran = statistics.mean(ran for _, ran in inside)
            print(f"    said {low:4.2f} to {high:4.2f}: n {len(inside):4}  mean said {said:5.2f}  ran {ran:5.2f}")


def _bert(traces: Traces, options: argparse.Namespace) -> None:  # noqa: ARG001
    print(f"\n{_HEAD}")
    for name, stated, old in (
        ("BERT-large on V100, blind", False, False),
        ("  stated context", True, False),
        ("  stated context, softmax of 2021", True, True),
    ):
        _print_judged(name, sets.judge_bert(traces, stated_context=stated, old_softmax=old), worst=3)


def _speed(traces: Traces, options: argparse.Namespace) -> None:  # noqa: ARG001
    print("\nwhat a trace and an estimate cost, after imports")
    for line in costs.speeds(options.python, rung=options.rung):
        print(f"    {line}")


def _batch(traces: Traces, options: argparse.Namespace) -> None:
    print("\nlargest batch: B fits and B + 1 does not, by full traces")
    for line in costs.largest_batches(traces, few=options.quick):
        print(f"    {line}")


_RUN: dict[str, Callable[[Traces, argparse.Namespace], None]] = {
    "op": _op,
    "cnn": _cnn,
    "timm": _timm,
    "ladder": _ladder,
    "bert": _bert,
    "speed": _speed,
    "batch": _batch,
}

if __name__ == "__main__":
    raise SystemExit(main())
