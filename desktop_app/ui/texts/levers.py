"""What would lower the peak, in a few words; and the line of one's own code that does it."""

from __future__ import annotations

import re
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.forecasts import Estimate, Lever, Verdict
from desktop_app.training.config import RunConfig
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import fields, numbers

_NAMES: Final = {
    "batch_accumulate": QT_TRANSLATE_NOOP("Levers", "Smaller batch, accumulate"),
    "bf16": QT_TRANSLATE_NOOP("Levers", "bfloat16 autocast"),
    "fp16": QT_TRANSLATE_NOOP("Levers", "float16 autocast with a scaler"),
    "pure_bf16": QT_TRANSLATE_NOOP("Levers", "All of it in bfloat16, weights too"),
    "checkpoint_full": QT_TRANSLATE_NOOP("Levers", "Checkpoint every block"),
    "checkpoint_every_2": QT_TRANSLATE_NOOP("Levers", "Checkpoint every second block"),
    "checkpoint_every_3": QT_TRANSLATE_NOOP("Levers", "Checkpoint every third block"),
    "checkpoint_every_4": QT_TRANSLATE_NOOP("Levers", "Checkpoint every fourth block"),
    "no_foreach": QT_TRANSLATE_NOOP("Levers", "Update without foreach"),
    "fused": QT_TRANSLATE_NOOP("Levers", "Fused {optimizer}"),
    "adam8bit": QT_TRANSLATE_NOOP("Levers", "{optimizer} with 8-bit state"),
    "adafactor": QT_TRANSLATE_NOOP("Levers", "Adafactor in place of {optimizer}"),
    "sgd": QT_TRANSLATE_NOOP("Levers", "SGD in place of {optimizer}"),
    "freeze_backbone": QT_TRANSLATE_NOOP("Levers", "Train the head only"),
    "lora": QT_TRANSLATE_NOOP("Levers", "LoRA of rank {rank}"),
    "clear_gradients": QT_TRANSLATE_NOOP("Levers", "Clear gradients to None"),
    "flash": QT_TRANSLATE_NOOP("Levers", "Flash attention"),
    "efficient": QT_TRANSLATE_NOOP("Levers", "Memory-efficient attention"),
    "channels_last": QT_TRANSLATE_NOOP("Levers", "Channels last"),
    "expandable_segments": QT_TRANSLATE_NOOP("Levers", "Expandable segments"),
    "zero1": QT_TRANSLATE_NOOP("Levers", "Optimizer state over {cards} cards (ZeRO-1)"),
    "zero2": QT_TRANSLATE_NOOP("Levers", "Gradients too over {cards} cards (ZeRO-2)"),
    "zero3": QT_TRANSLATE_NOOP("Levers", "Everything over {cards} cards (FSDP)"),
}
# Python and shell are the same in every language.
_OPTIMIZERS: Final = {"adamw": "AdamW", "adam": "Adam", "sgd": "SGD"}
_LINES: Final = {
    "batch_accumulate": "(loss / {accumulation}).backward()  # step after {accumulation} micro-batches of {batch}",
    "bf16": 'with torch.autocast("cuda", dtype=torch.bfloat16):',
    "fp16": 'with torch.autocast("cuda", dtype=torch.float16):  # and torch.amp.GradScaler("cuda")',
    "pure_bf16": "model = model.to(torch.bfloat16)",
    "checkpoint_full": "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
    "checkpoint_every_2": "x = checkpoint(block, x, use_reentrant=False) if index % 2 == 0 else block(x)",
    "checkpoint_every_3": "x = checkpoint(block, x, use_reentrant=False) if index % 3 == 0 else block(x)",
    "checkpoint_every_4": "x = checkpoint(block, x, use_reentrant=False) if index % 4 == 0 else block(x)",
    "no_foreach": "optimizer = torch.optim.{optimizer}(model.parameters(), lr=lr, foreach=False)",
    "fused": "optimizer = torch.optim.{optimizer}(model.parameters(), lr=lr, fused=True)",
    "adam8bit": "optimizer = bitsandbytes.optim.{optimizer}8bit(model.parameters(), lr=lr)",
    "adafactor": "optimizer = torch.optim.Adafactor(model.parameters(), lr=lr)",
    "sgd": "optimizer = torch.optim.SGD(model.parameters(), lr=lr)",
    "freeze_backbone": "backbone.requires_grad_(False)",
    "lora": 'model = peft.get_peft_model(model, peft.LoraConfig(r={rank}, target_modules="all-linear"))',
    "clear_gradients": "optimizer.zero_grad(set_to_none=True)",
    "flash": "with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):",
    "efficient": "with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION):",
    "channels_last": "model = model.to(memory_format=torch.channels_last)",
    "expandable_segments": "PYTORCH_ALLOC_CONF=expandable_segments:True",
    "zero1": "optimizer = torch.distributed.optim.ZeroRedundancyOptimizer("
    "model.parameters(), torch.optim.{optimizer}, lr=lr)",
    "zero2": "torch.distributed.fsdp.fully_shard(model, reshard_after_forward=False)",
    "zero3": "torch.distributed.fsdp.fully_shard(model)",
}
_LORA: Final = re.compile(r"lora_(\d+)")


def name(lever: Lever, config: RunConfig) -> str:
    """``Batch 64 → 48, accumulate``; levers without words of their own name the settings they change."""
    sizes = lever.changes or lever.settings
    if set(sizes) == {"batch_size", "accumulation"}:
        return QCoreApplication.translate("Levers", "Batch {0} → {1}, accumulate").format(
            config.batch_size, sizes["batch_size"]
        )
    kind = _kind(lever)
    if kind in _NAMES:
        text = QCoreApplication.translate("Levers", _NAMES[kind])
        for place, value in _values(lever, config).items():
            text = text.replace("{" + place + "}", value)
        return text
    changed = ", ".join(_change(field, getattr(config, field), new) for field, new in lever.changes.items())
    return changed or ", ".join(f"{field} = {value}" for field, value in lever.settings.items()) or lever.code


def _kind(lever: Lever) -> str:
    """Levers that come in several strengths share their words."""
    return "lora" if _LORA.fullmatch(lever.code) else lever.code


def _values(lever: Lever, config: RunConfig) -> dict[str, str]:
    rank = _LORA.fullmatch(lever.code)
    return {
        "optimizer": fields.choice("optimizer", config.optimizer),
        "rank": rank[1] if rank else str(lever.settings.get("lora_rank", "")),
        "cards": str(lever.settings.get("world_size", "")),
    }


def _change(field: str, old: object, new: object) -> str:
    return f"{fields.name(field)} {_shown(field, old)} → {_shown(field, new)}"


def _shown(field: str, value: object) -> str:
    if isinstance(value, bool):
        return QCoreApplication.translate("Levers", "on") if value else QCoreApplication.translate("Levers", "off")
    return fields.not_set() if value is None else fields.choice(field, str(value))


def line(lever: Lever, config: RunConfig) -> str:
    """One line to put into one's own code or environment; the settings themselves where there is none."""
    text = _LINES.get(_kind(lever))
    if text is None:
        return ", ".join(f"{field}={value}" for field, value in lever.settings.items())
    values = _values(lever, config) | {
        "optimizer": _OPTIMIZERS.get(config.optimizer, config.optimizer),
        "accumulation": str(lever.settings.get("accumulation", lever.changes.get("accumulation", 2))),
        "batch": str(lever.settings.get("batch_size", lever.changes.get("batch_size", config.batch_size))),
    }
    for place, value in values.items():
        text = text.replace("{" + place + "}", value)
    return text


def saved(lever: Lever) -> str:
    """``−0.34 GiB``."""
    return numbers.size(-lever.saved_bytes)


def verdict(lever: Lever, estimate: Estimate) -> Verdict:
    """Whether the training would fit: the lever's P50, with the spread of the estimate as it is."""
    room = estimate.capacity_bytes - estimate.others_bytes
    p50 = estimate.device_peak_bytes.p50
    spread = estimate.device_peak_bytes.p95 / p50 if p50 else 1.0
    if lever.device_peak_bytes * spread <= room:
        return Verdict.FITS
    return Verdict.TIGHT if lever.device_peak_bytes <= room else Verdict.DOES_NOT_FIT


def outcome(lever: Lever, estimate: Estimate) -> str:
    """``3.70 GiB, then it fits``."""
    peak = numbers.size(lever.device_peak_bytes)
    if estimate.verdict is Verdict.FITS:
        return QCoreApplication.translate("Levers", "peak {0}").format(peak)
    words = {
        Verdict.FITS: QCoreApplication.translate("Levers", "peak {0}, then it fits"),
        Verdict.TIGHT: QCoreApplication.translate("Levers", "peak {0}, then it is tight"),
        Verdict.DOES_NOT_FIT: QCoreApplication.translate("Levers", "peak {0}, still too much"),
    }
    return words[verdict(lever, estimate)].format(peak)


def no_help_against_leak() -> str:
    return QCoreApplication.translate("Levers", "None stops a leak. It only moves the day.")


def locked() -> str:
    return QCoreApplication.translate("Levers", "Can be chosen when the run has ended.")


def choose(lever: Lever, config: RunConfig) -> str:
    """The tooltip: what the peak would be."""
    peak = numbers.size(lever.device_peak_bytes)
    if not lever.changes:
        text = QCoreApplication.translate("Levers", "{0}: the peak would be {1}. Shows what to write.")
    else:
        text = QCoreApplication.translate("Levers", "{0}: the peak would be {1}. Changes the form.")
    return text.format(name(lever, config), peak)


def in_your_code() -> str:
    """Above the line to copy."""
    return QCoreApplication.translate("Levers", "Not in this form. In your own code:")


def in_your_environment() -> str:
    return QCoreApplication.translate("Levers", "Not in this form. In the environment, before the start:")


def advice(lever: Lever) -> str:
    return in_your_environment() if lever.code == "expandable_segments" else in_your_code()


def working() -> str:
    return QCoreApplication.translate("Levers", "Working out what would help…")


def show_all(count: int) -> str:
    return QCoreApplication.translate("Levers", "Show all {0}").format(count)


def show_fewer() -> str:
    return QCoreApplication.translate("Levers", "Show fewer")
