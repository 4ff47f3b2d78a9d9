"""A recording held against a trace: where the two first part, and whose the unknown allocations are."""

from __future__ import annotations

import random

from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import MIB
from desktop_app.memory.overheads import CUDNN_OP
from desktop_app.memory.snapshot import Snapshot, parse_snapshot
from desktop_app.memory.snapshot_compare import compare_with_trace
from desktop_app.memory.trace_data import Trace, TraceEvent

from .recorder import BACKWARD_STACK, FORWARD_STACK, Recorder

# One step: forward keeps, backward makes and frees. Every request has a size of its own.
FORWARD = [3 * MIB + 512 * number for number in range(30)]
BACKWARD = [5 * MIB + 512 * number for number in range(30)]
STATE = [7 * MIB + 512 * number for number in range(10)]
BUILD = [9 * MIB + 512 * number for number in range(10)]


def trace(*, guesses: int = 0) -> Trace:
    events: list[TraceEvent] = []

    def ask(size: int, op: str, phase: Phase, step: int, module: str = "") -> None:
        events.append(TraceEvent(len(events) + 1, size, op, phase, step, Category.OTHER, module))

    for size in BUILD:
        ask(size, "to", Phase.BUILD, 0)
    for step in (1, 2):
        for number, size in enumerate(FORWARD):
            ask(size, "addmm", Phase.FORWARD, step, f"layers.{number}")
            if number < guesses:
                ask(12345 * number + 1, CUDNN_OP, Phase.FORWARD, step)
        for size in BACKWARD:
            ask(size, "mm", Phase.BACKWARD, step)
        for size in STATE if step == 1 else []:
            ask(size, "zeros_like", Phase.OPTIMIZER, step)
    return Trace(tuple(events), 8)


def recording(*requests: int, unknown: dict[int, int] | None = None) -> Snapshot:
    """Each request freed at once; those in ``unknown`` (position: bytes) come before the one at their position."""
    recorder = Recorder()
    for number, size in enumerate(requests):
        extra = (unknown or {}).get(number)
        if extra is not None:
            recorder.free(recorder.alloc(extra, stack=BACKWARD_STACK))
        recorder.free(recorder.alloc(size, stack=FORWARD_STACK))
    return parse_snapshot(recorder.snapshot())


def test_every_step_of_a_recording_that_starts_with_the_program_is_known() -> None:
    requests = BUILD + FORWARD + BACKWARD + STATE + (FORWARD + BACKWARD) * 3
    comparison = compare_with_trace(recording(*requests), trace())
    assert (comparison.recorded, comparison.matched) == (len(requests), len(requests))
    assert (comparison.unknown, comparison.missing, comparison.first) == (0, 0, None)
    assert comparison.begins == 1  # after the segment that was made for it


def test_a_recording_that_starts_in_the_middle_is_known_from_there() -> None:
    requests = BACKWARD[11:] + (FORWARD + BACKWARD) * 2 + FORWARD[:5]
    comparison = compare_with_trace(recording(*requests), trace())
    assert (comparison.matched, comparison.unknown, comparison.missing) == (len(requests), 0, 0)
    assert comparison.first is None


def test_the_first_unknown_allocation_is_named_with_its_line_and_op() -> None:
    requests = BUILD + FORWARD + BACKWARD + STATE + FORWARD + BACKWARD
    snapshot = recording(*requests, unknown={len(BUILD) + 12: 33_554_432})
    comparison = compare_with_trace(snapshot, trace())
    first = comparison.first
    assert first is not None
    assert first.recorded is not None
    assert snapshot.events[first.recorded].size_bytes == first.size_bytes == 33_554_432
    assert (first.owner, first.op) == ("backward of Addmm", "AddmmBackward")
    assert first.after is not None
    assert first.expected is not None
    assert (first.after.module, first.expected.module) == ("layers.11", "layers.12")
    assert (comparison.unknown, comparison.missing) == (1, 0)
    assert comparison.by_op == (("AddmmBackward", 1, 33_554_432),)


def test_an_allocation_that_never_came_is_named() -> None:
    requests = BUILD + FORWARD[:7] + FORWARD[8:] + BACKWARD
    comparison = compare_with_trace(recording(*requests), trace())
    assert comparison.first is not None
    assert comparison.first.recorded is None
    assert comparison.first.expected is not None
    assert comparison.first.expected.module == "layers.7"
    assert (comparison.unknown, comparison.missing) == (0, 1)


def test_another_size_is_both_unknown_and_missing() -> None:
    requests = BUILD + FORWARD[:7] + [4 * MIB] + FORWARD[8:] + BACKWARD
    comparison = compare_with_trace(recording(*requests), trace())
    assert (comparison.unknown, comparison.missing) == (1, 1)
    assert comparison.first is not None
    assert comparison.first.size_bytes == 4 * MIB
    assert comparison.first.expected is not None
    assert comparison.first.expected.size_bytes == FORWARD[7]


def test_workspaces_of_cudnn_may_have_any_size_or_none() -> None:
    given = [size for number, size in enumerate(FORWARD) for size in ([size, 777 * MIB] if number == 3 else [size])]
    requests = BUILD + given + BACKWARD
    comparison = compare_with_trace(recording(*requests), trace(guesses=5))
    assert (comparison.matched, comparison.unknown, comparison.missing) == (len(requests), 0, 0)


def test_what_has_nothing_in_common_begins_nowhere() -> None:
    choose = random.Random(1)
    comparison = compare_with_trace(recording(*[choose.randrange(1 << 20) for _ in range(200)]), trace())
    assert (comparison.begins, comparison.matched, comparison.first) == (None, 0, None)
    assert compare_with_trace(recording(), trace()).recorded == 0


def test_many_differences_do_not_lose_the_thread() -> None:
    requests = BUILD + FORWARD + BACKWARD + STATE + (FORWARD + BACKWARD) * 4
    unknown = {number: 1000 + number for number in range(0, len(requests), 9)}
    comparison = compare_with_trace(recording(*requests, unknown=unknown), trace())
    assert comparison.matched >= len(requests) - 9
    assert comparison.missing == 0
