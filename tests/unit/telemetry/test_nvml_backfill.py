"""The driver's own record of a gap: only what can be true, only when its times can be trusted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from desktop_app.core.telemetry import Reason
from desktop_app.telemetry.nvml import Answer
from desktop_app.telemetry.nvml_backfill import read_back

WALL_S = 1_790_000_000.0
FIELDS = ("power_w", "utilization_percent", "sm_clock_mhz")


class Buffers:
    """A door with samples: kind -> [(seconds before now, value)]; the driver's clock may be off."""

    def __init__(self, samples: dict[int, list[tuple[float, float]]], *, off_s: float = 0.0, kind: int = 1) -> None:
        self.kept, self.off_s, self.kind = samples, off_s, kind

    def samples(self, handle: Any, number: int, *, since_us: int, owner: str) -> Answer:
        assert (handle, owner) == (None, "A")
        if number not in self.kept:
            return Answer(reason=Reason.NOT_SUPPORTED)
        member = {0: "dVal", 1: "uiVal"}[self.kind]
        found = [
            SimpleNamespace(
                timeStamp=int(1e6 * (WALL_S + self.off_s - age_s)), sampleValue=SimpleNamespace(**{member: value})
            )
            for age_s, value in self.kept[number]
        ]
        kept = [sample for sample in found if sample.timeStamp > since_us]
        return Answer((self.kind, kept) if kept else [])


def filled(buffers: Buffers, *, since_s: float = 7.0) -> list[tuple[float, dict[str, float]]]:
    rows = read_back(
        buffers,  # type: ignore[arg-type]  # what is asked of a door here
        None,
        "A",
        since_s=since_s,
        now_s=10.0,
        wall_s=WALL_S,
        fields=FIELDS,
    )
    return [(round(row.t_s, 3), {name: reading.value or 0.0 for name, reading in row.readings.items()}) for row in rows]


def test_samples_of_one_moment_are_one_row_and_the_rest_is_left_out() -> None:
    buffers = Buffers({0: [(2.5, 150_000), (1.5, 160_000), (0.1, 170_000)], 1: [(2.52, 40), (1.0, 50)], 6: [(2.5, 1)]})
    assert filled(buffers) == [
        (7.48, {"utilization_percent": 40.0, "power_w": 150.0}),
        (8.5, {"power_w": 160.0}),
        (9.0, {"utilization_percent": 50.0}),
        (9.9, {"power_w": 170.0}),
    ]


def test_only_the_time_of_the_gap() -> None:
    assert [t_s for t_s, _ in filled(Buffers({1: [(5.0, 1), (3.0, 2), (2.9, 3), (0.0, 4), (-0.2, 5)]}))] == [7.1]


def test_two_samples_of_a_field_are_never_one_row() -> None:
    assert [row["utilization_percent"] for _, row in filled(Buffers({1: [(1.02, 10), (1.01, 20), (1.0, 30)]}))] == [
        10.0,
        20.0,
        30.0,
    ]


def test_what_cannot_be_true_is_left_out() -> None:
    buffers = Buffers({0: [(1.0, 0), (0.5, 9_000_000)], 1: [(1.0, 101), (0.5, 2**32 - 1), (0.2, 7)], 5: [(0.2, 0)]})
    assert filled(buffers) == [(9.8, {"utilization_percent": 7.0})]


@pytest.mark.parametrize("off_s", [-3600.0, -2.5, 1.0, 3600.0, -WALL_S])
def test_times_of_another_clock_fill_nothing(off_s: float) -> None:
    assert filled(Buffers({1: [(0.1, 40), (1.0, 50)]}, off_s=off_s), since_s=-1e9) == []


def test_values_of_another_type_are_read_by_it() -> None:
    assert filled(Buffers({1: [(1.0, 12.5)]}, kind=0)) == [(9.0, {"utilization_percent": 12.5})]


def test_no_buffer_no_rows() -> None:
    assert filled(Buffers({})) == []
    assert filled(Buffers({1: []})) == []
