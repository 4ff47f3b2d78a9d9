"""A real NVIDIA card through the whole stack. Skipped without one."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import DETAIL_FIELDS, FAST_FIELDS, SLOW_FIELDS, Card, Reading
from desktop_app.telemetry.backend import BackendUnavailable
from desktop_app.telemetry.nvml_backend import NvmlBackend

pytestmark = pytest.mark.gpu


@pytest.fixture
def backend() -> Iterator[NvmlBackend]:
    nvml = NvmlBackend(SessionClock())
    try:
        nvml.open()
    except BackendUnavailable as error:
        pytest.skip(f"no NVIDIA card: {error.detail}")
    yield nvml
    nvml.close()


def read_twice(backend: NvmlBackend, card: Card) -> dict[str, Reading]:
    """Two ticks apart, so that rates have a value."""
    backend.read_fast(card)
    ready_s = time.monotonic() + 0.2
    readings = backend.read_fast(card)
    while time.monotonic() < ready_s:
        readings = backend.read_fast(card)
    return {**readings, **backend.read_slow(card)}


def test_every_field_has_a_value_or_a_reason(backend: NvmlBackend) -> None:
    for card in backend.open():
        readings = read_twice(backend, card)
        assert set(readings) == set(FAST_FIELDS) | set(SLOW_FIELDS) | set(DETAIL_FIELDS)
        for name, reading in readings.items():
            print(f"{card.name} {name}: {reading.value} {reading.reason or ''}")
            assert (reading.value is None) == (reading.reason is not None), name


def test_the_card_agrees_with_torch(backend: NvmlBackend) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch without CUDA")
    by_index = {card.torch_index: card for card in backend.open()}
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        card = by_index[index]
        assert card.name == properties.name
        assert card.sm_count == properties.multi_processor_count
        assert card.compute_capability == (properties.major, properties.minor)
        assert str(properties.uuid) in card.uuid
        assert card.capacity_bytes == pytest.approx(properties.total_memory, rel=0.02)


def test_this_process_is_found_and_its_memory_grows(backend: NvmlBackend) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch without CUDA")
    held = torch.empty(512 * 2**20, dtype=torch.uint8, device="cuda:0")
    torch.cuda.synchronize()
    card = next(card for card in backend.open() if card.torch_index == 0)
    own = [process for process in backend.processes(card) if process.own]
    used = backend.read_fast(card)["memory_used_bytes"].value
    assert used is not None
    assert used >= held.numel()
    if own and own[0].memory_bytes is not None:
        assert own[0].memory_bytes >= held.numel()


def test_a_fast_tick_is_cheap(backend: NvmlBackend) -> None:
    card = backend.open()[0]
    backend.read_fast(card)
    began_s = time.process_time()
    for _ in range(50):
        backend.read_fast(card)
    per_tick_ms = 1000 * (time.process_time() - began_s) / 50
    print(f"CPU per fast read: {per_tick_ms:.3f} ms")
