"""Damaged copies of given logs: how many are read in part, how many are refused, and any exception or strange number.

``python benchmarks/log_fuzz.py [COUNT] [SEED]``; the logs are those of ``../shared/cases/files`` beside the checkout
and the made ones of the tests, of cards and of trainings. Every fourth copy is only cut off; what is read
of it must stand in the same line of the whole log. A line every hundredth of the way; exit code 1 upon an exception or
a number that the log does not have.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "unit" / "telemetry" / "logs"))

from log_samples import ALL, figures, opened_figures, strange_values  # noqa: E402
from test_log_fuzz import mutated  # noqa: E402
from training_samples import (  # noqa: E402
    BY_TENSORBOARD,
    LLM_C,
    TITAN,
    TRAININGS,
    strange_events,
    strange_scalars,
)

from desktop_app.services.import_runs import RunBook  # noqa: E402
from desktop_app.services.log_import import import_logs  # noqa: E402
from desktop_app.telemetry.logs.kinds import OpenLog, UnknownKindError, open_log  # noqa: E402
from desktop_app.telemetry.logs.log_lines import decoded, unpacked  # noqa: E402
from desktop_app.telemetry.logs.tfevents import looks_like_events  # noqa: E402

# One in so many goes the whole way, into a session: most of that is the disk.
_WHOLE_WAY = 50
_MOST_SHOWN = 20
_CUT = 4  # one in so many is cut off and nothing else


def given_logs() -> dict[str, bytes]:
    folder = ROOT.parent / "shared" / "cases" / "files"
    found = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    found.pop("index.csv", None)
    made = {**ALL, **TRAININGS, "llm.c": LLM_C, "torchtitan": TITAN}
    return found | {f"made {name}": text.encode() for name, text in made.items()} | {"made events": BY_TENSORBOARD}


@dataclass(slots=True)
class Tally:
    told: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    slowest: str = ""
    strange: int = 0
    failed: int = 0
    sessions: int = 0
    cut: int = 0

    def trouble(self, what: str) -> None:
        if self.strange + self.failed <= _MOST_SHOWN:
            print(what, flush=True)


def one(name: str, original: bytes, data: bytes, tally: Tally, *, cut: bool) -> None:
    """Read one damaged log and look at what came of it; of one that is only ``cut``, beside the whole one."""
    start = time.process_time()
    try:
        log = open_log(data)
        records = list(log.records)
        book = RunBook()
        book.add(0, Path(name), log.kinds, log.training)
        book.settled()
    except UnknownKindError:
        tally.told["refused"] += 1
        return
    except ValueError as error:
        tally.told[f"told: {str(error)[:40]}"] += 1
        return
    took_s = time.process_time() - start
    if took_s > tally.slowest_s:
        tally.slowest_s, tally.slowest = took_s, name
    tally.told["imported" if records or log.training else "nothing usable"] += 1
    found = _strange(log, original, data, records)
    if cut and not found and not looks_like_events(data):
        tally.cut += 1
        found = sorted(map(str, figures(records, log) - _whole(original)))
    if found:
        tally.strange += 1
        tally.trouble(f"strange in {name}: {sorted(found)[:3]}")


def _strange(log: OpenLog, original: bytes, data: bytes, records: list) -> list | set:
    if looks_like_events(data):
        whole = open_log(original)
        list(whole.records)
        return strange_events(log, whole)
    text = decoded(unpacked(data))
    return strange_values(records, text) + strange_scalars(log, text)


@cache
def _whole(original: bytes) -> set[tuple[object, ...]]:
    return opened_figures(original)


def whole_way(name: str, data: bytes, folder: Path, tally: Tally) -> None:
    path = folder / Path(name).name.replace(" ", "-")
    path.write_bytes(data)
    tally.sessions += len(import_logs([path], parent=folder / "sessions").sessions)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1")
    return number


_count.__name__ = "whole number"  # what argparse says that it wanted


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("count", nargs="?", type=_count, default=10_000, help="damaged copies, from 1; default 10,000")
    parser.add_argument("seed", nargs="?", type=int, default=0, help="of the damage; default 0")
    asked = parser.parse_args()
    count, seed = asked.count, asked.seed
    logs = given_logs()
    names = sorted(logs)
    tally = Tally()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            rng = random.Random(f"{seed} {number}")
            name = rng.choice(names)
            cut = number % _CUT == 0
            data = logs[name][: rng.randrange(1, len(logs[name]))] if cut else mutated(logs[name], rng)
            try:
                one(name, logs[name], data, tally, cut=cut)
                if number % _WHOLE_WAY == 0:
                    whole_way(name, data, Path(folder), tally)
            except Exception:
                tally.failed += 1
                tally.trouble(f"exception in {name}, log {number} of seed {seed}:\n{traceback.format_exc(limit=-4)}")
            if (number + 1) % max(1, count // 100) == 0:
                spent = time.perf_counter() - began
                print(
                    f"{number + 1:,} of {count:,} in {spent:.0f} s: exceptions {tally.failed}, strange {tally.strange}",
                    flush=True,
                )
    print(f"\n{count:,} damaged copies of {len(names)} logs in {time.perf_counter() - began:.0f} s, seed {seed}")
    for what, times in tally.told.most_common():
        print(f"  {what}: {times:,}")
    print(f"  slowest: {tally.slowest_s * 1e3:.0f} ms of CPU ({tally.slowest})")
    print(f"  cut off and held against the whole log: {tally.cut:,}")
    print(f"  sessions written: {tally.sessions}")
    print(f"  exceptions: {tally.failed}")
    print(f"  with a number from nowhere: {tally.strange}")
    return 1 if tally.strange or tally.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
