"""Which card lags, on made histories with known answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from desktop_app.core.store import Store
from desktop_app.core.telemetry import DETAIL_FIELDS, GPU_FIELDS, Card, ProcessSample
from desktop_app.services.card_minutes import card_minutes, level_of
from desktop_app.services.same_job import Mark, job_of, others_percent, plain_command
from desktop_app.services.stragglers import Group, Lag, Level, Pace, Work, compare

NOW_S = 100.0
HEALTHY: Mapping[str, float] = {
    "utilization_percent": 97.0,
    "memory_used_bytes": 60e9,
    "power_w": 640.0,
    "temperature_c": 66.0,
    "sm_clock_mhz": 1755.0,
    "throttle_power_percent": 0.0,
    "throttle_thermal_percent": 0.0,
    "pcie_rx_bytes_per_s": 2e9,
    "pcie_tx_bytes_per_s": 1e9,
    "pcie_generation": 5.0,
    "pcie_width": 16.0,
}
# What a sensor and the beat of the steps add to each sample.
NOISE: Mapping[str, float] = {"utilization_percent": 2.0, "power_w": 25.0, "sm_clock_mhz": 18.0, "temperature_c": 0.5}


def card(index: int, *, name: str = "NVIDIA H100 80GB HBM3") -> Card:
    return Card(f"GPU-{index}", name, index, None, simulated=False, total_bytes=80 * 10**9)


def worker(index: int, *, command: str = "python train.py", started: float = 50.0, pid: int = 0) -> ProcessSample:
    return ProcessSample(
        pid=pid or 1000 + index,
        uuid=f"GPU-{index}",
        name="python",
        user="ada",
        command=command,
        kind="compute",
        memory_bytes=60 * 10**9,
        started_wall_s=started,
    )


def groups(
    *differ: Mapping[str, float],
    seconds: float = 90.0,
    processes: Callable[[int], tuple[ProcessSample, ...]] = lambda index: (worker(index),),
    name: Callable[[int], str] = lambda _: "NVIDIA H100 80GB HBM3",
    seed: int = 1,
) -> tuple[Group, ...]:
    """Cards that are healthy but for what differs; a sample a second up to ``NOW_S``."""
    rng = np.random.default_rng(seed)
    store = Store()
    cards = [card(index, name=name(index)) for index in range(len(differ))]
    for made, changes in zip(cards, differ, strict=True):
        history = store.declare(f"gpu:{made.uuid}", GPU_FIELDS)
        details = store.declare(f"details:{made.uuid}", DETAIL_FIELDS)
        values = {**HEALTHY, **{key: value for key, value in changes.items() if key in GPU_FIELDS}}
        for t_s in np.arange(NOW_S - seconds, NOW_S, 1.0):
            row = {key: value + NOISE.get(key, 0.0) * rng.standard_normal() for key, value in values.items()}
            history.append(float(t_s), row)
            if "sm_activity_percent" in changes:
                details.append(float(t_s), {"sm_activity_percent": changes["sm_activity_percent"]})
    table = {made.uuid: processes(index) for index, made in enumerate(cards)}
    return compare(card_minutes(store, cards, table, now_s=NOW_S))


def only(found: tuple[Group, ...]) -> Group:
    assert len(found) == 1
    return found[0]


SAME: Mapping[str, float] = {}


def test_cards_that_keep_pace_are_not_accused() -> None:
    for seed in range(10):
        group = only(groups(*[SAME] * 8, seed=seed))
        assert group.pace is Pace.EVEN
        # In the order of the cards: ranked by noise the rows would jump at every look.
        assert [each.work.uuid for each in group.standings] == [f"GPU-{index}" for index in range(8)]


@pytest.mark.parametrize(
    ("changes", "cause", "lost"),
    [
        ({"sm_clock_mhz": 1440.0, "throttle_thermal_percent": 31.0, "temperature_c": 88.0}, Lag.HEAT, 0.18),
        ({"sm_clock_mhz": 1580.0, "throttle_power_percent": 60.0}, Lag.POWER, 0.10),
        ({"sm_clock_mhz": 1410.0}, Lag.CLOCK, 0.20),
        ({"utilization_percent": 62.0}, Lag.WAITS, 0.36),
        ({"utilization_percent": 62.0, "pcie_width": 4.0}, Lag.LINK, 0.36),
        ({"pcie_generation": 3.0, "pcie_width": 8.0, "pcie_rx_bytes_per_s": 6e9}, Lag.LINK, 0.0),
    ],
)
@pytest.mark.parametrize("place", [0, 5])
def test_one_of_eight_lags(changes: Mapping[str, float], cause: Lag, lost: float, place: int) -> None:
    differ: list[Mapping[str, float]] = [SAME] * 8
    differ[place] = changes
    group = only(groups(*differ))
    assert group.pace is Pace.LAGGING
    assert [(each.work.uuid, each.cause) for each in group.lagging] == [(f"GPU-{place}", cause)]
    assert group.standings[0] is group.lagging[0]
    assert group.standings[0].lost == pytest.approx(lost, abs=0.015)
    rest = [each.work.uuid for each in group.standings[1:]]
    assert rest == [f"GPU-{index}" for index in range(8) if index != place]


def test_one_of_two_lags() -> None:
    group = only(groups(SAME, {"sm_clock_mhz": 1300.0, "throttle_thermal_percent": 40.0}))
    assert [(each.work.uuid, each.cause) for each in group.lagging] == [("GPU-1", Lag.HEAT)]


def test_who_waits_for_a_slow_card_is_not_slow() -> None:
    """The hot card is busy all the time; the other one has nothing to do until it is ready."""
    group = only(groups({"utilization_percent": 60.0}, {"sm_clock_mhz": 1100.0, "throttle_thermal_percent": 55.0}))
    assert [(each.work.uuid, each.cause) for each in group.lagging] == [("GPU-1", Lag.HEAT)]


def test_narrow_idle_link_is_no_cause() -> None:
    quiet = {"pcie_width": 4.0, "pcie_rx_bytes_per_s": 1e6, "pcie_tx_bytes_per_s": 0.0}
    assert only(groups(SAME, SAME, quiet)).pace is Pace.EVEN


def test_sm_activity_tells_what_utilisation_hides() -> None:
    active = {"sm_activity_percent": 71.0}
    group = only(groups(active, active, {"sm_activity_percent": 40.0}, active))
    assert [(each.work.uuid, each.cause) for each in group.lagging] == [("GPU-2", Lag.WAITS)]


def test_another_process_on_the_card() -> None:
    def processes(index: int) -> tuple[ProcessSample, ...]:
        stranger = ProcessSample(77, "GPU-3", "blender", "eve", "blender", "both", 10**9, sm_percent=34.0)
        return (worker(index), stranger) if index == 3 else (worker(index),)

    group = only(groups(*[SAME] * 4, processes=processes))
    assert [(each.work.uuid, each.cause) for each in group.lagging] == [("GPU-3", Lag.OTHER_PROCESS)]
    assert group.lagging[0].lost == pytest.approx(0.34)


def test_half_that_differ_are_not_accused() -> None:
    """Stages of a pipeline, or two jobs that look alike."""
    slow = {"utilization_percent": 55.0}
    assert only(groups(SAME, slow, SAME, slow)).pace is Pace.UNEVEN


def test_a_difference_below_a_twentieth_is_none() -> None:
    assert only(groups(SAME, SAME, {"sm_clock_mhz": 1690.0})).pace is Pace.EVEN


def test_load_that_beats_is_noise() -> None:
    """A card whose utilisation swings has a wide error, and needs a larger difference."""
    rng = np.random.default_rng(3)
    swinging = Level(82.0, 8.0)
    steady = Level(95.0, float(rng.uniform(0.1, 0.3)))
    mark = Mark(1, "ada", "python train.py", 1.0)
    works = [
        Work(f"GPU-{index}", "H100", {"utilization_percent": swinging if index == 2 else steady}, job=mark)
        for index in range(4)
    ]
    assert only(compare(works)).pace is Pace.EVEN


# -- who is compared --------------------------------------------------------------------------------------------------


def test_idle_cards_and_single_cards_are_not_compared() -> None:
    idle = {"utilization_percent": 1.0}
    assert groups(SAME) == ()
    assert groups(SAME, idle, idle) == ()
    assert len(only(groups(SAME, idle, SAME)).standings) == 2


def test_too_little_of_the_minute() -> None:
    assert groups(SAME, SAME, seconds=20.0) == ()


def test_two_jobs_are_two_groups() -> None:
    def processes(index: int) -> tuple[ProcessSample, ...]:
        return (worker(index, command="python train.py" if index < 2 else "python other.py"),)

    found = groups(SAME, SAME, {"utilization_percent": 50.0}, {"utilization_percent": 50.0}, processes=processes)
    assert [{each.work.uuid for each in group.standings} for group in found] == [{"GPU-0", "GPU-1"}, {"GPU-2", "GPU-3"}]
    assert {group.pace for group in found} == {Pace.EVEN}


def test_different_jobs_and_models_are_not_compared() -> None:
    assert groups(SAME, SAME, processes=lambda index: (worker(index, command=f"python train.py --lr 0.{index}"),)) == ()
    assert groups(SAME, SAME, name=lambda index: f"model {index}") == ()
    assert groups(SAME, SAME, processes=lambda index: (worker(index, started=1000.0 * index),)) == ()


def test_one_process_on_several_cards_is_one_job() -> None:
    found = groups(SAME, SAME, processes=lambda index: (worker(index, pid=7, started=1000.0 * index),))
    assert len(only(found).standings) == 2


def test_unknown_processes_go_by_likeness() -> None:
    assert len(only(groups(SAME, SAME, processes=lambda _: ())).standings) == 2
    assert groups(SAME, {"memory_used_bytes": 20e9}, processes=lambda _: ()) == ()


def test_ranks_of_one_job_have_one_command() -> None:
    commands = [
        ("python -u train.py --local_rank=0 --lr 3", "python -u train.py --local_rank=7 --lr 3"),
        ("python t.py --local-rank 1", "python t.py --local-rank 3"),
        ("spawn_main(tracker_fd=5, pipe_handle=9)", "spawn_main(tracker_fd=5, pipe_handle=31)"),
        ("VLLM::Worker_TP0", "VLLM::Worker_TP3"),
    ]
    for one, other in commands:
        assert plain_command(one) == plain_command(other)
    assert plain_command("train.py --lr 1") != plain_command("train.py --lr 2")


def test_job_is_the_computing_process_with_the_most_memory() -> None:
    screen = ProcessSample(1, "GPU-0", "Xorg", "root", "Xorg", "graphics", 90 * 10**9)
    nameless = ProcessSample(2, "GPU-0", "", None, None, "compute", 91 * 10**9)
    mark = job_of((screen, nameless, worker(0)))
    assert mark is not None
    assert mark.command == "python train.py"
    assert job_of((screen, nameless)) is None
    assert others_percent((worker(0),), mark) == 0.0
    assert others_percent((worker(0), screen), mark) is None


def test_level_needs_four_stretches() -> None:
    t_s = np.arange(0, 60, 0.2)
    level = level_of(t_s, np.where(t_s % 20 < 10, 90.0, 80.0))
    assert level is not None
    assert level.mean == pytest.approx(85.0)
    assert level.error == pytest.approx(5.477 / np.sqrt(6), rel=0.01)  # six stretches of 90, 80, 90, …
    assert level_of(t_s[:140], np.ones(140)) is None
