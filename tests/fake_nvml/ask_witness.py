"""Run in a process of its own, with a fake driver library in reach: what one program reads of each card, as JSON.

``argv[1]``: ``nvitop``, ``gpustat`` or ``floodmark``. Values in our units; ``None`` where the program has none.
"""

from __future__ import annotations

import json
import sys
from typing import Any

MIB = 2**20


def ask_floodmark() -> list[dict[str, Any]]:
    from desktop_app.core.clock import SessionClock
    from desktop_app.telemetry.nvml_backend import NvmlBackend

    backend = NvmlBackend(SessionClock())
    found = []
    for card in backend.open():
        readings = {**backend.read_fast(card), **backend.read_slow(card)}
        facts = {
            "uuid": card.uuid,
            "total_bytes": card.total_bytes,
            "sm_clock_max_mhz": card.sm_clock_max_mhz,
            "memory_clock_max_mhz": card.memory_clock_max_mhz,
        }
        pids = {process.pid: process.memory_bytes for process in backend.processes(card)}
        found.append({**facts, **{name: reading.value for name, reading in readings.items()}, "pids": pids})
    return found


def ask_nvitop() -> list[dict[str, Any]]:
    from nvitop import NA, Device

    def known(value: Any, scale: float = 1.0) -> float | None:
        return None if value is NA or isinstance(value, str) else value * scale

    return [
        {
            "uuid": device.uuid(),
            "total_bytes": known(device.memory_total()),
            "memory_used_bytes": known(device.memory_used()),
            "utilization_percent": known(device.gpu_utilization()),
            "memory_utilization_percent": known(device.memory_utilization()),
            "temperature_c": known(device.temperature()),
            "sm_clock_mhz": known(device.sm_clock()),
            "memory_clock_mhz": known(device.memory_clock()),
            "fan_percent": known(device.fan_speed()),
            "encoder_percent": known(device.encoder_utilization()),
            "decoder_percent": known(device.decoder_utilization()),
            "power_limit_w": known(device.power_limit(), 1e-3),
            "graphics_clock_mhz": known(device.clock_infos().graphics),
            "video_clock_mhz": known(device.clock_infos().video),
            "sm_clock_max_mhz": known(device.max_sm_clock()),
            "memory_clock_max_mhz": known(device.max_memory_clock()),
            "ecc_uncorrected": known(device.total_volatile_uncorrected_ecc_errors()),
        }
        for device in Device.all()
    ]


def ask_gpustat() -> list[dict[str, Any]]:
    from gpustat import GPUStatCollection

    return [
        {
            "uuid": card["uuid"],
            "total_bytes": card["memory.total"] * MIB,
            "memory_used_bytes": card["memory.used"] * MIB,
            "utilization_percent": card["utilization.gpu"],
            "temperature_c": card["temperature.gpu"],
            "fan_percent": card["fan.speed"],
            "encoder_percent": card["utilization.enc"],
            "decoder_percent": card["utilization.dec"],
            "power_limit_w": card["enforced.power.limit"],
        }
        for card in GPUStatCollection.new_query().jsonify()["gpus"]
    ]


def main() -> None:
    print(json.dumps(globals()[f"ask_{sys.argv[1]}"]()))


if __name__ == "__main__":
    main()
