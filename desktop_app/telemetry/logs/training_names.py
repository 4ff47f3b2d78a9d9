"""Which names of scalars are columns of ours. A name that may mean several things is none, and is kept as it is."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from desktop_app.telemetry.logs.training_log import Target

# What PyTorch's examples, Lightning, Transformers, detectron2 and MMEngine write, and how people name their own; the
# more particular first. A running average is not among them, nor what a framework says once of a whole run.
_NAMES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("steps", "loss"): (
        "train/loss", "train_loss", "loss/train", "train/loss_step", "train_loss_step", "training/loss",
        "training_loss", "loss", "train/total_loss", "total_loss", "lm_loss", "train/loss_epoch", "train_loss_epoch",
    ),
    ("steps", "learning_rate"): (
        "train/learning_rate", "train/lr", "learning_rate", "lr", "learning_rate/train", "lr/train",
    ),
    ("steps", "grad_norm"): (
        "train/grad_norm", "grad_norm", "train/gradient_norm", "gradient_norm", "grad_2.0_norm_total",
    ),
    ("steps", "train_accuracy"): (
        "train/accuracy", "train_accuracy", "accuracy/train", "train/acc", "train_acc", "acc/train",
        "train_accuracy_step", "train_acc_step", "train_accuracy_epoch", "train_acc_epoch", "accuracy", "acc",
    ),
    ("steps", "samples_per_s"): (
        "train/samples_per_second", "samples_per_second", "samples_per_sec", "samples_per_s", "samples/s",
        "samples/sec",
    ),
    ("steps", "batch_samples"): ("train/batch_size", "batch_size", "global_batch_size"),
    ("steps", "epoch"): ("train/epoch", "epoch"),
    ("validation", "loss"): (
        "eval/loss", "eval_loss", "val/loss", "val_loss", "loss/val", "loss/eval", "loss/validation", "loss/valid",
        "validation/loss", "validation_loss", "valid/loss", "valid_loss", "val/loss_epoch", "val_loss_epoch",
    ),
    ("validation", "accuracy"): (
        "eval/accuracy", "eval_accuracy", "val/accuracy", "val_accuracy", "accuracy/val", "accuracy/eval",
        "accuracy/validation", "val/acc", "val_acc", "acc/val", "validation/accuracy", "validation_accuracy",
        "valid/accuracy", "valid_accuracy", "valid_acc", "val_accuracy_epoch", "val_acc_epoch",
    ),
}  # fmt: skip
# Only where the name has its unit: "step_time" alone may be seconds or milliseconds.
_TIMES: Final = {
    "step_time_s": 1.0, "step_s": 1.0, "iter_time_s": 1.0, "step_time_ms": 1e-3, "step_ms": 1e-3, "iter_time_ms": 1e-3,
    "dt_ms": 1e-3, "step_time_[s]": 1.0, "step_time_[ms]": 1e-3, "iter_time_[ms]": 1e-3,
}  # fmt: skip
# A number as Python, C and Lua print it, for a pattern that ignores case.
NUMBER: Final = r"(?:[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,4})?|[-+]?nan|[-+]?inf(?:inity)?)"
_SHARES: Final = frozenset({"train_accuracy", "accuracy"})
# Lightning's monitor: the optimizer's class, and a group of parameters.
_LIGHTNING_RATE: Final = re.compile(r"lr-[A-Za-z]\w*(?:/pg1)?")
_TARGETS: Final = {
    name: Target(table, column, rank, share=column in _SHARES)
    for (table, column), names in _NAMES.items()
    for rank, name in enumerate(names)
} | {name: Target("steps", "step_s", rank, scale) for rank, (name, scale) in enumerate(_TIMES.items())}
_LONGEST: Final = 64


def plain(name: str) -> str:
    """A name as the table has it."""
    return "_".join(name.strip().lower().split())


@lru_cache(maxsize=4096)
def target_of(name: str) -> Target | None:
    """The column that the scalar ``name`` is."""
    if len(name) > _LONGEST:
        return None
    found = _TARGETS.get(plain(name))
    if found is None and _LIGHTNING_RATE.fullmatch(name.strip()):
        return Target("steps", "learning_rate", len(_NAMES["steps", "learning_rate"]))
    return found
