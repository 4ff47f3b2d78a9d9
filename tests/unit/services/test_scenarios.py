"""The demonstrations, and the memory they really take."""

from __future__ import annotations

import pytest

from desktop_app.core.errors import ConfigError, FloodmarkError
from desktop_app.core.forecasts import Cause
from desktop_app.core.units import GIB
from desktop_app.services.scenarios import (
    DEFAULT_SCENARIO,
    SCENARIOS,
    check_memory,
    find_scenario,
    list_scenarios,
    on_card,
)
from desktop_app.telemetry.catalogue import find_simulable_card
from desktop_app.training.recipes.faults import FAULTS, Fault


def test_there_is_one_for_each_cause() -> None:
    assert next(iter(SCENARIOS)) == DEFAULT_SCENARIO == "cats-dogs"
    assert {cause.value.replace("_", "-") for cause in Cause} == set(SCENARIOS) - {"cats-dogs", "too-big"}
    for name, scenario in SCENARIOS.items():
        assert find_scenario(name) is scenario
        assert find_scenario(name.replace("-", "_").upper()) is scenario
        assert scenario.config.title == name
        assert scenario.cause is None or scenario.cause.value.replace("_", "-") == name
        assert scenario.fault is None or isinstance(FAULTS[scenario.fault](), Fault)
    assert {scenario.fault for scenario in SCENARIOS.values()} - {None} == set(FAULTS)


def test_the_names_of_the_first_release_stay() -> None:
    for name in ("cats-dogs", "leak", "first-step", "too-big"):
        scenario = find_scenario(name)
        assert scenario.name == name
        assert scenario.config.card is None  # the machine's own card, or the whole default one


def test_the_list_has_a_line_for_each() -> None:
    lines = list_scenarios().splitlines()
    assert [line.split()[0] for line in lines] == list(SCENARIOS)
    assert all(len(line) < 120 for line in lines)


def test_the_small_ones_fit_a_laptop_of_8_gib() -> None:
    for scenario in SCENARIOS.values():
        if scenario.config.card is not None:
            check_memory(scenario, capacity_bytes=80 * GIB, available_bytes=4 * GIB)
            assert find_simulable_card(scenario.config.card).name == scenario.config.card


def test_another_card_takes_the_place_of_the_small_one() -> None:
    spill = on_card(find_scenario("spill"), "RTX 4090")
    assert spill.config.card == "RTX 4090 under Windows"
    assert on_card(spill, "RTX 3090 under Windows").config.card == "RTX 3090 under Windows"
    assert on_card(find_scenario("resume"), "RTX 4090").config.card == "RTX 4090"
    assert on_card(find_scenario("leak"), "RTX 4090") is find_scenario("leak")


def test_an_unknown_one_names_them_all() -> None:
    with pytest.raises(ConfigError) as caught:
        find_scenario("leek")
    assert str(caught.value) == f"There is no demonstration 'leek'. Choose one of: {', '.join(SCENARIOS)}."
    assert caught.value.exit_code == 2


def test_a_healthy_run_needs_no_ram_for_the_card() -> None:
    check_memory(find_scenario("cats-dogs"), capacity_bytes=80 * GIB, available_bytes=GIB)


def test_a_card_that_is_filled_lies_in_ram() -> None:
    leak = find_scenario("leak")
    check_memory(leak, capacity_bytes=6 * GIB, available_bytes=8 * GIB)
    check_memory(leak, capacity_bytes=80 * GIB, available_bytes=None)  # not known: the system will say
    with pytest.raises(FloodmarkError) as caught:
        check_memory(leak, capacity_bytes=6 * GIB, available_bytes=8 * GIB - 1)
    assert caught.value.code == "demo.not_enough_ram"
    assert caught.value.params == {"needed_bytes": 8 * GIB, "available_bytes": 8 * GIB - 1}
    assert "8.00 GiB are needed" in str(caught.value)
    assert '--card "GeForce GTX 1050 Ti"' in str(caught.value)


def test_the_smaller_card_it_names_can_be_simulated() -> None:
    assert (find_simulable_card("GeForce GTX 1050 Ti").total_bytes or 0) <= 4 * GIB
