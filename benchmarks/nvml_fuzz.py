# ruff: noqa: SLF001  with the inside
"""Mutated NVML structures through the whole reader: no crash, no hang, no value that the driver did not give.

    python benchmarks/nvml_fuzz.py [--structures 10000] [--seed 1]

Between the bindings and the fake driver (``tests/fake_nvml``) stands a liar: after a call it overwrites what the driver
has handed back (every structure, list, number and string: random bytes, flipped bits, all zeros, all ones, numbers at
the edges, infinities and values that are none, counts beyond their lists, strings without an end), answers with an
error nevertheless, or says success and writes nothing. Only pointers stay: a driver that gives wild ones takes every
reader with it. A round is a tick of two cards, one of them split into MIG instances: fast and slow fields, details,
processes, instances, back-filled samples; every tenth the cards are opened anew, some by the doctor. Checked is that
each value is physically possible and, where it is read straight from a structure, stands in one that was handed over
in this tick; that each missing one has a reason; that no read takes longer than a second. Exits 1 at the first finding.
"""

from __future__ import annotations

import argparse
import ctypes
import logging
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from desktop_app.core.clock import SessionClock  # noqa: E402
from desktop_app.core.telemetry import (  # noqa: E402
    DETAIL_FIELDS,
    FAST_FIELDS,
    SLOW_FIELDS,
    Card,
    InstanceSample,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.services.doctor import as_json  # noqa: E402
from desktop_app.services.doctor_cards import card_findings  # noqa: E402
from desktop_app.services.doctor_sight import Sight  # noqa: E402
from desktop_app.telemetry.backend import BackendUnavailable  # noqa: E402
from desktop_app.telemetry.nvml_backend import NvmlBackend, NvmlProbe  # noqa: E402
from tests.fake_nvml.driver import build_library  # noqa: E402
from tests.fake_nvml.random_errors import WAYS  # noqa: E402

SLOWEST_S: Final = 1.0  # of processor time, for one tick of both cards
CODES: Final = (1, 2, 3, 4, 6, 7, 10, 15, 17, 18, 21, 25, 999, -1, 12345)
EDGES: Final = (0, 1, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**48, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1)
DOUBLES: Final = (math.nan, math.inf, -math.inf, -1.0, 1e308, 100.5, 5e-324)
LONGEST_READ: Final = 1024  # bytes of a list that are looked at
SCRIPT: Final = f"""
- value count 2
* value gpm 1
* value gpm2 8810
* value gpm5 5150
* value field91 4
* value field138.all 1000 rate 5000
* value field139.all {2**50} rate 5000
* value field74 {80 * 3600 * 10**9} rate 250000000
* value field77 {80 * 3600 * 10**9} rate 100000000
* value field197 1000 rate 100000
* value field198 2000 rate 100000
* value energy 5000000 rate 150000
* value ecc 2
* value jpeg 3
* value optical_flow 4
* process compute {os.getpid()} 1073741824
* process graphics 4194300 1048576
* process mps 4194301 1048576
* usage {os.getpid()} 40 20 0 0 1000000 20
1 value mig 1
1 value instances 2
* value field3 1
* value field5 9
* value field6 0
* value field29 2
* value field30 1
* value field142 3
* value field143 1
* value field144 0
* value field145 0
* value field186.1 250000
"""
# What a field can be at most; at least it is 0.
BOUNDS: Final[Mapping[str, float]] = {
    "performance_state": 15, "pcie_generation": 16, "pcie_width": 64, "ecc_uncorrected": 2**48, "nvlinks_active": 36,
    "bar1_used_bytes": 2**44, "throttle_reasons": 2**32, "encoder_sessions": 4096, "pcie_replays": 2**48,
    "pcie_rx_bytes_per_s": 300e9, "pcie_tx_bytes_per_s": 300e9, "nvlink_rx_bytes_per_s": 10e12,
    "nvlink_tx_bytes_per_s": 10e12, "ecc_corrected": 2**48, "ecc_corrected_total": 2**48,
    "ecc_uncorrected_total": 2**48,
    "remapped_rows_corrected": 2**20, "remapped_rows_uncorrected": 2**20, "remapping_pending": 1, "remapping_failed": 1,
    "retired_pages": 2**21, "mps_clients": 8192, "fan_percent": 200, "driver_reserved_bytes": 2**44, "sm_count": 4096,
    "memory_bus_bits": 2**16, "pcie_generation_max": 16, "pcie_width_max": 64, "numa_node": 4096, "total_bytes": 2**44,
    "bar1_total_bytes": 2**44, "nvml_index": 64, "torch_index": 64,
}  # fmt: skip


def bounds(name: str) -> tuple[float, float]:
    if name in BOUNDS:
        return 0.0, BOUNDS[name]
    if name == "temperature_margin_c":
        return -100.0, 150.0
    for ending, least, most in (("_percent", 0, 100), ("_w", 0, 3000), ("_c", -40, 150), ("_mhz", 0, 20_000)):
        if name.endswith(ending):
            return least, most
    raise AssertionError(f"nobody says what {name} can be")


class Liar:
    """In the place of the library: hands calls on, and overwrites what comes back."""

    def __init__(self, library: Any, chance: random.Random, pynvml: Any) -> None:
        self._library = library
        self._chances = chance, random.Random(chance.random())  # the second: of the thread that waits for errors
        self._handles = (pynvml.c_nvmlDevice_t, pynvml.c_nvmlEventSet_t, pynvml.c_nvmlGpmSample_t)
        # where a structure holds pointers
        self._kept = {
            pynvml.c_nvmlProcessesUtilizationInfo_v1_t: (16, 24),
            pynvml.c_nvmlGpmMetricsGet_t: (8, 24),
            pynvml.c_nvmlEventData_t: (0, 8),
        }
        self._functions: dict[str, Callable[..., int]] = {}
        self.share = 0.0  # of the calls that are lied about
        self.lies: Counter[str] = Counter()
        self.said: list[bytes] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name in ("nvmlInitWithFlags", "nvmlInit_v2", "nvmlShutdown", "nvmlErrorString", "nvmlGpmSampleFree"):
            return getattr(self._library, name)  # type: ignore[no-any-return]
        if name not in self._functions:
            function = getattr(self._library, name)
            self._functions[name] = lambda *arguments: self._call(name, function, arguments)
        return self._functions[name]

    def _call(self, name: str, function: Callable[..., int], arguments: tuple[Any, ...]) -> int:
        chance = self._chances[threading.current_thread() is not threading.main_thread()]
        places = [place for argument in arguments for place in self._places(argument)]
        lie = chance.random() < self.share
        before = [bytes(memory) for memory, _ in places] if lie and chance.random() < 0.1 else None
        code = function(*arguments)
        if lie:
            self.lies[name] += 1
            for number, (memory, kept) in enumerate(places):
                new = _lie(bytes(memory), chance) if before is None else before[number]  # success, and nothing written
                memory[:] = new if kept is None else new[: kept[0]] + bytes(memory[kept[0] : kept[1]]) + new[kept[1] :]
            if chance.random() < 0.1:
                code = chance.choice(CODES)
            elif chance.random() < 0.3 and not any(
                isinstance(getattr(argument, "_obj", None), self._handles) for argument in arguments
            ):
                code = 0
        if code == 0:
            self.said += [bytes(memory[:LONGEST_READ]) for memory, _ in places]
        return code

    def _places(self, argument: Any) -> Iterator[tuple[memoryview, tuple[int, int] | None]]:
        """The memory that a call may write to, and the part of it that is a pointer."""
        target = getattr(argument, "_obj", argument)
        if target is None or isinstance(target, self._handles):
            return
        if target is argument and not isinstance(target, ctypes.Array):
            return  # a number that is handed in
        if ctypes.sizeof(target):
            yield memoryview(target).cast("B"), self._kept.get(type(target))

    def numbers(self) -> set[float]:
        """Every number that stands in what was handed over, read in every way."""
        found: set[float] = set()
        for memory in self.said:
            for size, kinds in ((2, "H"), (4, "Ii"), (8, "Qqd")):
                for start in range(0, size, 4) if size > 4 else (0,):
                    count = (len(memory) - start) // size
                    for kind in kinds:
                        found.update(struct.unpack_from(f"={count}{kind}", memory, start))
        return found


def _lie(true: bytes, chance: random.Random) -> bytes:
    size = len(true)
    kind = chance.randrange(8)
    if kind == 0:
        return chance.randbytes(size)
    if kind == 1:
        return bytes(size)
    if kind == 2:
        return b"\xff" * size
    if kind == 3:
        return (chance.randbytes(1) * size)[:size]
    found = bytearray(true)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(size)
        if kind == 4:
            found[at] ^= 1 << chance.randrange(8)
        elif kind == 5 and size >= 8:
            struct.pack_into("=Q", found, min(at // 4 * 4, size - 8), chance.choice(EDGES))
        elif kind == 6 and size >= 8:
            struct.pack_into("=d", found, min(at // 8 * 8, size - 8), chance.choice(DOUBLES))
        elif size >= 4:
            struct.pack_into("=I", found, min(at // 4 * 4, size - 4), chance.choice(EDGES) % 2**32)
    return bytes(found)


class Game:
    def __init__(self, seed: int) -> None:
        import pynvml

        self.chance = random.Random(seed)
        library = ctypes.CDLL("libnvidia-ml.so.1")
        library.fake_nvml_clock.restype = ctypes.c_double
        library.fake_nvml_set_clock.argtypes = [ctypes.c_double]
        library.fake_nvml_play(SCRIPT.encode())
        library.fake_nvml_set_clock(0.0)
        self.library = library
        self.liar = Liar(library, self.chance, pynvml)
        pynvml.nvmlLib = self.liar
        pynvml._nvmlGetFunctionPointer_cache.clear()
        self.clock = SessionClock(monotonic=library.fake_nvml_clock, anchor_wall_s=0.0, origin_s=0.0)
        self.t_s = 0.0
        self.findings: list[str] = []
        self.values: Counter[str] = Counter()
        self.absent: Counter[str] = Counter()
        self.events = self.slowest_s = 0.0
        self.backend = NvmlBackend(self.clock, wall_clock=library.fake_nvml_clock, system_memory=lambda: (2**36, 2**33))
        self.cards: tuple[Card, ...] = ()

    def round(self, number: int) -> None:
        self.liar.share = self.chance.choice((0.02, 0.1, 0.3, 1.0))
        began_s = time.process_time()
        if number % 10 == 0:
            self.open(number)
        self.t_s += self.chance.choice((0.2, 0.2, 1.0, 3.0, 61.0))
        self.library.fake_nvml_set_clock(self.t_s)
        for card in self.cards:
            self.tick(card)
        took_s = time.process_time() - began_s
        self.slowest_s = max(self.slowest_s, took_s)
        self.expect(took_s < SLOWEST_S, f"a round took {took_s:.1f} s")

    def open(self, number: int) -> None:
        self.backend.close()
        self.library.fake_nvml_play(f"{SCRIPT}* @{self.t_s + 0.1}.. xid 31 20".encode())
        if number % 30 == 0:
            probe = NvmlBackend(self.clock).probe()
            for card in probe.cards:
                self.facts(card)
            self.show(probe)
        try:
            self.cards = self.backend.open()
        except BackendUnavailable as error:
            self.expect(bool(error.detail), "a driver that is not there without a word")
            self.liar.share, self.cards = 0.0, ()
            self.backend.close()
        for card in self.cards:
            self.facts(card)

    def tick(self, card: Card) -> None:
        self.liar.said = []
        first = self.backend.read_fast(card)
        slow = self.backend.read_slow(card)
        self.expect(set(first) == set(FAST_FIELDS), "a fast field is missing")
        self.expect(set(slow) == {*SLOW_FIELDS, *DETAIL_FIELDS}, "a slow field is missing")
        said = self.liar.numbers()
        for name, reading in {**first, **slow}.items():
            self.reading(card, name, reading, said)
        for process in self.backend.processes(card):
            self.process(card, process)
        self.liar.said = []
        for instance in self.backend.instances(card):
            self.instance(card, instance, self.liar.numbers())
        for sample in self.backend.back_fill(card, since_s=max(0.0, self.t_s - 5.0), readings=first):
            self.expect(self.t_s - 6.0 < sample.t_s < self.t_s, f"a sample of {sample.t_s} s at {self.t_s} s")
            for name, reading in sample.readings.items():
                self.inside(name, reading.value)
        for error in self.backend.card_errors():
            self.events += 1
            self.expect(0 < error.xid < 2**16, f"an error with the number {error.xid}")

    def reading(self, card: Card, name: str, reading: Reading, said: set[float]) -> None:
        if reading.value is None:
            self.absent[name] += 1
            self.expect(isinstance(reading.reason, Reason), f"{name} without value and reason")
            return
        self.values[name] += 1
        if name == "energy_j":
            self.expect(0 <= reading.value <= 3000.0 * (self.t_s + 10.0), f"{reading.value} J after {self.t_s} s")
        elif name == "memory_used_bytes":
            most = card.total_bytes if card.total_bytes is not None else 2**44
            self.expect(0 <= reading.value <= most, f"{reading.value} of {most} bytes")
        else:
            self.inside(name, reading.value)
        if name not in WAYS or name.endswith("utilization_percent") or card.shared_memory:
            return  # a rate, a share, a sum, or the mean of samples
        scale = 1.0 if name.startswith(("sm_act", "sm_occ", "tensor", "dram", "fp")) else WAYS[name][0][2]
        self.expect(
            any(abs(reading.value - number * scale) <= 1e-9 * max(1.0, abs(reading.value)) for number in said),
            f"{name} is {reading.value}, which nobody has said",
        )

    def instance(self, card: Card, instance: InstanceSample, said: set[float]) -> None:
        self.word(instance.uuid)
        for name, reading in instance.readings.items():
            self.reading(card, name, reading, said)

    def process(self, card: Card, process: ProcessSample) -> None:
        most = card.total_bytes if card.total_bytes is not None else 2**44
        memory, numbers = process.memory_bytes, (process.sm_percent, process.memory_bus_percent)
        self.expect(0 < process.pid < 2**23, f"a process with the pid {process.pid}")
        self.expect(memory is None or 0 <= memory <= most, f"a process with {memory} of {most} bytes")
        self.expect((memory is None) == (process.memory_reason is not None), "memory without value and reason")
        self.expect((process.sm_percent is None) == (process.sm_reason is not None), "a share without value and reason")
        self.expect(all(each is None or 0 <= each <= 100 for each in numbers), f"a process with shares of {numbers}")
        self.expect(process.gpu_instance is None or 0 <= process.gpu_instance <= 255, f"in {process.gpu_instance}")

    def facts(self, card: Card) -> None:
        self.word(card.uuid)
        for field in fields(card):
            value = getattr(card, field.name)
            if isinstance(value, str) and field.name != "energy_source":
                self.expect(value.isprintable() and bool(value), f"{field.name} is {value!r}")
            elif isinstance(value, int | float) and not isinstance(value, bool):
                self.inside(field.name, float(value))
        capability = card.compute_capability
        self.expect(capability is None or (0 < capability[0] < 100 and 0 <= capability[1] < 10), f"is {capability}")
        for instance in card.instances:
            self.word(instance.uuid)
            self.expect(-1 <= instance.gpu_instance <= 255, f"an instance {instance.gpu_instance}")
            for name in ("total_bytes", "sm_count"):
                if getattr(instance, name) is not None:
                    self.inside(name, float(getattr(instance, name)))

    def show(self, probe: NvmlProbe) -> None:
        """What the doctor makes of it."""
        for readings in probe.readings.values():
            for name, reading in readings.items():
                if reading.value is not None and name not in ("energy_j", "memory_used_bytes"):
                    self.inside(name, reading.value)
        for finding in card_findings(Sight(probe)):
            self.expect(finding.text.isprintable(), f"the doctor says {finding.text!r}")
            as_json({"text": finding.text, "card": finding.card})

    def inside(self, name: str, value: float | None) -> None:
        least, most = bounds(name)
        self.expect(value is not None and least <= value <= most, f"{name} is {value}")

    def word(self, text: str) -> None:
        self.expect(text.isprintable() and " " not in text and bool(text), f"a card is called {text!r}")

    def expect(self, true: bool, otherwise: str) -> None:  # noqa: FBT001
        if not true:
            self.findings.append(otherwise)


def play(structures: int, seed: int) -> int:
    logging.disable()  # thousands of lines about a driver that fails
    game, number = Game(seed), 0
    while game.liar.lies.total() < structures and not game.findings:
        game.round(number)
        number += 1
    game.liar.share = 0.0
    game.cards = game.backend.open() if not game.cards else game.cards
    lies, calls = game.liar.lies.total(), len(game.liar.lies)
    print(f"seed {seed}: {number} rounds, {lies} answers to {calls} different calls overwritten, at most")
    looked_at = f"{game.values.total()} values and {game.absent.total()} reasons"
    print(f"  {1000 * game.slowest_s:.0f} ms of CPU a round; {looked_at}")
    print(f"  were looked at, {game.events:.0f} pushed errors; never a value: {unseen(game.values)}")
    for finding in game.findings:
        print(f"  round {number}: {finding}")
    return int(bool(game.findings))


def unseen(values: Iterable[str]) -> str:
    return ", ".join(sorted({*FAST_FIELDS, *SLOW_FIELDS, *DETAIL_FIELDS} - set(values))) or "none"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--structures", type=int, default=10_000, help="so many are overwritten")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.inside:
        return play(chosen.structures, chosen.seed)
    with tempfile.TemporaryDirectory() as name:
        if not build_library(Path(name)):
            print("no C compiler for the fake driver library")
            return 1
        command = [
            sys.executable,
            __file__,
            "--inside",
            "--structures",
            str(chosen.structures),
            "--seed",
            str(chosen.seed),
        ]
        return subprocess.run(command, env={**os.environ, "LD_LIBRARY_PATH": name}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
