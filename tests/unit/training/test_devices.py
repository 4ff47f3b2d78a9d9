"""Devices: the CPU, a CUDA card by its statistics, and what is said where there is none."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any, Final

import pytest
import torch
from torch import nn

from desktop_app.core.errors import ExitCode, NoSuchDeviceError
from desktop_app.core.steps import Category, MemoryStats
from desktop_app.training.devices import CpuDevice, CudaDevice, open_device

MIB = 1 << 20


def test_the_cpu_has_no_card() -> None:
    device = open_device("cpu")
    assert isinstance(device, CpuDevice)
    assert device.stats() is None
    assert device.card_name is None


def test_auto_is_the_cpu_where_there_is_no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert isinstance(open_device("auto"), CpuDevice)
    with pytest.raises(NoSuchDeviceError, match="sees no CUDA card; choose cpu or simulated") as caught:
        open_device("cuda")
    assert caught.value.exit_code is ExitCode.NO_DEVICE
    assert caught.value.code == "device.no_cuda"
    with pytest.raises(ValueError, match="needs its card"):
        open_device("simulated")


def _stat(current: int, peak: int = 0) -> dict[str, dict[str, int]]:
    return {"all": {"current": current, "peak": peak}}


@pytest.fixture
def one_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that believes in one card of 6 GiB whose allocator stands still."""
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "set_device": lambda _: None,
        "get_device_name": lambda _: "NVIDIA GeForce GTX 1660",
        "get_device_properties": lambda _: SimpleNamespace(total_memory=6 << 30),
        "empty_cache": lambda: None,
        "memory_stats_as_nested_dict": lambda _: {
            "allocated_bytes": _stat(100 * MIB, 150 * MIB),
            "active_bytes": _stat(104 * MIB),
            "reserved_bytes": _stat(200 * MIB, 220 * MIB),
            "inactive_split_bytes": _stat(30 * MIB),
            "num_alloc_retries": 2,
        },
    }
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, answer)


@pytest.mark.usefixtures("one_card")
def test_statistics_of_a_card() -> None:
    device = open_device("auto")
    assert isinstance(device, CudaDevice)
    assert device.torch_device == torch.device("cuda", 0)
    assert device.card_name == "NVIDIA GeForce GTX 1660"
    model = nn.Linear(1 << 20, 2, bias=False)  # 8 MiB
    device.track_model(model)
    device.track_optimizer(torch.optim.AdamW(model.parameters()))
    device.outside_bytes = 300 * MIB
    assert device.stats() == MemoryStats(
        live_bytes=100 * MIB,
        live_peak_bytes=150 * MIB,
        reserved_bytes=200 * MIB,
        reserved_peak_bytes=220 * MIB,
        idle_split_bytes=30 * MIB,
        returnable_bytes=66 * MIB,
        alloc_retries=2,
        outside_bytes=300 * MIB,
        peak_categories={
            Category.PARAMETERS: 8 * MIB,
            Category.OPTIMIZER_STATE: 0,
            Category.GRADIENTS: 8 * MIB,
            Category.ACTIVATIONS: 134 * MIB,
        },
    )


@pytest.mark.usefixtures("one_card")
def test_an_index_that_is_not_there() -> None:
    with pytest.raises(NoSuchDeviceError, match="torch sees cards 0 to 0; choose one of them"):
        open_device("cuda:3")


_RETURNED: Final = """
import psutil, torch
from desktop_app.training.devices import CpuDevice
process = psutil.Process()
torch.ones(1 << 19).sum()
before = process.memory_info().rss
held = [torch.ones(1 << 19) for _ in range(150)]  # 300 MiB in pieces of 2 MiB
top = torch.ones(64)
full = process.memory_info().rss
held.clear()
CpuDevice().close()
print(full - before, process.memory_info().rss - before, top.sum().item())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems return memory by themselves")
def test_memory_goes_back_to_the_system_when_a_device_is_closed() -> None:
    """Tensors of a size that glibc keeps on its heap, with one small survivor on top of them. In a process of its own:
    the heap of this one has room from other tests, which the tensors would be put in."""
    done = subprocess.run([sys.executable, "-c", _RETURNED], capture_output=True, text=True, timeout=300, check=True)
    taken, left, survivor = (float(part) for part in done.stdout.split())
    assert taken > 250 * MIB
    assert left < 80 * MIB
    assert survivor == 64
