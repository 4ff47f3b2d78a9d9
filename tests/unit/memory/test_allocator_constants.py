"""The constants of the replica are those in the headers of the installed torch: a release that changes them shows."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from desktop_app.memory import allocator_settings as replica
from desktop_app.memory.allocator_settings import AllocatorSettings
from desktop_app.memory.snapshot import Action


@pytest.fixture(scope="module")
def header_folder() -> Path:
    spec = importlib.util.find_spec("torch")  # found, not imported
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "include" / "c10" / "core"


@pytest.fixture(scope="module")
def header(header_folder: Path) -> str:
    # Older releases keep the constants in CUDACachingAllocator.cpp, which is not installed.
    path = header_folder / "AllocatorConfig.h"
    if not path.exists():
        pytest.skip("this torch does not install the header")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kMinBlockSize", replica.MIN_BLOCK_BYTES),
        ("kSmallSize", replica.SMALL_LIMIT_BYTES),
        ("kSmallBuffer", replica.SMALL_SEGMENT_BYTES),
        ("kMinLargeAlloc", replica.MIN_LARGE_BYTES),
        ("kRoundLarge", replica.LARGE_ROUND_BYTES),
    ],
)
def test_a_constant_equals_the_header(header: str, name: str, value: int) -> None:
    found = re.search(rf"constexpr size_t {name} = (\d+);", header)
    assert found is not None, f"{name} is gone from AllocatorConfig.h"
    assert int(found[1]) == value


def test_the_large_segment_equals_the_header(header: str) -> None:
    found = re.search(r"large_segment_size_\{(\d+)\}|constexpr size_t kLargeBuffer = (\d+);", header)
    assert found is not None, "the size of a large segment is gone from AllocatorConfig.h"
    assert int(found[1] or found[2]) == replica.LARGE_SEGMENT_BYTES == AllocatorSettings().large_segment_size_bytes


def test_the_defaults_equal_the_header(header: str) -> None:
    assert re.search(r"max_split_size_\{std::numeric_limits<size_t>::max\(\)\}", header)
    assert re.search(r"garbage_collection_threshold_\{0\}", header)
    assert re.search(r"use_expandable_segments_\{false\}", header)


def test_the_actions_of_a_snapshot_are_those_of_the_header(header_folder: Path) -> None:
    path = header_folder / "CachingDeviceAllocator.h"
    if not path.exists():
        pytest.skip("this torch does not install the header")
    table = re.search(r"kActionTable\[\] = \{(.*?)\};", path.read_text(encoding="utf-8"), re.DOTALL)
    if table is None:
        pytest.skip("this torch does not name its actions in the header")
    names = re.findall(r'\{"(\w+)", TraceEntry::Action', table[1])
    assert set(names) == {str(action) for action in Action if action is not Action.OTHER}


def test_every_key_of_the_header_is_read(header: str, header_folder: Path) -> None:
    # The parsers of the keys are named after what they read; pinned memory has keys that are accepted and ignored.
    cuda = (header_folder.parent / "cuda" / "CUDAAllocatorConfig.h").read_text(encoding="utf-8")
    for key in (
        "large_segment_size_mb",
        "max_split_size_mb",
        "max_non_split_rounding_mb",
        "garbage_collection_threshold",
        "roundup_power2_divisions",
        "expandable_segments",
        "per_process_memory_fraction",
        "throw_on_cudamalloc_oom",
        "graph_capture_record_stream_reuse",
        "release_lock_on_cudamalloc",
        "pinned_use_cuda_host_register",
        "pinned_num_register_threads",
        "pinned_reserve_segment_size_mb",
        "pinned_use_background_threads",
    ):
        stem = key.removesuffix("_mb")
        assert stem in header or stem in cuda, f"{key} is gone"
        assert key in replica.known_keys()
