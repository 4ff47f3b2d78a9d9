"""The rules for what kernels allocate give the same events, in order, on fake CUDA tensors and on meta tensors."""

from __future__ import annotations

import pytest

from tests.unit.memory.tracing.ordered_events import TRAININGS, events
from tests.unit.memory.tracing.shim_process import ShimProcess


@pytest.mark.parametrize("name", TRAININGS)
def test_every_event_is_the_same_on_both_rungs(shim: ShimProcess, name: str) -> None:
    fake = shim.run(events.__module__, events.__name__, {"name": name, "batch_size": 16})
    assert fake == events("meta", name=name, batch_size=16)
