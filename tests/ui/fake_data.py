"""The numbers of ``FakeWorkspace``: cards, runs, estimates and forecasts of every state a window must show."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from desktop_app.core.forecasts import Cause
from desktop_app.core.steps import Category, MemoryStats, OomReport, Phase, RunState, RunStatus
from desktop_app.core.telemetry import GPU_FIELDS, Card, ProcessSample, Reading, Reason
from desktop_app.core.units import GIB, MIB
from desktop_app.services.facade import Notice, ResumeOffer, TelemetryStatus
from desktop_app.training.config import RunConfig

FORECAST_COLUMNS: Final = ("eta_steps", "p_oom_100", "flood_low_bytes", "flood_high_bytes")
ANCHOR_WALL_S: Final = 1_790_000_000.0  # 2026-09-21 14:13:20 UTC
STEP_S: Final = 1.25  # one step in 1.25 s: 160 steps to the brim are 200 s, as in the picture
SAMPLE_HZ: Final = 5.0
HISTORY_S: Final = 720.0  # the 12 minutes of the picture
NOW_STEP: Final = 1680
STEPS_PER_EPOCH: Final = 120


class FakeState(StrEnum):
    """What the window must show."""

    NOTHING = "nothing"
    NO_GPU = "no_gpu"
    NO_DRIVER = "no_driver"
    ESTIMATING = "estimating"
    ESTIMATE_FAILED = "estimate_failed"
    TOO_BIG = "too_big"
    PREPARING = "preparing"
    FIRST_SECOND = "first_second"
    HEALTHY = "healthy"
    LEAK = "leak"
    FIRST_STEP = "first_step"
    PAUSED = "paused"
    STOPPING = "stopping"
    OUT_OF_MEMORY = "out_of_memory"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    GPU_LOST = "gpu_lost"
    EIGHT_GPUS = "eight_gpus"
    LONG_NAMES = "long_names"
    LONG_RUN = "long_run"
    RESUME_OFFER = "resume_offer"
    DISK_FULL = "disk_full"
    SEVERAL_ALERTS = "several_alerts"
    VALIDATION_AHEAD = "validation_ahead"
    HOST_FULL = "host_full"
    RESCUED = "rescued"


WITHOUT_RUN: Final = frozenset(
    {
        FakeState.NOTHING,
        FakeState.NO_GPU,
        FakeState.NO_DRIVER,
        FakeState.ESTIMATING,
        FakeState.ESTIMATE_FAILED,
        FakeState.TOO_BIG,
        FakeState.RESUME_OFFER,
    }
)
WITHOUT_CARD: Final = frozenset({FakeState.NO_GPU, FakeState.NO_DRIVER})
ENDED: Final = frozenset({FakeState.OUT_OF_MEMORY, FakeState.FINISHED, FakeState.STOPPED, FakeState.FAILED})
RUN_STATES: Final = {
    FakeState.PREPARING: RunState.PREPARING,
    FakeState.PAUSED: RunState.PAUSED,
    FakeState.STOPPING: RunState.STOPPING,
    FakeState.OUT_OF_MEMORY: RunState.OUT_OF_MEMORY,
    FakeState.FINISHED: RunState.FINISHED,
    FakeState.STOPPED: RunState.STOPPED,
    FakeState.FAILED: RunState.FAILED,
}
CATEGORIES: Final = {
    Category.PARAMETERS: int(0.52 * GIB),
    Category.GRADIENTS: int(0.52 * GIB),
    Category.OPTIMIZER_STATE: int(1.04 * GIB),
    Category.ACTIVATIONS: int(1.35 * GIB),
    Category.WORKSPACE: int(0.18 * GIB),
    Category.INPUTS: 12 * MIB,
    Category.OTHER: 4 * MIB,
}
CONTEXT_BYTES: Final = int(0.42 * GIB)
OTHERS_BYTES: Final = int(0.31 * GIB)
IDLE_BYTES: Final = int(0.22 * GIB)
LEAK_BYTES_PER_STEP: Final = int(9.2 * MIB)
LEAK_STEPS: Final = 212


def config(state: FakeState) -> RunConfig:
    if state is FakeState.LONG_NAMES:
        name = "resnet-like-encoder-with-a-very-long-experiment-name-2026-09-21-second-attempt-lower-rate"
        data = "/home/someone/very/deep/folder/structure/with many words/and/more/pictures of cats and dogs and others"
        return RunConfig(name=name, data=data, epochs=100)
    return RunConfig(name="cats-dogs", epochs=100, batch_size=512 if state is FakeState.TOO_BIG else 64)


def cards(state: FakeState) -> tuple[Card, ...]:
    if state in WITHOUT_CARD:
        return ()
    if state is FakeState.EIGHT_GPUS:
        return tuple(h100(index) for index in range(8))
    if state is FakeState.LONG_NAMES:
        name = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition (engineering sample)"
        return (dataclasses.replace(gtx_1660(), name=name),)
    return (gtx_1660(),)


def gtx_1660() -> Card:
    return Card(
        uuid="GPU-00000000-0000-4000-8000-000000001660",
        name="GeForce GTX 1660",
        nvml_index=0,
        bus_id="00000000:01:00.0",
        simulated=True,
        total_bytes=6 * GIB,
        torch_index=0,
        architecture="Turing",
        compute_capability=(7, 5),
        sm_count=22,
        power_limit_w=120.0,
        power_max_w=120.0,
        temperature_slowdown_c=93.0,
        temperature_shutdown_c=96.0,
        sm_clock_max_mhz=1785.0,
        reasons={
            "driver_version": Reason.SIMULATED,
            "cuda_driver_version": Reason.SIMULATED,
            "vbios_version": Reason.SIMULATED,
        },
    )


def h100(index: int) -> Card:
    return Card(
        uuid=f"GPU-00000000-0000-4000-8000-00000000h10{index}",
        name="NVIDIA H100 80GB HBM3",
        nvml_index=index,
        bus_id=f"00000000:{0x19 + index * 0x11:02X}:00.0",
        simulated=False,
        total_bytes=81_559 * MIB,
        driver_reserved_bytes=551 * MIB,
        torch_index=index ^ 1,
        architecture="Hopper",
        compute_capability=(9, 0),
        sm_count=132,
        power_limit_w=700.0,
        power_max_w=700.0,
        temperature_slowdown_c=87.0,
        temperature_shutdown_c=92.0,
        sm_clock_max_mhz=1980.0,
        driver_version="580.82.07",
        cuda_driver_version="13.0",
        vbios_version="96.00.89.00.01",
    )


def card_values(state: FakeState, card: Card, t_s: float) -> dict[str, float]:
    busy = state not in WITHOUT_RUN and not (t_s % 54.0 < 2.0)
    phase = t_s + 7.0 * card.nvml_index
    wave = math.sin(phase * 2.3) * math.cos(phase * 0.7)
    utilization = 96.5 + 2.5 * wave if busy else 2.0 + abs(wave)
    limit_w = card.power_limit_w or 120.0
    used = OTHERS_BYTES
    if state not in WITHOUT_RUN:
        last = NOW_STEP + 159 if state is FakeState.OUT_OF_MEMORY else NOW_STEP
        step = last - (HISTORY_S + 2.0 - t_s) / STEP_S
        used = device_bytes(state, step)
    values = dict.fromkeys(GPU_FIELDS, float("nan"))
    values.update(
        utilization_percent=utilization,
        memory_utilization_percent=utilization * 0.55,
        memory_used_bytes=float(used),
        power_w=limit_w * (0.965 + 0.02 * wave) if busy else limit_w * 0.45,
        power_average_w=limit_w * 0.96 if busy else limit_w * 0.45,
        temperature_c=71.0 - 31.0 * math.exp(-t_s / 180.0) + 0.4 * wave if busy else 41.0 + 0.3 * wave,
        sm_clock_mhz=1725.0 + 30.0 * wave,
        memory_clock_mhz=4001.0,
        throttle_power_percent=4.0 + 3.0 * abs(wave) if busy else 0.0,
        throttle_thermal_percent=0.0,
        fan_percent=54.0,
        performance_state=0.0 if busy else 8.0,
        power_limit_w=limit_w,
        energy_j=115.0 * t_s,
    )
    if not card.simulated:
        values.update(
            pcie_rx_bytes_per_s=410.0 * MIB,
            pcie_tx_bytes_per_s=120.0 * MIB,
            pcie_generation=5.0,
            pcie_width=16.0,
            bar1_used_bytes=3.0 * GIB,
            ecc_uncorrected=0.0,
            temperature_memory_c=62.0,
            encoder_percent=0.0,
            decoder_percent=0.0,
            fan_percent=float("nan"),
        )
    return values


def readings(values: Mapping[str, float], *, lost: bool) -> dict[str, Reading]:
    """The newest reading of every field; NaN is a field that this card does not have."""
    if lost:
        return {name: Reading(None, Reason.GPU_LOST) for name in GPU_FIELDS}
    return {
        name: Reading(None, Reason.NOT_SUPPORTED) if math.isnan(values[name]) else Reading(values[name])
        for name in GPU_FIELDS
    }


def host_values(t_s: float) -> dict[str, float]:
    return {
        "cpu_percent": 34.0 + 3.0 * math.sin(t_s),
        "memory_used_bytes": 9.5 * GIB,
        "memory_available_bytes": 22.5 * GIB,
        "disk_read_bytes_per_s": 2.0 * MIB,
        "disk_write_bytes_per_s": 0.3 * MIB,
        "own_cpu_percent": 1.8,
        "own_rss_bytes": 214.0 * MIB,
    }


def leaked_bytes(state: FakeState, step: float) -> int:
    if state not in {FakeState.LEAK, FakeState.OUT_OF_MEMORY}:
        return 0
    return int(max(0.0, step - (NOW_STEP - LEAK_STEPS)) * LEAK_BYTES_PER_STEP)


def settled_bytes(state: FakeState) -> int:
    """What the run holds without the leak, so that a leaking run stands at 4.56 GiB at ``NOW_STEP``."""
    whole = sum(CATEGORIES.values()) + CONTEXT_BYTES + OTHERS_BYTES + IDLE_BYTES
    return whole - LEAK_STEPS * LEAK_BYTES_PER_STEP if leaked_bytes(state, NOW_STEP) else whole


def device_bytes(state: FakeState, step: float) -> int:
    capacity = 6 * GIB
    return min(capacity, settled_bytes(state) + leaked_bytes(state, step))


def memory(state: FakeState, step: float) -> MemoryStats:
    reserved = device_bytes(state, step) - CONTEXT_BYTES - OTHERS_BYTES
    peak = reserved - IDLE_BYTES
    categories = dict(CATEGORIES)
    if leaked_bytes(state, NOW_STEP):
        shrink = peak / sum(CATEGORIES.values())
        categories = {name: int(size * shrink) for name, size in CATEGORIES.items()}
    kept = (Category.PARAMETERS, Category.OPTIMIZER_STATE)
    live = sum(categories[name] for name in kept) + leaked_bytes(state, step)
    wobble = int(30 * MIB * (1 + math.sin(step * 0.8)))
    return MemoryStats(
        live_bytes=live,
        live_peak_bytes=peak - wobble,
        reserved_bytes=reserved,
        reserved_peak_bytes=reserved,
        idle_split_bytes=IDLE_BYTES // 2,
        returnable_bytes=IDLE_BYTES // 2,
        alloc_retries=0,
        outside_bytes=CONTEXT_BYTES,
        peak_categories=categories,
    )


def run_status(
    state: FakeState, run_state: RunState, config: RunConfig, step: int, begin_s: float, now_s: float
) -> RunStatus:
    ended = state in ENDED
    total = config.epochs * STEPS_PER_EPOCH
    started = state is not FakeState.PREPARING
    eta_s = (total - step) * STEP_S if started and not ended else None
    status = RunStatus(
        state=run_state,
        run_name=config.name,
        step=step,
        total_steps=total if started else None,
        epoch=min(config.epochs, 1 + max(0, step - 1) // STEPS_PER_EPOCH) if started else 0,
        epochs=config.epochs,
        batch_size=config.batch_size,
        waiting_step=step + 1 if run_state is RunState.STOPPING else None,
        started_t_s=begin_s,
        ended_t_s=now_s if ended else None,
        eta_s=eta_s,
        eta_low_s=eta_s * 0.98 if eta_s else None,
        eta_high_s=eta_s * 1.02 if eta_s else None,
        samples_per_s=config.batch_size / STEP_S if step else None,
        loss_first=0.78 if step else None,
        loss_last=0.182 if step else None,
        accuracy_last=0.936 if step > STEPS_PER_EPOCH else None,
        accuracy_best=0.941 if step > STEPS_PER_EPOCH else None,
        checkpoint_path="/home/someone/floodmark/run-14/checkpoint-001480.pt" if step > STEPS_PER_EPOCH else None,
    )
    if state is FakeState.FAILED:
        return dataclasses.replace(
            status,
            error_code="data.unreadable",
            error_message="The picture cats/0412.png cannot be read: the file ends too early.",
        )
    if state is FakeState.OUT_OF_MEMORY:
        return dataclasses.replace(status, oom=oom_report(now_s))
    if state is FakeState.RESCUED:
        return dataclasses.replace(status, batch_size=16, accumulation=4, rescues=rescues(now_s))
    if state is FakeState.FINISHED:
        return dataclasses.replace(status, step=total, epoch=config.epochs, total_steps=total)
    return status


def oom_report(now_s: float) -> OomReport:
    message = (
        "CUDA out of memory. Tried to allocate 50.00 MiB. GPU 0 has a total capacity of 6.00 GiB of which 12.38 MiB "
        "is free. Including non-PyTorch memory, this process has 5.68 GiB memory in use. Of the allocated memory "
        "5.03 GiB is allocated by PyTorch, and 231.41 MiB is reserved by PyTorch but unallocated. If reserved but "
        "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
        "fragmentation.  See documentation for Memory Management  "
        "(https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
    )
    return OomReport(
        t_s=now_s,
        step=NOW_STEP + 160,
        phase=Phase.BACKWARD,
        message=message,
        requested_bytes=50 * MIB,
        capacity_bytes=6 * GIB,
        memory=memory(FakeState.OUT_OF_MEMORY, NOW_STEP + 159),
        cause=Cause.LEAK.value,
        largest_owners=(
            ("other", int(3.33 * GIB)),
            ("features.4", int(0.61 * GIB)),
            ("features.2", int(0.42 * GIB)),
            ("classifier.1", int(0.12 * GIB)),
        ),
    )


def rescues(now_s: float) -> tuple[OomReport, ...]:
    """Twice the card was full, and twice the micro-batch was halved."""
    ended = dataclasses.replace(oom_report(now_s), cause=None, memory=memory(FakeState.HEALTHY, NOW_STEP))
    first = dataclasses.replace(
        ended, t_s=now_s - 300.0, step=NOW_STEP - 240, batch_size=64, rescued_batch_size=32, phase=Phase.FORWARD
    )
    return first, dataclasses.replace(
        ended, t_s=now_s - 20.0, step=NOW_STEP - 16, batch_size=32, rescued_batch_size=16, cause=Cause.BATCH_SHAPE.value
    )


def processes(state: FakeState, cards: tuple[Card, ...]) -> dict[str, tuple[ProcessSample, ...]]:
    table: dict[str, tuple[ProcessSample, ...]] = {}
    for card in cards:
        own = ProcessSample(
            pid=41_207,
            uuid=card.uuid,
            name="floodmark",
            user="someone",
            command="floodmark",
            kind="compute",
            memory_bytes=int(4.25 * GIB),
            started_wall_s=ANCHOR_WALL_S - 20.0,
            own=True,
            simulated=card.simulated,
        )
        other = ProcessSample(
            pid=1_873,
            uuid=card.uuid,
            name="Xorg",
            user="root",
            command="/usr/lib/xorg/Xorg :0",
            kind="graphics",
            memory_bytes=OTHERS_BYTES,
            started_wall_s=ANCHOR_WALL_S - 86_400.0,
            simulated=card.simulated,
        )
        hidden = ProcessSample(
            pid=52_011,
            uuid=card.uuid,
            name="python",
            user=None,
            command=None,
            kind="compute",
            memory_bytes=None,
            memory_reason=Reason.NO_PERMISSION,
            simulated=card.simulated,
        )
        table[card.uuid] = (other, hidden) if state in WITHOUT_RUN else (own, other, hidden)
    return table


def telemetry(state: FakeState, cards: tuple[Card, ...]) -> TelemetryStatus:
    if state is FakeState.NO_DRIVER:
        return TelemetryStatus(reason=Reason.NO_DRIVER, detail="libnvidia-ml.so.1 was not found.")
    if state is FakeState.NO_GPU:
        return TelemetryStatus(detail="The driver answers and lists no card.")
    if state is FakeState.GPU_LOST:
        return TelemetryStatus(lost={cards[0].uuid: Reason.GPU_LOST})
    return TelemetryStatus()


def notices(state: FakeState) -> tuple[Notice, ...]:
    if state is not FakeState.DISK_FULL:
        return ()
    message = "Nothing more is recorded: the disk that holds /home/someone/floodmark is full."
    return (Notice(code="recorder.disk_full", message=message, level="warning"),)


def resume_offer(state: FakeState) -> ResumeOffer | None:
    if state is not FakeState.RESUME_OFFER:
        return None
    return ResumeOffer(
        session_path=Path("sessions/cats-dogs-13"),
        checkpoint_path=Path("sessions/cats-dogs-13/checkpoint-000412.pt"),
        run_name="cats-dogs",
        step=412,
        epoch=4,
        ended_wall_s=ANCHOR_WALL_S - 3_600.0,
    )
