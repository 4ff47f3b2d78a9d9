"""A laptop's GPU that may sleep: let go while nothing runs, left alone while it sleeps, read again when it is awake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import (
    ALL_GPU_FIELDS,
    DETAIL_FIELDS,
    FAST_FIELDS,
    SLOW_FIELDS,
    Card,
    GpuSample,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.telemetry.backend import missing, outage_reason
from desktop_app.telemetry.combined import CombinedBackend
from desktop_app.telemetry.deferred import DeferredBackend
from desktop_app.telemetry.host import HostReader
from desktop_app.telemetry.resting import RestingBackend
from desktop_app.telemetry.runtime_power import NVIDIA, RuntimePower, kernel_bus_id
from desktop_app.telemetry.sampler import Sampler
from desktop_app.telemetry.shelf import CardShelf

BUS_ID = "00000000:01:00.0"


class Driver:
    """A backend that says when it was asked. ``load`` and ``processes_now`` are set by the test."""

    name = "nvml"

    def __init__(self, count: int = 1) -> None:
        self.cards = tuple(
            Card(uuid=f"GPU-{i}", name="RTX 4060 Laptop", nvml_index=i, bus_id=BUS_ID, simulated=False, total_bytes=1)
            for i in range(count)
        )
        self.load: float | None = 0.0
        self.processes_now: tuple[str, ...] = ()
        self.opened = self.closed = self.asked = 0

    def open(self) -> tuple[Card, ...]:
        self.opened += 1
        return self.cards

    def read_fast(self, _: Card) -> Mapping[str, Reading]:
        self.asked += 1
        return {**dict.fromkeys(FAST_FIELDS, Reading(5.0)), "utilization_percent": Reading(self.load)}

    def read_slow(self, _: Card) -> Mapping[str, Reading]:
        self.asked += 1
        return missing(SLOW_FIELDS + DETAIL_FIELDS, Reason.NOT_SUPPORTED)

    def processes(self, card: Card) -> tuple[ProcessSample, ...]:
        self.asked += 1
        return tuple(ProcessSample(7, card.uuid, "p", None, None, kind, None) for kind in self.processes_now)

    def close(self) -> None:
        self.closed += 1


class Laptop:
    """A card with the kernel's files, a clock moved by hand, and the sampler's order of calls."""

    def __init__(self, folder: Path, *, count: int = 1, control: str = "auto") -> None:
        self.power = folder / "0000:01:00.0" / "power"
        self.power.mkdir(parents=True)
        (self.power / "control").write_text(f"{control}\n")
        for name, text in (("vendor", "0x10de\n"), ("class", "0x030000\n")):
            (self.power.parent / name).write_text(text)
        (self.power.parent / "driver").symlink_to("../../../bus/pci/drivers/nvidia")
        self.set("active")
        self.driver = Driver(count)
        self.now_s = 0.0
        self.backend = RestingBackend(self.driver, now_s=lambda: self.now_s, power=RuntimePower(folder))
        (self.card, *_) = self.backend.open()

    def set(self, status: str) -> None:
        (self.power / "runtime_status").write_text(f"{status}\n")

    def second(self) -> dict[str, Reading]:
        """One slow tick."""
        self.now_s += 1.0
        readings = {**self.backend.read_fast(self.card), **self.backend.read_slow(self.card)}
        self.backend.processes(self.card)
        return readings

    def seconds(self, count: int) -> dict[str, Reading]:
        for _ in range(count):
            readings = self.second()
        return readings


@pytest.fixture
def laptop(tmp_path: Path) -> Laptop:
    return Laptop(tmp_path)


def test_after_half_a_minute_of_nothing_it_is_let_go_and_sleeps(laptop: Laptop) -> None:
    laptop.seconds(30)
    assert (laptop.driver.closed, laptop.backend.is_resting) == (0, False)
    readings = laptop.seconds(2)
    assert (laptop.driver.closed, laptop.backend.is_resting) == (1, True)
    assert set(readings.values()) == {Reading(None, Reason.ASLEEP)}
    assert readings.keys() == set(ALL_GPU_FIELDS)
    assert outage_reason(readings) is None, "a card that sleeps is no lost one"
    laptop.seconds(5)
    laptop.set("suspended")
    asked = laptop.driver.asked
    laptop.seconds(3600)
    assert (laptop.driver.asked, laptop.driver.opened) == (asked, 1), "an hour of sleep, and nobody was asked"


def test_it_is_read_again_as_soon_as_somebody_has_woken_it(laptop: Laptop) -> None:
    laptop.seconds(35)
    laptop.set("suspended")
    laptop.seconds(60)
    laptop.set("active")
    readings = laptop.second()
    assert readings["power_w"] == Reading(5.0)
    assert (laptop.driver.opened, laptop.backend.is_resting) == (2, False)
    laptop.driver.processes_now = ("compute",)
    laptop.seconds(600)
    assert laptop.driver.closed == 1, "while something computes it is read"
    laptop.driver.processes_now = ()
    laptop.seconds(32)
    assert laptop.driver.closed == 2


@pytest.mark.parametrize("busy", ["compute", "both"])
def test_a_process_that_computes_keeps_it_awake(laptop: Laptop, busy: str) -> None:
    laptop.driver.processes_now = (busy,)
    laptop.seconds(120)
    assert laptop.driver.closed == 0


def test_a_desktop_that_has_it_open_does_not_keep_it_awake_but_load_does(laptop: Laptop) -> None:
    laptop.driver.processes_now = ("graphics",)
    laptop.driver.load = 30.0
    laptop.seconds(120)
    assert laptop.driver.closed == 0
    laptop.driver.load = 0.0
    laptop.seconds(33)
    assert laptop.driver.closed == 1


def test_a_load_between_two_lists_begins_the_wait_anew(laptop: Laptop) -> None:
    laptop.seconds(25)
    laptop.driver.load = 1.0
    laptop.seconds(1)
    laptop.driver.load = 0.0
    laptop.seconds(28)
    assert laptop.driver.closed == 0


def test_one_that_somebody_else_holds_is_read_again_and_tried_less_and_less(laptop: Laptop) -> None:
    """It stays awake although it was let go: 15 s without readings, then 1, 2, 4 … 10 minutes with them."""
    away = [0] * 1800
    for second in range(1800):
        laptop.second()
        away[second] = laptop.backend.is_resting
    assert laptop.driver.opened - laptop.driver.closed in (0, 1)
    assert 4 <= laptop.driver.closed <= 6
    assert sum(away) <= 16 * laptop.driver.closed
    laptop.set("suspended")  # nobody holds it any more
    laptop.seconds(660)
    laptop.set("active")
    laptop.second()
    laptop.seconds(33)
    assert laptop.backend.is_resting, "the wait is short again"


def test_whoever_is_about_to_use_it_can_say_so(laptop: Laptop) -> None:
    laptop.seconds(35)
    assert laptop.backend.is_resting
    laptop.backend.wake()
    assert laptop.second()["power_w"] == Reading(5.0)
    for _ in range(120):
        laptop.backend.wake()  # a run says so every second
        laptop.second()
    assert laptop.driver.closed == 1


@pytest.mark.parametrize(("control", "status"), [("on", "active"), ("auto", "unsupported"), ("auto", "error")])
def test_a_card_that_cannot_sleep_is_never_let_go(tmp_path: Path, control: str, status: str) -> None:
    laptop = Laptop(tmp_path, control=control)
    laptop.set(status)
    laptop.backend.open()
    laptop.seconds(120)
    assert laptop.driver.closed == 0


def test_of_several_cards_none_is_let_go(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path, count=2)
    laptop.seconds(120)
    assert laptop.driver.closed == 0


def test_while_it_rests_looking_for_cards_wakes_nothing(laptop: Laptop) -> None:
    laptop.seconds(35)
    laptop.set("suspended")
    assert laptop.backend.open() == laptop.driver.cards
    assert (laptop.driver.opened, laptop.backend.card_errors(), laptop.backend.instances(laptop.card)) == (1, (), ())


def test_closed_at_the_end_it_begins_anew(laptop: Laptop) -> None:
    laptop.seconds(35)
    laptop.backend.close()
    assert not laptop.backend.is_resting
    assert laptop.backend.open() == laptop.driver.cards
    assert laptop.second()["power_w"] == Reading(5.0)


def test_the_first_opening_wakes_it_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    laptop = Laptop(tmp_path)
    laptop.set("suspended")
    fresh = RestingBackend(laptop.driver, now_s=lambda: 0.0, power=RuntimePower(tmp_path))
    with caplog.at_level("INFO"):
        fresh.open()
    assert "the card at 0000:01:00.0 sleeps; it is woken once, to be known" in caplog.text


def test_the_kernels_files(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path)
    power = RuntimePower(tmp_path)
    for status, asleep in (("active", False), ("suspended", True), ("suspending", True), ("resuming", False)):
        laptop.set(status)
        assert (power.is_asleep(BUS_ID), power.may_sleep(BUS_ID)) == (asleep, True), status
    for unknown in (None, "", "00000000:02:00.0", "no bus id"):
        assert (power.is_asleep(unknown), power.may_sleep(unknown)) == (False, False)
    assert power.driven_by("nvidia", vendor=NVIDIA) == power.all_of(NVIDIA) == ("0000:01:00.0",)
    assert power.driven_by("nouveau", vendor=NVIDIA) == power.all_of(0x1002) == ()
    assert RuntimePower(tmp_path / "nowhere").all_of(NVIDIA) == ()
    assert [
        kernel_bus_id(text) for text in ("00000000:01:00.0", "00000001:AF:00.0", "0000:01:00.0", "10000:E1:00.0")
    ] == [
        "0000:01:00.0",
        "0001:af:00.0",
        "0000:01:00.0",
        "10000:e1:00.0",
    ]


def test_it_can_be_woken_through_all_that_stands_before_it(laptop: Laptop) -> None:
    chosen = DeferredBackend(lambda: CombinedBackend((laptop.backend, Driver(0))))
    shelf = CardShelf(chosen, clock=SessionClock())
    shelf.wake()  # before anything is chosen
    shelf.open()
    laptop.seconds(35)
    assert laptop.backend.is_resting
    shelf.wake()
    laptop.second()
    assert not laptop.backend.is_resting


class Sink:
    """Keeps what the sampler says of cards; the rest goes nowhere."""

    def __init__(self) -> None:
        self.samples: list[GpuSample] = []
        self.outages: list[object] = []

    def on_gpu(self, sample: GpuSample) -> None:
        self.samples.append(sample)

    def on_outage(self, *what: object) -> None:
        self.outages.append(what)

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_: None


def test_under_the_sampler_a_rest_is_a_gap_and_no_outage(laptop: Laptop) -> None:
    def wait(seconds: float) -> None:
        laptop.now_s += seconds
        if laptop.now_s >= 40.0:
            laptop.set("suspended")
        if laptop.now_s >= 100.0:
            laptop.set("active")  # somebody plays a game
            laptop.driver.load = 80.0
        if laptop.now_s >= 120.0:
            sampler.stop(0.0)

    sink: Any = Sink()
    clock = SessionClock(monotonic=lambda: laptop.now_s, anchor_wall_s=0.0, origin_s=0.0)
    sampler = Sampler(
        laptop.backend,
        clock,
        sink=sink,
        host=HostReader(),
        wait=wait,
        asleep=lambda: 0.0,
        patience_s=30.0,
        interval_s=0.5,
    )
    sampler.run()
    assert sink.outages == []
    read = [sample.t_s for sample in sink.samples if sample.readings["power_w"].value is not None]
    asleep = [sample.t_s for sample in sink.samples if sample.readings["power_w"].reason is Reason.ASLEEP]
    assert len(read) + len(asleep) == len(sink.samples)
    assert (min(asleep), max(asleep)) == (pytest.approx(30.0, abs=1.5), pytest.approx(100.0, abs=1.0))
    assert not any(min(asleep) < t_s < max(asleep) for t_s in read)
    assert laptop.driver.opened == 3, "before, by the sampler, and when it was awake again"


PLAY = """
import json, sys
from pathlib import Path
from desktop_app.core.clock import SessionClock
from desktop_app.telemetry.nvml_backend import NvmlBackend
from desktop_app.telemetry.resting import RestingBackend
from desktop_app.telemetry.runtime_power import RuntimePower

now, clock = [0.0], SessionClock()
folder = Path(sys.argv[1])
backend = RestingBackend(NvmlBackend(clock), now_s=lambda: now[0], power=RuntimePower(folder))
(card,) = backend.open()
status = folder / "0000:01:00.0" / "power" / "runtime_status"
def second():
    now[0] += 1.0
    readings = {**backend.read_fast(card), **backend.read_slow(card)}
    backend.processes(card)
    return readings["temperature_c"]
told = []
for when, power in ((40, "active"), (5, "suspended"), (3, "active")):
    status.write_text(power)
    for _ in range(when):
        reading = second()
    told.append([reading.value, reading.reason, backend.is_resting])
backend.close()
print(json.dumps(told))
"""


def test_with_the_real_bindings_it_is_closed_and_opened_again(tmp_path: Path, driver_folder: Path) -> None:
    """The driver library's own open and close, on a card at the bus id that the fake one has."""
    laptop = Laptop(tmp_path)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver_folder), "FAKE_NVML_VALUES": "util=0"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PLAY, str(laptop.power.parents[1])],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [[None, "asleep", True], [None, "asleep", True], [61.0, None, False]]
