"""One training at every batch size, from two traces of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import nn
from torch.nn import functional

from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import MIB
from desktop_app.memory.card_limits import CUDNN_OP
from desktop_app.memory.estimate_family import TraceFamily
from desktop_app.memory.estimate_replay import replay_table
from desktop_app.memory.estimate_steady import steady
from desktop_app.memory.estimate_table import EventTable
from desktop_app.memory.trace import trace_training
from desktop_app.memory.trace_data import Trace
from tests.unit.memory.made_traces import Script, convolution, network
from tests.unit.memory.trainings import HUGE, Residual, Training, adam_loop, adamw, cnn, mlp, sgd, sgd_momentum


class Attention(nn.Module):
    """A layer of a transformer over rows of pixels, for layer norm, attention and several products."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.embed = nn.Linear(16, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True)
        self.head = nn.Linear(width, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        rows = self.embed(images.flatten(0, 1))
        out: torch.Tensor = self.head(self.layer(rows).mean(1))
        return out


class Wide(nn.Module):
    """A long classifier: its loss reduces over many columns."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(256, 512)
        self.norm = nn.BatchNorm1d(512)
        self.head = nn.Linear(512, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(functional.gelu(self.norm(self.inner(images.flatten(1)))))
        return out


TRAININGS = {
    "cnn": Training(cnn, adamw),
    "cnn with sgd": Training(cnn, sgd_momentum, precision="bf16"),
    "mlp": Training(mlp, adam_loop),
    "mlp in two": Training(mlp, adamw, accumulation=2, grad_clip=1.0),
    "residual": Training(Residual, sgd),
    "attention": Training(Attention, adamw),
    "wide": Training(Wide, adamw),
}


def trace(name: str, batch_size: int) -> Trace:
    return steady(trace_training(TRAININGS[name], batch_size=batch_size, card=HUGE))


def kept_sizes(table: EventTable, ops: Sequence[str]) -> list[int]:
    """Sizes of all but what kernels take for themselves."""
    own = [("." in op) for op in ops]
    return [size for size, inside in zip(table.sizes_bytes.tolist(), own, strict=True) if size and not inside]


@pytest.mark.parametrize("name", TRAININGS)
def test_every_allocation_is_that_of_a_full_trace(name: str) -> None:
    family = TraceFamily.between(trace(name, 16), trace(name, 24))
    assert family is not None
    for batch_size in (2, 3, 7, 17, 23, 64, 513):
        full = EventTable.of(trace(name, batch_size))
        between = family.at(batch_size)
        assert kept_sizes(between, between.ops) == kept_sizes(full, full.ops)
        peak, expected = replay_table(between), replay_table(full)
        # What kernels take for themselves comes in steps, and is small beside the rest.
        assert peak.live_peak_bytes == pytest.approx(expected.live_peak_bytes, rel=0.01)


def test_sizes_at_the_two_traces_are_their_own() -> None:
    small, large = trace("cnn", 16), trace("cnn", 40)
    family = TraceFamily.between(small, large)
    assert family is not None
    for full in (small, large):
        assert (
            replay_table(family.at(full.batch_size)).live_peak_bytes
            == replay_table(EventTable.of(full)).live_peak_bytes
        )


def test_convolutions_follow_the_batch() -> None:
    family = TraceFamily.between(network(4, convolves=True), network(12, convolves=True))
    assert family is not None
    table = family.at(7)
    assert {call.batch for call in table.convolutions} == {7}
    assert {call._replace(batch=1) for call in table.convolutions} == {convolution(1)}
    assert (table.calls >= 0).sum() == 3  # one per step, and there are three


def test_one_trace_gives_a_guess() -> None:
    family = TraceFamily.alone(steady(network(4)))
    assert family.at(4).sizes_bytes.tolist() == EventTable.of(steady(network(4))).sizes_bytes.tolist()
    assert replay_table(family.at(16)).live_peak_bytes == replay_table(EventTable.of(network(16))).live_peak_bytes


def kernels(batch_size: int, inside: Sequence[tuple[str, int]]) -> Trace:
    script = Script()
    script.enter(Phase.FORWARD, 1)
    script.take("a", batch_size * MIB)
    for op, size in inside:
        script.blink(size, op=op)
    script.take("b", batch_size * MIB)
    script.drop("b", "a")
    return Trace(events=tuple(script.events), batch_size=batch_size)


def test_a_kernel_that_one_trace_lacks_takes_nothing_there() -> None:
    staging = ("reduce.staging", 4096)
    family = TraceFamily.between(kernels(2, [("x.y", 512)]), kernels(4, [("x.y", 512), staging]))
    assert family is not None
    four, two = (family.at(batch_size).sizes_bytes for batch_size in (4, 2))
    assert four[four > 0].tolist() == [4 * MIB, 512, 4096, 4 * MIB]
    assert two[two > 0].tolist() == [2 * MIB, 512, 2 * MIB]


def test_what_one_kernel_takes_at_once_stays_at_once() -> None:
    def pair(batch_size: int) -> Trace:
        script = Script()
        script.enter(Phase.FORWARD, 1)
        script.take("one", batch_size * MIB, Category.WORKSPACE, op="sort.keys")
        script.take("two", batch_size * MIB, Category.WORKSPACE, op="sort.keys")
        script.drop("one", "two")
        return Trace(events=tuple(script.events), batch_size=batch_size)

    family = TraceFamily.between(pair(1), pair(2))
    assert family is not None
    assert replay_table(family.at(5)).live_peak_bytes == 10 * MIB


def test_frees_in_another_order_are_the_same_training() -> None:
    def freed(batch_size: int, order: str) -> Trace:
        script = Script()
        script.enter(Phase.FORWARD, 1)
        script.take("a", batch_size)
        script.take("b", batch_size)
        script.drop(*order)
        return Trace(events=tuple(script.events), batch_size=batch_size)

    assert TraceFamily.between(freed(1, "ab"), freed(2, "ba")) is not None


def test_other_ops_or_other_convolutions_are_another_training() -> None:
    assert TraceFamily.between(trace("cnn", 4), trace("mlp", 8)) is None

    def convolving(batch_size: int, channels: int) -> Trace:
        script = Script()
        script.enter(Phase.FORWARD, 1)
        call = convolution(batch_size)._replace(in_channels=channels)
        script.blink(1, op=CUDNN_OP, call=call)
        return Trace(events=tuple(script.events), batch_size=batch_size, convolutions=tuple(script.convolutions))

    assert TraceFamily.between(convolving(1, 4), convolving(2, 4)) is not None
    assert TraceFamily.between(convolving(1, 4), convolving(2, 8)) is None


def test_two_traces_at_one_batch_size_have_no_slope() -> None:
    with pytest.raises(ValueError, match="batch size 4"):
        TraceFamily.between(network(4), network(4))


@pytest.mark.parametrize("name", ["cnn", "mlp", "mlp in two", "residual", "attention"])
def test_the_third_step_is_what_a_longer_trace_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step that is copied from the second, against a third one that is traced."""
    two = steady(trace_training(TRAININGS[name], batch_size=8, card=HUGE))
    monkeypatch.setattr("desktop_app.memory.trace.STEPS", 3)
    three = trace_training(TRAININGS[name], batch_size=8, card=HUGE)
    assert len(two.events) == len(three.events)
    found, expected = (replay_table(EventTable.of(each)) for each in (two, three))
    assert found.live_bytes.tolist() == expected.live_bytes.tolist()
    assert found.reserved_bytes.tolist() == expected.reserved_bytes.tolist()
