"""What the steps of real models allocate and free, made small: traces at two sizes, kept in one file of the project.

    python benchmarks/forecast_shapes.py [--python PATH]   # makes forecast_shapes.json.gz anew

Each entry is one model on one axis (samples, tokens or pixels of a micro-batch), traced at two sizes of it by the
tracer of the estimate. Every single allocation is affine in the size, so sizes between are interpolated. The largest
blocks are kept one by one, small ones that live long are put together in a few, small short ones are left out.

Needs timm and transformers in ``--python`` for the models that are theirs. Reading the file needs neither them nor
torch.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, Final

from desktop_app.core.steps import Category, Phase
from desktop_app.memory.trace_data import Trace, TraceEvent

FILE: Final = Path(__file__).with_suffix(".json.gz")
PHASES: Final = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.ZERO)
_LARGEST: Final = 56  # blocks of a step kept one by one
_LONG: Final = 0.05  # of the step's events: what lives longer is put together when it is small
_TOGETHER: Final = 24  # such blocks in one


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Blocks and what happens to them: ``order`` holds i + 1 to allocate block i, −(i + 1) to free it, by phase."""

    low_bytes: tuple[int, ...]
    high_bytes: tuple[int, ...]
    order: dict[Phase, tuple[int, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """One model on one axis. ``low`` and ``high`` are the sizes it was traced at."""

    model: str
    axis: str  # "samples", "tokens", "pixels"
    low: int
    high: int
    samples: int  # of the micro-batch, where the axis is not samples
    parameters_bytes: tuple[int, ...]
    state_bytes: tuple[int, ...]  # made by the first optimizer step, in its order
    optimizer_demand_bytes: int
    step: Work
    validation: Work

    def sizes(self, work: Work, size: float) -> list[int]:
        """Bytes of the blocks when the micro-batch is this large; never below 512."""
        share = (size - self.low) / (self.high - self.low)
        pairs = zip(work.low_bytes, work.high_bytes, strict=True)
        return [max(512, int(low + share * (high - low))) for low, high in pairs]


@cache
def shapes() -> dict[str, Shape]:
    """All of them by name, ``model/axis``."""
    with gzip.open(FILE, "rt") as file:
        entries = json.load(file)
    return {f"{entry['model']}/{entry['axis']}": _from_json(entry) for entry in entries}


def _from_json(entry: dict[str, Any]) -> Shape:
    def work(values: dict[str, Any]) -> Work:
        order = {Phase(phase): tuple(keys) for phase, keys in values["order"].items()}
        return Work(tuple(values["low_bytes"]), tuple(values["high_bytes"]), order)

    plain = {name: value for name, value in entry.items() if name not in ("step", "validation")}
    plain |= {name: tuple(plain[name]) for name in ("parameters_bytes", "state_bytes")}
    return Shape(**plain, step=work(entry["step"]), validation=work(entry["validation"]))


# --- making the file ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Storage:
    """One storage of a trace: when it begins and ends, as positions among the events of its part."""

    event: TraceEvent
    begin: int
    end: int | None = None
    ends_in: Phase | None = None
    low_bytes: int = 0


def make_shape(model: str, axis: str, low: int, high: int, samples: int, traces: tuple[Trace, Trace]) -> Shape:
    """From the traces at ``low`` and at ``high``."""
    storages, small = _storages(traces[1].events), _storages(traces[0].events)
    _match(storages, small)
    mine = [one for one in storages if one.event.step == 2 and one.event.phase in PHASES]
    kept = [one for one in storages if one.end is None]
    params = [one.event.size_bytes for one in kept if one.event.category is Category.PARAMETERS]
    state = [one.event.size_bytes for one in kept if one.event.category is Category.OPTIMIZER_STATE]
    checks = [one for one in storages if one.event.phase is Phase.VALIDATION]
    return Shape(
        model=model,
        axis=axis,
        low=low,
        high=high,
        samples=samples,
        parameters_bytes=tuple(_bundled(params)),
        state_bytes=tuple(_bundled(state)),
        optimizer_demand_bytes=traces[1].optimizer_demand_bytes(),
        step=_work(mine, last=Phase.ZERO),
        validation=_work(checks, last=Phase.VALIDATION),
    )


def _storages(events: Iterable[TraceEvent]) -> list[_Storage]:
    found: dict[int, _Storage] = {}
    for place, event in enumerate(events):
        if event.key > 0:
            found[event.key] = _Storage(event, place)
        else:
            ended = found[-event.key]
            # A step's last loss and batch go when the next ones come, or before validation.
            ended.end, ended.ends_in = place, event.phase if event.step == ended.event.step else None
    return list(found.values())


def _match(storages: list[_Storage], others: list[_Storage]) -> None:
    """Give each storage the bytes of its like in the smaller trace; what is not there (a workspace) keeps 0."""

    def kinds(items: list[_Storage]) -> list[tuple[str, str, int]]:
        return [(item.event.op, item.event.phase.value, item.event.step) for item in items]

    matcher = SequenceMatcher(None, kinds(storages), kinds(others), autojunk=False)
    for begin, other_begin, length in matcher.get_matching_blocks():
        for offset in range(length):
            storages[begin + offset].low_bytes = others[other_begin + offset].event.size_bytes


def _bundled(sizes: list[int]) -> list[int]:
    """Persistent blocks: large ones alone, small ones put together to 8 MiB."""
    found, together = [], 0
    for size in sizes:
        if size >= 4 << 20:
            found.append(size)
            continue
        together += -(-size // 512) * 512
        if together >= 8 << 20:
            found.append(together)
            together = 0
    return [*found, together] if together else found


def _work(storages: list[_Storage], *, last: Phase) -> Work:
    chosen = _chosen(storages)
    marks: list[tuple[int, Phase, int]] = []
    for index, one in enumerate(chosen, start=1):
        marks.append((one.begin, one.event.phase, index))
        end = one.end if one.end is not None and one.ends_in is not None else 1 << 60
        marks.append((end, one.ends_in or last, -index))
    marks.sort(key=lambda mark: mark[0])
    phases = PHASES if last is Phase.ZERO else (last,)
    order = {phase: tuple(key for _, where, key in marks if where is phase) for phase in phases}
    return Work(tuple(one.low_bytes for one in chosen), tuple(one.event.size_bytes for one in chosen), order)


def _chosen(storages: list[_Storage]) -> list[_Storage]:
    largest = sorted(storages, key=lambda one: -one.event.size_bytes)[:_LARGEST]
    chosen = {id(one) for one in largest}
    span = max((one.begin for one in storages), default=0) - min((one.begin for one in storages), default=0)
    groups: dict[tuple[Phase, Phase | None], list[_Storage]] = {}
    for one in storages:
        lasts = one.end is None or one.ends_in is None or one.end - one.begin > _LONG * span
        if id(one) not in chosen and lasts:
            groups.setdefault((one.event.phase, one.ends_in), []).append(one)
    together = [
        _joined(group[at : at + _TOGETHER]) for group in groups.values() for at in range(0, len(group), _TOGETHER)
    ]
    return sorted([*largest, *together], key=lambda one: one.begin)


def _joined(group: list[_Storage]) -> _Storage:
    first = group[0]
    ends = [one.end for one in group]
    rounded = sum(-(-one.event.size_bytes // 512) * 512 for one in group)
    return _Storage(
        first.event._replace(size_bytes=rounded),
        first.begin,
        None if None in ends else max(end for end in ends if end is not None),
        first.ends_in,
        sum(-(-one.low_bytes // 512) * 512 for one in group),
    )


def _as_json(shape: Shape) -> dict[str, Any]:
    def work(value: Work) -> dict[str, Any]:
        return {"low_bytes": value.low_bytes, "high_bytes": value.high_bytes, "order": value.order}

    names = ("model", "axis", "low", "high", "samples", "parameters_bytes", "state_bytes", "optimizer_demand_bytes")
    return {name: getattr(shape, name) for name in names} | {
        "step": work(shape.step),
        "validation": work(shape.validation),
    }


def main() -> None:
    from forecast_shape_sets import traced

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, help="a Python with timm and transformers")
    options = parser.parse_args()
    entries = [_as_json(make_shape(*found)) for found in traced(options.python)]
    text = json.dumps(entries, separators=(",", ":"))
    FILE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"\n{len(entries)} shapes, {FILE.stat().st_size / 1024:.0f} KiB in {FILE}")


if __name__ == "__main__":
    main()
