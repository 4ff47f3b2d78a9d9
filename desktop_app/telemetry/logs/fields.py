"""The names that tools give to our fields. What is in no table here is kept as it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from desktop_app.telemetry.logs import detail_fields
from desktop_app.telemetry.logs.values import Quantity, Rule
from desktop_app.telemetry.plausibility import (
    BYTES,
    CLOCK_MHZ,
    COUNT,
    FAN_PERCENT,
    PCIE_GENERATION,
    PCIE_WIDTH,
    PERCENT,
    PERFORMANCE_STATE,
    POWER_W,
    TEMPERATURE_C,
    Range,
)

# "The draw" of a card: of the moment or an average, by its generation (maker).
POWER_DRAW: Final = "power_draw"
# The limits of a card can be far from where it is.
_LIMIT_C: Final = Range(-40, 150, zero=False)
_RATE: Final = Range(0, 1e12)  # PCIe 7.0 x16: 2.4e11 bytes per second

UTILIZATION: Final = Rule("utilization_percent", Quantity.PERCENT, PERCENT, "%")
MEMORY_UTILIZATION: Final = Rule("memory_utilization_percent", Quantity.PERCENT, PERCENT, "%")
ENCODER: Final = Rule("encoder_percent", Quantity.PERCENT, PERCENT, "%")
DECODER: Final = Rule("decoder_percent", Quantity.PERCENT, PERCENT, "%")
FAN: Final = Rule("fan_percent", Quantity.PERCENT, FAN_PERCENT, "%")
USED: Final = Rule("memory_used_bytes", Quantity.BYTES, BYTES, "mib")
BAR1_USED: Final = Rule("bar1_used_bytes", Quantity.BYTES, BYTES, "mib")
DRAW: Final = Rule(POWER_DRAW, Quantity.POWER, POWER_W, "w")
INSTANT: Final = Rule("power_w", Quantity.POWER, POWER_W, "w")
AVERAGE: Final = Rule("power_average_w", Quantity.POWER, POWER_W, "w")
LIMIT: Final = Rule("power_limit_w", Quantity.POWER, POWER_W, "w")
TEMPERATURE: Final = Rule("temperature_c", Quantity.TEMPERATURE, TEMPERATURE_C, "c")
MEMORY_TEMPERATURE: Final = Rule("temperature_memory_c", Quantity.TEMPERATURE, TEMPERATURE_C, "c")
SM_CLOCK: Final = Rule("sm_clock_mhz", Quantity.CLOCK, CLOCK_MHZ, "mhz")
MEMORY_CLOCK: Final = Rule("memory_clock_mhz", Quantity.CLOCK, CLOCK_MHZ, "mhz")
STATE: Final = Rule("performance_state", Quantity.STATE, PERFORMANCE_STATE)
ECC: Final = Rule("ecc_uncorrected", Quantity.COUNT, COUNT)
GENERATION: Final = Rule("pcie_generation", Quantity.COUNT, PCIE_GENERATION)
WIDTH: Final = Rule("pcie_width", Quantity.COUNT, PCIE_WIDTH)
RX: Final = Rule("pcie_rx_bytes_per_s", Quantity.RATE, _RATE, "kb/s")
TX: Final = Rule("pcie_tx_bytes_per_s", Quantity.RATE, _RATE, "kb/s")
TOTAL: Final = Rule("total_bytes", Quantity.BYTES, BYTES, "mib", fact=True)
RESERVED: Final = Rule("driver_reserved_bytes", Quantity.BYTES, BYTES, "mib", fact=True)
BAR1_TOTAL: Final = Rule("bar1_total_bytes", Quantity.BYTES, BYTES, "mib", fact=True)
POWER_MAX: Final = Rule("power_max_w", Quantity.POWER, POWER_W, "w", fact=True)
CLOCK_MAX: Final = Rule("sm_clock_max_mhz", Quantity.CLOCK, CLOCK_MHZ, "mhz", fact=True)
SLOWDOWN: Final = Rule("temperature_slowdown_c", Quantity.TEMPERATURE, _LIMIT_C, "c", fact=True)
SHUTDOWN: Final = Rule("temperature_shutdown_c", Quantity.TEMPERATURE, _LIMIT_C, "c", fact=True)
PROCESS_MEMORY: Final = Rule("memory_bytes", Quantity.BYTES, BYTES, "mib")

# nvidia-smi --help-query-gpu; older drivers' names beside today's.
QUERY: Final[Mapping[str, Rule]] = {
    "utilization.gpu": UTILIZATION,
    "utilization.memory": MEMORY_UTILIZATION,
    "utilization.encoder": ENCODER,
    "utilization.decoder": DECODER,
    "memory.used": USED,
    "memory.total": TOTAL,
    "memory.reserved": RESERVED,
    "power.draw": DRAW,
    "power.draw.instant": INSTANT,
    "power.draw.average": AVERAGE,
    "enforced.power.limit": LIMIT,
    "power.max_limit": POWER_MAX,
    "temperature.gpu": TEMPERATURE,
    "temperature.memory": MEMORY_TEMPERATURE,
    "clocks.current.sm": SM_CLOCK,
    "clocks.sm": SM_CLOCK,
    "clocks.current.memory": MEMORY_CLOCK,
    "clocks.mem": MEMORY_CLOCK,
    "clocks.max.sm": CLOCK_MAX,
    "fan.speed": FAN,
    "pstate": STATE,
    "ecc.errors.uncorrected.volatile.total": ECC,
    "pcie.link.gen.current": GENERATION,
    "pcie.link.gen.gpucurrent": GENERATION,
    "pcie.link.width.current": WIDTH,
    **detail_fields.QUERY,
}
# Taken only where the better name is not there.
QUERY_SECOND: Final[Mapping[str, str]] = {
    "power.limit": "enforced.power.limit",
    "pcie.link.gen.current": "pcie.link.gen.gpucurrent",
}
QUERY_TEXTS: Final[Mapping[str, str]] = {
    "driver_version": "driver_version",
    "vbios_version": "vbios_version",
    "compute_cap": "compute_capability",
    "mig.mode.current": "mig_mode",
    "driver_model.current": "driver_model",
}
QUERY_CARD: Final[Mapping[str, str]] = {
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "pci.bus_id": "bus_id",
    "gpu_bus_id": "bus_id",
    "name": "name",
    "gpu_name": "name",
    "index": "index",
}
