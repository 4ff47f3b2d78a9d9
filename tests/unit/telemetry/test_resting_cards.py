"""Several GPUs that may sleep are let go together; those that sleep at the start and are known are left asleep."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import (
    DETAIL_FIELDS,
    FAST_FIELDS,
    SLOW_FIELDS,
    Card,
    EnergySource,
    GpuSample,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.telemetry.backend import missing
from desktop_app.telemetry.card_memory import CardMemory
from desktop_app.telemetry.host import HostReader
from desktop_app.telemetry.resting import RestingBackend
from desktop_app.telemetry.runtime_power import RuntimePower
from desktop_app.telemetry.sampler import Sampler

PLACES = ("0000:01:00.0", "0000:02:00.0")


class Driver:
    """A backend of several cards that says what was asked."""

    name = "nvml"

    def __init__(self) -> None:
        self.cards = tuple(
            Card(
                uuid=f"GPU-{number}",
                name="RTX 4060 Laptop",
                nvml_index=number,
                bus_id=f"0000{place.upper()}",
                simulated=False,
                total_bytes=8 * 2**30,
                compute_capability=(8, 9),
                energy_source=EnergySource.COUNTER,
                reasons={"numa_node": Reason.NOT_SUPPORTED},
            )
            for number, place in enumerate(PLACES)
        )
        self.computing: set[str] = set()
        self.opened = self.closed = 0
        self.blocked: threading.Event | None = None
        self.entered = threading.Event()

    def open(self) -> tuple[Card, ...]:
        self.opened += 1
        return self.cards

    def read_fast(self, card: Card) -> Mapping[str, Reading]:
        if self.blocked is not None and card.uuid == "GPU-1":
            self.entered.set()
            self.blocked.wait(10.0)
        return {**dict.fromkeys(FAST_FIELDS, Reading(5.0)), "utilization_percent": Reading(0.0)}

    def read_slow(self, _: Card) -> Mapping[str, Reading]:
        return missing(SLOW_FIELDS + DETAIL_FIELDS, Reason.NOT_SUPPORTED)

    def processes(self, card: Card) -> tuple[ProcessSample, ...]:
        busy = card.uuid in self.computing
        return (ProcessSample(7, card.uuid, "p", None, None, "compute", None),) if busy else ()

    def close(self) -> None:
        self.closed += 1


class Machine:
    """Cards with the kernel's files, and a clock moved by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "devices"
        for place in PLACES:
            (self.folder / place / "power").mkdir(parents=True)
            (self.folder / place / "power" / "control").write_text("auto\n")
            for name, text in (("vendor", "0x10de"), ("class", "0x030000"), ("device", "0x28a0")):
                (self.folder / place / name).write_text(f"{text}\n")
            self.bind(place, "nvidia")
            self.set(place, "active")
        self.path = folder / "cards.json"
        self.driver = Driver()
        self.loaded: str | None = "550.54.14"
        self.now_s = 0.0
        self.backend = self.start()

    def start(self) -> RestingBackend:
        """A session of its own."""
        power = RuntimePower(self.folder)
        memory = CardMemory(self.path, identity=power.identity, driver=lambda: self.loaded)
        return RestingBackend(self.driver, now_s=lambda: self.now_s, power=power, memory=memory)

    def set(self, place: str, status: str) -> None:
        (self.folder / place / "power" / "runtime_status").write_text(f"{status}\n")

    def bind(self, place: str, driver: str | None) -> None:
        link = self.folder / place / "driver"
        link.unlink(missing_ok=True)
        if driver is not None:
            link.symlink_to(f"../../../bus/pci/drivers/{driver}")

    def start_asleep(self) -> tuple[Card, ...]:
        """A session, and another one that begins when all sleep."""
        self.backend.open()
        self.backend.close()
        for place in PLACES:
            self.set(place, "suspended")
        self.backend = self.start()
        return self.backend.open()

    def seconds(self, count: int) -> list[Reading]:
        """Slow ticks; the power of each card at the last."""
        for _ in range(count):
            self.now_s += 1.0
            read = [self.backend.read_fast(card) for card in self.driver.cards]
            for card in self.driver.cards:
                self.backend.read_slow(card)
                self.backend.processes(card)
        return [readings["power_w"] for readings in read]


ASLEEP = Reading(None, Reason.ASLEEP)
READ = Reading(5.0)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_all_are_let_go_when_nothing_runs_on_any(machine: Machine) -> None:
    machine.backend.open()
    machine.driver.computing = {"GPU-1"}
    assert machine.seconds(120) == [READ, READ]
    assert machine.driver.closed == 0, "one has work: it is read, and so is the other"
    machine.driver.computing.clear()
    assert machine.seconds(33) == [ASLEEP, ASLEEP]
    assert machine.driver.closed == 1


def test_one_that_may_not_sleep_keeps_the_driver_open(machine: Machine) -> None:
    (machine.folder / PLACES[1] / "power" / "control").write_text("on\n")
    machine.backend.open()
    assert machine.seconds(120) == [READ, READ]
    assert machine.driver.closed == 0


def test_all_are_read_again_as_soon_as_one_is_woken(machine: Machine) -> None:
    machine.backend.open()
    machine.seconds(33)
    for place in PLACES:
        machine.set(place, "suspended")
    assert machine.seconds(3600) == [ASLEEP, ASLEEP]
    machine.set(PLACES[1], "active")
    assert machine.seconds(1) == [READ, READ]
    assert machine.driver.opened == 2


def test_while_one_sleeps_another_that_somebody_holds_is_tried_less_and_less(machine: Machine) -> None:
    machine.backend.open()
    away = 0
    for _ in range(3600):
        machine.set(PLACES[0], "suspended" if machine.backend.is_resting else "active")
        machine.seconds(1)
        away += machine.backend.is_resting
    assert machine.driver.closed == 9, "after 30, 60, 120, 240, 480 and four times 600 s"
    assert away <= 16 * machine.driver.closed


def test_the_driver_is_not_closed_under_a_call_that_blocks(machine: Machine) -> None:
    machine.backend.open()
    machine.seconds(29)
    machine.driver.blocked = threading.Event()
    first, second = machine.driver.cards
    thread = threading.Thread(target=machine.backend.read_fast, args=(second,))
    thread.start()
    assert machine.driver.entered.wait(10.0)
    machine.now_s += 60.0
    assert machine.backend.read_fast(first)["power_w"] == READ
    assert machine.driver.closed == 0
    machine.driver.blocked.set()
    thread.join(10.0)
    machine.driver.blocked = None
    assert machine.backend.read_fast(first)["power_w"] == ASLEEP
    assert machine.driver.closed == 1


class TestFromSessionToSession:
    def test_cards_that_sleep_at_the_start_are_left_asleep(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        machine.backend.open()
        machine.backend.close()
        for place in PLACES:
            machine.set(place, "suspended")
        machine.backend = machine.start()
        known = machine.backend.open()
        assert tuple(replace(card, torch_index=None) for card in known) == machine.driver.cards
        assert [card.torch_index for card in known] == [0, 1], "by the environment of this session"
        assert machine.driver.opened == 1, "nobody was asked"
        assert not machine.backend.has_changed()
        assert machine.seconds(600) == [ASLEEP, ASLEEP]
        machine.backend.wake()
        assert machine.seconds(1) == [READ, READ]
        assert machine.driver.opened == 2

    def test_one_that_is_awake_is_asked(self, machine: Machine) -> None:
        machine.backend.open()
        machine.set(PLACES[0], "suspended")
        machine.backend = machine.start()
        machine.backend.open()
        assert machine.driver.opened == 2

    def test_another_part_in_the_same_place_is_another_card(self, machine: Machine) -> None:
        machine.backend.open()
        for place in PLACES:
            machine.set(place, "suspended")
        (machine.folder / PLACES[1] / "device").write_text("0x2684\n")
        machine.backend = machine.start()
        machine.backend.open()
        assert machine.driver.opened == 2

    @pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 1, "cards": [{"part": "a", "card": {}}]}', "null"])
    def test_a_file_that_is_none_is_nothing_known(self, machine: Machine, damage: str) -> None:
        machine.backend.open()
        machine.path.write_text(damage)
        for place in PLACES:
            machine.set(place, "suspended")
        machine.backend = machine.start()
        machine.backend.open()
        assert machine.driver.opened == 2

    def test_another_version_of_the_driver_wakes_them_once(self, machine: Machine) -> None:
        machine.start_asleep()
        machine.backend.close()
        machine.loaded = "580.65.06"
        for opened in (2, 2):  # the second time they are known from this version
            machine.backend = machine.start()
            machine.backend.open()
            machine.backend.close()
            assert machine.driver.opened == opened

    @pytest.mark.parametrize("driver", [None, "nouveau", "vfio-pci"])
    def test_a_card_that_another_driver_has_is_not_recalled(self, machine: Machine, driver: str | None) -> None:
        machine.start_asleep()
        machine.bind(PLACES[1], driver)
        machine.backend = machine.start()
        machine.backend.open()
        assert machine.driver.opened == 2

    def test_without_a_driver_nothing_is_recalled(self, machine: Machine) -> None:
        machine.start_asleep()
        machine.loaded = None
        machine.backend = machine.start()
        machine.backend.open()
        assert machine.driver.opened == 2

    def test_what_the_driver_says_after_waking_is_a_change_once(self, machine: Machine) -> None:
        """It keeps 600 MiB for itself, and not 200 as it was remembered: the brim is lower."""
        machine.driver.cards = tuple(replace(card, driver_reserved_bytes=200 * 2**20) for card in machine.driver.cards)
        known = machine.start_asleep()
        assert [card.capacity_bytes for card in known] == [7992 * 2**20] * 2
        machine.driver.cards = tuple(replace(card, driver_reserved_bytes=600 * 2**20) for card in known)
        assert not machine.backend.has_changed()
        machine.set(PLACES[0], "active")
        assert machine.seconds(1) == [READ, READ]
        assert machine.backend.has_changed()
        machine.backend.close()
        assert [card.capacity_bytes for card in machine.backend.open()] == [7592 * 2**20] * 2
        assert not machine.backend.has_changed()
        machine.seconds(60)
        assert not machine.backend.has_changed()

    def test_another_board_of_the_same_part_is_no_lost_card(self, machine: Machine) -> None:
        known = machine.start_asleep()
        machine.driver.cards = (replace(known[0], uuid="GPU-new"), known[1])
        machine.set(PLACES[0], "active")
        asked = {**machine.backend.read_fast(known[0]), **machine.backend.read_slow(known[0])}
        assert set(asked.values()) == {Reading(None, Reason.NOT_READ_YET)}
        assert machine.backend.read_fast(known[1])["power_w"] == READ
        assert machine.backend.has_changed()
        machine.backend.close()
        assert machine.backend.open() == machine.driver.cards
        assert not machine.backend.has_changed()

    def test_one_that_is_plugged_in_while_they_sleep_is_a_change(self, machine: Machine) -> None:
        machine.start_asleep()
        place = machine.folder / "0000:07:00.0"
        place.mkdir()
        for name, text in (("vendor", "0x10de"), ("class", "0x030200")):
            (place / name).write_text(f"{text}\n")
        assert not machine.backend.has_changed(), "the driver does not have it yet"
        machine.bind(place.name, "nvidia")
        assert machine.backend.has_changed()
        machine.backend.close()
        machine.backend.open()
        assert machine.driver.opened == 2
        assert not machine.backend.has_changed()

    def test_under_the_sampler_another_board_takes_the_place(self, machine: Machine) -> None:
        known = machine.start_asleep()
        machine.driver.cards = (replace(known[0], uuid="GPU-new"), known[1])
        sink: Any = Sink()
        clock = SessionClock(monotonic=lambda: machine.now_s, anchor_wall_s=0.0, origin_s=0.0)

        def wait(seconds: float) -> None:
            machine.now_s += seconds
            machine.set(PLACES[0], "suspended" if machine.now_s < 12.0 else "active")
            if machine.now_s >= 25.0:
                sampler.stop(0.0)

        sampler = Sampler(
            machine.backend, clock, sink=sink, host=HostReader(), wait=wait, asleep=lambda: 0.0, interval_s=0.5
        )
        sampler.run()
        assert [[card.uuid for card in cards] for cards in sink.cards] == [["GPU-0", "GPU-1"], ["GPU-1", "GPU-new"]]
        assert sink.outages == []
        read = {sample.uuid for sample in sink.samples if sample.readings["power_w"] == READ}
        assert read == {"GPU-1", "GPU-new"}
        assert machine.driver.opened == 3, "before, when one was awake, and because it was another one"


class Sink:
    """Keeps what the sampler says of cards; the rest goes nowhere."""

    def __init__(self) -> None:
        self.cards: list[tuple[Card, ...]] = []
        self.samples: list[GpuSample] = []
        self.outages: list[object] = []

    def on_cards(self, cards: tuple[Card, ...]) -> None:
        self.cards.append(cards)

    def on_gpu(self, sample: GpuSample) -> None:
        self.samples.append(sample)

    def on_outage(self, *what: object) -> None:
        self.outages.append(what)

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_: None
