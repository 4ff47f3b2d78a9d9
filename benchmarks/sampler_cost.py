# ruff: noqa: SLF001  measures the inside
"""What watching costs: a fast tick over 8 cards, against nvitop, gpustat and a spawned nvidia-smi-like program.

    python benchmarks/sampler_cost.py [--cards 8]

All of them read the same fake driver library in the same run (``tests/fake_nvml``), so that only their own work counts:
CPU milliseconds of one reading, all threads of the process (children for the spawned program), median of turns. Shares
are medians over the turns too, each of two batches that ran one after the other. Budgets: a fast tick <= 2 ms, and
<= 0.5 of what nvitop takes for equal fields, with PCIe and without. Fails when one is missed, or cannot be judged.

nvitop and gpustat are in an environment of their own (``build/witnesses``, as for the tests); it is made when missing.
A day of watching is ``day_of_sampling.py``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.sampler_witness import answer  # noqa: E402
from desktop_app.core.clock import SessionClock  # noqa: E402
from desktop_app.core.telemetry import (  # noqa: E402
    FAST_FIELDS,
    Card,
    CardError,
    GpuSample,
    InstanceSample,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.telemetry.nvml_backend import NvmlBackend  # noqa: E402
from desktop_app.telemetry.sampler import Sampler  # noqa: E402
from tests.fake_nvml.driver import HERE as FAKE  # noqa: E402
from tests.fake_nvml.driver import build_library  # noqa: E402

WITNESSES: Final = ROOT / "build" / "witnesses" / "bin" / "python"
BUDGET_MS: Final = 2.0
BUDGET_SHARE: Final = 0.5
TURNS: Final = 11
# Fields of our fast lane that nvitop has too. Its one power is the average over a second; it has no power of the moment
# and no throttle counters.
PLAIN_FIELDS: Final = (
    "utilization_percent",
    "memory_utilization_percent",
    "memory_used_bytes",
    "power_average_w",
    "temperature_c",
    "sm_clock_mhz",
    "memory_clock_mhz",
)
PCIE_FIELDS: Final = (*PLAIN_FIELDS, "pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s")
# Cards that answer everything: GPM, eighteen links, ECC, remapped rows.
RICH_SCRIPT: Final = "\n".join(
    f"* value {key} {value}"
    for key, value in {
        "gpm": 1, "gpm2": 8810, "gpm3": 4275, "gpm5": 5150, "gpm10": 6333, "gpm11": 25, "gpm12": 1950, "gpm13": 707,
        "field91": 18, "field138.all": 1000, "field139.all": 5000, "ecc": 0, "ecc_mode": 1, "field3": 0, "field5": 9,
        "field6": 0, "field142": 0, "field143": 1, "field144": 0, "field145": 0, "jpeg": 1, "optical_flow": 1,
    }.items()
)  # fmt: skip


class Contender(NamedTuple):
    """``kind``: what it does, in our words or ``sampler_witness``'s; ``readings``: in a batch."""

    name: str
    kind: str
    readings: int
    ours: bool = True


# Each in a process of its own: nvitop changes functions of the bindings. Neighbours here follow each other in a turn.
CONTENDERS: Final[Mapping[str, Contender]] = {
    "pcie": Contender("Floodmark, a tick of 9 fields", "pcie", 25),
    "nvitop pcie": Contender("nvitop, the same 9 (it waits 20 ms for each PCIe rate)", "pcie", 1, ours=False),
    "plain": Contender("Floodmark, a tick of 7 fields", "plain", 25),
    "nvitop plain": Contender("nvitop, the same 7", "plain", 25, ours=False),
    "tick": Contender("Floodmark, its fast tick of 12 fields", "tick", 25),
    "fast": Contender("Floodmark, the 12 fields alone, without sampler and threads", "fast", 25),
    "slow tick": Contender("Floodmark, slow tick (43 fields more, processes), once a second", "slow tick", 4),
    "rich": Contender("Floodmark, slow tick, cards with GPM and 18 links", "slow tick", 4),
    "snapshot": Contender("nvitop, as_snapshot()", "snapshot", 1, ours=False),
    "gpustat": Contender("gpustat, new_query()", "gpustat", 4, ours=False),
    "spawned": Contender("a spawned program like nvidia-smi that prints 7 fields", "spawned", 4, ours=False),
}


class Quiet:
    """A sink and a host that cost nothing."""

    def __init__(self) -> None:
        self.readings: Mapping[str, Reading] = {}

    def on_cards(self, cards: tuple[Card, ...]) -> None: ...

    def on_gpu(self, sample: GpuSample) -> None:
        self.readings = sample.readings

    def on_host(self, t_s: float, readings: Mapping[str, Reading]) -> None: ...

    def on_processes(self, t_s: float, uuid: str, processes: tuple[ProcessSample, ...]) -> None: ...

    def on_filled(self, sample: GpuSample) -> None: ...

    def on_card_error(self, error: CardError) -> None: ...

    def on_instances(self, t_s: float, uuid: str, instances: tuple[InstanceSample, ...]) -> None: ...

    def on_outage(self, t_s: float, uuid: str | None, reason: Reason) -> None:
        raise AssertionError(f"outage at {t_s:.1f} s: {uuid} {reason}")

    def on_back(self, t_s: float, uuid: str | None) -> None: ...

    def read(self, t_s: float) -> Mapping[str, Reading]:
        del t_s
        return {}


def floodmark(kind: str) -> Callable[[], object]:
    """``fast``: the fast fields by the backend alone; else a tick of the whole sampler, of all fast fields or of some,
    or a ``slow tick``: with slow fields, details and processes."""
    fields: Sequence[str] = {"plain": PLAIN_FIELDS, "pcie": PCIE_FIELDS}.get(kind, FAST_FIELDS)
    now_s, sink, slow = [0.0], Quiet(), kind == "slow tick"
    clock = SessionClock(monotonic=lambda: now_s[0], anchor_wall_s=0.0, origin_s=0.0)
    backend = NvmlBackend(clock, fast_fields=fields)
    sampler = Sampler(
        backend,
        clock,
        sink=sink,
        slow_every_s=0.2 if slow else 1e9,
        host=sink,
        asleep=lambda: 0.0,
        patience_s=60.0,
    )

    def tick() -> None:
        now_s[0] += 0.2
        sampler._tick(now_s[0], late=False)

    for _ in range(3):  # opens, reads the slow fields; rates need two
        tick()
    assert slow or set(sink.readings) == set(fields)
    absent = [field for field in fields if sink.readings[field].value is None]
    assert not absent, f"not read: {absent}"
    cards = tuple(sampler._cards.values())
    return (lambda: [backend.read_fast(card) for card in cards]) if kind == "fast" else tick


def have_witnesses() -> bool:
    """Whether nvitop and gpustat are there, by now."""
    if not WITNESSES.exists():
        print("fetching nvitop and gpustat into build/witnesses ...", flush=True)
        subprocess.run(["sh", ROOT / "packaging" / "witnesses.sh", sys.executable], check=False)
    if WITNESSES.exists():
        return True
    print("nvitop and gpustat are missing, so no share can be judged: run `sh packaging/witnesses.sh .venv/bin/python`")
    return False


def start(contender: Contender, environment: dict[str, str], *, program: Path) -> subprocess.Popen[str]:
    witness = contender.kind, str(contender.readings), str(program)
    command = (
        [sys.executable, __file__, "--inside", contender.kind, "--readings", str(contender.readings)]
        if contender.ours
        else [str(WITNESSES), str(Path(__file__).with_name("sampler_witness.py")), *witness]
    )
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def line_of(child: subprocess.Popen[str], *, ask: bool) -> str:
    """A line of a child's; what it says when it ends instead."""
    assert child.stdin is not None
    assert child.stdout is not None
    if ask:
        child.stdin.write("\n")
        child.stdin.flush()
    line = child.stdout.readline().strip()
    if not line:
        raise SystemExit(f"a contender has ended: {child.communicate()[1].strip()}")
    return line


def measure(environment: dict[str, str], folder: Path, *, witnesses: bool) -> dict[str, list[float]]:
    """CPU milliseconds of each contender in each turn."""
    rich = environment | {"FAKE_NVML_SCRIPT": str(folder / "rich")}
    children = {
        key: start(contender, rich if key == "rich" else environment, program=folder / "smi_like")
        for key, contender in CONTENDERS.items()
        if contender.ours or witnesses
    }
    for child in children.values():
        line_of(child, ask=False)
    costs: dict[str, list[float]] = {key: [] for key in children}
    for _ in range(TURNS):  # in turn, so that a busy moment of the machine meets all
        for key, child in children.items():
            costs[key].append(float(line_of(child, ask=True)))
    for child in children.values():
        child.communicate()
    return costs


def share_of(costs: Mapping[str, Sequence[float]], mine: str, other: str) -> float:
    return statistics.median(a / b for a, b in zip(costs[mine], costs[other], strict=True))


def report(costs: Mapping[str, Sequence[float]], *, cards: int) -> bool:
    """The tables. Whether all budgets are kept, and none is left open."""
    medians = {key: statistics.median(each) for key, each in costs.items()}

    def show(*keys: str) -> None:
        for key in keys:
            if key in medians:
                print(f"  {CONTENDERS[key].name:<66} {medians[key]:7.3f} ms")

    def kept(what: str, found: float, most: float) -> bool:
        print(f"  {what:<66} {found:7.3f}     budget {most:g}: {'kept' if found <= most else 'MISSED'}")
        return found <= most

    print(f"{cards} cards, CPU of one reading of all, median of {TURNS} turns\n")
    print("(a) the fields of our fast lane that nvitop has: loads, memory, average power, temperature, clocks, PCIe")
    show("pcie", "nvitop pcie")
    judged = [kept("share", share_of(costs, "pcie", "nvitop pcie"), BUDGET_SHARE)] if "nvitop pcie" in costs else []
    print("\n(b) the same without PCIe")
    show("plain", "nvitop plain")
    judged += [kept("share", share_of(costs, "plain", "nvitop plain"), BUDGET_SHARE)] if "nvitop plain" in costs else []
    print("\n(c) each program's own tick")
    show("tick", "fast", "slow tick", "rich", "snapshot", "gpustat", "spawned")
    judged.append(kept("our fast tick", medians["tick"], BUDGET_MS))
    for other in ("snapshot", "gpustat", "spawned"):
        if other in costs:
            print(f"  of {CONTENDERS[other].name:<63} {share_of(costs, 'tick', other):7.3f}")
    return all(judged) and len(judged) == 3


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cards", type=int, default=8)
    options.add_argument("--inside", help=argparse.SUPPRESS)
    options.add_argument("--readings", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.inside is not None:
        answer(floodmark(chosen.inside), readings=chosen.readings)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not build_library(folder):
            print("no C compiler for the fake driver library")
            return 1
        subprocess.run(["cc", "-O1", "-o", folder / "smi_like", FAKE / "smi_like.c", "-ldl"], check=True)
        (folder / "script").write_text(f"- value count {chosen.cards}\n")
        (folder / "rich").write_text(f"- value count {chosen.cards}\n{RICH_SCRIPT}\n")
        fake = {"FAKE_NVML_SCRIPT": str(folder / "script"), "FAKE_NVML_STILL": "1"}
        costs = measure({**os.environ, "LD_LIBRARY_PATH": name, **fake}, folder, witnesses=have_witnesses())
    return 0 if report(costs, cards=chosen.cards) else 1


if __name__ == "__main__":
    sys.exit(main())
