"""``PYTORCH_ALLOC_CONF`` is read as torch 2.13 reads it (compared through its own parser, see the last test)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from desktop_app.core.units import MIB
from desktop_app.memory.allocator_settings import AllocatorSettings, round_request


def test_the_defaults_are_those_of_torch() -> None:
    settings = AllocatorSettings.parse("")
    assert settings == AllocatorSettings()
    assert settings.max_split_size_bytes is None
    assert settings.max_non_split_rounding_bytes == 20 * MIB
    assert settings.large_segment_size_bytes == 20 * MIB
    assert settings.garbage_collection_threshold == 0.0
    assert settings.per_process_memory_fraction is None
    assert settings.division_table() is None


def test_every_key_is_read() -> None:
    text = (
        " large_segment_size_mb:32, max_split_size_mb:128,max_non_split_rounding_mb:40,"
        "garbage_collection_threshold:0.8,roundup_power2_divisions:4,per_process_memory_fraction:0.9,"
    )
    assert AllocatorSettings.parse(text) == AllocatorSettings(
        max_split_size_bytes=128 * MIB,
        max_non_split_rounding_bytes=40 * MIB,
        garbage_collection_threshold=0.8,
        roundup_power2_divisions=4,
        large_segment_size_bytes=32 * MIB,
        per_process_memory_fraction=0.9,
    )


def test_switches_are_read() -> None:
    settings = AllocatorSettings.parse("expandable_segments:True,throw_on_cudamalloc_oom:True")
    assert settings == AllocatorSettings(expandable_segments=True, throw_on_cudamalloc_oom=True)
    assert AllocatorSettings.parse("expandable_segments:False") == AllocatorSettings()


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTORCH_ALLOC_CONF": "roundup_power2_divisions:2", "PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:4"},
        {"PYTORCH_ALLOC_CONF": "roundup_power2_divisions:2", "PYTORCH_HIP_ALLOC_CONF": "roundup_power2_divisions:8"},
    ],
    ids=["new and older", "new and hip"],
)
def test_the_environment_is_read_as_the_installed_torch_reads_it(environment: dict[str, str]) -> None:
    others = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name}
    text = "import torch; print(torch._C._accelerator_getAllocatorSettings())"
    found = subprocess.check_output([sys.executable, "-W", "ignore", "-c", text], env=others | environment, text=True)
    assert AllocatorSettings.from_environment(environment) == AllocatorSettings.parse(found.strip())


def test_one_variable_is_enough() -> None:
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"):
        environment = {name: "expandable_segments:True", "PATH": "max_split_size_mb:64"}
        assert AllocatorSettings.from_environment(environment) == AllocatorSettings(expandable_segments=True)
    assert AllocatorSettings.from_environment({}) == AllocatorSettings()


def test_keys_that_do_not_touch_blocks_are_accepted() -> None:
    text = "backend:native,expandable_segments:False,pinned_use_background_threads:True,max_split_size_mb:-1"
    assert AllocatorSettings.parse(text) == AllocatorSettings()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("max_split_size:128", "max_split_size"),
        ("max_split_size_mb", "max_split_size_mb"),
        ("max_split_size_mb:", "max_split_size_mb"),
        ("max_split_size_mb:many", "max_split_size_mb"),
        ("max_split_size_mb:19", "max_split_size_mb"),
        ("max_split_size_mb:20,large_segment_size_mb:40", "max_split_size_mb"),
        ("max_non_split_rounding_mb:10", "max_non_split_rounding_mb"),
        ("large_segment_size_mb:10", "large_segment_size_mb"),
        ("garbage_collection_threshold:0", "garbage_collection_threshold"),
        ("garbage_collection_threshold:1.0", "garbage_collection_threshold"),
        ("garbage_collection_threshold:high", "garbage_collection_threshold"),
        ("per_process_memory_fraction:1.5", "per_process_memory_fraction"),
        ("roundup_power2_divisions:3", "roundup_power2_divisions"),
        ("roundup_power2_divisions:[64:3]", "roundup_power2_divisions"),
        ("roundup_power2_divisions:[100:8]", "roundup_power2_divisions"),
        ("roundup_power2_divisions:[64]", "roundup_power2_divisions"),
        ("roundup_power2_divisions:[64:8", "roundup_power2_divisions"),
        ("expandable_segments:yes", "expandable_segments"),
        ("throw_on_cudamalloc_oom:1", "throw_on_cudamalloc_oom"),
        ("backend:cudaMallocAsync", "backend"),
    ],
)
def test_the_bad_key_is_named(text: str, key: str) -> None:
    with pytest.raises(ValueError, match=key):
        AllocatorSettings.parse(text)


@pytest.mark.parametrize(
    ("request_bytes", "block_bytes"),
    [
        (512, 512),
        (2048, 2048),  # not above 4 * 512: the plain rule
        (2049, 2560),  # steps of 512 between 2048 and 4096
        (5 * MIB + 1, 6 * MIB),  # steps of 1 MiB between 4 and 8 MiB
        (6 * MIB, 6 * MIB),
        (8 * MIB, 8 * MIB),
        (1200 * MIB, 1280 * MIB),  # the example in torch's source, in MiB
    ],
)
def test_sizes_are_rounded_to_a_quarter_of_a_power_of_two(request_bytes: int, block_bytes: int) -> None:
    table = AllocatorSettings(roundup_power2_divisions=4).division_table()
    assert round_request(request_bytes, table) == block_bytes


def test_divisions_may_differ_by_interval() -> None:
    settings = AllocatorSettings.parse("roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1]")
    # The values that torch's own unit test expects (AllocatorConfig_test.cpp): 8 up to 128 MiB, then as written.
    assert settings.division_table() == (8, 8, 8, 8, 8, 8, 8, 2, 4, 2, 4, 1, 1, 1, 1, 1)
    assert AllocatorSettings(roundup_power2_divisions={256: 4}).division_table() == (0,) * 8 + (4,) + (0,) * 7


def test_division_tables_equal_those_of_the_installed_torch() -> None:
    values = [
        "4",
        "[64:8,128:2,256:4,512:2,1024:4,>:1]",
        "[256:4]",
        "[256:4,64:8]",
        "[>:2]",
        "[1:2,65536:16]",
        "[64:2,1024:4,>:8]",
        "[131072:2]",
    ]
    theirs = json.loads(subprocess.check_output([sys.executable, "-W", "ignore", "-c", _TORCH_TABLES, *values]))
    for value, table in zip(values, theirs, strict=True):
        settings = AllocatorSettings.parse(f"roundup_power2_divisions:{value}")
        assert list(settings.division_table() or ()) == table, value


# In a process of its own: the settings of torch are global.
_TORCH_TABLES = """
import ctypes, json, pathlib, sys, torch
name = "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm"
folder = pathlib.Path(torch.__file__).parent / "lib"
library = next(path for path in (folder / "libc10.so", folder / "libc10.dylib") if path.exists())
divisions = getattr(ctypes.CDLL(str(library)), name)
divisions.restype, divisions.argtypes = ctypes.c_size_t, [ctypes.c_size_t]
tables = []
for value in sys.argv[1:]:
    torch._C._accelerator_setAllocatorSettings("roundup_power2_divisions:" + value)
    tables.append([divisions(1 << shift) for shift in range(20, 36)])
print(json.dumps(tables))
"""
