"""A driver whose structures are nonsense: never a crash, never a value that it did not give."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from desktop_app.core.telemetry import Reason
from desktop_app.telemetry.nvml import Answer
from desktop_app.telemetry.nvml_lists import bounded
from desktop_app.telemetry.plausibility import is_moment, is_pid, judge_used_memory

ROOT = Path(__file__).resolve().parents[3]


def test_thousands_of_overwritten_structures(driver_folder: Path) -> None:
    """A small form of ``benchmarks/nvml_fuzz.py``, which overwrites 10,000."""
    command = [sys.executable, "benchmarks/nvml_fuzz.py", "--inside", "--structures", "3000", "--seed", "11"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={"LD_LIBRARY_PATH": str(driver_folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def library(**functions: Any) -> Any:
    """The bindings with other functions below them."""
    return SimpleNamespace(**{**vars(pynvml), "nvmlLib": SimpleNamespace(**functions)})


def number(reference: Any) -> Any:
    return reference._obj


class TestListsHaveAnEnd:
    @pytest.mark.parametrize("count", [2**31, 2**32 - 1, 9000])
    def test_more_entries_than_there_can_be(self, count: int) -> None:
        def answer(_: Any, length: Any, __: Any) -> int:
            number(length).value = count
            return 7  # insufficient size

        ask = bounded(library(nvmlDeviceGetComputeRunningProcesses_v3=answer), "nvmlDeviceGetComputeRunningProcesses")
        assert ask is not None
        with pytest.raises(pynvml.NVMLError):
            ask(None)

    def test_success_with_more_entries_than_room(self) -> None:
        def answer(_: Any, length: Any, __: Any) -> int:
            number(length).value += 1
            return 0

        ask = bounded(library(nvmlDeviceGetGraphicsRunningProcesses_v3=answer), "nvmlDeviceGetGraphicsRunningProcesses")
        assert ask is not None
        with pytest.raises(pynvml.NVMLError):
            ask(None)

    def test_a_long_list_is_asked_for_again_with_room(self) -> None:
        rooms = []

        def answer(_: Any, length: Any, entries: Any) -> int:
            rooms.append(number(length).value)
            number(length).value = 100
            if len(entries) < 100:
                return 7
            entries[99].pid = 4321
            entries[99].usedGpuMemory = 2**64 - 1
            return 0

        ask = bounded(
            library(nvmlDeviceGetMPSComputeRunningProcesses_v3=answer), "nvmlDeviceGetMPSComputeRunningProcesses"
        )
        assert ask is not None
        found = ask(None)
        assert len(found) == 100
        assert (found[99].pid, found[99].usedGpuMemory) == (4321, None)
        assert rooms == [32, 200]

    def test_samples_by_process(self) -> None:
        def answer(_: Any, entries: Any, length: Any, __: Any) -> int:
            number(length).value = 2**32 - 1
            return 7 if entries is None else 0

        ask = bounded(library(nvmlDeviceGetProcessUtilization=answer), "nvmlDeviceGetProcessUtilization")
        assert ask is not None
        with pytest.raises(pynvml.NVMLError):
            ask(None, 0)

    def test_other_calls_are_the_bindings_own(self) -> None:
        assert bounded(pynvml, "nvmlDeviceGetName") is None


def test_a_text_in_a_structure_that_is_none() -> None:
    information = pynvml.nvmlPciInfo_t()
    ctypes.memset(ctypes.byref(information), 0xFF, ctypes.sizeof(information))
    assert Answer(information).part("busId") == Answer(reason=Reason.IMPLAUSIBLE)


def test_what_cannot_be() -> None:
    assert judge_used_memory(2**40, 2**39, most_bytes=2**34).reason is Reason.IMPLAUSIBLE
    assert judge_used_memory(2**60, 2**30).reason is Reason.IMPLAUSIBLE
    assert judge_used_memory(2**34, 2**30, most_bytes=2**34).value == 2**30
    assert [is_pid(pid) for pid in (0, 1, 4_194_304, 2**32 - 1)] == [False, True, True, False]
    wall_s = 1.7e9
    assert is_moment(int(wall_s * 1e6), wall_s=wall_s)
    assert not is_moment(int((wall_s + 86400) * 1e6), wall_s=wall_s)
