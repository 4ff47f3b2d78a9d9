"""The other side of ``sampler_cost.py``: nvitop, gpustat and a spawned program, read in batches for a line each.

Started by it, with the interpreter that has them (``packaging/witnesses.sh``); the standard library and theirs only.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any


def nvitop_reading(*, pcie: bool) -> Callable[[], object]:
    """The fields of our fast lane that nvitop has, in its own cheapest way: one answer of the driver serves several."""
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

    for device in devices:
        values = read_one(device)
        assert all(isinstance(value, int) for value in values), f"nvitop read no number: {values}"
    return lambda: [read_one(device) for device in devices]


def nvitop_snapshot() -> Callable[[], object]:
    from nvitop import Device

    devices = Device.all()
    return lambda: [device.as_snapshot() for device in devices]


def gpustat_query() -> Callable[[], object]:
    import gpustat

    return gpustat.GPUStatCollection.new_query


def spawned(program: str) -> Callable[[], object]:
    return lambda: subprocess.run([program], check=True, stdout=subprocess.DEVNULL)


def answer(work: Callable[[], object], *, readings: int, children: bool = False) -> None:
    """For each line that comes in a batch of readings; out goes a line with one's CPU milliseconds, all threads."""

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


def main(kind: str, readings: str, *arguments: str) -> None:
    kinds: dict[str, Callable[[], Callable[[], object]]] = {
        "pcie": lambda: nvitop_reading(pcie=True),
        "plain": lambda: nvitop_reading(pcie=False),
        "snapshot": nvitop_snapshot,
        "gpustat": gpustat_query,
        "spawned": lambda: spawned(*arguments),
    }
    answer(kinds[kind](), readings=int(readings), children=kind == "spawned")


if __name__ == "__main__" and len(sys.argv) > 1:  # without arguments it is not meant
    main(*sys.argv[1:])
