"""Workspaces with many cards, with every field, with MIG, with one card that lags. No machine, no threads."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from desktop_app.core.events import Event, EventKind, Level
from desktop_app.core.store import Cell
from desktop_app.core.telemetry import (
    ALL_GPU_FIELDS,
    DETAIL_FIELDS,
    GPU_FIELDS,
    Card,
    EnergySource,
    InstanceSample,
    MigInstance,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.core.units import GIB, MIB
from desktop_app.services.facade import TelemetryStatus
from tests.ui import fake_data
from tests.ui.fake_workspace import FakeState, FakeWorkspace

SECONDS: Final = 120
_LOST_AT_S: Final = 80.0


class Gpus(StrEnum):
    """What the GPU page must show."""

    RICH = "rich"  # one card that reports everything
    TWO = "two"
    EIGHT = "eight"
    SIXTEEN = "sixteen"
    STRAGGLER = "straggler"  # eight, the sixth slowed by heat
    LOST = "lost"  # four, the third fallen off the bus
    MIG = "mig"
    WINDOWS = "windows"


_COUNTS: Final = {Gpus.TWO: 2, Gpus.EIGHT: 8, Gpus.SIXTEEN: 16, Gpus.STRAGGLER: 8, Gpus.LOST: 4, Gpus.MIG: 2}


def gpu_workspace(gpus: Gpus | str) -> FakeWorkspace:
    """A workspace at rest but for its cards, which have two minutes behind them."""
    workspace = FakeWorkspace(FakeState.NOTHING)
    which = Gpus(gpus)
    known = tuple(_card(which, index) for index in range(_COUNTS.get(which, 1)))
    workspace.instances = Cell({})  # type: ignore[attr-defined]
    workspace.cards.set(known)
    workspace.card_uuid.set(known[0].uuid)
    workspace.processes.set({card.uuid: (_process(card),) for card in known})
    for card in known:
        workspace.store.declare(f"gpu:{card.uuid}", GPU_FIELDS)
        workspace.store.declare(f"details:{card.uuid}", DETAIL_FIELDS)
    start_s = workspace.manual.now_s
    for second in range(SECONDS):
        sample(workspace, which, start_s + second)
    workspace.manual.now_s = start_s + SECONDS - 1
    if which is Gpus.LOST:
        workspace.telemetry.set(TelemetryStatus(lost={known[2].uuid: Reason.GPU_LOST}))
    if which is Gpus.RICH:
        params: Mapping[str, object] = {"uuid": known[0].uuid, "xid": 63}
        workspace.events.post(Event(t_s=120.0, kind=EventKind.XID, level=Level.ERROR, code="xid", params=params))
    return workspace


def sample(workspace: FakeWorkspace, gpus: Gpus, t_s: float) -> None:
    """One reading of every card at ``t_s``."""
    table: dict[str, Mapping[str, Reading]] = {}
    for card in workspace.cards.get():
        lost = gpus is Gpus.LOST and card.nvml_index == 2 and t_s >= _LOST_AT_S
        readings = {name: Reading(None, Reason.GPU_LOST) for name in ALL_GPU_FIELDS} if lost else _read(gpus, card, t_s)
        for name, fields in ((f"gpu:{card.uuid}", GPU_FIELDS), (f"details:{card.uuid}", DETAIL_FIELDS)):
            values = {key: math.nan if (value := readings[key].value) is None else value for key in fields}
            workspace.store.history(name).append(t_s, values)
        table[card.uuid] = readings
    workspace.readings.set(table)
    if gpus is Gpus.MIG:
        workspace.instances.set({card.uuid: _instances(card) for card in workspace.cards.get()})  # type: ignore[attr-defined]


def _card(gpus: Gpus, index: int) -> Card:
    card = dataclasses.replace(
        fake_data.h100(index),
        energy_source=EnergySource.COUNTER,
        power_min_w=200.0,
        power_default_w=700.0,
        temperature_memory_max_c=95.0,
        temperature_operating_max_c=85.0,
        memory_clock_max_mhz=2619.0,
        memory_bus_bits=5120,
        bar1_total_bytes=128 * GIB,
        pcie_generation_max=5,
        pcie_width_max=16,
        compute_mode="default",
        persistence_mode="on",
        ecc_mode="on",
        mig_mode="off",
        display_active="off",
        numa_node=index // 4,
        uuid=f"GPU-{index:08d}-0000-4000-8000-0000000000ff",
    )
    if gpus is Gpus.MIG:
        profiles = (("3g.40gb", 40, 60), ("2g.20gb", 20, 32), ("1g.10gb", 10, 16), ("1g.10gb", 10, 16))
        slices = tuple(
            MigInstance(f"MIG-{index}-{place}", name, place + 1, 0, total_bytes=int(0.98 * gib * GIB), sm_count=sms)
            for place, (name, gib, sms) in enumerate(profiles if index == 0 else profiles[:2])
        )
        return dataclasses.replace(card, mig_mode="on", instances=slices)
    if gpus is Gpus.WINDOWS:
        return dataclasses.replace(
            fake_data.gtx_1660(),
            simulated=False,
            driver_model="wddm",
            spills=True,
            display_active="on",
            driver_version="581.57",
            uuid="GPU-00000000-0000-4000-8000-000000000wdm",
        )
    return card


def _read(gpus: Gpus, card: Card, t_s: float) -> dict[str, Reading]:
    wave = math.sin(0.9 * t_s + card.nvml_index) * math.cos(0.23 * t_s + 2 * card.nvml_index)
    values = dict.fromkeys(ALL_GPU_FIELDS, 0.0) | _busy(card, wave, t_s)
    if gpus is Gpus.STRAGGLER and card.nvml_index == 5:
        values |= {
            "sm_clock_mhz": 1395.0 + 12 * wave,
            "throttle_thermal_percent": 38.0,
            "temperature_c": 87.0,
            "power_w": 510.0 + 8 * wave,
            "throttle_reasons": 0x20,
        }
    readings = {name: Reading(value) for name, value in values.items()}
    missing: dict[str, Reason] = {
        "fan_percent": Reason.NOT_SUPPORTED,
        "retired_pages": Reason.NOT_SUPPORTED,
        "power_module_w": Reason.NOT_SUPPORTED,
        "encoder_sessions": Reason.NOT_SUPPORTED,
    }
    if gpus is Gpus.MIG:
        missing |= dict.fromkeys(("utilization_percent", "encoder_percent", "decoder_percent"), Reason.MIG)
    if gpus is Gpus.WINDOWS:
        missing |= dict.fromkeys(DETAIL_FIELDS, Reason.NOT_SUPPORTED)
        missing |= {"ecc_uncorrected": Reason.NOT_SUPPORTED, "power_average_w": Reason.NO_PERMISSION}
    return readings | {name: Reading(None, reason) for name, reason in missing.items()}


def _busy(card: Card, wave: float, t_s: float) -> dict[str, float]:
    capacity = card.capacity_bytes or 0
    limit = card.power_limit_w or 120.0
    return {
        "utilization_percent": 97.0 + 2.5 * wave,
        "memory_utilization_percent": 58.0 + 4 * wave,
        "memory_used_bytes": capacity * (0.82 + 0.01 * (card.nvml_index % 3)),
        "power_w": limit * (0.91 + 0.03 * wave),
        "power_average_w": limit * 0.91,
        "power_limit_w": limit,
        "temperature_c": 64.0 + card.nvml_index % 4 + wave,
        "temperature_memory_c": 78.0 + wave,
        "temperature_margin_c": 21.0 - wave,
        "sm_clock_mhz": 1755.0 + 15 * wave,
        "memory_clock_mhz": 2619.0,
        "graphics_clock_mhz": 1755.0 + 15 * wave,
        "video_clock_mhz": 1545.0,
        "throttle_power_percent": 2.0 + wave,
        "throttle_reasons": 0x04,
        "pcie_rx_bytes_per_s": (410.0 + 40 * wave) * MIB,
        "pcie_tx_bytes_per_s": (120.0 + 10 * wave) * MIB,
        "pcie_generation": 5.0,
        "pcie_width": 16.0,
        "bar1_used_bytes": 3.0 * GIB,
        "energy_j": 640.0 * t_s,
        "sm_activity_percent": 74.0 + 5 * wave,
        "sm_occupancy_percent": 31.0 + 2 * wave,
        "tensor_activity_percent": 41.0 + 4 * wave,
        "dram_activity_percent": 52.0 + 3 * wave,
        "fp16_activity_percent": 6.0,
        "fp32_activity_percent": 11.0,
        "nvlinks_active": 18.0,
        "nvlink_rx_bytes_per_s": 41.0 * GIB,
        "nvlink_tx_bytes_per_s": 41.0 * GIB,
        "ecc_corrected": 2.0,
        "ecc_corrected_total": 19.0,
        "remapped_rows_corrected": 1.0,
    }


def _instances(card: Card) -> tuple[InstanceSample, ...]:
    def held(instance: MigInstance, place: int) -> InstanceSample:
        if place == 3:
            return InstanceSample(instance.uuid, {"memory_used_bytes": Reading(None, Reason.NO_PERMISSION)})
        share = (0.71, 0.42, 0.97)[place]
        return InstanceSample(instance.uuid, {"memory_used_bytes": Reading(share * (instance.total_bytes or 0))})

    return tuple(held(instance, place) for place, instance in enumerate(card.instances))


def _process(card: Card) -> ProcessSample:
    return ProcessSample(
        pid=4000 + card.nvml_index,
        uuid=card.uuid,
        name="python",
        user="someone",
        command=f"python train.py --local_rank={card.nvml_index}",
        kind="compute",
        memory_bytes=60 * GIB,
        started_wall_s=fake_data.ANCHOR_WALL_S,
    )


Made = Callable[[Gpus], FakeWorkspace]
