"""From the sampler into the store: gaps are gaps, an outage leaves no last value behind."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from desktop_app.core.events import EventKind, EventQueue, Level
from desktop_app.core.missing import is_absent
from desktop_app.core.store import Store
from desktop_app.core.telemetry import (
    ALL_GPU_FIELDS,
    GPU_FIELDS,
    HOST_FIELDS,
    CardError,
    GpuSample,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.services.facade import TelemetryStatus
from desktop_app.services.telemetry_feed import TelemetryFeed, history_name

from .doubles import make_card

A, B = make_card("GPU-a"), make_card("GPU-b")
LOST = Reason.GPU_LOST


class Bench:
    def __init__(self) -> None:
        self.store = Store()
        self.events = EventQueue()
        self.told: list[str] = []
        self.feed = TelemetryFeed(
            self.store,
            self.events,
            on_cards_known=lambda: self.told.append("cards"),
            on_second=lambda: self.told.append("second"),
        )

    def sample(self, t_s: float, readings: Mapping[str, Reading], uuid: str = A.uuid) -> None:
        self.feed.on_gpu(GpuSample(t_s=t_s, uuid=uuid, readings=readings))

    def posted(self) -> list[tuple[float, EventKind, object]]:
        return [(event.t_s, event.kind, event.params.get("uuid")) for event in self.events.since(0)[0]]


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.feed.on_cards((A, B))
    return made


def test_before_the_first_answer_nothing_was_read_yet() -> None:
    bench = Bench()
    assert bench.feed.status.get() == TelemetryStatus(reason=Reason.NOT_READ_YET)
    bench.feed.on_cards(())
    assert bench.told == []
    bench.feed.on_cards((A,))
    assert bench.told == ["cards"]
    assert bench.feed.status.get() == TelemetryStatus(reason=None)
    assert bench.feed.cards.get() == (A,)
    assert bench.store.history(history_name(A.uuid)).columns == GPU_FIELDS


def test_a_value_that_could_not_be_had_is_a_gap_and_one_not_asked_for_is_none(bench: Bench) -> None:
    """Fan speed is asked for once a second: its line goes on between. Power fails once: its line is cut."""
    for tick in range(5):
        readings = {"power_w": Reading(None, Reason.TIMED_OUT) if tick == 2 else Reading(50.0)}
        if tick in (0, 4):
            readings["fan_percent"] = Reading(30.0)
        bench.sample(0.2 * tick, readings)
    history = bench.store.history(history_name(A.uuid))
    assert history.curve("power_w", 0.0, 1.0, pixels=100).has_gaps
    fan = history.curve("fan_percent", 0.0, 1.0, pixels=100)
    assert (fan.y.tolist(), fan.has_gaps) == ([30.0, 30.0], False)
    assert bench.feed.readings.get()[A.uuid]["fan_percent"] == Reading(30.0)
    assert bench.feed.readings.get()[A.uuid]["power_w"] == Reading(50.0)


def test_a_lost_card_has_no_last_values_and_the_other_goes_on(bench: Bench) -> None:
    process = ProcessSample(1, B.uuid, "python", None, None, "compute", 5)
    for card in (A, B):
        bench.sample(0.1, {"power_w": Reading(50.0)}, card.uuid)
    bench.feed.on_processes(0.1, B.uuid, (process,))
    bench.feed.on_outage(0.2, B.uuid, LOST)
    readings = bench.feed.readings.get()
    assert set(readings[B.uuid].values()) == {Reading(None, LOST)}
    assert set(readings[B.uuid]) == set(ALL_GPU_FIELDS)
    assert readings[A.uuid]["power_w"] == Reading(50.0)
    assert bench.feed.processes.get()[B.uuid] == ()
    assert bench.feed.status.get() == TelemetryStatus(lost={B.uuid: LOST})
    bench.sample(1.0, {"power_w": Reading(60.0)}, B.uuid)
    bench.feed.on_back(1.0, B.uuid)
    assert bench.feed.status.get() == TelemetryStatus(lost={})
    curve = bench.store.history(history_name(B.uuid)).curve("power_w", 0.0, 2.0, pixels=100)
    assert curve.has_gaps
    assert bench.posted() == [(0.2, EventKind.OUTAGE, B.uuid), (1.0, EventKind.BACK, B.uuid)]
    outage = bench.events.since(0)[0][0]
    assert (outage.level, outage.params["reason"]) == (Level.WARNING, "gpu_lost")


def test_an_outage_of_all_cards_stays_until_they_can_be_read(bench: Bench) -> None:
    bench.sample(0.1, {"power_w": Reading(50.0)})
    bench.feed.on_outage(0.2, None, Reason.NO_DRIVER)
    both = {A.uuid: Reason.NO_DRIVER, B.uuid: Reason.NO_DRIVER}
    assert bench.feed.status.get() == TelemetryStatus(reason=Reason.NO_DRIVER, lost=both)
    bench.feed.on_cards((A, B))  # the driver is loaded again, nothing was read yet
    assert bench.feed.status.get() == TelemetryStatus(reason=Reason.NO_DRIVER, lost=both)
    bench.feed.on_back(3.0, None)
    assert bench.feed.status.get() == TelemetryStatus(lost={})
    assert bench.posted() == [(0.2, EventKind.OUTAGE, None), (3.0, EventKind.BACK, None)]


def test_an_outage_before_any_card_was_seen_is_told(bench: Bench) -> None:
    fresh = Bench()
    fresh.feed.on_outage(0.1, None, Reason.NO_DRIVER)
    assert fresh.feed.status.get() == TelemetryStatus(reason=Reason.NO_DRIVER, lost={})


def test_throttling_by_heat_is_one_event_for_each_episode(bench: Bench) -> None:
    """Below 5 % of a tick is no throttling; ten seconds without it end an episode; each card has its own."""
    for t_s, percent in ((1.0, 4.9), (2.0, 5.0), (3.0, 80.0), (12.9, 50.0), (22.0, 0.0), (23.0, 30.0)):
        bench.sample(t_s, {"throttle_thermal_percent": Reading(percent)})
    bench.sample(23.5, {"throttle_thermal_percent": Reading(None, Reason.NOT_SUPPORTED)}, B.uuid)
    bench.sample(24.0, {"throttle_thermal_percent": Reading(9.0)}, B.uuid)
    assert bench.posted() == [
        (2.0, EventKind.THROTTLE, A.uuid),
        (23.0, EventKind.THROTTLE, A.uuid),
        (24.0, EventKind.THROTTLE, B.uuid),
    ]


def test_the_host_has_its_own_history_and_marks_the_second(bench: Bench) -> None:
    bench.feed.on_host(
        1.0, {"cpu_percent": Reading(12.0), "disk_read_bytes_per_s": Reading(None, Reason.NOT_SUPPORTED)}
    )
    assert bench.told == ["cards", "second"]
    history = bench.store.history("host")
    assert history.columns == HOST_FIELDS
    assert history.value_at("cpu_percent", 1.0) == 12.0
    assert history.value_at("disk_read_bytes_per_s", 1.0) is None


def test_an_outage_told_from_a_tick_whose_values_came_later_is_a_gap_behind_them(bench: Bench) -> None:
    bench.sample(10.004, {"power_w": Reading(150.0)})
    bench.feed.on_outage(10.0, A.uuid, Reason.SUSPENDED)
    assert bench.store.history(history_name(A.uuid)).value_at("power_w", 10.1) is None
    assert bench.posted() == [(10.0, EventKind.OUTAGE, A.uuid)]


def test_what_the_driver_recorded_itself_lies_between_the_rows_and_leaves_the_rest_out(bench: Bench) -> None:
    bench.sample(1.8, {"power_w": Reading(150.0), "temperature_c": Reading(60.0)})
    bench.feed.on_outage(2.0, A.uuid, Reason.TIMED_OUT)
    for t_s, power_w in ((1.9, 151.0), (2.1, 152.0), (2.3, 153.0)):  # the first is from before the gap's own row
        bench.feed.on_filled(GpuSample(t_s=t_s, uuid=A.uuid, readings={"power_w": Reading(power_w)}))
    bench.sample(2.5, {"power_w": Reading(154.0), "temperature_c": Reading(61.0)})
    history = bench.store.history(history_name(A.uuid))
    rows = history.since(0)
    assert rows.t_s.tolist() == [1.8, 2.0, 2.1, 2.3, 2.5]
    assert rows.column("power_w")[2:].tolist() == [152.0, 153.0, 154.0]
    assert is_absent(rows.column("temperature_c")).tolist() == [False, False, True, True, False]
    assert history.value_at("power_w", 2.2) == 152.0
    assert history.value_at("temperature_c", 2.2) is None  # a gap all the way: nobody has measured it
    assert bench.feed.readings.get()[A.uuid]["temperature_c"] == Reading(61.0)


def test_a_pushed_error_is_an_event_and_repetitions_are_counted(bench: Bench) -> None:
    for t_s in (3.0, 3.1, 3.2):
        bench.feed.on_card_error(CardError(t_s, A.uuid, 79))
    for second in range(4, 20):
        bench.feed.on_host(float(second), {})
    events = [event for event in bench.events.since(0)[0] if event.kind is EventKind.XID]
    assert [(event.t_s, event.params["count"]) for event in events] == [(3.0, 1), (3.2, 2)]
    assert events[0].kept
