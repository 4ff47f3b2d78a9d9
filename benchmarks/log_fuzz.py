"""Damaged copies of given logs: how many are read in part, how many are refused, and any exception or strange number.

``python benchmarks/log_fuzz.py [COUNT] [SEED]``; the logs are those of ``../shared/cases/files`` beside the checkout,
or the made ones of the tests.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "unit" / "telemetry" / "logs"))

from log_samples import ALL, strange_values  # noqa: E402
from test_log_fuzz import mutated  # noqa: E402

from desktop_app.telemetry.logs.kinds import UnknownKindError, open_log  # noqa: E402
from desktop_app.telemetry.logs.log_lines import decoded, unpacked  # noqa: E402

_FOLDERS = ("smi_xml", "smi_csv", "smi_text", "rocm", "prom", "text_logs")


def given_logs() -> dict[str, bytes]:
    folder = ROOT.parent / "shared" / "cases" / "files"
    found = {path.name: path.read_bytes() for name in _FOLDERS for path in sorted((folder / name).glob("*"))}
    return found or {name: text.encode() for name, text in ALL.items()}


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    logs = given_logs()
    names = sorted(logs)
    told: Counter[str] = Counter()
    slowest_s, strange = 0.0, 0
    began = time.perf_counter()
    for _ in range(count):
        name = rng.choice(names)
        data = mutated(logs[name], rng)
        start = time.perf_counter()
        try:
            log = open_log(data)
            records = list(log.records)
        except UnknownKindError:
            told["refused"] += 1
            continue
        except ValueError as error:
            told[f"told: {str(error)[:40]}"] += 1
            continue
        slowest_s = max(slowest_s, time.perf_counter() - start)
        told["imported" if records else "nothing usable"] += 1
        found = strange_values(records, decoded(unpacked(data)))
        if found:
            strange += 1
            print(f"strange in {name}: {found[:3]}")
    print(
        f"{count} damaged logs of {len(names)} in {time.perf_counter() - began:.0f} s, slowest {slowest_s * 1e3:.0f} ms"
    )
    for what, number in told.most_common():
        print(f"  {what}: {number}")
    print(f"  with a number from nowhere: {strange}")
    return 1 if strange else 0


if __name__ == "__main__":
    raise SystemExit(main())
