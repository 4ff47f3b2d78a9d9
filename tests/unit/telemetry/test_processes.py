"""What a process costs the computer, and whose pid it is."""

from __future__ import annotations

import os
import types
from collections.abc import Callable

import psutil
import pytest

from desktop_app.telemetry.processes import ProcessCost, ProcessDirectory, ProcessFacts


def a_directory(now_s: list[float], *, apart: bool = False, holds: Callable[[int], bool | None] = lambda _: True):  # type: ignore[no-untyped-def]
    return ProcessDirectory(clock=lambda: now_s[0], all_pids=lambda: not apart, own_kind=lambda: "podman", holds=holds)


class TestCost:
    def test_a_share_needs_two_looks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now_s, busy_s = [100.0], [5.0]
        monkeypatch.setattr(psutil.Process, "cpu_times", lambda _: types.SimpleNamespace(user=busy_s[0], system=1.0))
        directory = a_directory(now_s)
        directory.describe(os.getpid())
        first = directory.cost(os.getpid())
        assert first.cpu_percent is None  # not 0
        assert first.rss_bytes == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)
        now_s[0], busy_s[0] = 101.0, 7.5
        assert directory.cost(os.getpid()).cpu_percent == pytest.approx(250.0)
        now_s[0], busy_s[0] = 101.01, 7.6  # another card asks in the same second
        assert directory.cost(os.getpid()).cpu_percent == pytest.approx(250.0)
        now_s[0], busy_s[0] = 102.0, 7.6
        assert directory.cost(os.getpid()).cpu_percent == pytest.approx(10.0)

    def test_a_pid_that_is_not_there_costs_nothing_known(self) -> None:
        directory = a_directory([0.0])
        directory.describe(2**22 - 3)
        assert directory.cost(2**22 - 3) == ProcessCost()


class TestPidsInAContainer:
    def test_one_that_is_not_here_is_the_hosts(self) -> None:
        assert a_directory([0.0], apart=True).describe(2**22 - 3) == ProcessFacts(foreign=True)
        assert a_directory([0.0]).describe(2**22 - 3) == ProcessFacts()  # it has just ended

    @pytest.mark.parametrize(("holds", "foreign"), [(False, True), (None, False)])
    def test_a_number_that_is_taken_here_is_not_taken_for_it(self, holds: bool | None, foreign: bool) -> None:
        directory = a_directory([0.0], apart=True, holds=lambda _: holds)
        assert directory.describe(os.getppid()) == ProcessFacts(foreign=foreign)
        assert directory.cost(os.getppid()) == ProcessCost()

    def test_one_that_holds_a_card_is_in_the_same_container(self) -> None:
        facts = a_directory([0.0], apart=True).describe(os.getppid())
        assert (facts.foreign, facts.container) == (False, "podman")
        assert facts.started_wall_s is not None
