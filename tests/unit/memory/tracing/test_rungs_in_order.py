"""The rules for what kernels allocate give the same events, in order, on fake CUDA tensors and on meta tensors."""

from __future__ import annotations

import pytest

from tests.unit.memory.tracing.ordered_events import TRAININGS, events
from tests.unit.memory.tracing.shim_process import ShimProcess


@pytest.mark.parametrize("name", TRAININGS)
def test_every_event_is_the_same_on_both_rungs(shim: ShimProcess, name: str) -> None:
    fake = shim.run(events.__module__, events.__name__, {"name": name, "batch_size": 16})
    assert fake == events("meta", name=name, batch_size=16)


def test_a_recurrent_layer_is_one_op_and_keeps_its_reserve_until_backward() -> None:
    """Taken apart it would be a dozen ops for each of the 16 steps, layers and directions."""
    made = [row for row in events("meta", name="recurrent", batch_size=16) if row[4] == "cells" and row[3] == 2]
    taken = [row[1] for row in made if row[0] and row[2] == "forward"]
    per_step = 16 * 16 * 24 * 2
    assert per_step * 4 * (2 * 7 + 1) in taken
    assert len(taken) < 12
