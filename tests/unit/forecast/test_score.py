"""A small seeded sample of the forecast's corpus, through the score that the whole of it is judged by."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
# Short runs of ten causes (fragmentation takes long to make), with their seeds: even, the half that may be looked at.
FAULTS = {
    "leak_line": 8,
    "leak_noisy": 4,
    "validation_stairs": 8,
    "save_stairs": 8,
    "optimizer_first": 0,
    "batch_announced": 8,
    "batch_known": 2,
    "validation_demand": 4,
    "validation_outputs": 4,
    "save_demand": 4,
    "resume_load": 0,
    "neighbour_line": 0,
    "outside_line": 0,
    "host_own": 8,
    "spill_batch": 8,
}
HEALTHY = {"sawtooth": 0, "warm_up": 0, "evaluation_peaks": 8, "tail_batches": 2, "saves_copy": 0, "slow_loader": 0}


@pytest.fixture(scope="module")
def score() -> Any:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import forecast_score

        yield forecast_score
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def judged(score: Any) -> list[Any]:
    scenes = {scene.__name__: scene for scene, _ in score.SCENES}
    plans = [score.Plan(scenes[name], seed, tuning=True) for name, seed in (FAULTS | HEALTHY).items()]
    return [score.score(plan) for plan in plans]


def test_faults_are_flagged_before_they_end_the_run(judged: list[Any]) -> None:
    bad = [run for run in judged if run.cause is not None]
    assert len({run.cause for run in bad}) == 10
    missed = [run.name for run in bad if not run.early]
    assert len(missed) <= 1, missed


def test_the_cause_is_named(judged: list[Any]) -> None:
    found = [run for run in judged if run.found]
    wrong = [(run.name, run.first_cause) for run in found if run.first_cause != run.cause]
    assert len(wrong) <= 2, wrong


def test_healthy_runs_are_left_alone(judged: list[Any]) -> None:
    alarms = {run.name: run.false_alarms for run in judged if run.false_alarms}
    assert len(alarms) <= 1, alarms


def test_the_time_left_is_about_right(score: Any, judged: list[Any]) -> None:
    found = score.figures.figures("all", [run for run in judged if run.cause is not None])
    assert found.eta_error < 0.25
    assert found.eta_known > 0.7


def test_probabilities_beat_the_base_rate(score: Any, judged: list[Any]) -> None:
    assert all(brier.ratio < 0.75 for brier in score.figures.brier(judged))


def test_a_plan_always_gives_the_same_run(score: Any) -> None:
    scene = {scene.__name__: scene for scene, _ in score.SCENES}["leak_noisy"]
    first, second = (score.make(score.Plan(scene, 4, tuning=True)) for _ in range(2))
    assert first == second
    assert first.rows[first.oom_row].event == "oom"
    assert all(row.event != "oom" for row in first.rows[: first.oom_row])


def test_halves_share_neither_models_nor_seeds(score: Any) -> None:
    from forecast_corpus import of_half

    assert not set(of_half(tuning=True)) & set(of_half(tuning=False))
    plans = score.plans()
    assert {plan.seed % 2 for plan in plans if plan.tuning} == {0}
    assert {plan.seed % 2 for plan in plans if not plan.tuning} == {1}


def test_the_corpus_is_as_large_as_it_says(score: Any) -> None:
    import forecast_healthy

    kinds = {scene.__name__ for scene, _ in forecast_healthy.HEALTHY}
    names = Counter(plan.scene.__name__ for plan in score.plans())
    causes: Counter[str] = Counter()
    for name, count in names.items():
        causes["healthy" if name in kinds else name.partition("_")[0]] += count
    assert len(kinds) >= 8
    assert causes.pop("healthy") >= 600
    assert len(causes) == 11
    assert min(causes.values()) >= 60


def test_a_late_warning_is_no_early_one(score: Any, judged: list[Any]) -> None:
    run = next(run for run in judged if run.scene == "leak_line")
    late = replace(run, lead_steps=9, lead_s=59.0)
    assert not late.early
    assert replace(late, lead_s=60.0).early
    assert replace(late, call=True).early
    shares = score.figures.figures("two", [late, replace(late, lead_steps=10)])
    assert shares.recall == 1.0
    assert shares.early == 0.5
