"""An estimate as plain data: ``floodmark estimate --json`` (docs/guide/estimate.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from desktop_app.core.forecasts import Estimate, Lever, ModuleMemory
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.training_spec import TrainingSpec
from desktop_app.services import estimate_words as words

SCHEMA: Final = 1
_MODULES: Final = 50


def as_data(estimate: Estimate, spec: TrainingSpec, card: CardSpec, *, risk: float) -> dict[str, Any]:
    """Every figure in bytes, every probability in [0, 1]. Keys are added to in later versions, never changed."""
    return {
        "schema": SCHEMA,
        "model": spec.model,
        "training": spec.as_json(),
        "card": asdict(card),
        "batch_size": estimate.batch_size,
        "accumulation": spec.accumulation,
        "rung": estimate.rung,
        "rung_width": estimate.rung_width,
        "seconds": round(estimate.seconds, 3),
        "live_peak_bytes": asdict(estimate.live_peak_bytes),
        "reserved_peak_bytes": asdict(estimate.reserved_peak_bytes),
        "device_peak_bytes": asdict(estimate.device_peak_bytes),
        "capacity_bytes": estimate.capacity_bytes,
        "others_bytes": estimate.others_bytes,
        "context_bytes": estimate.context_bytes,
        "idle_bytes": estimate.idle_bytes,
        "optimizer_demand_bytes": estimate.optimizer_demand_bytes,
        "fits_probability": _finite(estimate.fits_probability),
        "verdict": estimate.verdict.value,
        "risk": risk,
        "largest_batch": estimate.largest_batch,
        "peak_phase": estimate.peak_phase.value,
        "phases": _phases(estimate),
        "categories": {category.value: size for category, size in estimate.categories.items()},
        "modules": [_module(module) for module in _largest(estimate)],
        "levers": [_lever(lever) for lever in estimate.levers],
        "kernels_assumed": list(estimate.kernels_assumed),
        "guesses": dict(estimate.guesses),
        "warnings": list(estimate.warnings),
    }


def _phases(estimate: Estimate) -> dict[str, Any]:
    if estimate.phase_peaks:
        return {phase.value: asdict(peaks) for phase, peaks in estimate.phase_peaks.items()}
    return {phase.value: {"device": {"p50": size}} for phase, size in estimate.phases.items()}


def _largest(estimate: Estimate) -> list[ModuleMemory]:
    return sorted(estimate.modules, key=lambda module: -module.total_bytes)[:_MODULES]


def _module(module: ModuleMemory) -> dict[str, Any]:
    return {
        "path": module.path,
        "kind": module.kind,
        "parameters": module.parameters,
        "total_bytes": module.total_bytes,
        "categories": {category.value: size for category, size in module.categories.items()},
    }


def _lever(lever: Lever) -> dict[str, Any]:
    return {
        "code": lever.code,
        "text": words.lever(lever),
        "saved_bytes": lever.saved_bytes,
        "device_peak_bytes": lever.device_peak_bytes,
        "settings": _plain(lever.settings),
        "changes": _plain(lever.changes),
    }


def _plain(values: Mapping[str, object]) -> dict[str, object]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
