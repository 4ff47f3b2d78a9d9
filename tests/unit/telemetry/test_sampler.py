"""The sampler: on time, alive while cards die, stoppable while the driver blocks. No test sleeps."""
# ruff: noqa: ARG002  the fakes take what the protocols give

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import (
    FAST_FIELDS,
    HOST_FIELDS,
    SLOW_FIELDS,
    Card,
    CardError,
    GpuSample,
    InstanceSample,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.telemetry.backend import Advice, BackendUnavailable, missing
from desktop_app.telemetry.sampler import Sampler
from desktop_app.telemetry.schedule import BackOff, TickSchedule


def a_card(uuid: str) -> Card:
    return Card(uuid=uuid, name="Card", nvml_index=0, bus_id=None, simulated=False, total_bytes=6 * 2**30)


@dataclass
class FakeTime:
    """Time that moves only when somebody waits or works."""

    now_s: float = 0.0

    def clock(self) -> SessionClock:
        return SessionClock(monotonic=lambda: self.now_s, anchor_wall_s=0.0, origin_s=0.0)

    def wait(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds


@dataclass
class FakeBackend:
    """Cards that answer at once unless told otherwise."""

    time: FakeTime
    uuids: list[str] = field(default_factory=lambda: ["A"])
    lost: dict[str, Reason] = field(default_factory=dict)
    unavailable: Reason | None = None
    work_s: Callable[[int], float] = lambda _: 0.0
    open_s: Callable[[int], float] = lambda _: 0.0
    fault: Exception | None = None
    opened: int = 0
    closed: int = 0
    reads: int = 0
    name: str = "fake"

    def open(self) -> tuple[Card, ...]:
        self.opened += 1
        self.time.now_s += self.open_s(self.opened)
        if self.unavailable is not None:
            raise BackendUnavailable(self.unavailable, "gone", Advice.TRY_AGAIN)
        return tuple(a_card(uuid) for uuid in self.uuids if uuid not in self.lost)

    def read_fast(self, card: Card) -> Mapping[str, Reading]:
        if self.fault is not None:
            raise self.fault
        self.reads += 1
        self.time.now_s += self.work_s(self.reads)
        if self.unavailable is not None:
            raise BackendUnavailable(self.unavailable, "gone", Advice.TRY_AGAIN)
        if card.uuid in self.lost:
            return missing(FAST_FIELDS, self.lost[card.uuid])
        return dict.fromkeys(FAST_FIELDS, Reading(1.0))

    def read_slow(self, card: Card) -> Mapping[str, Reading]:
        return dict.fromkeys(SLOW_FIELDS, Reading(2.0))

    def processes(self, card: Card) -> tuple[ProcessSample, ...]:
        return ()

    def close(self) -> None:
        self.closed += 1


class FakeHost:
    def read(self, t_s: float) -> Mapping[str, Reading]:
        return {
            **missing(HOST_FIELDS, Reason.NOT_READ_YET),
            "own_cpu_percent": Reading(1.5),
            "own_rss_bytes": Reading(7),
        }


class Recorder:
    """Keeps what the sampler said; runs ``after_sample`` (number of samples so far) after each."""

    def __init__(self) -> None:
        self.cards: list[tuple[str, ...]] = []
        self.samples: list[GpuSample] = []
        self.hosts: list[float] = []
        self.process_lists: list[float] = []
        self.events: list[tuple[str, float, str | None, Reason | None]] = []
        self.errors: list[CardError] = []
        self.filled: list[GpuSample] = []
        self.instances: list[tuple[str, tuple[InstanceSample, ...]]] = []
        self.after_sample: Callable[[int], None] = lambda _: None
        self.after_host: Callable[[int], None] = lambda _: None

    def on_cards(self, cards: tuple[Card, ...]) -> None:
        self.cards.append(tuple(card.uuid for card in cards))

    def on_gpu(self, sample: GpuSample) -> None:
        self.samples.append(sample)
        self.after_sample(len(self.samples))

    def on_host(self, t_s: float, readings: Mapping[str, Reading]) -> None:
        self.hosts.append(t_s)
        self.after_host(len(self.hosts))

    def on_processes(self, t_s: float, uuid: str, processes: tuple[ProcessSample, ...]) -> None:
        self.process_lists.append(t_s)

    def on_instances(self, t_s: float, uuid: str, instances: tuple[InstanceSample, ...]) -> None:
        self.instances.append((uuid, instances))

    def on_filled(self, sample: GpuSample) -> None:
        self.filled.append(sample)

    def on_card_error(self, error: CardError) -> None:
        self.errors.append(error)

    def on_outage(self, t_s: float, uuid: str | None, reason: Reason) -> None:
        self.events.append(("outage", round(t_s, 3), uuid, reason))

    def on_back(self, t_s: float, uuid: str | None) -> None:
        self.events.append(("back", round(t_s, 3), uuid, None))

    def times(self, uuid: str = "A") -> list[float]:
        return [round(sample.t_s, 6) for sample in self.samples if sample.uuid == uuid]


@dataclass
class Rig:
    time: FakeTime
    backend: FakeBackend
    recorder: Recorder
    sampler: Sampler

    def run_for(self, seconds: float) -> None:
        """Run the sampler in this thread until that much session time has passed."""
        until_s = self.time.now_s + seconds
        inner = self.sampler._wait

        def wait(wanted_s: float) -> None:
            if self.time.now_s >= until_s:
                self.sampler._stopping.set()
            else:
                inner(wanted_s)

        self.sampler._wait = wait
        self.sampler.run()


def make_rig(**settings: object) -> Rig:
    time = FakeTime()
    backend = FakeBackend(time, **settings)  # type: ignore[arg-type]
    recorder = Recorder()
    return Rig(
        time,
        backend,
        recorder,
        Sampler(
            backend, time.clock(), sink=recorder, host=FakeHost(), wait=time.wait, asleep=lambda: 0.0, patience_s=30.0
        ),
    )


class TestOnTime:
    def test_the_grid_does_not_drift(self) -> None:
        rig = make_rig(work_s=lambda _: 0.013)
        rig.run_for(60.0)
        # each sample lies 13 ms (the reading) after its grid point: 0, 0.2, 0.4 …
        assert rig.recorder.times() == [pytest.approx(0.2 * k + 0.013) for k in range(len(rig.recorder.samples))]
        assert len(rig.recorder.samples) == pytest.approx(300, abs=2)
        cost = rig.sampler.cost()
        assert (cost.late, rig.sampler.missed) == (0, 0)
        assert cost.sampling_hz == pytest.approx(5.0)
        assert cost.tick_p95_ms == pytest.approx(13.0)
        assert cost.samples == len(rig.recorder.samples)

    def test_slow_fields_come_once_a_second_on_a_fast_tick(self) -> None:
        rig = make_rig()
        rig.run_for(10.0)
        slow = [round(s.t_s, 6) for s in rig.recorder.samples if "fan_percent" in s.readings]
        assert slow == [pytest.approx(float(k)) for k in range(len(slow))]
        assert len(slow) == pytest.approx(10, abs=1)
        assert len(rig.recorder.hosts) == len(slow) == len(rig.recorder.process_lists)
        assert set(rig.recorder.samples[0].readings) == set(FAST_FIELDS) | set(SLOW_FIELDS)
        assert set(rig.recorder.samples[1].readings) == set(FAST_FIELDS)

    def test_missed_ticks_are_skipped_not_caught_up(self) -> None:
        rig = make_rig(work_s=lambda read: 0.7 if read == 3 else 0.0)
        rig.run_for(2.0)
        # the third tick (0.4 s) takes 0.7 s: 0.6, 0.8 and 1.0 are missed, the grid goes on at 1.2
        assert rig.recorder.times()[:5] == [0.0, 0.2, pytest.approx(1.1), pytest.approx(1.2), pytest.approx(1.4)]
        assert rig.sampler.missed == 3
        assert rig.sampler.cost().late == 3

    def test_a_late_wake_up_is_counted_and_marked(self) -> None:
        rig = make_rig()
        waits = 0

        def wait(seconds: float) -> None:
            nonlocal waits
            waits += 1
            rig.time.now_s += seconds + (0.09 if waits == 2 else 0.0)

        rig.sampler._wait = wait
        rig.run_for(1.0)
        assert [sample.late for sample in rig.recorder.samples[:4]] == [False, False, True, False]
        assert rig.recorder.times()[:4] == [0.0, 0.2, pytest.approx(0.49), pytest.approx(0.6)]
        assert rig.sampler.cost().late == 1

    def test_the_interval_can_change_while_it_runs(self) -> None:
        rig = make_rig()
        rig.recorder.after_sample = lambda count: rig.sampler.set_interval(1.0) if count == 3 else None
        rig.run_for(5.0)
        gaps = [b - a for a, b in itertools.pairwise(rig.recorder.times())]
        assert gaps[:2] == [pytest.approx(0.2)] * 2
        assert gaps[3:] == [pytest.approx(1.0)] * len(gaps[3:])

    @given(
        interval_s=st.floats(0.02, 5.0),
        works=st.lists(st.floats(0.0, 20.0), min_size=1, max_size=40),
    )
    def test_ticks_lie_on_the_grid_and_never_burst(self, interval_s: float, works: list[float]) -> None:
        schedule = TickSchedule(start_s=3.0, interval_s=interval_s)
        now_s, missed, last_due_s = 3.0, 0, float("-inf")
        for number, work_s in enumerate(works):
            now_s = max(now_s, schedule.due_s)
            assert schedule.due_s > last_due_s
            grid = (schedule.due_s - 3.0) / interval_s
            assert grid == pytest.approx(number + missed)
            last_due_s = schedule.due_s
            now_s += work_s
            missed += schedule.advance(now_s)
            assert schedule.due_s > now_s or schedule.due_s == pytest.approx(now_s, abs=1e-9 * max(1.0, now_s))


class TestOutages:
    def test_a_lost_card_is_told_once_and_the_others_go_on(self) -> None:
        rig = make_rig(uuids=["A", "B"])

        def after(count: int) -> None:
            if count == 4:  # two ticks of two cards
                rig.backend.lost["B"] = Reason.GPU_LOST
            if rig.time.now_s > 5.0:
                rig.backend.lost.clear()

        rig.recorder.after_sample = after
        rig.run_for(20.0)
        events = rig.recorder.events
        assert events[0] == ("outage", 0.4, "B", Reason.GPU_LOST)
        assert [event[0] for event in events] == ["outage", "back"]
        assert events[1][2] == "B"
        # waits of 1, 2 and 4 s: opened again at 1.4, 3.4 and 7.4 s
        assert events[1][1] == pytest.approx(7.4, abs=0.21)
        times = rig.recorder.times("A")
        assert max(b - a for a, b in itertools.pairwise(times)) == pytest.approx(0.2)
        assert not [t for t in rig.recorder.times("B") if 0.4 <= t < events[1][1]]
        assert rig.recorder.cards[-1] == ("A", "B")
        assert all(cards == ("A", "B") for cards in rig.recorder.cards)  # a lost card stays on the list

    def test_the_driver_may_come_later(self) -> None:
        rig = make_rig(unavailable=Reason.NO_DRIVER)

        def after(count: int) -> None:
            if rig.time.now_s > 2.5:
                rig.backend.unavailable = None

        rig.recorder.after_host = after
        rig.run_for(10.0)
        assert rig.recorder.events[0] == ("outage", 0.0, None, Reason.NO_DRIVER)
        assert [event[:1] + event[2:3] for event in rig.recorder.events] == [("outage", None), ("back", None)]
        assert rig.recorder.samples
        assert rig.recorder.hosts[:2] == [0.0, pytest.approx(1.0)]  # the host is watched all the while

    def test_after_an_outage_of_all_the_cards_still_lost_are_told_by_name(self) -> None:
        rig = make_rig(uuids=["A", "B"])

        def after(count: int) -> None:
            if count == 4:
                rig.backend.unavailable = Reason.DRIVER_MISMATCH

        def mend(count: int) -> None:
            if rig.time.now_s > 1.5:
                rig.backend.unavailable, rig.backend.lost = None, {"B": Reason.GPU_LOST}

        rig.recorder.after_sample, rig.recorder.after_host = after, mend
        rig.run_for(10.0)
        assert [(kind, uuid, reason) for kind, _, uuid, reason in rig.recorder.events] == [
            ("outage", None, Reason.DRIVER_MISMATCH),
            ("back", None, None),
            ("outage", "B", Reason.GPU_LOST),
        ]

    def test_waits_grow_to_a_minute(self) -> None:
        rig = make_rig(unavailable=Reason.NO_DRIVER)
        rig.run_for(600.0)
        # 0, then after 1, 2, 4, 8, 16, 32 s (63 s in all), then every minute
        assert rig.backend.opened == 1 + 6 + (600 - 63) // 60
        assert len(rig.recorder.events) == 1

    def test_all_cards_lost_one_by_one_is_not_told_again(self) -> None:
        rig = make_rig()

        def after(count: int) -> None:
            if count == 2:
                rig.backend.lost["A"] = Reason.GPU_LOST
                rig.backend.unavailable = None

        rig.recorder.after_sample = after
        rig.run_for(30.0)
        assert rig.recorder.events == [("outage", 0.4, "A", Reason.GPU_LOST)]

    def test_a_stall_is_a_gap(self) -> None:
        rig = make_rig(uuids=["A", "B"], work_s=lambda read: 6.0 if read == 5 else 0.0)
        rig.run_for(10.0)
        assert rig.recorder.events[0][:2] == ("outage", 0.4)
        told = [(kind, t, reason) for kind, t, uuid, reason in rig.recorder.events if uuid == "A"]
        assert told == [("outage", 0.4, Reason.TIMED_OUT), ("back", 6.4, None)]
        assert {uuid for _, _, uuid, _ in rig.recorder.events} == {"A", "B"}

    def test_an_opening_that_blocks_is_a_gap_for_the_others(self) -> None:
        rig = make_rig(uuids=["A", "B"])
        rig.backend.open_s = lambda opened: 5.0 if opened == 2 else 0.0
        rig.recorder.after_sample = lambda count: rig.backend.lost.update(B=Reason.GPU_LOST) if count == 4 else None
        rig.run_for(7.0)
        assert rig.recorder.events == [
            ("outage", 0.4, "B", Reason.GPU_LOST),
            ("outage", 1.4, "A", Reason.TIMED_OUT),
            ("back", 6.4, "A", None),
        ]

    def test_an_unexpected_error_does_not_end_the_sampling(self, caplog: pytest.LogCaptureFixture) -> None:
        rig = make_rig()

        def after(count: int) -> None:
            rig.backend.fault = RuntimeError("bug") if count == 2 else None

        def mend(count: int) -> None:
            if rig.time.now_s > 3.0:
                rig.backend.fault = None

        rig.recorder.after_sample, rig.recorder.after_host = after, mend
        rig.run_for(20.0)
        assert [event[0] for event in rig.recorder.events] == ["outage", "back"]
        assert rig.recorder.events[0][3] is Reason.UNKNOWN_ERROR
        assert rig.recorder.times()[-1] > 18.0
        assert "sampling failed" in caplog.text

    @given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=20))
    def test_back_off_never_shrinks_before_reset(self, steps: list[float]) -> None:
        back_off, now_s, last_s = BackOff(), 0.0, 0.0
        back_off.start(now_s)
        for step_s in steps:
            now_s += step_s
            if back_off.is_over(now_s):
                back_off.again(now_s)
                assert back_off.until_s is not None
                wait_s = back_off.until_s - now_s
                assert last_s - 1e-9 <= wait_s <= 60.0 + 1e-9
                last_s = wait_s
        back_off.reset()
        assert not back_off.is_over(now_s + 1e9)


class BlockingBackend(FakeBackend):
    """A driver call that does not come back until it is let go."""

    def __init__(self) -> None:
        super().__init__(FakeTime())
        self.blocked = threading.Event()
        self.let_go = threading.Event()

    def read_fast(self, card: Card) -> Mapping[str, Reading]:
        self.blocked.set()
        assert self.let_go.wait(10.0)
        return dict.fromkeys(FAST_FIELDS, Reading(1.0))


class TestStopping:
    def test_a_thread_starts_and_stops(self) -> None:
        backend, recorder, sampled = FakeBackend(FakeTime()), Recorder(), threading.Event()
        recorder.after_sample = lambda _: sampled.set()
        sampler = Sampler(backend, SessionClock(), sink=recorder, host=FakeHost())
        sampler.start()
        assert sampled.wait(5.0)
        assert sampler.stop()
        assert backend.closed == 1
        with pytest.raises(ValueError, match="already"):
            sampler.start()

    def test_stop_before_start(self) -> None:
        assert Sampler(FakeBackend(FakeTime()), SessionClock(), sink=Recorder(), host=FakeHost()).stop()

    def test_a_long_interval_does_not_delay_the_stop(self) -> None:
        recorder, sampled = Recorder(), threading.Event()
        recorder.after_sample = lambda _: sampled.set()
        sampler = Sampler(FakeBackend(FakeTime()), SessionClock(), sink=recorder, host=FakeHost(), interval_s=60.0)
        sampler.start()
        assert sampled.wait(5.0)
        assert sampler.stop(5.0)

    def test_a_blocked_thread_is_left_behind_and_says_nothing_more(self) -> None:
        backend, recorder = BlockingBackend(), Recorder()
        now_s = 100.0
        clock = SessionClock(monotonic=lambda: now_s, anchor_wall_s=0.0, origin_s=100.0)
        sampler = Sampler(backend, clock, sink=recorder, host=FakeHost())
        sampler.start()
        assert backend.blocked.wait(5.0)
        assert sampler.stalled_s == 0.0
        now_s = 107.5
        assert sampler.stalled_s == pytest.approx(7.5)
        assert sampler.stop(timeout_s=0.05) is False
        assert backend.closed == 0  # never shut down under a call
        backend.let_go.set()
        assert sampler._thread is not None
        sampler._thread.join(5.0)
        assert recorder.samples == []
        assert recorder.events == []


def test_cost_carries_what_the_host_says_of_this_process() -> None:
    rig = make_rig()
    assert rig.sampler.cost().cpu_percent is None
    assert rig.sampler.cost().sampling_hz == pytest.approx(5.0)  # wanted, until there is a rate
    rig.run_for(1.0)
    assert (rig.sampler.cost().cpu_percent, rig.sampler.cost().rss_bytes) == (1.5, 7)
