"""How exactly the allocator replica reproduces recorded CUDA allocations, and how fast.

    python benchmarks/allocator_replay.py [FOLDER]

Reads the recordings in ../shared/truth/allocator_traces where they are present (gzipped CSV: action, addr, size; real
addresses) and prints two tables. "Recorded addresses" puts each segment where CUDA put it and compares every
allocation; "own addresses" lets the replica place segments by itself, as a forecast must. The third table needs no
recording: events per second of the allocator with objects and of the bulk replay, next to a plain Python loop over
the same events that only sums sizes in a dictionary, for the speed of this machine changes from minute to minute.
"""

from __future__ import annotations

import csv
import gzip
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np

from desktop_app.core.units import MIB
from desktop_app.memory.allocator import Block, CachingAllocator, SegmentView
from desktop_app.memory.allocator_replay import ReplayPlan, replay
from desktop_app.memory.allocator_settings import SMALL_LIMIT_BYTES, AllocatorSettings, round_request
from desktop_app.memory.segments import FREE, LIVE, BlockView
from desktop_app.memory.snapshot import Snapshot, parse_snapshot
from desktop_app.memory.snapshot_history import find_beginning
from desktop_app.memory.snapshot_replay import replay_recording, replay_with

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


def trained(layers: int = 48, width: int = 1024, tokens: int = 2048, steps: int = 3) -> tuple[list[int], list[int]]:
    """Keys and sizes of a transformer's training steps with Adam: what lives long, and what comes and goes within."""
    keys: list[int] = []
    sizes: list[int] = []

    def make(size_bytes: int) -> int:
        keys.append(len(keys) + 1)
        sizes.append(size_bytes)
        return len(keys)

    def drop(*names: int) -> None:
        for name in names:
            keys.append(-name)
            sizes.append(0)

    row = 4 * width * tokens
    weights = [4 * width * width, 4 * width, 16 * width * width, 16 * width, 16 * width * width, 4 * width]
    for _ in range(layers):
        for size in weights:
            make(size)
    state: list[int] = []
    for _ in range(steps):
        saved: list[list[int]] = []
        for _ in range(layers):
            kept = [make(row), make(tokens * 8), make(3 * row)]
            scratch = make(row)
            kept += [make(row), make(4 * row)]
            drop(scratch)
            kept += [make(4 * row), make(row), make(tokens * width)]
            saved.append(kept)
        gradients: list[int] = []
        upstream = make(row)
        for kept in reversed(saved):
            for size, activation in zip(weights, reversed(kept), strict=False):
                product = make(4 * row if size > row else row)
                staging = make(max(512, size // 64))
                gradients.append(make(size))
                drop(staging, activation, product)
            drop(*kept[: len(kept) - len(weights)], upstream)
            upstream = make(row)
        drop(upstream)
        for size in weights * layers if not state else []:
            state += [make(size), make(size)]
        for size, gradient in zip(weights * layers, gradients, strict=True):
            scratch = make(size)
            root = make(size)
            drop(scratch, root, gradient)
    return keys, sizes


def fresh(rows: list[Row]) -> tuple[list[int], list[int]]:
    """Keys and sizes of a recording as if it had begun with nothing."""
    names: dict[int, int] = {}
    keys: list[int] = []
    sizes: list[int] = []
    for name, size in steps_of(rows)[0]:
        if size:
            names[name] = len(keys) + 1
            keys.append(names[name])
            sizes.append(size)
        elif name in names:
            keys.append(-names.pop(name))
            sizes.append(0)
    return keys, sizes


def plain_loop(keys: list[int], sizes: list[int]) -> int:
    """The peak of the sum of sizes: as little as a loop over these events can do."""
    live: dict[int, int] = {}
    total = peak = 0
    for key, size in zip(keys, sizes, strict=True):
        if key > 0:
            live[key] = size
            total += size
            if total > peak:
                peak = total
        else:
            total -= live.pop(-key)
    return peak


def compare_speeds(keys: list[int], sizes: list[int], *, rounds: int = 25) -> list[float]:
    """Events per second, in CPU time of the fastest round: plain loop, allocator with objects, bulk replay."""
    plan = ReplayPlan.of(keys)
    array = np.array(sizes)
    events = [(abs(key), size) for key, size in zip(keys, sizes, strict=True)]
    ways: list[Callable[[], object]] = [
        lambda: plain_loop(keys, sizes),
        lambda: replay(events, allocator=CachingAllocator()),
        lambda: plan.run(array),
    ]
    seconds: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for way, measured in zip(ways, seconds, strict=True):
            begun = time.process_time()
            way()
            measured.append(time.process_time() - begun)
    return [len(keys) / min(measured) for measured in seconds]


def as_snapshot(rows: list[Row]) -> Snapshot:
    """The recording as ``torch.cuda.memory._snapshot`` would have written it at its end."""
    addresses = RecordedAddresses()
    allocator = CachingAllocator(addresses=addresses)
    blocks = allocator.adopt(initial_segments(rows))
    trace: list[dict[str, object]] = []
    steps = [row for row in rows if not row[0].startswith(("initial", "final"))]
    for number, (action, address, size) in enumerate(steps):
        entry = {"addr": address, "size": size, "stream": 0, "frames": []}
        if action == "free_completed":
            trace.append({"action": "free_requested", **entry})
            allocator.free(blocks.pop(address))
        trace.append({"action": action, **entry})
        if action == "segment_alloc":
            addresses.upcoming.append((address, size))
        elif action == "alloc":
            blocks[address] = allocator.allocate(size)
        elif action == "segment_free" and steps[number - 1][0] != action:
            allocator.empty_cache()
    states = {FREE: "inactive", LIVE: "active_allocated"}
    segments = [
        {
            "address": view.address,
            "total_size": view.size_bytes,
            "stream": 0,
            "segment_type": "small" if view.small else "large",
            "blocks": [
                {"size": block.size_bytes, "requested_size": block.requested_bytes, "state": states[block.state]}
                for block in view.blocks
            ],
        }
        for view in allocator.segments()
    ]
    return parse_snapshot({"segments": segments, "device_traces": [trace]})


def print_snapshots(recordings: dict[str, list[Row]]) -> None:
    """Undone from its end to its beginning, and replayed from there; and with expandable segments."""
    print(
        f"\n{'as a snapshot':34} {'beginning':>9} {'allocations':>11} {'in place':>9} {'peak':>10} {'expandable':>11}"
    )
    for name, rows in recordings.items():
        snapshot = as_snapshot(rows)
        beginning = find_beginning(snapshot)
        found = beginning.segments == tuple(sorted(initial_segments(rows), key=lambda view: view.address))
        result = replay_recording(snapshot, beginning)
        other = replay_with(snapshot, beginning, AllocatorSettings(expandable_segments=True))
        peak = int(result.reserved_bytes.max()) / MIB
        print(
            f"{name:34} {'found' if found else 'other':>9} {result.allocations:11,} {result.placed:9,} {peak:6,.0f} MiB"
            f" {other.reserved_peak_bytes / MIB:7,.0f} MiB"
        )


def main(folder: Path) -> int:
    recordings = {path.name.removesuffix(".csv.gz"): read(path) for path in sorted(folder.glob("*.csv.gz"))}
    if recordings:
        print_exactness(recordings)
        print_snapshots(recordings)
    else:
        print(f"no recordings in {folder}")
    traces = {name: fresh(rows) for name, rows in recordings.items()} | {"48-layer transformer, made up": trained()}
    print(f"\n{'speed':34} {'events':>11} {'plain loop/s':>13} {'objects/s':>10} {'bulk/s':>10} {'plain ÷ bulk':>12}")
    for name, (keys, sizes) in traces.items():
        plain, objects, bulk = compare_speeds(keys, sizes)
        print(f"{name:34} {len(keys):11,} {plain:13,.0f} {objects:10,.0f} {bulk:10,.0f} {plain / bulk:12.1f}")
    return 0


def print_exactness(recordings: dict[str, list[Row]]) -> None:
    print(
        f"{'recorded addresses':34} {'allocations':>11} {'in place':>9} {'segments':>9} {'right':>6} "
        f"{'events':>7} {'equal':>7}"
    )
    for name, rows in recordings.items():
        allocations, placed, segments, right, events, equal = compare_blocks(rows)
        print(f"{name:34} {allocations:11,} {placed:9,} {segments:9,} {right:6,} {events:7,} {equal:7,}")
    print()
    print(f"{'own addresses':34} {'events':>11} {'reserved equal':>15} {'largest gap':>13}")
    for name, rows in recordings.items():
        events, equal, gap = compare_curves(rows)
        print(f"{name:34} {events:11,} {equal:15,} {gap:9.0f} MiB")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FOLDER))
