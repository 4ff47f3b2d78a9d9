# ruff: noqa: SLF001  plays the inside
"""A day of watching in minutes: 24 h at 5 Hz on the fake driver, through backend, sampler, feed and store.

    python benchmarks/day_of_sampling.py [--hours 24]

Time is played; the driver stalls for 3 s every hour, loses the card for 20 s, is reloaded, and pushes a storm of
errors. Says whether a tick was lost that nobody accounts for, whether the grid drifted, and what memory did in the
second half, when the rows' ring is full: the coarse levels of the histories go on filling, each half as fast as the one
below, up to an allotment that is known beforehand. What grows beside them is a leak. An hour costs about 9 s of CPU.
Fails beyond the limits below: unaccounted ticks, drift, errors lost, histories above their allotment, other growth.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psutil

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from desktop_app.core.clock import SessionClock  # noqa: E402
from desktop_app.core.events import EventKind, EventQueue  # noqa: E402
from desktop_app.core.pyramid import MAX_LEVELS  # noqa: E402
from desktop_app.core.store import Store  # noqa: E402
from desktop_app.core.telemetry import Reading  # noqa: E402
from desktop_app.services.telemetry_feed import TelemetryFeed, history_name  # noqa: E402
from desktop_app.telemetry.nvml_backend import NvmlBackend  # noqa: E402
from desktop_app.telemetry.sampler import Sampler  # noqa: E402
from tests.fake_nvml.driver import build_library  # noqa: E402

HZ: Final = 5.0
STALL_S: Final = 3.0
LOST_S: Final = 20.0
STORM: Final = 2000  # in a day; 250 for each hour of a shorter time, so that they arrive before it ends
# A tick in flight at each end, and a tick at each border of each outage.
SLACK_TICKS: Final = 8
MOST_DRIFT_S: Final = 1e-6
MOST_GROWN_KIB: Final = 512  # of what is no history: the allocator's own pages


def script(hours: float) -> str:
    """What happens: a stall at each half hour; at a quarter of the time the card is lost, at half of it the driver is
    reloaded, at three quarters a program goes wrong again and again."""
    length_s = 3600.0 * hours
    lost_s = round(length_s / 4)
    lines = [
        "* value util 10 40 80 97 60 20 every 7",
        "* value used 2000000000 4000000000 6000000000 every 11",
        f"* process compute {os.getppid()} 1073741824",
        "* process compute 4194300 1048576",
        f"0 @{lost_s}..{lost_s + LOST_S:.0f} error * 15",
        f"* @{round(length_s / 2)}.. reload",
        f"0 @{round(0.75 * length_s)}.. xid 31 {storm(hours)}",
    ]
    stalls = [f"* @{at}..{at + 1.0} stall nvmlDeviceGetUtilizationRates {STALL_S:.0f}" for at in stall_times(hours)]
    return "\n".join([*lines, *stalls])


def storm(hours: float) -> int:
    return min(STORM, round(250 * hours))


def stall_times(hours: float) -> list[int]:
    return [1800 + 3600 * hour for hour in range(int(hours))]


class NoHost:
    def read(self, t_s: float) -> Mapping[str, Reading]:
        del t_s
        return {}


class Day:
    """The program's own objects, on the library's clock."""

    def __init__(self, hours: float) -> None:
        self.length_s = 3600.0 * hours
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.library.fake_nvml_clock.restype = ctypes.c_double
        self.library.fake_nvml_set_clock.argtypes = [ctypes.c_double]
        self.library.fake_nvml_play(script(hours).encode())
        self.library.fake_nvml_set_clock(0.0)
        self.clock = SessionClock(monotonic=self.library.fake_nvml_clock, anchor_wall_s=0.0, origin_s=0.0)
        self.store, self.events = Store(), EventQueue()
        self.feed = TelemetryFeed(self.store, self.events, on_cards_known=lambda: None, on_second=lambda: None)
        self.sampler = Sampler(
            NvmlBackend(self.clock, wall_clock=self.library.fake_nvml_clock),
            self.clock,
            sink=self.feed,
            interval_s=1.0 / HZ,
            host=NoHost(),
            wait=self.wait,
            asleep=lambda: 0.0,
            patience_s=60.0,
        )
        self.process = psutil.Process()
        self.sizes: list[tuple[float, int, int]] = []  # (played s, resident bytes, written bytes of the histories)

    def histories(self) -> tuple[int, int]:
        """(bytes of the histories that hold something, what they take when all their rings are full). A ring's room is
        doubled in one piece, and the system gives the pages of it as they are written to."""
        written = most = 0
        for name in self.store.names():
            history = self.store.history(name)
            columns, levels = len(history.columns), history._pyramid._capacity
            rings = [
                history._rows,
                *(part for level in history._pyramid.levels for part in (level._spans, level._extremes)),
            ]
            written += sum(round(ring.nbytes * min(1.0, ring.total / ring._room)) for ring in rings)
            most += 2 * 8 * (1 + columns) * history.capacity  # each entry twice: a ring that is read as one piece
            most += MAX_LEVELS * 2 * levels * (2 * 8 + 2 * columns * 4)
        return written, most

    def resident(self) -> int:
        """Bytes in memory, without what the allocator has taken back from rings that grew and keeps for the next."""
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc
        if trim is not None:
            trim(0)
        return int(self.process.memory_info().rss)

    def wait(self, seconds: float) -> None:
        now_s = self.clock.now_s()
        if now_s >= self.length_s / 24 * (len(self.sizes) + 1):
            held, _ = self.histories()
            self.sizes.append((now_s, self.resident(), held))
            rss_mib, held_mib = self.sizes[-1][1] / 2**20, held / 2**20
            print(f"  {now_s / 3600:5.2f} h: {rss_mib:.1f} MiB resident, {held_mib:.1f} in histories", flush=True)
        if now_s >= self.length_s:
            self.sampler._stopping.set()
        self.library.fake_nvml_set_clock(now_s + seconds)


def play(hours: float) -> int:
    day = Day(hours)
    began_s = time.process_time()
    day.sampler.run()
    cpu_s = time.process_time() - began_s
    (card,) = day.feed.cards.get()
    history = day.store.history(history_name(card.uuid))
    events = day.events.since(0)[0]
    outages = [e.t_s for e in events if e.kind is EventKind.OUTAGE]
    backs = [e.t_s for e in events if e.kind is EventKind.BACK]
    xids = [e for e in events if e.kind is EventKind.XID]
    counted = sum(int(str(e.params["count"])) for e in xids)
    samples, missed = day.sampler.cost().samples, day.sampler.missed
    away = sum(b - a for a, b in zip(outages, backs, strict=True)) - STALL_S * len(stall_times(hours))
    unaccounted = HZ * day.length_s - samples - missed - HZ * away
    drift_s = abs(history.ended_s - round(HZ * history.ended_s) / HZ)
    held, most = day.histories()
    held_kib = (held - day.sizes[len(day.sizes) // 2 - 1][2]) / 1024
    others = [resident - written for _, resident, written in day.sizes]
    quarter = len(others) // 4  # the least of several: while a ring is moved there is more
    others_kib = (min(others[-quarter:]) - min(others[quarter : 2 * quarter])) / 1024
    filled = history.version - samples - len(outages)
    print(f"{hours:g} h at {HZ:g} Hz: {samples} samples, {missed} ticks missed in {len(stall_times(hours))} stalls,")
    print(f"  {away:.1f} s of outages beside them, {unaccounted:+.1f} ticks unaccounted for,")
    print(f"  drift {1e6 * drift_s:.3f} us;")
    print(f"  {filled} rows filled from the driver's record;")
    print(f"  {counted} of {storm(hours)} pushed errors in {len(xids)} events;")
    print(f"  in the second half histories took {held_kib:+.0f} KiB (they hold {held / 2**20:.1f} of at most")
    print(f"  {most / 2**20:.1f} MiB), and all else {others_kib:+.0f} KiB (last quarter against the second);")
    print(f"  {cpu_s:.0f} s of CPU")
    missed_limits = {
        "ticks unaccounted for": abs(unaccounted) > SLACK_TICKS,
        "drift": drift_s > MOST_DRIFT_S,
        "pushed errors lost": counted != storm(hours),
        "histories above their allotment": held > most,
        "growth beside the histories": others_kib > MOST_GROWN_KIB,
    }
    print("  " + (", ".join(name for name, missed in missed_limits.items() if missed) or "all limits are kept"))
    return int(any(missed_limits.values()))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hours", type=float, default=24.0)
    options.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.inside:
        return play(chosen.hours)
    with tempfile.TemporaryDirectory() as name:
        if not build_library(Path(name)):
            print("no C compiler for the fake driver library")
            return 1
        command = [sys.executable, __file__, "--inside", "--hours", str(chosen.hours)]
        return subprocess.run(command, env={**os.environ, "LD_LIBRARY_PATH": name}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
