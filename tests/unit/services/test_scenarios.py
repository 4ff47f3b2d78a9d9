"""The demonstrations, and the memory they really take."""

from __future__ import annotations

import pytest

from desktop_app.core.errors import ConfigError, FloodmarkError
from desktop_app.core.units import GIB
from desktop_app.services.scenarios import DEFAULT_SCENARIO, SCENARIOS, check_memory, find_scenario
from desktop_app.training.recipes.faults import FAULTS


def test_the_four_of_the_documentation_are_there() -> None:
    assert list(SCENARIOS) == ["cats-dogs", "leak", "first-step", "too-big"]
    assert DEFAULT_SCENARIO == "cats-dogs"
    for name, scenario in SCENARIOS.items():
        assert find_scenario(name) is scenario
        assert scenario.config.title == name
        assert scenario.fault is None or scenario.fault in FAULTS
    assert {name for name, scenario in SCENARIOS.items() if scenario.fills_card} == {"leak", "first-step", "too-big"}


def test_an_unknown_one_names_them_all() -> None:
    with pytest.raises(ConfigError) as caught:
        find_scenario("leek")
    assert str(caught.value) == (
        "There is no demonstration 'leek'. Choose one of: cats-dogs, leak, first-step, too-big."
    )
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
    from desktop_app.telemetry.catalogue import find_simulable_card

    assert (find_simulable_card("GeForce GTX 1050 Ti").total_bytes or 0) <= 4 * GIB
