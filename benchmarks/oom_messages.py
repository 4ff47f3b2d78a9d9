# ruff: noqa: E501 - the messages are written as they were printed
"""Reads every example of ``../shared/cases/oom_messages.csv``, written in its pattern's wording: all figures, and the verdict.

    python benchmarks/oom_messages.py

The right verdict is that of the example's notes; where those say nothing, what the figures leave possible.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

from desktop_app.memory.oom_reading import Backend, OomReading, parse_size, read_oom
from desktop_app.memory.oom_verdict import OomCause, judge_oom

EXAMPLES = Path(__file__).resolve().parents[2] / "shared/cases/oom_messages.csv"
HINT = "If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation."
EXPANDABLE = "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


def message(row: dict[str, str]) -> str:
    """The example in the words of its pattern (facts/oom_messages.md)."""
    get = row.get
    who = {"HIP": "HIP", "XPU": "XPU", "NPU": "NPU"}.get(row["backend"], "CUDA")
    tried, total, allocated, free = row["tried"], row["total_or_limit"], row["allocated"], row["free"]
    start = f"{row['exception']}: {who} out of memory. Tried to allocate {tried}"
    process = row["this_process_or_other_alloc"]
    match row["pattern"]:
        case "A":
            return f"{start} (GPU 0; {total} total capacity; {allocated} already allocated; {free} free; {row['reserved_total']})"
        case "B" | "C":
            hint = HINT if row["pattern"] == "C" else ""
            return (
                f"{start} (GPU 0; {total} total capacity; {allocated} already allocated; {free} free; "
                f"{row['reserved_total']} reserved in total by PyTorch) {hint}"
            )
        case "D" | "E" | "M" | "G":
            word = "capacty" if row["pattern"] == "D" else "capacity"
            mine = f" Including non-PyTorch memory, this process has {process} memory in use." if process else ""
            allowed = " 1.05 GiB allowed;" if row["pattern"] == "G" else ""
            private = ", with 17.00 MiB allocated in private pools (e.g., HIP Graphs)" if row["pattern"] == "G" else ""
            return (
                f"{start}. GPU 0 has a total {word} of {total} of which {free} is free.{mine}{allowed} Of the allocated memory "
                f"{allocated} is allocated by PyTorch{private}, and {row['reserved_unallocated']} is reserved by PyTorch but "
                f"unallocated. {EXPANDABLE}"
            )
        case "N1":
            return (
                f"RuntimeError: Current platform can NOT allocate memory block with size larger than 4GB! XPU out of memory. Tried to "
                f"allocate {tried} (GPU  0; {total} total capacity; {allocated} already allocated; {get('reserved_total')} reserved "
                "in total by PyTorch)"
            )
        case "N2" | "N3":
            free_clause = f" of which {free} is free" if free else ""
            return (
                f"{start}. GPU 0 has a total capacity of {total}{free_clause}. Of the allocated memory {allocated} is allocated by "
                f"PyTorch, and {row['reserved_unallocated']} is reserved by PyTorch but unallocated. Please use `empty_cache`"
            )
        case "O":
            return (
                f"{start} (NPU 0; {total} total capacity; {allocated} already allocated; {allocated} current active; {free} free; "
                f"{row['reserved_total']} reserved in total by PyTorch){HINT}"
            )
        case "P":
            return (
                f"RuntimeError: MPS backend out of memory (MPS allocated: {allocated}, other allocations: {process.removeprefix('other ')}, "
                f"max allowed: {total.removeprefix('max ')}). Tried to allocate {tried} on private pool. Use "
                "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0"
            )
        case "K":
            return (
                f"torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     "
                f": {allocated}\nRequested               : {tried}\nDevice limit            : {total}\nFree (according to CUDA): {free}\n"
                "PyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB"
            )
        case other:
            raise ValueError(other)


def size(text: str) -> int | None:
    match = re.search(r"([\d.]+) (\w+)", text)
    return parse_size(match[1], match[2]) if match else None


# What the notes of an example say is the cause, by their words.
NOTED = (
    (r"misleading", {OomCause.REFUSED_DESPITE_FREE}),
    (r"allocated above capacity|2\^64", {OomCause.SYSTEM_MEMORY_FALLBACK}),
    (r"^fragmentation", {OomCause.FRAGMENTATION}),
    (r"asked for 48 GiB|larger than the card|wrong total", {OomCause.REQUEST_TOO_LARGE}),
    (r"other users|other processes hold|outside the allocator", {OomCause.OTHER_PROCESSES, OomCause.OUTSIDE_ALLOCATOR}),
    (r"allowed;", {OomCause.MEMORY_FRACTION}),
    (r"larger than 4GB", {OomCause.BLOCK_LIMIT}),
)


def right_causes(row: dict[str, str], reading: OomReading) -> set[OomCause]:
    """The causes that are right for an example."""
    for words, causes in NOTED:
        if re.search(words, row["notes"]):
            return causes
    tried, total = reading.tried_bytes or 0, reading.total_bytes or 0
    if total and tried > 0.95 * total:
        return {OomCause.REQUEST_TOO_LARGE}
    if reading.backend is Backend.MPS:  # whoever holds more of the one memory
        others = (reading.process_bytes or 0) - 2 * (reading.allocated_bytes or 0)
        return {OomCause.OUTSIDE_ALLOCATOR if others > 0 else OomCause.TRAINING_TOO_LARGE}
    if (reading.unallocated_bytes or 0) >= tried > 0:
        return {OomCause.FRAGMENTATION, OomCause.TRAINING_TOO_LARGE, OomCause.OTHER_PROCESSES}
    held = (reading.reserved_bytes or reading.allocated_bytes or 0) / total if total else 1.0
    return {OomCause.TRAINING_TOO_LARGE} if held > 0.85 else {OomCause.TRAINING_TOO_LARGE, OomCause.OTHER_PROCESSES}


def main() -> int:
    wrong = misjudged = 0
    with EXAMPLES.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        reading = read_oom("step 12 loss 0.3\nTraceback …\n" + message(row) + "\n")
        if reading is None:
            print("not read:", row)
            wrong += 1
            continue
        expected = {
            "tried_bytes": size(row["tried"]),
            "total_bytes": size(row["total_or_limit"]),
            "allocated_bytes": size(row["allocated"]),
            "free_bytes": size(row["free"]),
        }
        if row["reserved_total"] and row["pattern"] != "A":
            expected["reserved_bytes"] = size(row["reserved_total"])
        elif row["pattern"] == "A":
            expected["unallocated_bytes"] = size(row["reserved_total"])
        elif row["reserved_unallocated"]:
            expected["unallocated_bytes"] = size(row["reserved_unallocated"])
        differing: dict[str, object] = {
            name: (value, getattr(reading, name))
            for name, value in expected.items()
            if value is not None and abs(-10 if getattr(reading, name) is None else getattr(reading, name) - value) > 1
        }
        wrong += bool(differing)
        verdict = judge_oom(reading)
        causes = right_causes(row, reading)
        misjudged += verdict.cause not in causes
        if verdict.cause not in causes:
            differing["cause"] = (sorted(causes), verdict.cause)
        print(
            f"{row['pattern']:2} {row['backend']:10} {verdict.cause:24} {verdict.full:10} {row['notes'][:70]}",
            differing or "",
        )
    print(f"{len(rows) - wrong} of {len(rows)} with every figure right, {len(rows) - misjudged} with the right verdict")
    return 1 if wrong or misjudged else 0


if __name__ == "__main__":
    sys.exit(main())
