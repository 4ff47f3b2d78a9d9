"""The constants of the replica are those in the headers of the installed torch: a release that changes them shows."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from desktop_app.memory import allocator_settings as replica
from desktop_app.memory.allocator_settings import AllocatorSettings


@pytest.fixture(scope="module")
def header() -> str:
    spec = importlib.util.find_spec("torch")  # found, not imported
    assert spec is not None
    assert spec.origin is not None
    core = Path(spec.origin).parent / "include" / "c10" / "core"
    # Older releases keep the constants in CUDACachingAllocator.cpp, which is not installed.
    path = core / "AllocatorConfig.h"
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
