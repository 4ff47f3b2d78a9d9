"""Children of this process and the commit charge: what a run can exhaust besides the card."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry import host
from desktop_app.telemetry.child_processes import ChildProcesses
from desktop_app.telemetry.commit_charge import commit_charge, of_linux
from desktop_app.telemetry.host import HostReader

MIB = 2**20
MEMINFO = (
    "MemTotal:       32768000 kB\nCommitLimit:    20000000 kB\nCommitted_AS:   15000000 kB\nHugePages_Total:       0\n"
)


def test_a_child_is_counted_with_its_memory_until_it_has_ended() -> None:
    before = ChildProcesses(psutil.Process()).read(0.0)
    assert before is not None
    code = f"held = bytearray(b'x') * {64 * MIB}; print('ready', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        child.stdout.readline()
        reader = ChildProcesses(psutil.Process())
        during = reader.read(0.0)
        child.stdin.close()
        child.wait(timeout=30)
        after = reader.read(1.0)
    assert during is not None
    assert during[0] == before[0] + 1
    assert during[1] - before[1] > 64 * MIB
    assert after == before or (after is not None and after[0] == before[0])


class Family:
    """A process whose children are looked up, and how often."""

    def __init__(self, *sizes: int) -> None:
        self.looks = 0
        self.kin = [SimpleNamespace(memory_info=lambda size=size: SimpleNamespace(rss=size)) for size in sizes]

    def children(self, *, recursive: bool) -> list[SimpleNamespace]:
        assert recursive
        self.looks += 1
        return list(self.kin)


def test_looking_for_children_takes_a_bounded_share_of_the_time() -> None:
    """Each look takes 60 ms here, as with some hundred processes: 0.3 % of the time is one every 20 s."""
    family = Family(3 * MIB, 4 * MIB)
    ticks = iter([0.06 * n for n in range(1000)])
    reader = ChildProcesses(family, clock=lambda: next(ticks))
    read = [reader.read(float(second)) for second in range(60)]
    assert set(read) == {(2, 7 * MIB)}
    assert family.looks == 3


def test_children_that_cannot_be_seen_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> list[psutil.Process]:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil.Process, "children", refuse)
    readings = HostReader().read(0.0)
    assert readings["children"] == readings["children_rss_bytes"] == Reading(None, Reason.UNKNOWN_ERROR)
    assert readings["own_rss_bytes"].value


@pytest.mark.parametrize(
    ("overcommit", "meminfo", "charge"),
    [
        ("2\n", MEMINFO, (15_000_000 * 1024, 20_000_000 * 1024)),
        ("0\n", MEMINFO, None),  # the usual setting: CommitLimit stands there and limits nothing
        ("1\n", MEMINFO, None),
        ("2\n", "MemTotal: 1 kB\n", None),
        ("2\n", "CommitLimit: much\n", None),
    ],
)
def test_linux_has_a_limit_only_with_strict_overcommit(
    tmp_path: Path, overcommit: str, meminfo: str, charge: tuple[int, int] | None
) -> None:
    (tmp_path / "overcommit").write_text(overcommit)
    (tmp_path / "meminfo").write_text(meminfo)
    assert of_linux(tmp_path / "meminfo", tmp_path / "overcommit") == charge
    assert of_linux(tmp_path / "none", tmp_path / "overcommit") is None


def test_the_charge_of_this_machine() -> None:
    charge = commit_charge()
    assert charge is None or charge[0] > 0
    assert sys.platform != "win32" or charge is not None


def test_the_charge_is_read_with_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "commit_charge", lambda: (3, 5))
    readings = HostReader().read(0.0)
    assert (readings["commit_used_bytes"], readings["commit_limit_bytes"]) == (Reading(3.0), Reading(5.0))
    monkeypatch.setattr(host, "commit_charge", lambda: None)
    assert HostReader().read(0.0)["commit_used_bytes"] == Reading(None, Reason.NOT_SUPPORTED)


def test_total_is_used_and_available_together() -> None:
    readings = HostReader().read(0.0)
    used, available = readings["memory_used_bytes"].value, readings["memory_available_bytes"].value
    assert used is not None
    assert available is not None
    assert readings["memory_total_bytes"].value == used + available
