"""How a card is set up: modes and limits, each with its reason where it is missing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake_nvml.driver import PlaySteps

# What the driver answers → (fact, what it means)
ANSWERS: dict[str, tuple[str, object]] = {
    "compute_mode=0": ("compute_mode", "default"),
    "compute_mode=2": ("compute_mode", "prohibited"),
    "compute_mode=3": ("compute_mode", "exclusive_process"),
    "persistence=0": ("persistence_mode", "off"),
    "ecc_mode=1": ("ecc_mode", "on"),
    "ecc_mode=0": ("ecc_mode", "off"),
    "mig=0": ("mig_mode", "off"),
    "driver_model=0": ("driver_model", "wddm"),
    "driver_model=1": ("driver_model", "tcc"),
    "driver_model=2": ("driver_model", "mcdm"),
    "display=1": ("display_active", "on"),
    "numa_node=1": ("numa_node", 1),
    "threshold_memory=105": ("temperature_memory_max_c", 105.0),
    "power_min=60000": ("power_min_w", 60.0),
}
FALSE: dict[str, tuple[str, str]] = {
    "compute_mode=9": ("compute_mode", "implausible"),
    "persistence=4294967295": ("persistence_mode", "implausible"),
    "bus_width=0": ("memory_bus_bits", "implausible"),
    "power_limit_default=0": ("power_default_w", "implausible"),
    "pcie_width_max=4294967295": ("pcie_width_max", "implausible"),
    "bar1_total=0": ("bar1_total_bytes", "implausible"),
    "numa_node=18446744073709551615": ("numa_node", "not_supported"),  # -1: its memory is no node
    "threshold_operating=0": ("temperature_operating_max_c", ""),  # the margin gives it
}


def describe(play: PlaySteps, cases: list[str]) -> dict[str, dict[str, Any]]:
    """One card for each case."""
    values = ",".join([f"count={len(cases)}", *(f"gpu{number}:{case}" for number, case in enumerate(cases))])
    cards = play([{"do": ["open"], "values": values}])["steps"][0]["open"]
    return dict(zip(cases, cards, strict=True))


def test_settings_are_words_and_figures(play: PlaySteps) -> None:
    for case, card in describe(play, list(ANSWERS)).items():
        fact, expected = ANSWERS[case]
        assert card[fact] == expected, case
        assert fact not in card["reasons"], case


def test_settings_that_cannot_be_true_are_missing(play: PlaySteps) -> None:
    for case, card in describe(play, list(FALSE)).items():
        fact, reason = FALSE[case]
        assert card["reasons"].get(fact, "") == reason, case
        assert (card[fact] is None) == bool(reason), case


@pytest.mark.parametrize("code", [3, 4, 999])
def test_a_fact_that_cannot_be_read_says_why(play: PlaySteps, code: int) -> None:
    reason = {3: "not_supported", 4: "no_permission", 999: "unknown_error"}[code]
    calls = {
        "nvmlDeviceGetComputeMode": "compute_mode",
        "nvmlDeviceGetPersistenceMode": "persistence_mode",
        "nvmlDeviceGetEccMode": "ecc_mode",
        "nvmlDeviceGetMigMode": "mig_mode",
        "nvmlDeviceGetDriverModel_v2": "driver_model",
        "nvmlDeviceGetDisplayActive": "display_active",
        "nvmlDeviceGetNumaNodeId": "numa_node",
        "nvmlDeviceGetMemoryBusWidth": "memory_bus_bits",
        "nvmlDeviceGetBAR1MemoryInfo": "bar1_total_bytes",
        "nvmlDeviceGetMaxPcieLinkGeneration": "pcie_generation_max",
        "nvmlDeviceGetMaxPcieLinkWidth": "pcie_width_max",
        "nvmlDeviceGetPowerManagementDefaultLimit": "power_default_w",
        "nvmlDeviceGetPowerManagementLimitConstraints": "power_min_w",
        "nvmlDeviceGetMaxClockInfo": "memory_clock_max_mhz",
    }
    errors = ",".join(f"gpu{number}:{call}={code}" for number, call in enumerate(calls))
    cards = play([{"do": ["open"], "values": f"count={len(calls)}", "errors": errors}])["steps"][0]["open"]
    for card, fact in zip(cards, calls.values(), strict=True):
        assert (card[fact], card["reasons"][fact]) == (None, reason)
