"""Several GPUs that may sleep are let go together; those that sleep at the start and are known are left asleep."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_app.core.telemetry import (
    DETAIL_FIELDS,
    FAST_FIELDS,
    SLOW_FIELDS,
    Card,
    EnergySource,
    MigInstance,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.telemetry.backend import missing
from desktop_app.telemetry.card_memory import CardMemory
from desktop_app.telemetry.resting import RestingBackend
from desktop_app.telemetry.runtime_power import RuntimePower

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
            self.set(place, "active")
        self.path = folder / "cards.json"
        self.driver = Driver()
        self.now_s = 0.0
        self.backend = self.start()

    def start(self) -> RestingBackend:
        """A session of its own."""
        power = RuntimePower(self.folder)
        memory = CardMemory(self.path, identity=power.identity)
        return RestingBackend(self.driver, now_s=lambda: self.now_s, power=power, memory=memory)

    def set(self, place: str, status: str) -> None:
        (self.folder / place / "power" / "runtime_status").write_text(f"{status}\n")

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

    def test_what_is_kept_comes_back_as_it_was(self, tmp_path: Path) -> None:
        memory = CardMemory(tmp_path / "deep" / "cards.json", identity=lambda _: "10de 28a0 - -")
        cards = Driver().cards
        memory.keep(cards)
        assert memory.recall(PLACES) == cards
        assert memory.recall(PLACES[:1]) == ()
        assert CardMemory(tmp_path / "deep" / "cards.json", identity=lambda _: None).recall(PLACES) == ()

    def test_a_card_in_slices_is_not_kept(self, tmp_path: Path) -> None:
        memory = CardMemory(tmp_path / "cards.json", identity=lambda _: "x")
        card = replace(Driver().cards[0], instances=(MigInstance("MIG-1", "1g", 1, 0),))
        memory.keep([card])
        assert not (tmp_path / "cards.json").exists()

    def test_a_folder_that_cannot_be_written_is_no_trouble(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        CardMemory(tmp_path / "file" / "cards.json", identity=lambda _: "x").keep(Driver().cards)
