"""Contexts and workspaces against the figures they are fitted to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_app.core.units import GIB, MIB
from desktop_app.memory.overheads import (
    CUDNN_SCALES,
    CardSpec,
    ContextPrior,
    cublas_workspace_bytes,
    sm_count,
    threads_per_sm,
)


def card(
    sms: int | None = None, capability: tuple[int, int] | None = None, architecture: str | None = None
) -> CardSpec:
    return CardSpec("card", 8 * GIB, 8 * GIB, architecture, capability, sms)


# MiB outside an exact replay on six cards, by SM count.
@pytest.mark.parametrize(("sms", "mib"), [(13, 490), (40, 1066), (46, 1258), (80, 1303), (82, 1401), (108, 1955)])
def test_measured_residuals_lie_within_the_distribution(sms: int, mib: int) -> None:
    prior = ContextPrior.of(card(sms))
    assert prior.eager_bytes / MIB == pytest.approx(mib, abs=220)
    assert prior.quantile(0.05) < mib * MIB <= 1.25 * prior.quantile(0.95)


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


def test_the_probabilities_of_the_workspace_scales_add_up() -> None:
    assert sum(weight for _, weight in CUDNN_SCALES) == pytest.approx(1)
    assert dict(CUDNN_SCALES)[1.0] >= 0.5  # so that the rule itself is the median


def test_a_card_without_room_is_no_card() -> None:
    with pytest.raises(ValueError, match="capacity"):
        CardSpec("none", 0, 8 * GIB)
    with pytest.raises(ValueError, match="capacity"):
        CardSpec("more than there is", 9 * GIB, 8 * GIB)
