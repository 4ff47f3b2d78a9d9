"""Calls that block in the driver, with real threads: nobody else waits for them. Events let them go, no sleeping."""
# ruff: noqa: ARG002  the fakes take what the protocols give

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import FAST_FIELDS, SLOW_FIELDS, Card, ProcessSample, Reading, Reason
from desktop_app.telemetry import sampler as sampler_module
from desktop_app.telemetry.backend import missing
from desktop_app.telemetry.readers import Errand, Readers
from desktop_app.telemetry.sampler import Sampler
from tests.unit.telemetry.test_sampler import FakeHost, Recorder, a_card, make_rig

PATIENCE_S = 0.02
LIMIT_S = 20.0  # for a very busy machine; a test that passes takes a fraction of a second


class Gates:
    """Calls wait here, by name, while their gate is shut."""

    def __init__(self) -> None:
        self.open: dict[str, threading.Event] = {}
        self.calls: list[str] = []

    def shut(self, name: str) -> None:
        self.open[name] = threading.Event()

    def pass_through(self, name: str) -> None:
        self.calls.append(name)
        if name in self.open:
            assert self.open[name].wait(LIMIT_S)

    def let_all_go(self) -> None:
        for gate in self.open.values():
            gate.set()


class GatedBackend:
    name = "gated"

    def __init__(self, gates: Gates, uuids: str = "AB") -> None:
        self.gates = gates
        self.uuids = uuids
        self.lost: set[str] = set()
        self.closed_under_a_call = False
        self.inside = 0

    def open(self) -> tuple[Card, ...]:
        self.gates.pass_through("open")
        return tuple(a_card(uuid) for uuid in self.uuids if uuid not in self.lost)

    def read_fast(self, card: Card) -> Mapping[str, Reading]:
        self.inside += 1
        self.gates.pass_through(card.uuid)
        self.inside -= 1
        if card.uuid in self.lost:
            return missing(FAST_FIELDS, Reason.GPU_LOST)
        return dict.fromkeys(FAST_FIELDS, Reading(1.0))

    def read_slow(self, card: Card) -> Mapping[str, Reading]:
        return dict.fromkeys(SLOW_FIELDS, Reading(2.0))

    def processes(self, card: Card) -> tuple[ProcessSample, ...]:
        return ()

    def close(self) -> None:
        self.gates.calls.append("close")
        self.closed_under_a_call |= self.inside > 0


class Stand:
    """A running sampler at 50 Hz, and a way to wait for what it says."""

    def __init__(self, uuids: str = "AB", *, shut: str = "") -> None:
        self.gates = Gates()
        for name in shut.split():
            self.gates.shut(name)
        self.backend = GatedBackend(self.gates, uuids)
        self.recorder = Recorder()
        self.sampler = Sampler(
            self.backend,
            SessionClock(),
            sink=self.recorder,
            host=FakeHost(),
            interval_s=0.02,
            slow_every_s=0.04,
            patience_s=PATIENCE_S,
        )
        self.sampler.start()

    def count(self, uuid: str) -> int:
        return len(self.recorder.times(uuid))

    def told(self, kind: str, uuid: str | None) -> bool:
        return any(event[0] == kind and event[2] == uuid for event in self.recorder.events)

    def until(self, condition: Callable[[], object]) -> None:
        deadline_s = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < deadline_s, self.recorder.events
            time.sleep(0.002)


@pytest.fixture
def stands(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Stand]]:
    """Makes stands; a call counts as blocked after 60 ms."""
    monkeypatch.setattr(sampler_module, "_STALL_S", 0.06)
    made: list[Stand] = []

    def make(uuids: str = "AB", *, shut: str = "") -> Stand:
        made.append(Stand(uuids, shut=shut))
        return made[-1]

    yield make
    for stand in made:
        stand.gates.let_all_go()
        stand.sampler.stop()


@pytest.mark.alone
class TestABlockedCard:
    def test_the_others_go_on_and_it_is_asked_once(self, stands: Callable[..., Stand]) -> None:
        stand = stands("ABC", shut="B")
        stand.until(lambda: stand.told("outage", "B") and stand.count("A") > 10 and stand.count("C") > 10)
        assert stand.gates.calls.count("B") == 1
        assert stand.sampler.left_alone == 1
        assert stand.sampler.stalled_s > 0.06
        assert [event[2:] for event in stand.recorder.events if event[0] == "outage"] == [("B", Reason.TIMED_OUT)]
        assert stand.count("B") == 0

    def test_its_values_count_when_they_come_and_nothing_is_caught_up(self, stands: Callable[..., Stand]) -> None:
        stand = stands("AB", shut="B")
        stand.until(lambda: stand.told("outage", "B"))
        stand.gates.let_all_go()
        stand.until(lambda: stand.told("back", "B") and stand.count("B") > 5)
        samples = [sample for sample in stand.recorder.samples if sample.uuid == "B"]
        assert samples[0].late
        outage, back = (next(e for e in stand.recorder.events if e[0] == kind) for kind in ("outage", "back"))
        assert outage[1] + 0.06 - 0.001 <= back[1] <= round(samples[0].t_s, 3) + 0.001  # both in whole milliseconds
        # one reading a tick: never two of one card in the same 20 ms of the grid
        assert min(b - a for a, b in zip(stand.recorder.times("B"), stand.recorder.times("B")[1:], strict=False)) > 0

    def test_a_second_blocked_card_does_not_wait_for_the_first(self, stands: Callable[..., Stand]) -> None:
        stand = stands("ABC", shut="A B")
        stand.until(lambda: stand.told("outage", "A") and stand.told("outage", "B") and stand.count("C") > 5)
        stand.gates.open["B"].set()
        stand.until(lambda: stand.told("back", "B") and stand.count("B") > 3)
        assert stand.count("A") == 0

    def test_the_library_is_not_shut_down_under_it(self, stands: Callable[..., Stand]) -> None:
        stand = stands("ABC")
        stand.until(lambda: stand.count("C") > 1)
        stand.gates.shut("B")
        stand.until(lambda: stand.told("outage", "B"))
        stand.backend.lost.add("C")
        stand.until(lambda: stand.told("outage", "C"))
        seen = stand.count("A")
        stand.until(lambda: stand.count("A") > seen + 60)  # longer than the first wait for an opening
        assert "close" not in stand.gates.calls
        stand.backend.lost.clear()
        stand.gates.let_all_go()
        stand.until(lambda: stand.told("back", "C"))
        assert not stand.backend.closed_under_a_call

    def test_the_end_does_not_wait(self, stands: Callable[..., Stand]) -> None:
        stand = stands("AB", shut="B")
        stand.until(lambda: stand.sampler.left_alone)
        began_s = time.monotonic()
        assert stand.sampler.stop() is False
        assert time.monotonic() - began_s < 1.0
        assert "close" not in stand.gates.calls


@pytest.mark.alone
def test_an_opening_that_blocks_leaves_the_computer_watched_and_the_end_free(stands: Callable[..., Stand]) -> None:
    stand = stands("A", shut="open")
    stand.until(lambda: len(stand.recorder.hosts) > 3)
    assert stand.recorder.samples == []
    assert stand.gates.calls == ["open"]
    began_s = time.monotonic()
    assert stand.sampler.stop() is False
    assert time.monotonic() - began_s < 1.0


def test_a_slow_card_is_read_beside_the_others_and_joins_them_again() -> None:
    readers = Readers(now_s=time.monotonic, patience_s=0.01)
    gate, names = threading.Event(), []

    def note() -> None:
        names.append(threading.current_thread())

    first = readers.run([Errand("A", note), Errand("B", lambda: gate.wait(LIMIT_S)), Errand("C", note)])
    assert [errand.owner for errand in first] == ["A", "C"]
    assert readers.run([Errand("B", note)]) == []  # not repeated
    gate.set()
    came: list[Errand] = []
    while not came:
        came = readers.run([])
    assert (came[0].owner, came[0].left_alone, came[0].result) == ("B", True, True)
    for _ in range(60):
        readers.run([Errand("A", note), Errand("B", note)])
    assert len(set(names)) == 2  # the one that became B's own, and the one that took over
    assert names[-1] is names[-2]
    assert readers.end(1.0)


class TestSleep:
    def test_a_suspended_computer_is_a_gap_and_told(self) -> None:
        rig = make_rig(uuids=["A", "B"])
        asleep_s = 0.0
        rig.sampler._asleep = lambda: asleep_s

        def after(count: int) -> None:
            nonlocal asleep_s
            if count == 4:
                asleep_s = 7200.0

        rig.recorder.after_sample = after
        rig.run_for(2.0)
        told = [event for event in rig.recorder.events if event[2] == "A"]
        assert told == [("outage", 0.2, "A", Reason.SUSPENDED), ("back", 0.4, "A", None)]
        assert len(rig.recorder.events) == 4

    def test_a_late_wake_up_of_seconds_is_a_gap_and_no_burst(self) -> None:
        rig = make_rig()
        waits = 0

        def wait(seconds: float) -> None:
            nonlocal waits
            waits += 1
            rig.time.now_s += seconds + (30.0 if waits == 3 else 0.0)

        rig.sampler._wait = wait
        rig.run_for(32.0)
        assert rig.recorder.events == [
            ("outage", 0.4, "A", Reason.SUSPENDED),
            ("back", 30.6, "A", None),
        ]
        assert rig.recorder.times()[:5] == [0.0, 0.2, 0.4, pytest.approx(30.6), pytest.approx(30.8)]
        assert rig.sampler.missed == 150

    def test_stalls_neither_move_the_grid_nor_lose_a_tick_unsaid(self) -> None:
        """Ten minutes with a stall of 3 s every minute; ``benchmarks/day_of_sampling.py`` plays a day."""
        rig = make_rig(work_s=lambda read: 3.0 if read % 300 == 299 else 0.004)
        rig.run_for(600.0)
        assert rig.sampler.cost().samples + rig.sampler.missed == pytest.approx(600 * 5, abs=1)
        assert rig.sampler.missed == pytest.approx(10 * 14, abs=14)
        assert rig.recorder.samples[-1].t_s % 0.2 == pytest.approx(0.004, abs=1e-6)


def test_a_card_that_is_plugged_in_is_found_while_it_runs() -> None:
    rig = make_rig(uuids=["A"])
    there = ["A"]
    rig.backend.has_changed = lambda: there != rig.backend.uuids  # type: ignore[attr-defined]
    opened = rig.backend.open

    def open_again() -> tuple[Card, ...]:
        rig.backend.uuids = list(there)
        return opened()

    rig.backend.open = open_again  # type: ignore[method-assign]
    rig.recorder.after_sample = lambda count: there.append("B") if count == 10 else None
    rig.run_for(8.0)
    assert rig.recorder.cards == [("A",), ("A", "B")]
    assert rig.recorder.times("B")[0] == pytest.approx(5.0)
    assert rig.recorder.events == []
    assert rig.backend.opened == 2
    gaps = [b - a for a, b in itertools.pairwise(rig.recorder.times("A"))]
    assert max(gaps) == pytest.approx(0.2)
