"""How exactly the allocator replica reproduces recorded CUDA allocations, and how fast.

    python benchmarks/allocator_replay.py [FOLDER]

Reads the recordings in ../shared/truth/allocator_traces where they are present (gzipped CSV: action, addr, size; real
addresses) and prints two tables. "Recorded addresses" puts each segment where CUDA put it and compares every
allocation; "own addresses" lets the replica place segments by itself, as a forecast must.
"""

from __future__ import annotations

import csv
import gzip
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np

from desktop_app.core.units import MIB
from desktop_app.memory.allocator import Block, CachingAllocator, SegmentView
from desktop_app.memory.allocator_replay import replay
from desktop_app.memory.allocator_settings import SMALL_LIMIT_BYTES, round_request
from desktop_app.memory.segments import FREE, LIVE, BlockView

DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "truth" / "allocator_traces"
Row = tuple[str, int, int]  # action, address, bytes


@dataclass
class RecordedAddresses:
    """Hands out the addresses of the recording, in its order, and notes what comes back."""

    upcoming: deque[tuple[int, int]] = field(default_factory=deque)
    right: int = 0
    wrong: int = 0
    released: set[int] = field(default_factory=set)

    def reserve(self, size_bytes: int) -> int:
        if self.upcoming and self.upcoming[0][1] == size_bytes:
            self.right += 1
            return self.upcoming.popleft()[0]
        self.wrong += 1
        return (1 << 47) + self.wrong * (1 << 40)  # out of the way, so that the replay can go on

    def release(self, address: int, size_bytes: int) -> None:  # noqa: ARG002 - the interface of AddressSource
        self.released.add(address)


def read(path: Path) -> list[Row]:
    with gzip.open(path, "rt", newline="") as file:
        return [(row["action"], int(row["addr"]), int(row["size"])) for row in csv.DictReader(file)]


def initial_segments(rows: Iterable[Row]) -> list[SegmentView]:
    """The state at the beginning of a recording.

    Requests are recorded, not blocks: a gap of up to 1 MiB in the large pool is the tail of the block before it,
    for no free block of that pool is so small.
    """
    used = sorted((address, size) for action, address, size in rows if action == "initial_block")
    views = []
    for action, start, size in rows:
        if not action.startswith("initial_segment"):
            continue
        small = action.endswith("small")
        inside = [(address, request) for address, request in used if start <= address < start + size]
        views.append(SegmentView(start, size, 0, small, tuple(fill(inside, start, start + size, small=small))))
    return views


def fill(inside: list[tuple[int, int]], start: int, end: int, *, small: bool) -> Iterator[BlockView]:
    position = start
    for index, (address, request) in enumerate(inside):
        if address > position:
            yield BlockView(position, address - position, 0, FREE)
        limit = inside[index + 1][0] if index + 1 < len(inside) else end
        size = round_request(request)
        tail = limit - address - size
        if 0 < tail <= (0 if small else SMALL_LIMIT_BYTES):
            size += tail
        yield BlockView(address, size, request, LIVE)
        position = address + size
    if position < end:
        yield BlockView(position, end - position, 0, FREE)


def compare_blocks(rows: list[Row]) -> tuple[int, int, int, int, int, int]:
    """(allocations, at the recorded address, segments, as recorded, events, with equal reserved and requested)."""
    addresses = RecordedAddresses()
    allocator = CachingAllocator(addresses=addresses)
    blocks: dict[int, Block] = allocator.adopt(initial_segments(rows))
    reserved, requested = allocator.reserved_bytes, allocator.requested_bytes
    allocations = placed = segments = released = events = equal = 0
    for action, group in groupby(
        (row for row in rows if not row[0].startswith(("initial", "final"))), lambda row: row[0]
    ):
        for _, address, size in (steps := list(group)):
            if action == "segment_alloc":  # comes before the allocation that it serves
                addresses.upcoming.append((address, size))
                segments, reserved = segments + 1, reserved + size
                continue
            events += 1
            if action == "alloc":
                blocks[address] = block = allocator.allocate(size)
                allocations, requested = allocations + 1, requested + size
                placed += block.address == address
            elif action == "free_completed":
                requested -= blocks[address].requested_bytes
                allocator.free(blocks.pop(address))
            elif action == "segment_free":
                segments, reserved = segments + 1, reserved - size
            equal += (allocator.reserved_bytes, allocator.requested_bytes) == (reserved, requested)
        if action == "segment_free":  # none of the recordings runs out of memory: this is empty_cache
            allocator.empty_cache()
            released += len(addresses.released & {address for _, address, _ in steps})
            equal += len(steps) if allocator.reserved_bytes == reserved else 0
    return allocations, placed, segments, addresses.right + released, events, equal


def steps_of(rows: list[Row]) -> tuple[list[tuple[int, int]], list[int]]:
    """(allocations and frees as (id, bytes), recorded change of reserved after each); initial ids are addresses."""
    ids: dict[int, int] = {}
    steps: list[tuple[int, int]] = []
    curve: list[int] = []
    reserved = 0
    for number, (action, address, size) in enumerate(rows):
        if action.startswith("initial_block"):
            ids[address] = address
        elif action.startswith(("segment_alloc", "segment_free")):
            reserved += size if action == "segment_alloc" else -size
        elif action == "alloc":
            ids[address] = -number
            steps.append((-number, size))
            curve.append(reserved)
        elif action == "free_completed":
            steps.append((ids.pop(address), 0))
            curve.append(reserved)
    return steps, curve


def compare_curves(rows: list[Row]) -> tuple[int, int, float]:
    """(events, with equal reserved, largest difference in MiB)."""
    steps, recorded = steps_of(rows)
    allocator, blocks, start = ready(rows)
    result = replay(steps, allocator=allocator, blocks=blocks, curves=True)
    difference = np.abs(np.asarray(result.reserved_curve_bytes) - start - np.array(recorded))
    return len(steps), int(np.sum(difference == 0)), float(difference.max()) / MIB


def ready(rows: list[Row]) -> tuple[CachingAllocator, dict[int, Block], int]:
    """The replica as the recording begins: allocator, blocks by address, bytes reserved at first."""
    allocator = CachingAllocator()
    blocks = allocator.adopt(initial_segments(rows))
    start = allocator.reserved_bytes
    if any(action == "segment_free" for action, _, _ in rows):
        allocator.empty_cache()
    return allocator, blocks, start


def events_per_second(rows: list[Row], *, rounds: int = 7) -> float:
    """Speed of the fastest of several replays, in CPU time, for other programs may be running."""
    steps, _ = steps_of(rows)
    seconds = []
    for _ in range(rounds):
        allocator, blocks, _ = ready(rows)
        begun = time.process_time()
        replay(steps, allocator=allocator, blocks=blocks)
        seconds.append(time.process_time() - begun)
    return len(steps) / min(seconds)


def main(folder: Path) -> int:
    paths = sorted(folder.glob("*.csv.gz"))
    if not paths:
        print(f"no recordings in {folder}")
        return 0
    recordings = {path.name.removesuffix(".csv.gz"): read(path) for path in paths}
    print(
        f"{'recorded addresses':34} {'allocations':>11} {'in place':>9} {'segments':>9} {'right':>6} "
        f"{'events':>7} {'equal':>7}"
    )
    for name, rows in recordings.items():
        allocations, placed, segments, right, events, equal = compare_blocks(rows)
        print(f"{name:34} {allocations:11,} {placed:9,} {segments:9,} {right:6,} {events:7,} {equal:7,}")
    print()
    print(f"{'own addresses':34} {'events':>11} {'reserved equal':>15} {'largest gap':>13} {'events/s':>10}")
    for name, rows in recordings.items():
        events, equal, gap = compare_curves(rows)
        print(f"{name:34} {events:11,} {equal:15,} {gap:9.0f} MiB {events_per_second(rows):10,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FOLDER))
