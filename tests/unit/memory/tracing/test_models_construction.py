"""Models built without values, against what they are when built for real."""

from __future__ import annotations

import os

import psutil
import pytest
import torch
from torch import nn

from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.models_construction import MetaForCuda, construct, import_library
from tests.unit.memory.tracing.subjects import Stack, meta_stage


class Reading(nn.Module):
    """Reads back the values of its own weights, as nothing but a real tensor has them."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        nn.init.constant_(self.inner.weight, 0.5)
        self.scale = float(self.inner.weight.detach().sum())
        self.table = nn.Embedding(3000, 3000)  # 36 MB


def test_what_is_computed_in_a_constructor_is_computed() -> None:
    class Scheduled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rates = torch.linspace(0, 1, 5).tolist()
            self.register_buffer("positions", torch.arange(6).view(2, 3))
            self.sizes = [int(size) for size in torch.tensor([3, 4])]
            self.weight = nn.Parameter(torch.zeros(1, 3) + torch.empty(1, 3).normal_())  # real and meta mixed

    model = construct(Scheduled, stage=meta_stage())
    assert model.rates == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert model.sizes == [3, 4]
    assert torch.equal(model.get_buffer("positions"), torch.arange(6).view(2, 3))
    assert model.weight.shape == (1, 3)


def test_weights_have_no_values_and_the_shapes_of_real_ones() -> None:
    model, real = construct(Stack, stage=meta_stage()), Stack()
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    shapes = [(name, p.shape, p.dtype) for name, p in model.named_parameters()]
    assert shapes == [(name, p.shape, p.dtype) for name, p in real.named_parameters()]


@pytest.mark.parametrize("reads_back", [False, True])
def test_big_models_take_no_memory(reads_back: bool) -> None:
    """16 GiB of weights, also where the second way is needed: pages that nobody touches are not there."""

    def build() -> nn.Module:
        model = nn.ModuleList(nn.Linear(32768, 32768) for _ in range(4))
        if reads_back:
            model.append(Reading())
        return model

    process = psutil.Process(os.getpid())
    before = process.memory_info().rss
    model = construct(build, stage=meta_stage())
    assert process.memory_info().rss - before < 100 * 2**20
    assert sum(parameter.numel() for parameter in model.parameters()) >= 4 * 32768 * 32768


def test_values_that_are_read_back_are_there() -> None:
    assert construct(Reading, stage=meta_stage()).scale == 8.0


def test_the_random_numbers_of_the_process_stay() -> None:
    before = torch.get_rng_state()
    construct(lambda: (Stack(), torch.rand(3), nn.Dropout(0.5)(torch.ones(9))), stage=meta_stage())
    assert torch.equal(torch.get_rng_state(), before)


def test_what_is_meant_for_a_gpu_is_built_here() -> None:
    def build() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
        assert torch.cuda.is_available()  # the stage's card answers
        model = nn.Linear(3, 3).cuda().to("cuda", torch.bfloat16)
        return model, torch.ones(2, device="cuda:0"), torch.tensor([1.0]).to(device="cuda", dtype=torch.float64)

    model, ones, number = construct(build, stage=meta_stage())
    assert next(model.parameters()).dtype == torch.bfloat16
    assert (ones.device.type, ones.sum().item()) == ("cpu", 2.0)
    assert (number.dtype, number.item()) == (torch.float64, 1.0)


def test_tied_weights_stay_tied() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.outer = nn.Embedding(7, 3), nn.Linear(3, 7, bias=False)
            self.outer.weight = self.inner.weight

    model = construct(Tied, stage=meta_stage())
    meta_stage().adopt(model)
    assert model.inner.weight is model.outer.weight


def test_a_step_written_for_cuda_runs_on_meta() -> None:
    with MetaForCuda():
        made = torch.ones(2, device="cuda"), torch.zeros(3).cuda(), torch.zeros(3).to("cuda", torch.float16)
    assert {tensor.device.type for tensor in made} == {"meta"}
    assert made[2].dtype == torch.float16


def test_an_error_of_the_constructor_is_the_constructors() -> None:
    def build() -> None:
        raise RuntimeError("no such data set")

    with pytest.raises(RuntimeError, match="no such data set"):
        construct(build, stage=meta_stage())


def test_a_library_that_is_not_there_is_named() -> None:
    with pytest.raises(
        TracerError, match=r"no_such_library is not installed in .*: pip install no_such_library"
    ) as caught:
        import_library("no_such_library")
    assert caught.value.kind == "not_installed"


def test_a_library_that_is_broken_says_how(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_library.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")  # type: ignore[operator]
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(TracerError, match="cannot be imported: RuntimeError: operator torchvision::nms"):
        import_library("broken_library")
