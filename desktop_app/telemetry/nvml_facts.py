"""Static facts of one NVIDIA card, read once at opening, with a reason for each that is missing."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from desktop_app.core.telemetry import Card, EnergySource, Reason
from desktop_app.telemetry.fact_sheet import FactSheet, is_word
from desktop_app.telemetry.identity import CardIdentity, torch_index, visible_order
from desktop_app.telemetry.nvml import Answer, NvmlDoor, memory_answer
from desktop_app.telemetry.nvml_instances import describe_instances
from desktop_app.telemetry.nvml_settings import read_settings
from desktop_app.telemetry.nvml_temperatures import read_limits
from desktop_app.telemetry.plausibility import CLOCK_MHZ, ENERGY_MJ, MEMORY_TOTAL, POWER_W, SM_COUNT, Range

# Constants of nvml.h.
CLOCK_SM: Final = 1
CLOCK_MEMORY: Final = 2
_DRIVER_WDDM: Final = 0
_MIG_ENABLED: Final = 1
_ARCHITECTURES: Final = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
# FP32 lanes per SM (CUDA programming guide, "Arithmetic Instructions"); newer ones have 128.
_LANES: Final = {(6, 0): 64, (7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}
_LANES_BY_MAJOR: Final = {3: 192}
_LANES_DEFAULT: Final = 128
# Reported of an H100 with driver 535: after one GPM sample of a MIG instance its memory could not be read any more
# ("in use") until the driver was loaded again. Memory is worth more than activity.
_GPM_IN_MIG: Final = (550, 0)
_CUDA_VERSIONS: Final = Range(1000, 99_990)  # 12080 is 12.8
_BUS_ID: Final = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]")
_MILLI: Final = 1e-3

SystemMemory = Callable[[], tuple[int, int]]


@dataclass(slots=True)
class Traits:
    """How this card and driver must be asked."""

    memory_v2: bool = True
    shared_memory: bool = False
    mig: bool = False
    wddm: bool = False
    power_is_average: bool = False  # what nvmlDeviceGetPowerUsage means here
    old_process_call: bool = False  # use the v2 process list
    gpm_in_mig: bool = True  # GPM samples of MIG instances may be taken


def describe_card(
    door: NvmlDoor, handle: Any, nvml_index: int, *, versions: Mapping[str, Answer], system_memory: SystemMemory
) -> tuple[Card, Traits] | None:
    """The card behind a handle, or ``None`` when it has no identity at all (it is lost already)."""
    facts = FactSheet()
    bus_id = _bus_id(facts, door.query("nvmlDeviceGetPciInfo", handle))
    uuid_answer = door.query("nvmlDeviceGetUUID", handle)
    named = facts.text("uuid", uuid_answer)
    uuid = (named if named and is_word(named) else None) or (f"PCI-{bus_id}" if bus_id else None)
    if uuid is None:
        return None
    capability = _believed(door.query("nvmlDeviceGetCudaComputeCapability", handle, owner=uuid))
    traits = _traits(door, handle, uuid, capability, versions["driver"])
    total_bytes, reserved_bytes = _memory(facts, door, handle, uuid, traits, system_memory)
    energy = door.query("nvmlDeviceGetTotalEnergyConsumption", handle, owner=uuid).judged(ENERGY_MJ)
    architecture = door.query("nvmlDeviceGetArchitecture", handle, owner=uuid)
    card = Card(
        uuid=uuid,
        name=facts.text("name", door.query("nvmlDeviceGetName", handle, owner=uuid)) or "NVIDIA",
        nvml_index=nvml_index,
        bus_id=bus_id,
        simulated=False,
        total_bytes=total_bytes,
        driver_reserved_bytes=reserved_bytes,
        shared_memory=traits.shared_memory,
        architecture=facts.text("architecture", _named(architecture)),
        compute_capability=capability.value if capability.reason is None else None,
        sm_count=_sm_count(facts, door.query("nvmlDeviceGetNumGpuCores", handle, owner=uuid), capability),
        power_limit_w=facts.number(
            "power_limit_w",
            door.query("nvmlDeviceGetEnforcedPowerLimit", handle, owner=uuid).judged(POWER_W, scale=_MILLI),
        ),
        sm_clock_max_mhz=facts.number(
            "sm_clock_max_mhz", door.query("nvmlDeviceGetMaxClockInfo", handle, CLOCK_SM, owner=uuid).judged(CLOCK_MHZ)
        ),
        driver_version=facts.text("driver_version", versions["driver"]),
        cuda_driver_version=cuda_version(versions["cuda"]),
        vbios_version=facts.text("vbios_version", door.query("nvmlDeviceGetVbiosVersion", handle, owner=uuid)),
        energy_source=EnergySource.INTEGRAL if energy.value is None else EnergySource.COUNTER,
        instances=describe_instances(door, handle, uuid) if traits.mig else (),
        spills=traits.wddm,
        **read_limits(facts, door, handle, uuid),
        **read_settings(facts, door, handle, uuid),
    )
    if capability.reason is not None:
        facts.reasons["compute_capability"] = capability.reason
    return replace(card, reasons=facts.reasons), traits


def with_torch_indexes(cards: tuple[Card, ...]) -> tuple[Card, ...]:
    """The same cards with the index CUDA gives each, as far as the environment tells."""
    order = visible_order(
        [CardIdentity(card.uuid, card.bus_id, card.name) for card in cards],
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        device_order=os.environ.get("CUDA_DEVICE_ORDER"),
    )
    return tuple(replace(card, torch_index=torch_index(card.uuid, order)) for card in cards)


def driver_versions(door: NvmlDoor) -> dict[str, Answer]:
    """``driver`` ("570.86.10") and ``cuda`` (12080 for 12.8) as the library answers."""
    return {
        "driver": door.query("nvmlSystemGetDriverVersion"),
        "cuda": door.query("nvmlSystemGetCudaDriverVersion"),
    }


def cuda_version(answer: Answer) -> str | None:
    """``12.8`` from 12080."""
    if answer.reason is not None or not _CUDA_VERSIONS.low <= answer.value <= _CUDA_VERSIONS.high:
        return None
    return f"{answer.value // 1000}.{answer.value % 1000 // 10}"


def _memory(
    facts: FactSheet, door: NvmlDoor, handle: Any, uuid: str, traits: Traits, system_memory: SystemMemory
) -> tuple[int | None, int | None]:
    """(total, reserved); settles in ``traits`` which version answers and whether the memory is the system's."""
    answer = memory_answer(door, handle, uuid, v2=True)
    if answer.reason is Reason.NOT_SUPPORTED:
        traits.memory_v2 = False
        answer = memory_answer(door, handle, uuid, v2=False)
    if answer.reason is Reason.NOT_SUPPORTED or (answer.reason is None and answer.value.total == 0):
        traits.shared_memory = True
        facts.reasons["driver_reserved_bytes"] = Reason.UNIFIED_MEMORY
        return system_memory()[0], None
    if answer.reason is not None or answer.part("total").judged(MEMORY_TOTAL).value is None:
        reason = answer.reason or Reason.IMPLAUSIBLE
        facts.reasons.update({"total_bytes": reason, "driver_reserved_bytes": reason})
        return None, None
    total = int(answer.value.total)
    if not traits.memory_v2:
        facts.reasons["driver_reserved_bytes"] = Reason.NOT_SUPPORTED
        return total, None
    if not 0 <= answer.value.reserved < total:
        facts.reasons["driver_reserved_bytes"] = Reason.IMPLAUSIBLE
        return total, None
    return total, int(answer.value.reserved)


def _traits(door: NvmlDoor, handle: Any, uuid: str, capability: Answer, driver: Answer) -> Traits:
    mig = door.query("nvmlDeviceGetMigMode", handle, owner=uuid)
    model = door.query("nvmlDeviceGetDriverModel", handle, owner=uuid)
    return Traits(
        mig=mig.reason is None and mig.value[0] == _MIG_ENABLED,
        wddm=(model.reason is None and model.value[0] == _DRIVER_WDDM) or "microsoft" in platform.release().lower(),
        power_is_average=_power_is_average(capability),
        old_process_call=_has_odd_process_list(driver),
        gpm_in_mig=_driver_of(driver) >= _GPM_IN_MIG,
    )


def _power_is_average(capability: Answer) -> bool:
    """nvmlDeviceGetPowerUsage is a one-second average on Ampere (not GA100, capability 8.0) and newer, the draw of
    the moment before (nvml.h). A card that does not say is taken as new."""
    if capability.reason is not None:
        return True
    version: tuple[int, int] = capability.value
    return version > (8, 0)


def _has_odd_process_list(driver: Answer) -> bool:
    """Drivers 535.43 to 535.86 filled the v3 process list with entries of another layout."""
    return (535, 43) <= _driver_of(driver) < (535, 86)


def _driver_of(driver: Answer) -> tuple[int, int]:
    """The first two numbers of its version; one that does not say is taken as new."""
    try:
        major, minor = (int(part) for part in str(driver.value).split(".")[:2])
    except ValueError:
        return 10_000, 0
    return major, minor


def _bus_id(facts: FactSheet, answer: Answer) -> str | None:
    part = answer.part("busId")
    if part.reason is None and isinstance(part.value, bytes):
        part = Answer(part.value.decode("ascii", "replace"))
    if part.reason is None and not _BUS_ID.fullmatch(str(part.value)):
        part = Answer(reason=Reason.IMPLAUSIBLE)
    return facts.text("bus_id", part)


def _believed(capability: Answer) -> Answer:
    """A compute capability, unless there can be none such."""
    if capability.reason is not None:
        return capability
    major, minor = capability.value
    return capability if 1 <= major < 100 and 0 <= minor < 10 else Answer(reason=Reason.IMPLAUSIBLE)


def _named(answer: Answer) -> Answer:
    if answer.reason is not None:
        return answer
    name = _ARCHITECTURES.get(int(answer.value))
    return Answer(name) if name else Answer(reason=Reason.NOT_SUPPORTED)


def _sm_count(facts: FactSheet, cores: Answer, capability: Answer) -> int | None:
    if cores.reason is not None or capability.reason is not None:
        facts.reasons["sm_count"] = cores.reason or capability.reason or Reason.UNKNOWN_ERROR
        return None
    version: tuple[int, int] = capability.value
    lanes = _LANES.get(version) or _LANES_BY_MAJOR.get(version[0], _LANES_DEFAULT)
    if cores.value <= 0 or cores.value % lanes or cores.value // lanes > SM_COUNT.high:
        facts.reasons["sm_count"] = Reason.IMPLAUSIBLE
        return None
    return int(cores.value // lanes)
