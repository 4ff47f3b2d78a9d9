"""Contexts and workspaces against the figures they are fitted to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_app.core.units import GIB, MIB
from desktop_app.memory.convolutions import WEIGHT_GRADIENT, ConvolutionCall, workspace_bytes
from desktop_app.memory.overheads import (
    EAGER,
    LAZY,
    CardSpec,
    ContextPrior,
    cublas_workspace_bytes,
    sm_count,
    software_of,
    threads_per_sm,
    workspace_scenarios,
)

# The last convolution of a ResNet-D's stem.
CALL = ConvolutionCall(
    WEIGHT_GRADIENT, "float32", 128, 32, 64, (112, 112), (112, 112), (3, 3), (1, 1), (1, 1), 1, channels_last=False
)


def card(
    sms: int | None = None, capability: tuple[int, int] | None = None, architecture: str | None = None
) -> CardSpec:
    return CardSpec("card", 8 * GIB, 8 * GIB, architecture, capability, sms)


# MiB outside an exact replay on six cards with eager loading, by SM count: docs/decisions/015.
@pytest.mark.parametrize(("sms", "mib"), [(40, 1049), (46, 1229), (80, 1294), (82, 1351), (108, 1695)])
def test_measured_residuals_lie_within_the_distribution(sms: int, mib: int) -> None:
    eager, lazy = (ContextPrior.of(card(sms), software=software) for software in (EAGER, LAZY))
    assert eager.quantile(0.05) < mib * MIB < eager.quantile(0.95)
    assert mib * MIB <= 1.25 * lazy.quantile(0.95)
    assert lazy.quantile(0.5) < eager.quantile(0.05)


def test_how_kernels_are_loaded_follows_cuda() -> None:
    assert [software_of(cuda) for cuda in ((10, 2), (11, 3), (11, 6))] == [EAGER] * 3
    assert [software_of(cuda) for cuda in ((11, 7), (12, 8), (13, 0), None)] == [LAZY] * 4
    with pytest.raises(ValueError, match="software"):
        ContextPrior.of(card(46), software="now")


def test_several_ranks_hold_a_communicator_too() -> None:
    alone, linked = ContextPrior.of(card(108)), ContextPrior.of(card(108), ranks=8)
    assert all(linked.quantile(p / 10) > alone.quantile(p / 10) + 50 * MIB for p in range(11))


# Idle processes of today: an RTX 3090 with driver 610, an RTX 6000 Ada with CUDA 13.0.
@pytest.mark.parametrize(("sms", "mib"), [(82, 256), (142, 426)])
def test_an_idle_context_of_today_is_the_least_a_training_holds(sms: int, mib: int) -> None:
    assert ContextPrior.of(card(sms)).quantile(0.0) / MIB == pytest.approx(mib, abs=45)


@given(st.integers(1, 200), st.floats(0, 1), st.floats(0, 1))
def test_quantiles_grow_with_the_probability_and_the_card(sms: int, low: float, high: float) -> None:
    low, high = sorted((low, high))
    prior = ContextPrior.of(card(sms))
    assert prior.quantile(low) <= prior.quantile(high)
    assert prior.quantile(low) <= ContextPrior.of(card(sms + 1)).quantile(low)


def test_the_middle_of_the_grid_is_the_median() -> None:
    prior = ContextPrior.of(card(22))
    grid = prior.grid()
    assert grid == tuple(sorted(grid))
    assert grid[len(grid) // 2] == prior.quantile(0.5) == prior.quantiles().p50
    assert prior.quantiles().p50 < prior.quantiles().p90 < prior.quantiles().p95
    with pytest.raises(ValueError, match="probability"):
        prior.quantile(1.5)


def test_seed_0_has_the_median_and_others_always_the_same_draw() -> None:
    prior = ContextPrior.of(card(46))
    assert prior.draw(0) == prior.quantile(0.5)
    assert prior.draw(3) == prior.draw(3)
    draws = {prior.draw(seed) for seed in range(1, 30)}
    assert len(draws) > 10
    assert all(prior.quantile(0.05) <= draw <= prior.quantile(0.95) for draw in draws)


def test_cublas_workspaces_by_compute_capability() -> None:
    assert cublas_workspace_bytes(card()) == 4096 * 1024 * 2 + 16 * 1024 * 8  # :4096:2:16:8
    for major in (9, 10, 12):
        assert cublas_workspace_bytes(card(capability=(major, 0))) == 32 * MIB
    for capability in ((6, 1), (7, 5), (8, 0), (8, 6), (8, 9)):
        assert cublas_workspace_bytes(card(capability=capability)) == 8_519_680


def test_an_unknown_card_is_taken_for_a_typical_one_of_its_architecture() -> None:
    assert sm_count(card(13, architecture="Hopper")) == 13
    assert sm_count(card(architecture="Hopper")) == 132
    assert sm_count(card(architecture="Ada Lovelace")) < sm_count(card(architecture="Hopper"))
    assert sm_count(card()) == sm_count(card(architecture="Nobody's"))


def test_threads_per_sm_by_compute_capability() -> None:
    assert [threads_per_sm(card(capability=c)) for c in ((7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (12, 0))] == [
        1024,
        2048,
        1536,
        1536,
        2048,
        1536,
    ]
    assert threads_per_sm(card()) == 2048


@pytest.mark.parametrize("benchmark", [False, True])
def test_the_rule_for_workspaces_is_the_median_of_its_scenarios(benchmark: bool) -> None:
    scenarios = workspace_scenarios(card(108, (8, 0)), benchmark=benchmark)
    assert sum(scenario.probability for scenario in scenarios) == pytest.approx(1)
    rule = workspace_bytes(CALL, card=card(108, (8, 0)))
    chances = {scenario.bytes_for(CALL): scenario.probability for scenario in scenarios}
    assert chances[rule] > 0.5
    assert min(chances) == 0
    assert max(chances) > 1.5 * rule


def test_benchmarking_takes_more() -> None:
    means = [
        sum(scenario.probability * scenario.bytes_for(CALL) for scenario in workspace_scenarios(card(), benchmark=flag))
        for flag in (False, True)
    ]
    assert means[1] > means[0]


def test_a_card_without_room_is_no_card() -> None:
    with pytest.raises(ValueError, match="capacity"):
        CardSpec("none", 0, 8 * GIB)
    with pytest.raises(ValueError, match="capacity"):
        CardSpec("more than there is", 9 * GIB, 8 * GIB)
