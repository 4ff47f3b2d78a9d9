"""The rung that every machine has tells the same story as the one that asks CUDA's own dispatcher."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.memory.tracing.shim_process import ShimProcess
from tests.unit.memory.tracing.staged import piece, training


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(
    "case",
    [
        {"model": "convolutions", "batch_size": 64, "grad_clip": 1.0},
        {"model": "attends", "optimizer": "adamw", "batch_size": 32, "accumulation": 2},
        {"model": "attends", "arguments": {"recompute": True}, "batch_size": 32},
        {"model": "attends", "arguments": {"masked": True}, "batch_size": 32},
        {"model": "attends", "batch_size": 32, "attention": "math"},
        {"model": "assorted", "optimizer": "adamw_fused", "batch_size": 64},
    ],
    ids=["convolutions", "attention", "recomputed", "masked", "math", "assorted"],
)
def test_the_rungs_agree(shim: ShimProcess, precision: str, case: dict[str, Any]) -> None:
    arguments = {**case, "precision": precision}
    fake = shim.run(training.__module__, training.__name__, arguments)
    meta = training("meta", **arguments)
    assert fake["rung"] == "shim"
    assert meta["rung"] == "meta"
    for phase, peak in fake["peaks"].items():
        # In evaluation nn.MultiheadAttention takes one kernel on CUDA, and its parts on meta tensors.
        width = 0.06 if phase == "VALIDATION" and case["model"] == "assorted" else 0.001
        assert meta["peaks"][phase] == pytest.approx(peak, rel=width), phase
    assert meta["kernels"] == fake["kernels"]


@pytest.mark.parametrize("name", ["lstm", "gru", "cells", "ctc", "average", "compiled"])
def test_what_fake_tensors_stumble_over_is_traced(shim: ShimProcess, name: str) -> None:
    fake = shim.run(piece.__module__, piece.__name__, {"name": name})
    meta = piece("meta", name=name)
    assert fake["peaks"]["BACKWARD"] > 0
    assert meta["peaks"]["ALL"] == pytest.approx(fake["peaks"]["ALL"], rel=0.02)
