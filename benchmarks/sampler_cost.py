# ruff: noqa: SLF001  measures the inside
"""What watching costs: a fast tick over 8 cards, against nvitop, gpustat and a spawned nvidia-smi-like program.

All of them read the same fake driver library in the same run (``tests/fake_nvml``), so that only their own work counts.
CPU milliseconds of all threads of the process (children for the spawned program), median of batches.
Budget: a fast tick <= 2 ms and <= 0.5 of nvitop's reading of the same fields. nvitop and gpustat: the extra
``witnesses``; left out where they are missing. Run: ``python benchmarks/sampler_cost.py [--cards 8] [--hours 24]``;
``--hours`` plays that time at 5 Hz with one card and shows drift, growth and that each tick is accounted for.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import psutil

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

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

BUDGET_MS: Final = 2.0
BUDGET_SHARE: Final = 0.5
BATCHES: Final = 15
SIZES: Final = 24  # readings of the memory in a played time
SAME_FIELDS: Final = "nvitop"
RICH: Final = "rich"
# Cards that answer everything: GPM, eighteen links, ECC, remapped rows.
RICH_SCRIPT: Final = "\n".join(
    f"* value {key} {value}"
    for key, value in {
        "gpm": 1, "gpm2": 8810, "gpm3": 4275, "gpm5": 5150, "gpm10": 6333, "gpm11": 25, "gpm12": 1950, "gpm13": 707,
        "field91": 18, "field138.all": 1000, "field139.all": 5000, "ecc": 0, "ecc_mode": 1, "field3": 0, "field5": 9,
        "field6": 0, "field142": 0, "field143": 1, "field144": 0, "field145": 0, "jpeg": 1, "optical_flow": 1,
    }.items()
)  # fmt: skip


class Quiet:
    """A sink and a host that cost nothing."""

    def __init__(self) -> None:
        self.samples = 0
        self.last_s = 0.0
        self.readings: Mapping[str, Reading] = {}

    def on_cards(self, cards: tuple[Card, ...]) -> None: ...

    def on_gpu(self, sample: GpuSample) -> None:
        self.samples += 1
        self.last_s, self.readings = sample.t_s, sample.readings

    def on_host(self, t_s: float, readings: Mapping[str, Reading]) -> None: ...

    def on_processes(self, t_s: float, uuid: str, processes: tuple[ProcessSample, ...]) -> None: ...

    def on_filled(self, sample: GpuSample) -> None: ...

    def on_card_error(self, error: CardError) -> None: ...

    def on_instances(self, t_s: float, uuid: str, instances: tuple[InstanceSample, ...]) -> None: ...

    def on_outage(self, t_s: float, uuid: str | None, reason: Reason) -> None:
        print(f"  outage at {t_s:.1f} s: {uuid} {reason}")

    def on_back(self, t_s: float, uuid: str | None) -> None: ...

    def read(self, t_s: float) -> Mapping[str, Reading]:
        del t_s
        return {}


def make_sampler(now_s: list[float], sink: Quiet, *, slow_every_s: float) -> Sampler:
    clock = SessionClock(monotonic=lambda: now_s[0], anchor_wall_s=0.0, origin_s=0.0)

    def wait(seconds: float) -> None:
        now_s[0] += seconds

    return Sampler(
        NvmlBackend(clock),
        clock,
        sink=sink,
        slow_every_s=slow_every_s,
        host=sink,
        wait=wait,
        asleep=lambda: 0.0,
        patience_s=60.0,
    )


def floodmark(part: str) -> Callable[[], object]:
    """``tick``: a fast tick of the whole sampler, ``slow tick``: one with slow fields, details and processes; ``fast``
    and ``slow``: the fields by the backend alone."""
    now_s, sink = [0.0], Quiet()
    sampler = make_sampler(now_s, sink, slow_every_s=1.0 if part == "slow tick" else 1e9)

    def tick() -> None:
        now_s[0] += 1.0 if part == "slow tick" else 0.2
        sampler._tick(now_s[0], late=False)

    tick()  # opens, and reads the slow fields
    tick()
    assert (set(sink.readings) == set(FAST_FIELDS)) == (part != "slow tick")
    backend, cards = sampler._backend, tuple(sampler._cards.values())
    read = backend.read_fast if part == "fast" else backend.read_slow
    if part.endswith("tick"):
        return tick
    return lambda: [read(card) for card in cards]


def nvitop_reading(*, pcie: bool) -> Callable[[], object]:
    """The same fields by nvitop: load, memory, power, temperature, clocks, PCIe (it has no throttle counters)."""
    from nvitop import Device

    devices = Device.all()

    def read_one(device: Any) -> tuple[Any, ...]:
        with device.oneshot():
            return (
                device.gpu_utilization(),
                device.memory_utilization(),
                device.memory_used(),
                device.power_usage(),
                device.temperature(),
                device.sm_clock(),
                device.memory_clock(),
                *((device.pcie_tx_throughput(), device.pcie_rx_throughput()) if pcie else ()),
            )

    return lambda: [read_one(device) for device in devices]


def nvitop_snapshot() -> Callable[[], object]:
    from nvitop import Device

    devices = Device.all()
    return lambda: [device.as_snapshot() for device in devices]


def gpustat_query() -> Callable[[], object]:
    import gpustat

    return gpustat.GPUStatCollection.new_query


def spawned() -> Callable[[], object]:
    program = Path(os.environ["LD_LIBRARY_PATH"]) / "smi_like"
    subprocess.run(["cc", "-O1", "-o", program, FAKE / "smi_like.c", "-ldl"], check=True)
    return lambda: subprocess.run([program], check=True, stdout=subprocess.DEVNULL)


# key: (name, what prepares it, readings in a batch, whether children do the work). Each in a process of its own:
# nvitop changes functions of the bindings.
CONTENDERS: Final[Mapping[str, tuple[str, Callable[[], Callable[[], object]], int, bool]]] = {
    "tick": ("Floodmark, fast tick (sampler, threads and all)", lambda: floodmark("tick"), 40, False),
    "fast": ("Floodmark, fast fields (backend alone)", lambda: floodmark("fast"), 40, False),
    "slow": ("Floodmark, slow fields and details (backend alone)", lambda: floodmark("slow"), 40, False),
    "slow tick": ("Floodmark, slow tick, once a second", lambda: floodmark("slow tick"), 20, False),
    RICH: ("Floodmark, slow tick, cards with GPM and 18 links", lambda: floodmark("slow tick"), 20, False),
    SAME_FIELDS: ("nvitop, the same fields", lambda: nvitop_reading(pcie=True), 2, False),
    "nvitop 7": ("nvitop, the same fields without PCIe", lambda: nvitop_reading(pcie=False), 40, False),
    "snapshot": ("nvitop, as_snapshot()", nvitop_snapshot, 2, False),
    "gpustat": ("gpustat, new_query()", gpustat_query, 8, False),
    "spawn": ("spawned nvidia-smi-like", spawned, 4, True),
}


def answer_batches(key: str) -> None:
    """In a child: a batch for each line that comes in, its cost as a line that goes out."""
    _, prepare, readings, children = CONTENDERS[key]
    work = prepare()

    def used_s() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime if children else time.process_time()

    work()
    print("ready", flush=True)
    for _ in sys.stdin:
        before_s = used_s()
        for _ in range(readings):
            work()
        print(1000.0 * (used_s() - before_s) / readings, flush=True)


def compare(environment: dict[str, str], *, rich: dict[str, str], cards: int) -> int:
    children: dict[str, subprocess.Popen[str]] = {}
    for key, (name, *_) in CONTENDERS.items():
        command = [sys.executable, __file__, "--inside", key]
        child = subprocess.Popen(
            command,
            env=environment | (rich if key == RICH else {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        if child.stdout.readline().strip() == "ready":
            children[key] = child
        else:
            print(f"  {name}: {child.communicate()[1].strip().splitlines()[-1:]}")
    costs: dict[str, list[float]] = {key: [] for key in children}
    for _ in range(BATCHES):  # in turn, so that a busy moment of the machine meets all
        for key, child in children.items():
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write("\n")
            child.stdin.flush()
            costs[key].append(float(child.stdout.readline()))
    for child in children.values():
        child.communicate()
    medians = {key: statistics.median(each) for key, each in costs.items()}
    ours = medians["tick"]
    print(f"{cards} cards, CPU ms; budget {BUDGET_MS} and {BUDGET_SHARE} of nvitop's reading of the same fields")
    for key, cost in medians.items():
        print(f"  {CONTENDERS[key][0]:<52} {cost:7.3f}   our fast tick is {ours / cost:.2f} of it")
    return int(ours > BUDGET_MS or (SAME_FIELDS in medians and ours > BUDGET_SHARE * medians[SAME_FIELDS]))


def play_hours(hours: float) -> int:
    length_s = 3600.0 * hours
    now_s, sink = [0.0], Quiet()
    sampler = make_sampler(now_s, sink, slow_every_s=1.0)
    process, sizes = psutil.Process(), []
    inner = sampler._wait

    def wait(seconds: float) -> None:
        if now_s[0] >= length_s / SIZES * (len(sizes) + 1):
            sizes.append(process.memory_info().rss)
        if now_s[0] >= length_s:
            sampler._stopping.set()
        inner(seconds)

    sampler._wait = wait
    began_s = time.process_time()
    sampler.run()
    ticks = sink.samples + sampler.missed
    drift_s = abs(sink.last_s - 0.2 * round(sink.last_s / 0.2))
    grown_kib = (sizes[-1] - sizes[1]) / 1024
    print(f"{hours:g} h at 5 Hz: {sink.samples} samples, {sampler.missed} missed, drift {1e6 * drift_s:.3f} us,")
    print(f"  memory after the first twelfth {grown_kib:+.0f} KiB, {time.process_time() - began_s:.0f} s of CPU")
    return int(abs(ticks - length_s * 5) > 1 or drift_s > 1e-6 or grown_kib > 1024)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cards", type=int, default=8)
    options.add_argument("--hours", type=float, default=0.0)
    options.add_argument("--inside", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.inside == "hours":
        return play_hours(chosen.hours)
    if chosen.inside is not None:
        answer_batches(chosen.inside)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not build_library(folder):
            print("no C compiler for the fake driver library")
            return 1
        (folder / "script").write_text(f"- value count {1 if chosen.hours else chosen.cards}\n")
        fake = {"FAKE_NVML_SCRIPT": str(folder / "script"), "FAKE_NVML_STILL": "1"}
        environment = {**os.environ, "LD_LIBRARY_PATH": name, **fake}
        if chosen.hours:
            command = [sys.executable, __file__, "--inside", "hours", "--hours", str(chosen.hours)]
            return subprocess.run(command, env=environment, check=False).returncode
        (folder / "rich").write_text(f"- value count {chosen.cards}\n{RICH_SCRIPT}\n")
        rich = {"FAKE_NVML_SCRIPT": str(folder / "rich")}
        return compare(environment, rich=rich, cards=chosen.cards)


if __name__ == "__main__":
    sys.exit(main())
