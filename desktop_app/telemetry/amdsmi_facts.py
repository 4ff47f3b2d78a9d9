"""Static facts of one AMD card, read once at opening, with a reason for each that is missing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from desktop_app.core.telemetry import Card, EnergySource, Reading, Reason
from desktop_app.telemetry.amdsmi import AmdSmiDoor, number, part, text
from desktop_app.telemetry.plausibility import BYTES, CLOCK_MHZ, COUNT, PCIE_WIDTH, POWER_W, TEMPERATURE_C, Range

VENDOR: Final = "AMD"
MICRO: Final = 1e-6
# MT/s of one lane → generation (PCI Express base specification). The library has it in MT/s.
GENERATIONS: Final = {2500: 1, 5000: 2, 8000: 3, 16000: 4, 32000: 5, 64000: 6}
_BITS: Final = Range(0, 65536, zero=False)
_BDF: Final = re.compile(r"(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])")
# Processors with graphics, and no cards: "APU" in LLVM's table of AMDGPU processors (AMDGPUUsage, "Processors").
_APUS: Final = frozenset(
    {
        "gfx700", "gfx801", "gfx902", "gfx909", "gfx90c", "gfx1013", "gfx1033", "gfx1035", "gfx1036", "gfx1103",
        "gfx1150", "gfx1151", "gfx1152", "gfx1153",
    }
)  # fmt: skip
_THOUSANDTHS: Final = 1000.0  # some early versions answer in thousandths of a degree, as the kernel does
# What this library has no word for.
_UNKNOWN: Final = ("torch_index", "cuda_driver_version", "compute_capability", "driver_reserved_bytes", "compute_mode")


@dataclass(frozen=True, slots=True)
class Sensors:
    """Which of the card's thermometers stands for "the temperature": its edge, or where that is not, the hottest spot.

    ``hot_limit_c``: of the hottest spot, where the margin is counted from.
    """

    main: str
    hot_limit_c: float | None


def describe_card(door: AmdSmiDoor, handle: Any, index: int) -> tuple[Card, Sensors] | None:
    """The card behind a handle, or ``None`` when it has no identity at all."""
    reasons: dict[str, Reason] = dict.fromkeys(_UNKNOWN, Reason.NOT_SUPPORTED)
    first = f"card {index}"
    bus_id = bus_id_of(text(door.query("amdsmi_get_gpu_device_bdf", handle, owner=first)))
    uuid = text(door.query("amdsmi_get_gpu_device_uuid", handle, owner=first)) or (f"PCI-{bus_id}" if bus_id else None)
    if uuid is None:
        return None

    def ask(call: str, *arguments: object) -> object:
        return door.query(call, handle, *arguments, owner=uuid)

    def keep(name: str, reading: Reading) -> float | None:
        if reading.value is None:
            reasons[name] = reading.reason or Reason.UNKNOWN_ERROR
        return reading.value

    def say(name: str, answer: object) -> str | None:
        found = text(answer)
        if found is None:
            reasons[name] = answer if isinstance(answer, Reason) else Reason.NOT_SUPPORTED
        return found

    asic = ask("amdsmi_get_gpu_asic_info")
    caps = ask("amdsmi_get_power_cap_info")
    pcie = part(ask("amdsmi_get_pcie_info"), "pcie_static")
    total = keep("total_bytes", number(ask("amdsmi_get_gpu_memory_total", memory_type(door)), BYTES, bits=64))
    main = _main_sensor(door, handle, uuid)
    units = keep("sm_count", number(part(asic, "num_compute_units"), COUNT, bits=32))
    energy = energy_j(ask("amdsmi_get_energy_count"))
    width = keep("pcie_width_max", number(part(pcie, "max_pcie_width"), PCIE_WIDTH))
    bus = keep("memory_bus_bits", number(part(ask("amdsmi_get_gpu_vram_info"), "vram_bit_width"), _BITS, bits=32))
    card = Card(
        uuid=uuid,
        name=_name(asic),
        nvml_index=index,
        bus_id=bus_id,
        simulated=False,
        total_bytes=None if total is None else int(total),
        shared_memory=_is_part_of_a_processor(text(part(asic, "target_graphics_version")), _name(asic)),
        vendor=VENDOR,
        architecture=say("architecture", part(asic, "target_graphics_version")),
        sm_count=None if units is None else int(units),
        power_limit_w=keep("power_limit_w", _watts(part(caps, "power_cap"))),
        power_min_w=keep("power_min_w", _watts(part(caps, "min_power_cap"))),
        power_max_w=keep("power_max_w", _watts(part(caps, "max_power_cap"))),
        power_default_w=keep("power_default_w", _watts(part(caps, "default_power_cap"))),
        temperature_slowdown_c=keep("temperature_slowdown_c", heat(door, handle, uuid, main, "CRITICAL")),
        temperature_shutdown_c=keep("temperature_shutdown_c", heat(door, handle, uuid, main, "EMERGENCY")),
        temperature_memory_max_c=keep("temperature_memory_max_c", heat(door, handle, uuid, "VRAM", "CRITICAL")),
        sm_clock_max_mhz=keep("sm_clock_max_mhz", number(part(clock(door, handle, uuid, "GFX"), "max_clk"), CLOCK_MHZ)),
        memory_clock_max_mhz=keep(
            "memory_clock_max_mhz", number(part(clock(door, handle, uuid, "MEM"), "max_clk"), CLOCK_MHZ)
        ),
        memory_bus_bits=None if bus is None else int(bus),
        driver_version=say("driver_version", part(ask("amdsmi_get_gpu_driver_info"), "driver_version")),
        vbios_version=say("vbios_version", part(ask("amdsmi_get_gpu_vbios_info"), "part_number")),
        energy_source=EnergySource.INTEGRAL if energy.value is None else EnergySource.COUNTER,
        pcie_generation_max=_generation(reasons, part(pcie, "max_pcie_speed")),
        pcie_width_max=None if width is None else int(width),
        reasons=reasons,
    )
    return card, Sensors(main, heat(door, handle, uuid, "HOTSPOT", "CRITICAL").value)


def _is_part_of_a_processor(architecture: str | None, name: str) -> bool:
    """An APU: its "own" memory is a part of the computer's that is set aside for it."""
    return (architecture or "").partition(":")[0] in _APUS or "MI300A" in name


def memory_type(door: AmdSmiDoor) -> object:
    """The card's own memory, not the part of the computer's that it may use (GTT)."""
    return door.constant("AmdSmiMemoryType", "VRAM")


def clock(door: AmdSmiDoor, handle: Any, uuid: str, kind: str) -> object:
    """The dictionary of one clock."""
    return door.query("amdsmi_get_clock_info", handle, door.constant("AmdSmiClkType", kind), owner=uuid)


def heat(door: AmdSmiDoor, handle: Any, uuid: str, sensor: str, metric: str) -> Reading:
    """A temperature or one of its limits, in °C."""
    answer = door.query(
        "amdsmi_get_temp_metric",
        handle,
        door.constant("AmdSmiTemperatureType", sensor),
        door.constant("AmdSmiTemperatureMetric", metric),
        owner=uuid,
    )
    if isinstance(answer, int) and abs(answer) >= _THOUSANDTHS and answer != 2**16 - 1:
        return number(answer / _THOUSANDTHS, TEMPERATURE_C, bits=32)
    return number(answer, TEMPERATURE_C)


def energy_j(answer: object) -> Reading:
    """Joules of the card's accumulator, since its driver was loaded."""
    accumulated = part(answer, "energy_accumulator")
    if isinstance(accumulated, Reason):
        accumulated = part(answer, "power")  # its name before 24.6
    resolution = part(answer, "counter_resolution")  # µJ
    counted = number(accumulated, Range(0, 2**63, zero=False), bits=64)
    if counted.value is None or not isinstance(resolution, int | float) or not 0 < resolution < 1e6:
        return counted if counted.value is None else Reading(None, Reason.NOT_SUPPORTED)
    return Reading(counted.value * resolution * MICRO)


def generation(speed: object) -> Reading:
    """PCIe generation of a lane's MT/s."""
    if isinstance(speed, Reason):
        return Reading(None, speed)
    found = GENERATIONS.get(speed) if isinstance(speed, int) else None
    return Reading(None, Reason.NOT_SUPPORTED) if found is None else Reading(float(found))


def bus_id_of(bdf: str | None) -> str | None:
    """``00000000:03:00.0`` from ``0000:03:00.0``: as NVML writes it."""
    found = _BDF.fullmatch(bdf or "")
    if found is None:
        return None
    domain, bus, device, function = found.groups()
    return f"{(domain or '0').rjust(8, '0')}:{bus}:{device}.{function}".upper()


def _generation(reasons: dict[str, Reason], speed: object) -> int | None:
    found = generation(speed)
    if found.value is None:
        reasons["pcie_generation_max"] = found.reason or Reason.UNKNOWN_ERROR
        return None
    return int(found.value)


def _main_sensor(door: AmdSmiDoor, handle: Any, uuid: str) -> str:
    """MI200 and newer have no thermometer at the edge."""
    edge = heat(door, handle, uuid, "EDGE", "CURRENT")
    hot = heat(door, handle, uuid, "HOTSPOT", "CURRENT")
    return "HOTSPOT" if edge.value is None and hot.value is not None else "EDGE"


def _watts(cap: object) -> Reading:
    return number(cap, POWER_W, bits=64, scale=MICRO)


def _name(asic: object) -> str:
    """The name on the box; before the driver knows a card it has a number for one."""
    name = text(part(asic, "market_name"))
    if name is not None and not name.lower().startswith("0x"):
        return name
    device = text(part(asic, "device_id"))
    return f"AMD GPU {device}" if device else "AMD GPU"
