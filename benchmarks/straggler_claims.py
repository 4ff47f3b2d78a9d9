"""How often the comparison of cards accuses one that keeps pace, and how small a lag it sees.

Minutes are made, not recorded: each card has samples at 5 Hz with the beat of steps (its period drawn from 0.3 s to
12 s, shared by the job), noise of the sensors, and a clock that differs from card to card as silicon does (1 % by
default).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import numpy as np

from desktop_app.services.card_minutes import level_of
from desktop_app.services.same_job import Mark
from desktop_app.services.stragglers import Level, Pace, Work, compare

JOB = Mark(1, "someone", "python train.py", 0.0)


def minute(
    rng: np.random.Generator, cards: int, *, silicon: float, changes: Mapping[str, float] | None = None
) -> tuple[Work, ...]:
    """The cards of one job; the last one has ``changes``: a factor of its clock, points of its utilisation."""
    changes = changes or {}
    t_s = np.arange(0.0, 60.0, 0.2)
    period_s, duty = rng.uniform(0.3, 12.0), rng.uniform(0.6, 1.0)
    works = []
    for index in range(cards):
        lags = index == cards - 1
        beat = ((t_s / period_s + rng.uniform()) % 1.0) < duty
        load = np.clip(97.0 * beat + rng.normal(0, 2, t_s.size) + (changes.get("load", 0.0) if lags else 0.0), 0, 100)
        clock = 1755.0 * (1 + silicon * rng.standard_normal()) * (changes.get("clock", 1.0) if lags else 1.0)
        samples = {"utilization_percent": load, "sm_clock_mhz": clock + 15 * rng.standard_normal(t_s.size)}
        levels: dict[str, Level] = {}
        for name, values in samples.items():
            level = level_of(t_s, values)
            if level is not None:
                levels[name] = level
        works.append(Work(f"GPU-{index}", "H100", levels, job=JOB))
    return tuple(works)


def share_accused(seed: int, minutes: int, cards: int, **kinds: object) -> tuple[float, float]:
    """Shares of the minutes in which the last card was named, and in which another one was."""
    rng = np.random.default_rng(seed)
    right = wrong = 0
    for _ in range(minutes):
        for group in compare(minute(rng, cards, **kinds)):  # type: ignore[arg-type]
            names = {standing.work.uuid for standing in group.lagging} if group.pace is Pace.LAGGING else set()
            right += f"GPU-{cards - 1}" in names
            wrong += bool(names - {f"GPU-{cards - 1}"})
    return right / minutes, wrong / minutes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--silicon", type=float, default=0.01)
    options = parser.parse_args()
    cases: tuple[tuple[str, Mapping[str, float]], ...] = (
        ("none", {}),
        ("clock −4 %", {"clock": 0.96}),
        ("clock −8 %", {"clock": 0.92}),
        ("clock −15 %", {"clock": 0.85}),
        ("load −8 points", {"load": -8.0}),
        ("load −20 points", {"load": -20.0}),
        ("load −40 points", {"load": -40.0}),
    )
    print(f"{options.minutes} minutes each, spread of the silicon {options.silicon:.1%}")
    print(f"{'lag':18}{'cards':>6}{'named':>9}{'others':>9}")
    for name, changes in cases:
        for cards in (2, 4, 8, 16):
            right, wrong = share_accused(options.seed, options.minutes, cards, silicon=options.silicon, changes=changes)
            print(f"{name:18}{cards:6}{right:9.1%}{wrong:9.1%}")


if __name__ == "__main__":
    main()
