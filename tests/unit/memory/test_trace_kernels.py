"""Remembered results of meta kernels are those of the kernels."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

from desktop_app.memory import meta_kernels
from desktop_app.memory.meta_kernels import MetaKernels

aten = torch.ops.aten


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, device="meta")


def layouts(out: Any) -> list[tuple[torch.Size, tuple[int, ...], torch.dtype]]:
    outputs = out if isinstance(out, (tuple, list)) else [out]
    return [(tensor.shape, tensor.stride(), tensor.dtype) for tensor in outputs]


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        (aten.relu.default, (meta(3, 4),), {}),
        (aten.add.Tensor, (meta(3, 4).t(), meta(4, 3)), {"alpha": 2}),
        (aten.add.Tensor, (meta(3, 4), 2), {}),
        (aten.sum.dim_IntList, (meta(3, 4, 5), [0, 2], True), {"dtype": torch.float64}),
        (aten._foreach_sqrt.default, ([meta(3), meta(4, 5)],), {}),
        (aten.native_layer_norm.default, (meta(3, 4), [4], meta(4), meta(4), 1e-5), {}),
        (aten.empty.memory_format, ([7],), {"device": torch.device("meta"), "dtype": torch.int64}),
        (
            aten.convolution.default,
            (meta(2, 3, 8, 8), meta(4, 3, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
            {},
        ),
    ],
)
def test_the_second_call_gives_what_the_first_gave(op: Any, args: Any, kwargs: Any) -> None:
    kernels = MetaKernels()
    expected = op(*args, **kwargs)
    for _ in range(2):
        out = kernels.call(op, args, kwargs)
        assert type(out) is type(expected)
        assert layouts(out) == layouts(expected)
    assert len(kernels._known) == 1
    first, second = kernels.call(op, args, kwargs), kernels.call(op, args, kwargs)
    for one, other in zip(*(out if isinstance(out, (tuple, list)) else [out] for out in (first, second)), strict=True):
        assert one.untyped_storage()._cdata != other.untyped_storage()._cdata


def test_arguments_that_differ_are_not_mixed_up() -> None:
    kernels = MetaKernels()
    assert kernels.call(aten.relu.default, (meta(3),), None).shape == (3,)
    assert kernels.call(aten.relu.default, (meta(4),), None).shape == (4,)
    assert kernels.call(aten.relu.default, (meta(3, dtype=torch.float64),), None).dtype == torch.float64
    assert kernels.call(aten.add.Tensor, (meta(3, dtype=torch.int64), 1), None).dtype == torch.int64
    assert kernels.call(aten.add.Tensor, (meta(3, dtype=torch.int64), 1.0), None).dtype == torch.float32


def test_results_that_are_no_new_storage_are_computed_every_time() -> None:
    kernels = MetaKernels()
    tensor = meta(3, 4)
    view = kernels.call(aten.view.default, (tensor, [12]), None)
    kernels.call(aten.view.default, (meta(3, 4), [12]), None)
    again = kernels.call(aten.view.default, (tensor, [12]), None)
    assert view.untyped_storage()._cdata == again.untyped_storage()._cdata == tensor.untyped_storage()._cdata
    assert kernels.call(aten._local_scalar_dense.default, (torch.tensor(3.0),), None) == 3.0


def test_it_stays_within_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meta_kernels, "_CAPACITY", 4)
    kernels = MetaKernels()
    for size in range(1, 20):
        kernels.call(aten.relu.default, (meta(size),), None)
    assert len(kernels._known) <= 4


def test_the_estimate_can_be_imported_without_torch() -> None:
    code = "import sys; sys.modules['torch'] = None; import desktop_app.memory.estimate, desktop_app.memory.advice"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
