"""Dropout on CUDA: the mask comes before the result (ATen/native/cuda/Dropout.cu)."""

from __future__ import annotations

from typing import Final

from desktop_app.memory.kernels_plan import Kernels, Make, OpCall, Plan, Planner


def _dropout(call: OpCall, kernels: Kernels) -> Plan:  # noqa: ARG001 - one signature for all
    return Make(1), Make(0)


PLANNERS: Final[dict[str, Planner]] = {"native_dropout": _dropout}
