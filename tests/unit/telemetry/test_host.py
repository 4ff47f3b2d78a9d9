"""The machine around the card, and the processes on it."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import NamedTuple

import psutil
import pytest

from desktop_app.core.telemetry import HOST_FIELDS, Reading, Reason
from desktop_app.telemetry import host, processes
from desktop_app.telemetry.host import HostReader
from desktop_app.telemetry.processes import ProcessDirectory, ProcessFacts


class CpuTimes(NamedTuple):
    user: float
    system: float
    idle: float
    iowait: float
    guest: float


def test_a_real_machine_reads_plausibly() -> None:
    reader = HostReader()
    first = reader.read(0.0)
    assert set(first) == set(HOST_FIELDS)
    assert first["cpu_percent"] == Reading(None, Reason.NOT_READ_YET)  # psutil would say 0.0 here
    assert first["own_cpu_percent"] == Reading(None, Reason.NOT_READ_YET)
    assert (first["own_rss_bytes"].value or 0) > 2**20
    total = psutil.virtual_memory().total
    used, available = first["memory_used_bytes"].value, first["memory_available_bytes"].value
    assert used is not None
    assert available is not None
    assert used + available == total
    second = reader.read(2.0)
    assert (second["own_cpu_percent"].value or 0.0) >= 0.0


def test_cpu_share_from_its_own_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([CpuTimes(100, 50, 800, 50, 10), CpuTimes(103, 51, 805, 51, 10)])
    monkeypatch.setattr(psutil, "cpu_times", lambda: next(times))
    reader = HostReader()
    reader.read(0.0)
    # 3 + 1 s busy of 10 s; waiting for disks is idle, guest time is in user already
    assert reader.read(1.0)["cpu_percent"] == Reading(pytest.approx(40.0))


def test_disk_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([(1000, 5000), (3000, 5000), (2000, 9000)])

    def counters() -> SimpleNamespace:
        read_bytes, write_bytes = next(counts)
        return SimpleNamespace(read_bytes=read_bytes, write_bytes=write_bytes)

    monkeypatch.setattr(psutil, "disk_io_counters", counters)
    reader = HostReader()
    assert reader.read(0.0)["disk_read_bytes_per_s"].reason is Reason.NOT_READ_YET
    second = reader.read(2.0)
    assert (second["disk_read_bytes_per_s"], second["disk_write_bytes_per_s"]) == (Reading(1000.0), Reading(0.0))
    third = reader.read(4.0)
    assert third["disk_read_bytes_per_s"] == Reading(None, Reason.IMPLAUSIBLE)  # went back: a disk was unplugged
    assert third["disk_write_bytes_per_s"] == Reading(2000.0)


def test_a_container_without_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "disk_io_counters", lambda: None)
    assert HostReader().read(0.0)["disk_read_bytes_per_s"] == Reading(None, Reason.NOT_SUPPORTED)


def test_each_part_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise PermissionError

    monkeypatch.setattr(psutil, "virtual_memory", refuse)
    readings = HostReader().read(0.0)
    assert readings["memory_used_bytes"] == Reading(None, Reason.UNKNOWN_ERROR)
    assert readings["own_rss_bytes"].value is not None


def test_system_memory() -> None:
    total, used = host.system_memory()
    assert 0 < used < total


class TestProcesses:
    def test_this_process(self) -> None:
        facts = ProcessDirectory().describe(os.getpid())
        assert facts.own
        assert facts.name
        assert facts.command is not None
        assert sys.argv[0].split("/")[-1] in facts.command or "python" in facts.command
        assert facts.started_wall_s == pytest.approx(psutil.Process().create_time())

    def test_another_process(self) -> None:
        assert ProcessDirectory().describe(os.getppid()).own is False

    @pytest.mark.parametrize("pid", [2**31 - 2, 2**40, -5])
    def test_a_pid_that_is_not_here_is_unknown(self, pid: int) -> None:
        assert ProcessDirectory().describe(pid) == ProcessFacts()

    def test_a_closed_door_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(_: psutil.Process) -> str:
            raise psutil.AccessDenied

        monkeypatch.setattr(psutil.Process, "cmdline", refuse)
        monkeypatch.setattr(psutil.Process, "username", refuse)
        facts = ProcessDirectory().describe(os.getpid())
        assert (facts.command, facts.user) == (None, None)
        assert facts.name

    def test_it_is_asked_once_until_the_pid_is_another_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        directory, asked = ProcessDirectory(), []
        monkeypatch.setattr(psutil.Process, "name", lambda process: asked.append(process.pid) or "name")
        directory.describe(os.getpid())
        directory.describe(os.getpid())
        assert len(asked) == 1
        monkeypatch.setattr(psutil.Process, "create_time", lambda _: 12345.0)
        directory.describe(os.getpid())
        assert len(asked) == 2

    def test_it_does_not_grow_for_ever(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(processes, "_MOST_KNOWN", 1)
        directory = ProcessDirectory()
        directory.describe(os.getpid())
        directory.describe(os.getppid())
        assert list(directory._known) == [os.getppid()]
