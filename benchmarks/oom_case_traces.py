"""The cases of ``../shared/cases/cases.csv`` that are recorded runs: rows made from each one's reproduction.

Every function gives the rows of one case; ``oom_cases`` says what is right about it. Columns are those that any trace
has, unless the case is about the computer's memory.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.trace_rows import TraceRow

Rows = Iterator[TraceRow]
CONTEXT = 500 * MIB


def step_row(
    step: int,
    live: float,
    demand: float,
    *,
    capacity: int,
    reserved: float | None = None,
    idle: float = 0.0,
    others: int = 0,
    step_s: float = 0.2,
    t_s: float | None = None,
    event: str = "",
    samples: int = 8,
    tokens: int | None = None,
) -> TraceRow:
    """One training step: live after it, its peak, and what the card shows."""
    peak = live + demand
    held = max(peak, reserved or 0.0)
    return TraceRow(
        t_s=step * step_s if t_s is None else t_s,
        step=step,
        phase="train",
        live_after_bytes=int(live),
        live_peak_bytes=int(peak),
        reserved_peak_bytes=int(held),
        idle_split_bytes=int(idle),
        alloc_retries=0,
        device_used_bytes=int(held) + CONTEXT + others,
        other_used_bytes=others,
        capacity_bytes=capacity,
        batch_samples=samples,
        batch_tokens=tokens,
        step_s=step_s,
        event=event,
    )


def epoch_saw(*, capacity: int, epochs: int = 4, steps: int = 3000, told: bool = True) -> Rows:
    """OOM-04: +1.2 MiB a step, back to the start with each epoch."""
    for step in range(1, epochs * steps + 1):
        within = (step - 1) % steps
        if 6 * GIB + 1.2 * MIB * within + CONTEXT > capacity:
            return
        event = f"run:total_steps={epochs * steps},steps_per_epoch={steps}" if told and step == 1 else ""
        if within == steps - 1:
            event = "epoch end"
        yield step_row(step, 4 * GIB + 1.2 * MIB * within, 2 * GIB, capacity=capacity, event=event)


def tiny_leak(steps: int = 10_000) -> Rows:
    """OOM-05: one block of 512 bytes a step."""
    for step in range(1, steps + 1):
        yield step_row(step, 4 * GIB + 512 * step, 2 * GIB, capacity=12 * GIB)


def host_row(t_s: float, *, rss: float, total: int, children_rss: float = 0.0, children: int = 0) -> dict[str, Any]:
    used = int(2 * GIB + rss + children_rss)
    return {
        "t_s": t_s,
        "own_rss_bytes": int(rss),
        "children_rss_bytes": int(children_rss),
        "children": children,
        "host_used_bytes": min(used, total),
        "host_total_bytes": total,
        "host_available_bytes": max(0, total - used),
    }


def host_leak(*, begin: float, end: float, minutes: float, total: int, vram: bool = False) -> Rows:
    """OOM-06, -07, -27: RAM of this process rises in a line; the card's memory is flat or not there."""
    seconds = int(60 * minutes)
    for second in range(seconds):
        rss = begin + (end - begin) * second / seconds
        figures = host_row(float(second), rss=rss, total=total)
        if vram:
            figures |= {"device_used_bytes": 30 * GIB, "other_used_bytes": 0, "capacity_bytes": 80 * GIB}
        yield TraceRow(**figures)
        if vram and second % 2:
            yield step_row(second, 20 * GIB, 8 * GIB, capacity=80 * GIB, step_s=2.0, t_s=float(second))


def second_order(steps: int = 600) -> Rows:
    """OOM-08: inner steps add memory on purpose, and an outer step lets go of it."""
    for step in range(1, steps + 1):
        inner = 1 + step % 8
        yield step_row(step, 2 * GIB, 512 * MIB * inner, capacity=16 * GIB)


def undetached(steps: int = 900) -> Rows:
    """OOM-09: the hidden state keeps all its past; steps get longer as memory grows."""
    t_s = 0.0
    for step in range(1, steps + 1):
        t_s += 0.02 + 1e-4 * step
        live = GIB + 8 * MIB * step
        if live + 200 * MIB + CONTEXT > 8 * GIB:
            return
        yield step_row(step, live, 200 * MIB, capacity=8 * GIB, t_s=t_s, step_s=0.02 + 1e-4 * step)


def hooked_modules(*, size: int = 232 * MIB, every: int = 40, capacity: int = 8 * GIB) -> Rows:
    """OOM-12: every new model stays, with its hook."""
    for step in range(1, 2000):
        live = GIB + size * (step // every)
        if live + 300 * MIB + CONTEXT > capacity:
            return
        yield step_row(step, live, 300 * MIB, capacity=capacity)


def growing_validation(*, per_batch: float, batches: int, capacity: int, told: bool) -> Rows:
    """OOM-23, -25: every validation batch leaves something on the card."""
    for step in range(1, 101):
        yield step_row(step, 3 * GIB, 4 * GIB, capacity=capacity)
    for batch in range(1, batches + 1):
        live = 3 * GIB + per_batch * batch
        if live + GIB + CONTEXT > capacity:
            return
        yield TraceRow(
            t_s=20.0 + 0.1 * batch,
            step=100,
            phase="validation",
            live_after_bytes=int(live),
            live_peak_bytes=int(live) + GIB,
            capacity_bytes=capacity,
            event=f"eval {batch}/{batches}" if told else "",
        )


def resumed(*, copy: float, capacity: int = 40 * GIB) -> Rows:
    """OOM-31: the checkpoint stays beside the model; the same run before the interruption fits."""
    for step in range(1, 201):
        yield step_row(step, 12 * GIB, 22 * GIB, capacity=capacity)
    yield TraceRow(
        t_s=60.0,
        step=200,
        phase="resume",
        live_after_bytes=int(12 * GIB + copy),
        capacity_bytes=capacity,
        event="loaded checkpoint",
    )
    if 34 * GIB + copy + CONTEXT <= capacity:
        for step in range(201, 260):
            yield step_row(step, 12 * GIB + copy, 22 * GIB, capacity=capacity, t_s=60.0 + 0.2 * step)


def eight_ranks(capacity: int = 16 * GIB) -> Rows:
    """OOM-32: every other rank loads its checkpoint onto card 0 as well."""
    for step in range(1, 60):
        yield step_row(step, 5 * GIB, 3 * GIB, capacity=capacity)
    for rank in range(8):
        for second in range(4):
            others = int((rank + second / 4) * 1.2 * GIB)
            if 8 * GIB + CONTEXT + others > capacity:
                return
            step = 60 + 4 * rank + second
            yield step_row(
                step, 5 * GIB, 3 * GIB, capacity=capacity, others=others, step_s=1.0, t_s=12.0 + 4 * rank + second
            )


def save_stairs(*, riser: float = 430 * MIB, every: int = 1000, capacity: int = 12 * GIB) -> Rows:
    """OOM-36: a copy of the averaged weights stays with every save."""
    for step in range(1, 40 * every):
        live = 3 * GIB + riser * (step // every)
        if live + 4 * GIB + CONTEXT > capacity:
            return
        event = "saved checkpoint" if step % every == 0 else ""
        yield step_row(step, live, 4 * GIB, capacity=capacity, event=event)


def shift_after_save(capacity: int = 32 * GIB) -> Rows:
    """OOM-37: 29 GB flat, 31 GB after the first save, and the next peak does not fit any more."""
    for step in range(1, 501):
        yield step_row(step, 9 * GIB, 19.5 * GIB, capacity=capacity, event="saved checkpoint" if step == 500 else "")
    for step in range(501, 531):
        yield step_row(step, 11 * GIB, 19.5 * GIB, capacity=capacity)


def save_on_card(*, copy: float, capacity: int = 24 * GIB, told: bool = True) -> Rows:
    """OOM-38: the state is cloned on the card before it is written."""
    for step in range(1, 101):
        yield step_row(step, 12 * GIB, 9 * GIB, capacity=capacity)
    event = f"demand:bytes={int(copy)}" if told else ""
    yield TraceRow(t_s=21.0, step=100, phase="save", live_after_bytes=12 * GIB, capacity_bytes=capacity, event=event)


def save_to_full_ram() -> Rows:
    """OOM-39: 60 GB are to be written from 40 GB of free RAM."""
    for step in range(1, 31):
        yield TraceRow(**host_row(float(step), rss=20 * GIB, total=62 * GIB), capacity_bytes=80 * GIB)
        yield step_row(step, 20 * GIB, 9 * GIB, capacity=80 * GIB, t_s=float(step))
    yield TraceRow(
        t_s=32.0,
        step=30,
        phase="save",
        live_after_bytes=20 * GIB,
        capacity_bytes=80 * GIB,
        event=f"demand:host={60 * GIB}",
    )


def first_step(*, adam: bool, batch: int, told: bool, capacity: int = 8 * GIB) -> Rows:
    """OOM-45: VGG16, 138 M parameters; forward and backward fit, what Adam makes may not."""
    parameters = 138_357_544 * 4
    peak = 2 * parameters + batch * 640 * MIB
    yield TraceRow(
        t_s=0.0, step=1, phase="forward", live_after_bytes=parameters, capacity_bytes=capacity, batch_samples=batch
    )
    yield TraceRow(
        t_s=0.3, step=1, phase="backward", live_after_bytes=peak - parameters, live_peak_bytes=peak - parameters
    )
    event = f"demand:bytes={3 * parameters if adam else 0}" if told else ""
    yield TraceRow(
        t_s=0.6,
        step=1,
        phase="optimizer",
        live_after_bytes=2 * parameters,
        live_peak_bytes=peak,
        reserved_peak_bytes=peak + 64 * MIB,
        device_used_bytes=peak + 64 * MIB + CONTEXT,
        other_used_bytes=0,
        capacity_bytes=capacity,
        event=event,
    )


def accumulation(*, micro_steps: int, per_micro_step: float, capacity: int = 64 * GIB, steps: int = 60) -> Rows:
    """OOM-49: with ``no_sync`` every rank keeps whole gradients between its micro-steps."""
    for step in range(1, steps + 1):
        peak = 24 * GIB + per_micro_step * micro_steps
        if peak + CONTEXT > capacity:
            yield TraceRow(
                t_s=0.2 * step, step=step, phase="forward", live_after_bytes=24 * GIB, capacity_bytes=capacity
            )
            return
        yield step_row(step, 24 * GIB, per_micro_step * micro_steps, capacity=capacity)


def token_steps(
    lengths: list[int], *, per_token: float, capacity: int, ahead: bool, base: int = 3 * GIB, event: str = ""
) -> Rows:
    """Steps whose peak goes with the tokens of their batch; ``ahead``: a row tells the batch before its step."""
    for step, tokens in enumerate(lengths, 1):
        coming = TraceRow(
            t_s=0.2 * step - 0.1, step=step, phase="forward", live_after_bytes=base, capacity_bytes=capacity,
            batch_samples=8, batch_tokens=tokens,
        )  # fmt: skip
        if ahead:
            yield coming
        if base + per_token * tokens + CONTEXT > capacity:
            return
        yield step_row(
            step, base, per_token * tokens, capacity=capacity, tokens=tokens, event=event if step == 1 else ""
        )


def short_and_one_long(*, longest: int, steps: int = 400, at: int = 350) -> list[int]:
    """OOM-51: tokens of a batch of 8, one of which holds the longest example."""
    rng = random.Random(51)
    lengths = [8 * rng.randint(200, 600) for _ in range(steps)]
    lengths[at] = 8 * longest
    return lengths


def histogram(*, longest: int = 234, steps: int = 400, at: int = 300) -> list[int]:
    """OOM-53: sentences of up to 150 words, and one of 234."""
    rng = random.Random(53)
    lengths = [8 * max(rng.randint(20, 150) for _ in range(8)) for _ in range(steps)]
    lengths[at] = 8 * longest
    return lengths


def sorted_epoch(steps: int = 600) -> list[int]:
    """OOM-55: sorted by length, the longest last."""
    return [10 * (300 + round(2600 * (step / steps) ** 3)) for step in range(1, steps + 1)]


def wrapped_batches(steps: int = 300) -> list[int]:
    """OOM-56: the last batch of an epoch is filled up with the long items of its start."""
    lengths = [4 * (200 + step % 60) for step in range(steps)]
    lengths[-1] = 4 * 900
    return lengths


def giant_image(*, capacity: int = 12 * GIB) -> Rows:
    """OOM-57: images of 224 x 224, and one of 12000 x 9000."""
    pixels = 16 * 224 * 224
    for step in range(1, 201):
        coming = 16 * 12_000 * 9_000 if step == 150 else pixels
        yield TraceRow(
            t_s=0.2 * step - 0.1, step=step, phase="forward", live_after_bytes=2 * GIB, capacity_bytes=capacity,
            batch_samples=16, batch_pixels=coming,
        )  # fmt: skip
        if coming != pixels:
            return
        yield TraceRow(
            t_s=0.2 * step, step=step, phase="train", live_after_bytes=2 * GIB, live_peak_bytes=5 * GIB,
            reserved_peak_bytes=5 * GIB, capacity_bytes=capacity, batch_samples=16, batch_pixels=pixels,
        )  # fmt: skip


def algorithm_search() -> Rows:
    """OOM-58: 20 s at 12,756 MiB while cuDNN tries its algorithms, then 4,689 MiB; as nvidia-smi shows it."""
    for second in range(240):
        used = 12_756 if second < 20 else 4_689
        yield TraceRow(
            t_s=float(second),
            step=5 * second,
            device_used_bytes=used * MIB,
            capacity_bytes=16_276 * MIB,
            batch_samples=2,
        )


def another_algorithm() -> Rows:
    """OOM-59: 32 samples take less than 16."""
    for step in range(1, 301):
        samples = 32 if step <= 150 else 16
        demand = 5 * GIB if samples == 32 else 7.5 * GIB
        yield step_row(step, 2 * GIB, demand, capacity=12 * GIB, samples=samples)


def after_death() -> Rows:
    """OOM-76: 4.04 GiB at the end, and 451 MiB in the table that is read later."""
    for step in range(1, 81):
        yield step_row(step, 2.5 * GIB, 1.04 * GIB, capacity=6 * GIB)
    yield TraceRow(t_s=17.0, device_used_bytes=451 * MIB, other_used_bytes=451 * MIB, capacity_bytes=6 * GIB)


def workers(*, total: int, growing: bool, count: int = 4) -> Rows:
    """OOM-88, -90: the main process is flat, its children grow, or become more with each epoch."""
    for second in range(1800):
        children = count if growing else count * (1 + second // 200)
        rss = GIB * (1 + 11 * second / 1800) if growing else 0.4 * GIB * children
        yield TraceRow(
            **host_row(float(second), rss=(5 if growing else 2) * GIB, total=total, children_rss=rss, children=children)
        )


def commit_charge(*, limit: int = 24 * GIB) -> Rows:
    """OOM-91: RAM stays as it is, what is promised rises to the limit."""
    for second in range(2400):
        committed = int(8 * GIB + 0.99 * (limit - 8 * GIB) * second / 2400)
        figures = host_row(float(second), rss=4 * GIB, total=32 * GIB)
        yield TraceRow(**figures, commit_used_bytes=committed, commit_limit_bytes=limit)


def main_process_grows(total: int = 72 * GIB) -> Rows:
    """OOM-15: a meter keeps tensors in the main process; the four workers are flat."""
    for second in range(1500):
        rss = 6 * GIB + 58 * GIB * second / 1500
        yield TraceRow(**host_row(float(second), rss=rss, total=total, children_rss=4 * GIB, children=4))


def zombie(capacity: int = 12_207 * MIB) -> Rows:
    """OOM-83: the card is full, and no process is listed. A run of 1.5 GiB begins on it."""
    held = 11_409 * MIB
    for second in range(5):
        yield TraceRow(t_s=float(second), device_used_bytes=held, other_used_bytes=held, capacity_bytes=capacity)
    yield TraceRow(t_s=6.0, step=1, phase="forward", live_after_bytes=300 * MIB, capacity_bytes=capacity)
    yield TraceRow(
        t_s=6.5, step=1, phase="optimizer", live_after_bytes=600 * MIB, live_peak_bytes=780 * MIB,
        other_used_bytes=held, device_used_bytes=held + 780 * MIB, capacity_bytes=capacity,
        event=f"demand:bytes={600 * MIB}",
    )  # fmt: skip


def unsynchronised(*, micro_steps: int, per_micro_step: float, capacity: int = 64 * GIB) -> Rows:
    """OOM-49, the other half: steps of one micro-step, then one whose micro-steps each leave a gradient behind."""
    for step in range(1, 61):
        yield step_row(step, 24 * GIB, 12 * GIB, capacity=capacity)
    for micro_step in range(micro_steps):
        live = 24 * GIB + per_micro_step * micro_step
        yield TraceRow(
            t_s=12.2 + 0.2 * micro_step,
            step=61,
            phase="forward",
            live_after_bytes=int(live),
            capacity_bytes=capacity,
            batch_samples=8,
            event=f"phase_begin; progress:done={micro_step},count={micro_steps}",
        )
        if live + 12 * GIB + CONTEXT > capacity:
            return
