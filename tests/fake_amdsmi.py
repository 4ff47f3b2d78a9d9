"""A stand-in for the Python package ``amdsmi`` as its documentation and sources describe it: dictionaries, "N/A",
exceptions with codes. A card is a dictionary of answers by call; an answer that is an exception is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from types import ModuleType
from typing import Any

NOT_SUPPORTED, NO_PERM, NOT_FOUND, DRIVER_NOT_LOADED, UNKNOWN = 2, 10, 31, 34, 0xFFFFFFFF


class AmdSmiException(Exception):  # noqa: N818 - its name
    pass


class AmdSmiLibraryException(AmdSmiException):
    def __init__(self, err_code: int) -> None:
        super().__init__(err_code)
        self.err_code = abs(err_code)

    def __str__(self) -> str:
        return f"Error code:\n\t{self.err_code} | AMDSMI_STATUS"


class AmdSmiTemperatureType(IntEnum):
    EDGE = 0
    HOTSPOT = 1
    VRAM = 2


class AmdSmiTemperatureMetric(IntEnum):
    CURRENT = 0
    CRITICAL = 5
    EMERGENCY = 7


class AmdSmiClkType(IntEnum):
    GFX = 1
    MEM = 5
    VCLK0 = 7


class AmdSmiMemoryType(IntEnum):
    VRAM = 0
    GTT = 2


def error(code: int) -> AmdSmiLibraryException:
    return AmdSmiLibraryException(code)


GIB = 2**30


def radeon() -> dict[str, Any]:
    """A Radeon RX 7900 XTX as a library of 26.0 tells it: a current and no average power, an edge, a fan."""
    return {
        "amdsmi_get_gpu_device_bdf": "0000:03:00.0",
        "amdsmi_get_gpu_device_uuid": "6cff744c-0000-1000-8045-2b5d6c5c4f9a",
        "amdsmi_get_gpu_asic_info": {
            "market_name": "Radeon RX 7900 XTX",
            "device_id": "0x744c",
            "num_compute_units": 96,
            "target_graphics_version": "gfx1100",
        },
        "amdsmi_get_gpu_vram_info": {"vram_type": 12, "vram_size": 24560, "vram_bit_width": 384},
        "amdsmi_get_gpu_driver_info": {"driver_name": "amdgpu", "driver_version": "6.12.12"},
        "amdsmi_get_gpu_vbios_info": {"part_number": "113-EXT800129-L03"},
        "amdsmi_get_power_cap_info": {
            "power_cap": 339000000,
            "default_power_cap": 339000000,
            "dpm_cap": 0,
            "min_power_cap": 0,
            "max_power_cap": 389000000,
        },
        "amdsmi_get_gpu_memory_total": {AmdSmiMemoryType.VRAM: 24 * GIB, AmdSmiMemoryType.GTT: 16 * GIB},
        "amdsmi_get_gpu_memory_usage": {AmdSmiMemoryType.VRAM: 3 * GIB, AmdSmiMemoryType.GTT: GIB},
        "amdsmi_get_gpu_activity": {"gfx_activity": 87, "umc_activity": 34, "mm_activity": "N/A"},
        "amdsmi_get_power_info": {
            "socket_power": 0xFFFFFFFFFFFFFFFF,
            "current_socket_power": "N/A",
            "average_socket_power": 303,
            "power_limit": 339,
        },
        "amdsmi_get_temp_metric": {
            (AmdSmiTemperatureType.EDGE, AmdSmiTemperatureMetric.CURRENT): 62,
            (AmdSmiTemperatureType.EDGE, AmdSmiTemperatureMetric.CRITICAL): 100,
            (AmdSmiTemperatureType.EDGE, AmdSmiTemperatureMetric.EMERGENCY): 105,
            (AmdSmiTemperatureType.HOTSPOT, AmdSmiTemperatureMetric.CURRENT): 81,
            (AmdSmiTemperatureType.HOTSPOT, AmdSmiTemperatureMetric.CRITICAL): 110,
            (AmdSmiTemperatureType.VRAM, AmdSmiTemperatureMetric.CURRENT): 84,
            (AmdSmiTemperatureType.VRAM, AmdSmiTemperatureMetric.CRITICAL): 108,
        },
        "amdsmi_get_clock_info": {
            AmdSmiClkType.GFX: {"clk": 2615, "min_clk": 500, "max_clk": 3220, "clk_deep_sleep": 0},
            AmdSmiClkType.MEM: {"clk": 1249, "min_clk": 96, "max_clk": 1249, "clk_deep_sleep": "N/A"},
            AmdSmiClkType.VCLK0: {"clk": 21, "min_clk": 21, "max_clk": 3000},
        },
        "amdsmi_get_gpu_fan_speed": 102,
        "amdsmi_get_gpu_fan_speed_max": 255,
        "amdsmi_get_energy_count": {"energy_accumulator": 2_000_000, "counter_resolution": 15.3, "timestamp": 1},
        "amdsmi_get_gpu_total_ecc_count": error(NOT_SUPPORTED),
        "amdsmi_get_pcie_info": {
            "pcie_static": {"max_pcie_width": 16, "max_pcie_speed": 16000, "slot_type": "CEM"},
            "pcie_metric": {"pcie_width": 8, "pcie_speed": 16000, "pcie_bandwidth": "N/A", "pcie_replay_count": 4},
        },
        "amdsmi_get_gpu_metrics_info": {"accumulation_counter": "N/A", "throttle_status": False},
        "amdsmi_get_gpu_bad_page_info": [],
        "amdsmi_get_gpu_process_list": [],
    }


def instinct() -> dict[str, Any]:
    """An Instinct MI300X: no edge, no fan, a current power, residency counters, ECC."""
    card = radeon()
    card.update(
        {
            "amdsmi_get_gpu_device_bdf": "0001:05:00.0",
            "amdsmi_get_gpu_device_uuid": "e8ff74a1-0000-1000-80c1-1d2b3c4d5e6f",
            "amdsmi_get_gpu_asic_info": {
                "market_name": "AMD Instinct MI300X",
                "device_id": "0x74a1",
                "num_compute_units": 304,
                "target_graphics_version": "gfx942",
            },
            "amdsmi_get_gpu_memory_total": {AmdSmiMemoryType.VRAM: 192 * GIB},
            "amdsmi_get_gpu_memory_usage": {AmdSmiMemoryType.VRAM: 100 * GIB},
            "amdsmi_get_power_info": {"current_socket_power": 645, "average_socket_power": 0xFFFF},
            "amdsmi_get_gpu_fan_speed": error(1),
            "amdsmi_get_gpu_fan_speed_max": error(1),
            "amdsmi_get_gpu_total_ecc_count": {"correctable_count": 7, "uncorrectable_count": 0, "deferred_count": 0},
            "amdsmi_get_temp_metric": {
                (AmdSmiTemperatureType.HOTSPOT, AmdSmiTemperatureMetric.CURRENT): 71,
                (AmdSmiTemperatureType.HOTSPOT, AmdSmiTemperatureMetric.CRITICAL): 100,
                (AmdSmiTemperatureType.HOTSPOT, AmdSmiTemperatureMetric.EMERGENCY): 105,
                (AmdSmiTemperatureType.VRAM, AmdSmiTemperatureMetric.CURRENT): 58,
                (AmdSmiTemperatureType.VRAM, AmdSmiTemperatureMetric.CRITICAL): 105,
            },
            "amdsmi_get_gpu_metrics_info": {
                "accumulation_counter": 1000,
                "ppt_residency_acc": 100,
                "socket_thm_residency_acc": 0,
                "hbm_thm_residency_acc": 5,
                "vr_thm_residency_acc": "N/A",
                "prochot_residency_acc": 0,
            },
            "amdsmi_get_gpu_bad_page_info": error(NO_PERM),
        }
    )
    return card


class FakePackage(ModuleType):
    """The package. ``cards`` may be changed between calls; a call that a card has no answer for is not supported."""

    def __init__(self, cards: Sequence[dict[str, Any]], *, without: Sequence[str] = ()) -> None:
        super().__init__("amdsmi")
        self.cards = list(cards)
        self.init_error: Exception | None = None
        self.opened = self.closed = 0
        self.asked: list[str] = []
        self._without = set(without)
        self.AmdSmiException, self.AmdSmiLibraryException = AmdSmiException, AmdSmiLibraryException
        self.AmdSmiTemperatureType, self.AmdSmiTemperatureMetric = AmdSmiTemperatureType, AmdSmiTemperatureMetric
        self.AmdSmiClkType, self.AmdSmiMemoryType = AmdSmiClkType, AmdSmiMemoryType

    def amdsmi_init(self) -> None:
        self.opened += 1
        if self.init_error is not None:
            raise self.init_error

    def amdsmi_shut_down(self) -> None:
        self.closed += 1

    def amdsmi_get_processor_handles(self) -> list[int]:
        return list(range(len(self.cards)))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("amdsmi_get_") or name in self._without:
            raise AttributeError(name)

        def answer(handle: int, *arguments: Any) -> Any:
            self.asked.append(name)
            found = self.cards[handle].get(name, error(NOT_SUPPORTED))
            if isinstance(found, dict) and arguments and not isinstance(next(iter(found), ""), str):
                found = found.get(arguments[0] if len(arguments) == 1 else arguments, error(NOT_SUPPORTED))
            if isinstance(found, Exception):
                raise found
            return found

        return answer
