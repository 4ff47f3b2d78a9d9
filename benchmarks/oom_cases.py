# ruff: noqa: E501 - messages are quoted as they were printed
"""The out-of-memory cases of ``../shared/cases/cases.csv``, each built from its small reproduction, and what we answer.

    python benchmarks/oom_cases.py [--only OOM-36] [--no-scripts]

A case is a recorded run through the forecaster, a message through ``explain``, or a script of our own parts. Guards must stay
silent. Prints a table and the share that is right; ends with 1 below 95 %, or with a guard that was not silent.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import oom_case_scripts as scripts
import oom_case_traces as traces

from desktop_app.core.forecasts import Alert, Cause, Forecast
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.trace_replay import TraceReplay
from desktop_app.forecast.trace_rows import TraceRow
from desktop_app.services.oom_explanation import Explanation, Note, OomAction, OomCause, explain

CASES = Path(__file__).resolve().parents[2] / "shared/cases/cases.csv"
LEAST_SHARE = 0.95
Answer = tuple[bool, str]


@dataclass(slots=True)
class Outcome:
    """What a replay led to. ``at`` counts rows from 1."""

    alerts: list[tuple[int, Alert]] = field(default_factory=list)
    rows: int = 0
    last: TraceRow | None = None
    forecast: Forecast | None = None

    @property
    def said(self) -> str:
        firsts: dict[Cause, tuple[int, Alert]] = {}
        for at, alert in self.alerts:
            firsts.setdefault(alert.cause, (at, alert))
        found = [
            f"{cause.value} at row {at:,} of {self.rows:,} (step {alert.step})" for cause, (at, alert) in firsts.items()
        ]
        return "; ".join(found) or f"silent over {self.rows:,} rows"


def replayed(rows: Iterable[TraceRow]) -> Outcome:
    run, outcome = TraceReplay(), Outcome()
    for row in rows:
        outcome.rows += 1
        outcome.last = row
        outcome.alerts += [(outcome.rows, alert) for alert in run.take(row).changes.raised]
    outcome.forecast = run.forecast
    return outcome


def silent(rows: Iterable[TraceRow]) -> Answer:
    outcome = replayed(rows)
    return not outcome.alerts, outcome.said


def warned(
    rows: Iterable[TraceRow], *causes: Cause, by: float = 1.0, lead_rows: int = 0, by_row: int | None = None
) -> Answer:
    """The first alert is of one of ``causes``, within this share of the rows (the run ends where memory does)."""
    outcome = replayed(rows)
    if not outcome.alerts:
        return False, outcome.said
    at, first = outcome.alerts[0]
    limit = min(by * outcome.rows, outcome.rows - lead_rows, by_row or outcome.rows)
    return first.cause in causes and at <= limit, outcome.said


def both(*answers: Answer) -> Answer:
    return all(right for right, _ in answers), " | ".join(said for _, said in answers)


def explained(text: str, check: Callable[[Explanation], bool]) -> Answer:
    found = explain(f"step 12 loss 0.3\n{text}\nexit status 1\n")
    if found is None:
        return False, "not recognised"
    what = f"{found.full.value}, {found.cause.value}: {', '.join(action.value for action in found.actions)}"
    return check(found), what + ("" if not found.notes else f" ({', '.join(note.value for note in found.notes)})")


def old(tried: str, total: str, allocated: str, free: str, rest: str) -> str:
    """torch until 2.0."""
    return (
        f"RuntimeError: CUDA out of memory. Tried to allocate {tried} (GPU 0; {total} total capacity; {allocated} already "
        f"allocated; {free} free; {rest})"
    )


def new(
    tried: str, total: str, allocated: str, idle: str, free: str, *, word: str = "capacity", process: str = ""
) -> str:
    """torch from 2.1."""
    mine = f"Including non-PyTorch memory, this process has {process} memory in use. " if process else ""
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total {word} of {total} of which "
        f"{free} is free. {mine}Of the allocated memory {allocated} is allocated by PyTorch, and {idle} is reserved by PyTorch "
        "but unallocated."
    )


def reserved(size: str) -> str:
    return f"{size} reserved in total by PyTorch"


SECOND_BACKWARD = (
    "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after they have "
    "already been freed). Specify retain_graph=True if you need to backward through the graph a second time."
)
BUS_ERROR = (
    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
    "RuntimeError: DataLoader worker (pid 31) is killed by signal: Bus error."
)
KILLED = "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed."
SHAPE = Cause.BATCH_SHAPE


def _fragment_wordings() -> Answer:
    texts = [
        new("1.70 GiB", "6.00 GiB", "2.93 GiB", "2.30 GiB", "0 bytes", word="capacty"),
        new("1.70 GiB", "6.00 GiB", "2.93 GiB", "2.30 GiB", "0 bytes"),
        old("1.70 GiB", "6.00 GiB", "2.93 GiB", "0 bytes", reserved("5.23 GiB")),
    ]
    return both(*(explained(text, lambda found: found.cause is OomCause.FRAGMENTATION) for text in texts))


def _above_total() -> Answer:
    texts = [
        old("20.00 MiB", "4.00 GiB", "7.42 GiB", "0 bytes", reserved("9.23 GiB")),
        old("10.73 GiB", "8.00 GiB", "17.20 GiB", "0 bytes", reserved("19.15 GiB")),
    ]
    return both(*(explained(text, lambda found: found.cause is OomCause.SYSTEM_MEMORY_FALLBACK) for text in texts))


def _wsl() -> Answer:
    text = new(
        "30.00 GiB", "15.99 GiB", "30.00 GiB", "0 bytes", "0 bytes", word="capacty", process="17179869184.00 GiB"
    )
    unknown = silent(
        TraceRow(t_s=float(at), step=at, device_used_bytes=None, live_after_bytes=GIB, capacity_bytes=16 * GIB)
        for at in range(1, 60)
    )
    return both(
        explained(text, lambda found: Note.NONSENSE_FIGURE in found.notes and "process_bytes" not in found.figures),
        unknown,
    )


def _contradiction() -> Answer:
    text = old("12.50 MiB", "10.92 GiB", "8.57 MiB", "9.28 GiB", "4.68 MiB cached")
    wanted = {OomAction.CHECK_COMMIT_LIMIT, OomAction.END_OTHER_PROCESSES, OomAction.RESTART_PROCESS}
    return explained(text, lambda found: wanted <= set(found.actions) and OomAction.REDUCE_BATCH not in found.actions)


def _last_before_death() -> Answer:
    outcome = replayed(traces.after_death())
    held = outcome.forecast.device_bytes if outcome.forecast is not None else 0
    text = new("20.00 MiB", "6.00 GiB", "4.04 GiB", "100.00 MiB", "0 bytes")
    message = explained(text, lambda found: found.shares["allocated"] > 4 * GIB)
    return both((held >= 3.5 * GIB, f"{held / GIB:.2f} GiB as last seen in the process"), message)


CHECKS: dict[str, Callable[[], Answer]] = {
    "OOM-04": lambda: both(
        silent(traces.epoch_saw(capacity=12 * GIB)),
        warned(traces.epoch_saw(capacity=int(6 * GIB + 1.2 * MIB * 2700) + 64 * MIB, epochs=1), Cause.LEAK, by=0.5),
    ),
    "OOM-05": lambda: silent(traces.tiny_leak()),
    "OOM-06": lambda: warned(
        traces.host_leak(begin=2 * GIB, end=14 * GIB, minutes=20, total=16 * GIB), Cause.HOST_MEMORY, by=0.92
    ),
    "OOM-07": lambda: warned(
        traces.host_leak(begin=4 * GIB, end=29.5 * GIB, minutes=40, total=32 * GIB), Cause.HOST_MEMORY, by=0.92
    ),
    "OOM-08": lambda: silent(traces.second_order()),
    "OOM-09": lambda: warned(traces.undetached(), Cause.LEAK, by=0.2),
    "OOM-10": lambda: explained(
        f"    losses[i].backward(retain_graph=True)\n{new('96.00 MiB', '11.91 GiB', '11.02 GiB', '90.00 MiB', '12.00 MiB')}",
        lambda found: Note.RETAINED_GRAPH in found.notes,
    ),
    "OOM-11": lambda: explained(
        SECOND_BACKWARD, lambda found: found.actions[0] is OomAction.ONE_BACKWARD and found.cause is OomCause.GRAPH_USED_TWICE
    ),
    "OOM-12": lambda: warned(traces.hooked_modules(), Cause.LEAK, lead_rows=10),
    "OOM-15": lambda: both(
        explained(KILLED, lambda found: found.cause is OomCause.HOST_MEMORY and Note.WORKERS in found.notes),
        warned(traces.main_process_grows(), Cause.HOST_MEMORY, by=0.93),
    ),
    "OOM-23": lambda: warned(
        traces.growing_validation(per_batch=60 * MIB, batches=400, capacity=16 * GIB, told=False), Cause.VALIDATION, lead_rows=10
    ),
    "OOM-25": lambda: both(
        warned(
            traces.growing_validation(per_batch=2.9 * MIB, batches=14_673, capacity=24 * GIB, told=True),
            Cause.VALIDATION,
            by_row=100 + 734,
        ),
        silent(traces.growing_validation(per_batch=2.9 * MIB, batches=3_000, capacity=24 * GIB, told=True)),
    ),
    "OOM-26": scripts.too_large_output,
    "OOM-27": lambda: warned(
        traces.host_leak(begin=40 * GIB, end=920 * GIB, minutes=220, total=960 * GIB, vram=True), Cause.HOST_MEMORY, by=0.9
    ),
    "OOM-31": lambda: both(warned(traces.resumed(copy=12 * GIB), Cause.RESUME), silent(traces.resumed(copy=0.1 * GIB))),
    "OOM-32": lambda: warned(traces.eight_ranks(), Cause.NEIGHBOUR, lead_rows=3),
    "OOM-33": scripts.grown_checkpoint,
    "OOM-36": lambda: warned(traces.save_stairs(), Cause.CHECKPOINT_SAVE, Cause.LEAK, lead_rows=1000),
    "OOM-37": lambda: warned(traces.shift_after_save(), Cause.CHECKPOINT_SAVE, by_row=510),
    "OOM-38": lambda: both(
        warned(traces.save_on_card(copy=12 * GIB), Cause.CHECKPOINT_SAVE), silent(traces.save_on_card(copy=4 * GIB))
    ),
    "OOM-39": lambda: warned(traces.save_to_full_ram(), Cause.CHECKPOINT_SAVE, Cause.HOST_MEMORY),
    "OOM-40": scripts.writer_out_of_memory,
    "OOM-45": lambda: both(
        warned(traces.first_step(adam=True, batch=10, told=True, capacity=8 * GIB), Cause.FIRST_OPTIMIZER_STEP),
        silent(traces.first_step(adam=False, batch=8, told=True)),
        silent(traces.first_step(adam=True, batch=4, told=True)),
    ),
    "OOM-46": lambda: explained(
        old("352.00 MiB", "7.92 GiB", "1.67 GiB", "156.00 MiB", "120.00 MiB cached"),
        lambda found: found.cause is OomCause.OTHER_PROCESSES and abs((found.not_own_bytes or 0) - 5.98 * GIB) < 0.02 * GIB,
    ),
    "OOM-49": scripts.unsynchronised_accumulation,
    "OOM-51": lambda: warned(
        traces.token_steps(
            traces.short_and_one_long(longest=30_000), per_token=0.15 * MIB, capacity=24 * GIB, ahead=False,
            event="longest_batch:samples=8,tokens=240000,step=351",
        ),
        SHAPE, lead_rows=10,
    ),
    "OOM-53": lambda: both(
        warned(traces.token_steps(traces.histogram(), per_token=8 * MIB, capacity=16 * GIB, ahead=True), SHAPE),
        silent(traces.token_steps(traces.histogram(), per_token=8 * MIB, capacity=24 * GIB, ahead=True)),
    ),
    "OOM-55": lambda: warned(
        traces.token_steps(traces.sorted_epoch(), per_token=0.7 * MIB, capacity=20 * GIB, ahead=False), SHAPE, lead_rows=10
    ),
    "OOM-56": lambda: warned(
        traces.token_steps(traces.wrapped_batches(), per_token=4.5 * MIB, capacity=16 * GIB, ahead=True), SHAPE
    ),
    "OOM-57": lambda: both(
        warned(traces.giant_image(), SHAPE),
        explained(
            old("11.47 GiB", "11.99 GiB", "11.45 GiB", "0 bytes", reserved("23.34 GiB")),
            lambda found: found.cause is OomCause.SYSTEM_MEMORY_FALLBACK,
        ),
    ),
    "OOM-58": lambda: silent(traces.algorithm_search()),
    "OOM-59": lambda: silent(traces.another_algorithm()),
    "OOM-65": scripts.chopped_segment,
    "OOM-66": lambda: explained(
        old("2.93 GiB", "23.80 GiB", "12.04 GiB", "2.82 GiB", reserved("19.69 GiB")),
        lambda found: found.cause is OomCause.FRAGMENTATION and found.actions[0] is OomAction.EXPANDABLE_SEGMENTS,
    ),
    "OOM-67": _fragment_wordings,
    "OOM-69": _above_total,
    "OOM-72": _wsl,
    "OOM-74": lambda: explained(
        old("16.00 EiB", "7.80 GiB", "1.00 GiB", "5.00 GiB", reserved("1.20 GiB")),
        lambda found: found.actions == (OomAction.CHECK_SHAPES,),
    ),
    "OOM-75": _contradiction,
    "OOM-76": _last_before_death,
    "OOM-83": lambda: both(
        warned(traces.zombie(), Cause.NEIGHBOUR, Cause.FIRST_OPTIMIZER_STEP), scripts.held_by_nobody()
    ),
    "OOM-85": scripts.good_size_after_a_bad_one,
    "OOM-86": lambda: explained(BUS_ERROR, lambda found: found.cause is OomCause.SHARED_MEMORY),
    "OOM-88": lambda: warned(traces.workers(total=18 * GIB, growing=True), Cause.HOST_MEMORY, by=0.95),
    "OOM-90": lambda: warned(traces.workers(total=16 * GIB, growing=False), Cause.HOST_MEMORY),
    "OOM-91": lambda: warned(traces.commit_charge(), Cause.HOST_MEMORY, by=0.95),
}  # fmt: skip
GUARDS = ("OOM-05", "OOM-08", "OOM-58", "OOM-59")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="ID")
    parser.add_argument("--no-scripts", action="store_true", help="leave out the cases that run a training or a trace")
    options = parser.parse_args()
    given = _given()
    right = asked = 0
    loud: list[str] = []
    for case, check in CHECKS.items():
        is_script = check.__module__ == scripts.__name__
        if (options.only and case not in options.only) or (options.no_scripts and is_script):
            continue
        begin = time.perf_counter()
        ok, said = check()
        right, asked = right + ok, asked + 1
        if case in GUARDS and not ok:
            loud.append(case)
        print(
            f"{'right' if ok else 'WRONG'} {case:7} {given.get(case, ''):24} {time.perf_counter() - begin:5.1f} s  {said}",
            flush=True,
        )
    missing = sorted(set(given) - set(CHECKS))
    if missing:
        print(f"given but not built: {', '.join(missing)}")
    share = right / max(asked, 1)
    print(f"\n{right} of {asked} right ({share:.1%}); guards that were not silent: {', '.join(loud) or 'none'}")
    return 0 if share >= LEAST_SHARE and not loud and not missing else 1


def _given() -> dict[str, str]:
    """Themes by id, where the cases lie beside the checkout."""
    if not CASES.exists():
        return {}
    with CASES.open(newline="", encoding="utf-8") as file:
        return {
            row["id"]: row["theme"].removeprefix("oom/") for row in csv.DictReader(file) if row["id"].startswith("OOM-")
        }


if __name__ == "__main__":
    sys.exit(main())
