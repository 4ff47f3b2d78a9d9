"""How a card is set up, and what it can do at most: modes, limits, links. Read once at opening."""

from __future__ import annotations

from typing import Any, Final

from desktop_app.core.telemetry import Reason
from desktop_app.telemetry.fact_sheet import FactSheet
from desktop_app.telemetry.nvml import Answer, NvmlDoor
from desktop_app.telemetry.plausibility import (
    BUS_BITS,
    CLOCK_MHZ,
    MEMORY_TOTAL,
    NUMA_NODE,
    PCIE_GENERATION,
    PCIE_WIDTH,
    POWER_W,
)

# Enumerations of nvml.h
_ON_OFF: Final = {0: "off", 1: "on"}
_COMPUTE_MODES: Final = {0: "default", 2: "prohibited", 3: "exclusive_process"}
_DRIVER_MODELS: Final = {0: "wddm", 1: "tcc", 2: "mcdm"}
_CLOCK_MEMORY: Final = 2
_NO_NUMA_NODE: Final = -1
_MILLI: Final = 1e-3


def read_settings(facts: FactSheet, door: NvmlDoor, handle: Any, uuid: str) -> dict[str, Any]:
    """Facts of a ``Card`` by name, each with a reason on the sheet where it is missing."""

    def ask(call: str, *arguments: int) -> Answer:
        return door.query(call, handle, *arguments, owner=uuid)

    power = ask("nvmlDeviceGetPowerManagementLimitConstraints")
    readings = {
        "power_min_w": power.item(0).judged(POWER_W, scale=_MILLI),
        "power_max_w": power.item(1).judged(POWER_W, scale=_MILLI),
        "power_default_w": ask("nvmlDeviceGetPowerManagementDefaultLimit").judged(POWER_W, scale=_MILLI),
        "memory_clock_max_mhz": ask("nvmlDeviceGetMaxClockInfo", _CLOCK_MEMORY).judged(CLOCK_MHZ),
    }
    counts = {
        "memory_bus_bits": ask("nvmlDeviceGetMemoryBusWidth").judged(BUS_BITS),
        "bar1_total_bytes": ask("nvmlDeviceGetBAR1MemoryInfo").part("bar1Total").judged(MEMORY_TOTAL),
        "pcie_generation_max": ask("nvmlDeviceGetMaxPcieLinkGeneration").judged(PCIE_GENERATION),
        "pcie_width_max": ask("nvmlDeviceGetMaxPcieLinkWidth").judged(PCIE_WIDTH),
        "numa_node": _numa_node(ask("nvmlDeviceGetNumaNodeId")).judged(NUMA_NODE),
    }
    words = {
        "compute_mode": (ask("nvmlDeviceGetComputeMode"), _COMPUTE_MODES),
        "persistence_mode": (ask("nvmlDeviceGetPersistenceMode"), _ON_OFF),
        "ecc_mode": (ask("nvmlDeviceGetEccMode").item(0), _ON_OFF),
        "mig_mode": (ask("nvmlDeviceGetMigMode").item(0), _ON_OFF),
        "driver_model": (ask("nvmlDeviceGetDriverModel").item(0), _DRIVER_MODELS),
        "display_active": (ask("nvmlDeviceGetDisplayActive"), _ON_OFF),
    }
    return {
        **{name: facts.number(name, reading) for name, reading in readings.items()},
        **{name: facts.whole(name, reading) for name, reading in counts.items()},
        **{name: facts.word(name, answer, meanings) for name, (answer, meanings) in words.items()},
    }


def _numa_node(answer: Answer) -> Answer:
    return Answer(reason=Reason.NOT_SUPPORTED) if answer.value == _NO_NUMA_NODE else answer
