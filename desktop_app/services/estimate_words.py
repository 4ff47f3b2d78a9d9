"""The English words of an estimate on the command line: verdicts, levers, warnings."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from desktop_app.core.forecasts import Estimate, Lever, Verdict
from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import format_bytes

CATEGORIES: Final[Mapping[Category, str]] = {
    Category.OPTIMIZER_STATE: "optimizer state",
    Category.INPUTS: "inputs",
}
PHASES: Final[Mapping[Phase, str]] = {Phase.OPTIMIZER: "optimizer step", Phase.ZERO: "zero gradients"}

# Code of a lever: what it is, and the options that ask for it.
_LEVERS: Final[Mapping[str, tuple[str, str]]] = {
    "bf16": ("bfloat16 autocast", "--precision bf16"),
    "fp16": ("float16 autocast", "--precision fp16"),
    "pure_bf16": ("weights and all in bfloat16", "--precision pure_bf16"),
    "checkpoint_full": ("recompute every block", "--checkpointing full"),
    "no_foreach": ("update tensor by tensor", "--no-foreach"),
    "fused": ("fused optimizer", "--fused"),
    "adam8bit": ("Adam with 8-bit state", "--optimizer adam8bit"),
    "adamw8bit": ("AdamW with 8-bit state", "--optimizer adamw8bit"),
    "adafactor": ("Adafactor", "--optimizer adafactor"),
    "sgd": ("SGD", "--optimizer sgd"),
    "freeze_backbone": ("train the head only", "--freeze backbone"),
    "clear_gradients": ("zero_grad(set_to_none=True)", "without --keep-gradients"),
    "flash": ("flash attention", "--attention flash"),
    "efficient": ("memory-efficient attention", "--attention efficient"),
    "channels_last": ("channels last", "--channels-last"),
    "expandable_segments": ("expandable segments", "PYTORCH_ALLOC_CONF=expandable_segments:True"),
}
_EXACT: Final = 1e-9  # as floats are
_ZERO: Final = {
    "zero1": "optimizer state shared out (ZeRO-1)",
    "zero2": "gradients too (ZeRO-2)",
    "zero3": "all shared out (ZeRO-3, FSDP)",
}
_WARNINGS: Final[Mapping[str, str]] = {
    "batch_limited_by_data": "A larger batch would fit, but there are no more samples.",
    "batch_search_ended": "The search for the largest batch ended there: a larger one may fit too.",
    "batch_search_limited": "The largest batch could not be searched to the end.",
    "returns_cache": "It runs by giving cached memory back to the driver again and again, which takes time.",
    "states_only": "Activations are not in it: the shape of the model is not known.",
    "no_shim": "Traced with meta tensors, which is less exact: {}.",
    "shim_crashed": "The stand-in for CUDA crashed; traced with meta tensors instead.",
    "untraceable": "This operation cannot be traced without data: {}.",
}


def verdict(estimate: Estimate) -> str:
    """One line: what the answer is."""
    peak, room_bytes = estimate.device_peak_bytes, estimate.capacity_bytes - estimate.others_bytes
    room = f"{format_bytes(room_bytes)}{' that others leave' if estimate.others_bytes else ''}"
    needs = f"needs {format_bytes(peak.p50)} (P95 {format_bytes(peak.p95)}) of {room}"
    match estimate.verdict:
        case Verdict.FITS:
            return f"Fits: {needs}."
        case Verdict.TIGHT:
            percent = math.floor(100 * estimate.fits_probability + _EXACT)  # 95 and more would be no tight fit
            return f"Tight: {needs}; {percent} % that it fits."
        case Verdict.DOES_NOT_FIT:
            return f"Does not fit: {needs}."
        case _:
            return f"Cannot say: {cannot_say(estimate)}"


def cannot_say(estimate: Estimate) -> str:
    """The reason, in one sentence."""
    return next(map(warning, estimate.warnings), "the training cannot be traced.")


def category(value: Category) -> str:
    return CATEGORIES.get(value, value.value)


def phase(value: Phase) -> str:
    return PHASES.get(value, value.value)


def warning(code: str) -> str:
    """``code`` or ``code:detail``, as sentences; a line without a code is one already."""
    name, _, detail = code.partition(":")
    if name in _WARNINGS:
        return _WARNINGS[name].format(detail)
    if re.fullmatch(r"[a-z0-9_]+", name):
        words = name.replace("_", " ").capitalize()
        return f"{words}: {detail}" if detail else f"{words}."
    return code


def lever(found: Lever) -> str:
    """What would be changed."""
    settings = found.settings or found.changes
    if found.code == "batch_accumulate":
        return f"batch {settings.get('batch_size')}, accumulated over {settings.get('accumulation')} micro-steps"
    if found.code.startswith("checkpoint_every_"):
        return f"recompute one block in {_number(found.code)}"
    if found.code.startswith("lora_"):
        return f"LoRA, rank {_number(found.code)}"
    if (name := found.code.partition("_")[0]) in _ZERO:
        return f"{_ZERO[name]} over {settings.get('world_size', '?')} cards"
    return _LEVERS.get(found.code, (found.code.replace("_", " "), ""))[0]


def lever_options(found: Lever) -> str:
    """What to add to the command to have it so; "" where nothing does."""
    settings: Mapping[str, Any] = found.settings or found.changes
    if found.code == "batch_accumulate":
        return f"--batch {settings.get('batch_size')} --accumulation {settings.get('accumulation')}"
    if found.code.startswith("checkpoint_every_"):
        return f"--checkpointing every_{_number(found.code)}"
    if found.code.startswith("lora_"):
        return f"--lora {_number(found.code)}"
    if (name := found.code.partition("_")[0]) in _ZERO:
        return f"--sharding {name} --cards {settings.get('world_size', '?')}"
    return _LEVERS.get(found.code, ("", ""))[1]


def _number(code: str) -> str:
    return code.rpartition("_")[2]
