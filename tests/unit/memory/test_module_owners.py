"""Every tensor has a maker: the module whose forward made it, or made the node of backward that runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from desktop_app.core.steps import Category, Phase
from desktop_app.memory.lowering import Lowering
from desktop_app.memory.storage_tracker import StorageTracker
from desktop_app.memory.trace_data import TraceEvent
from desktop_app.memory.trace_recorder import TraceRecorder
from tests.unit.memory.trainings import HUGE


class Stack(nn.Module):
    """Three layers of different widths, so that a size tells whose a tensor is."""

    def __init__(self, *, recompute: bool | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"a": nn.Linear(3, 5), "b": nn.Linear(5, 7), "c": nn.Linear(7, 11)})
        self._recompute = recompute

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layers["a"](x)
        if self._recompute is None:
            x = self.layers["b"](x.exp())
        else:
            x = checkpoint(self.layers["b"], x.exp(), use_reentrant=self._recompute)
        out: torch.Tensor = self.layers["c"](x.sin())
        return out


def events(model: nn.Module, *, steps: int = 2) -> list[TraceEvent]:
    recorder = TraceRecorder()
    tracker = StorageTracker(recorder, lowering=Lowering(HUGE), by_module=True)
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    tracker.track_model(model)
    tracker.track_optimizer(optimizer)

    def enter(phase: Phase) -> None:
        tracker.phase = recorder.phase = phase

    for step in range(steps):
        recorder.step = step + 1
        enter(Phase.FORWARD)
        with tracker:
            loss = functional.mse_loss(model(torch.ones(2, 3, requires_grad=True)), torch.zeros(2, 11))
            enter(Phase.BACKWARD)
            loss.backward()
            enter(Phase.OPTIMIZER)
            optimizer.step()
            tracker.sort_state()
            enter(Phase.ZERO)
            optimizer.zero_grad()
            enter(Phase.BUILD)
        del loss
    tracker.close()
    return [event for event in recorder.finish() if event.key > 0 and event.op != "cublas.workspace"]


def owners(found: list[TraceEvent], phase: Phase, **wanted: Any) -> set[str]:
    return {
        event.module
        for event in found
        if event.phase is phase and all(getattr(event, name) == value for name, value in wanted.items())
    }


def test_forward_by_the_module_at_work() -> None:
    found = events(Stack())
    assert owners(found, Phase.FORWARD, size_bytes=2 * 5 * 4, op="addmm") == {"layers.a"}
    assert owners(found, Phase.FORWARD, op="exp") == {""}  # the outermost model itself
    assert owners(found, Phase.FORWARD, size_bytes=2 * 11 * 4, op="addmm") == {"layers.c"}


def test_backward_by_the_node_that_runs() -> None:
    found = events(Stack())
    assert owners(found, Phase.BACKWARD, size_bytes=2 * 7 * 4, op="mm") == {"layers.c"}  # gradient of its input
    assert owners(found, Phase.BACKWARD, size_bytes=2 * 5 * 4, op="mm") == {"layers.b"}
    assert owners(found, Phase.BACKWARD, size_bytes=2 * 5 * 4, op="mul") == {""}  # of exp


def test_parameters_gradients_and_state_belong_where_the_parameter_does() -> None:
    found = events(Stack())
    for category in (Category.PARAMETERS, Category.GRADIENTS, Category.OPTIMIZER_STATE):
        weights = [event for event in found if event.category is category and event.size_bytes == 7 * 11 * 4]
        assert weights
        assert {event.module for event in weights} == {"layers.c"}, category


def test_what_is_computed_again_belongs_to_the_module_that_does_it() -> None:
    for reentrant in (False, True):
        found = events(Stack(recompute=reentrant))
        assert owners(found, Phase.BACKWARD, size_bytes=2 * 7 * 4, op="addmm") <= {"layers.b"}
        assert owners(found, Phase.BACKWARD, size_bytes=2 * 5 * 4, op="mm") == {"layers.b"}
        assert owners(found, Phase.BACKWARD, size_bytes=2 * 7 * 4, op="mm") == {"layers.c"}


def test_no_hook_is_left_and_without_being_asked_none_is_there() -> None:
    model = Stack()
    events(model)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    tracker = StorageTracker(TraceRecorder(), lowering=Lowering(HUGE))
    tracker.track_model(model)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    tracker.close()


def test_a_module_that_fails_leaves_the_next_step_in_order() -> None:
    class Fails(nn.Module):
        fail = True

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.fail:
                raise ValueError("no")
            return x * 2

    model = nn.Sequential(nn.Linear(3, 3), Fails())
    recorder = TraceRecorder()
    tracker = StorageTracker(recorder, lowering=Lowering(HUGE), by_module=True)
    tracker.track_model(model)
    with tracker:
        with pytest.raises(ValueError):
            model(torch.ones(2, 3))
        Fails.fail = False
        model(torch.ones(2, 3))
        torch.ones(17)
    tracker.close()
    made = {event.op: event.module for event in recorder.finish() if event.key > 0}
    assert made["mul"] == "1"
    assert made["ones"] == ""
