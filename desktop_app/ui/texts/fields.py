"""Names of what a run is made of: fields, choices, groups, and what a wrong value should have been."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.training.config import FieldGroup, FieldKind, FieldSpec, RunConfig, field_spec
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import numbers

_NAMES: Final = {
    "recipe": QT_TRANSLATE_NOOP("Fields", "Recipe"),
    "name": QT_TRANSLATE_NOOP("Fields", "Name"),
    "data": QT_TRANSLATE_NOOP("Fields", "Data"),
    "validation_fraction": QT_TRANSLATE_NOOP("Fields", "Validation share"),
    "augment": QT_TRANSLATE_NOOP("Fields", "Augment"),
    "image_size": QT_TRANSLATE_NOOP("Fields", "Image size"),
    "channels": QT_TRANSLATE_NOOP("Fields", "Channels"),
    "model": QT_TRANSLATE_NOOP("Fields", "Model"),
    "width": QT_TRANSLATE_NOOP("Fields", "Width"),
    "hidden": QT_TRANSLATE_NOOP("Fields", "Hidden units"),
    "depth": QT_TRANSLATE_NOOP("Fields", "Depth"),
    "batch_size": QT_TRANSLATE_NOOP("Fields", "Batch"),
    "accumulation": QT_TRANSLATE_NOOP("Fields", "Accumulate"),
    "epochs": QT_TRANSLATE_NOOP("Fields", "Epochs"),
    "optimizer": QT_TRANSLATE_NOOP("Fields", "Optimizer"),
    "foreach": QT_TRANSLATE_NOOP("Fields", "Foreach update"),
    "learning_rate": QT_TRANSLATE_NOOP("Fields", "Learning rate"),
    "weight_decay": QT_TRANSLATE_NOOP("Fields", "Weight decay"),
    "momentum": QT_TRANSLATE_NOOP("Fields", "Momentum"),
    "schedule": QT_TRANSLATE_NOOP("Fields", "Schedule"),
    "schedule_epochs": QT_TRANSLATE_NOOP("Fields", "Schedule epochs"),
    "warmup_steps": QT_TRANSLATE_NOOP("Fields", "Warm-up steps"),
    "precision": QT_TRANSLATE_NOOP("Fields", "Precision"),
    "grad_clip": QT_TRANSLATE_NOOP("Fields", "Clip gradient"),
    "early_stop_epochs": QT_TRANSLATE_NOOP("Fields", "Early stop"),
    "max_seconds": QT_TRANSLATE_NOOP("Fields", "Time limit"),
    "max_steps_per_s": QT_TRANSLATE_NOOP("Fields", "Pace"),
    "log_every_steps": QT_TRANSLATE_NOOP("Fields", "Log every"),
    "seed": QT_TRANSLATE_NOOP("Fields", "Seed"),
    "device": QT_TRANSLATE_NOOP("Fields", "Device"),
    "card": QT_TRANSLATE_NOOP("Fields", "Simulated card"),
    "cpu_threads": QT_TRANSLATE_NOOP("Fields", "CPU threads"),
    "output_dir": QT_TRANSLATE_NOOP("Fields", "Checkpoints in"),
    "checkpoint_every_epochs": QT_TRANSLATE_NOOP("Fields", "Checkpoint every"),
    "on_alert": QT_TRANSLATE_NOOP("Fields", "On a warning"),
    "on_oom": QT_TRANSLATE_NOOP("Fields", "Out of memory"),
}
_HELP: Final = {
    "recipe": QT_TRANSLATE_NOOP("Fields", "What is learnt from what."),
    "name": QT_TRANSLATE_NOOP("Fields", "Shown in lists and titles. Empty: made from model and data."),
    "data": QT_TRANSLATE_NOOP("Fields", "A built-in data set or a folder of class folders."),
    "validation_fraction": QT_TRANSLATE_NOOP("Fields", "Share of each class that is kept for validation."),
    "augment": QT_TRANSLATE_NOOP("Fields", "Mirror and shift training images by chance."),
    "image_size": QT_TRANSLATE_NOOP("Fields", "Images are resized to this many pixels square."),
    "channels": QT_TRANSLATE_NOOP("Fields", "Grey or colour. Automatic: colour as soon as the images have some."),
    "model": QT_TRANSLATE_NOOP("Fields", "Network that is trained."),
    "width": QT_TRANSLATE_NOOP("Fields", "Channels of the first convolution; deeper ones have 2 and 4 times as many."),
    "hidden": QT_TRANSLATE_NOOP("Fields", "Units of the hidden layers."),
    "depth": QT_TRANSLATE_NOOP("Fields", "Hidden layers of the wide MLP."),
    "batch_size": QT_TRANSLATE_NOOP("Fields", "Samples of one micro-step: what memory sees."),
    "accumulation": QT_TRANSLATE_NOOP("Fields", "Micro-steps whose gradients are summed for one optimizer step."),
    "epochs": QT_TRANSLATE_NOOP("Fields", "Passes over the training data."),
    "optimizer": QT_TRANSLATE_NOOP("Fields", "Update rule."),
    "foreach": QT_TRANSLATE_NOOP(
        "Fields", "Update all tensors at once: faster, with temporaries about as large as the parameters."
    ),
    "learning_rate": QT_TRANSLATE_NOOP("Fields", "Highest learning rate of the schedule."),
    "weight_decay": QT_TRANSLATE_NOOP("Fields", "Decay of the weights per step and learning rate."),
    "momentum": QT_TRANSLATE_NOOP("Fields", "Momentum of SGD. 0 keeps no state."),
    "schedule": QT_TRANSLATE_NOOP("Fields", "How the learning rate falls over the run."),
    "schedule_epochs": QT_TRANSLATE_NOOP("Fields", "Horizon of the schedule. Not set: the whole run."),
    "warmup_steps": QT_TRANSLATE_NOOP("Fields", "Steps over which the learning rate rises from nought."),
    "precision": QT_TRANSLATE_NOOP("Fields", "bf16: forward and loss under autocast; weights stay fp32."),
    "grad_clip": QT_TRANSLATE_NOOP("Fields", "Largest norm of the gradient. 0: no clipping."),
    "early_stop_epochs": QT_TRANSLATE_NOOP("Fields", "Stop after this many epochs without a better accuracy."),
    "max_seconds": QT_TRANSLATE_NOOP("Fields", "Finish after this time of training."),
    "max_steps_per_s": QT_TRANSLATE_NOOP("Fields", "No more optimizer steps per second than this, for demonstrations."),
    "log_every_steps": QT_TRANSLATE_NOOP(
        "Fields", "Read the loss from the device every so many steps. Not set: five times a second."
    ),
    "seed": QT_TRANSLATE_NOOP("Fields", "Everything random follows from it."),
    "device": QT_TRANSLATE_NOOP("Fields", "Where it runs. A simulated card is computed by the CPU."),
    "card": QT_TRANSLATE_NOOP("Fields", "Catalogue name of the simulated card, such as GeForce GTX 1660."),
    "cpu_threads": QT_TRANSLATE_NOOP("Fields", "Threads of the training on the CPU. Not set: one core is left free."),
    "output_dir": QT_TRANSLATE_NOOP("Fields", "Folder for checkpoints. Not set: the folder of the session."),
    "checkpoint_every_epochs": QT_TRANSLATE_NOOP(
        "Fields", "Epochs between checkpoints. 0: only on request and on stop."
    ),
    "on_alert": QT_TRANSLATE_NOOP(
        "Fields",
        "What to do when memory is forecast to run out. Shrink: smaller micro-batches, and more of them for each step.",
    ),
    "on_oom": QT_TRANSLATE_NOOP(
        "Fields", "What to do when memory has run out. A smaller micro-batch goes on from the last good step."
    ),
}
# Keys are "field.choice", so that one word may read differently in two fields.
_CHOICES: Final = {
    "recipe.image-folder": QT_TRANSLATE_NOOP("Fields", "Image folder"),
    "data.cats-dogs": QT_TRANSLATE_NOOP("Fields", "cats-dogs (built in)"),
    "channels.auto": QT_TRANSLATE_NOOP("Fields", "automatic"),
    "channels.gray": QT_TRANSLATE_NOOP("Fields", "grey"),
    "channels.rgb": QT_TRANSLATE_NOOP("Fields", "colour"),
    "model.small-cnn": QT_TRANSLATE_NOOP("Fields", "Small CNN"),
    "model.wide-mlp": QT_TRANSLATE_NOOP("Fields", "Wide MLP"),
    "optimizer.adamw": "AdamW",
    "optimizer.adam": "Adam",
    "optimizer.sgd": "SGD",
    "schedule.cosine": QT_TRANSLATE_NOOP("Fields", "cosine"),
    "schedule.constant": QT_TRANSLATE_NOOP("Fields", "constant"),
    "schedule.linear": QT_TRANSLATE_NOOP("Fields", "linear"),
    "schedule.one-cycle": QT_TRANSLATE_NOOP("Fields", "one cycle"),
    "precision.fp32": "fp32",
    "precision.bf16": "bf16",
    "device.auto": QT_TRANSLATE_NOOP("Fields", "automatic"),
    "device.cpu": QT_TRANSLATE_NOOP("Fields", "CPU"),
    "device.simulated": QT_TRANSLATE_NOOP("Fields", "simulated card"),
    "on_alert.notify": QT_TRANSLATE_NOOP("Fields", "only tell me"),
    "on_alert.pause": QT_TRANSLATE_NOOP("Fields", "pause"),
    "on_alert.save": QT_TRANSLATE_NOOP("Fields", "save"),
    "on_alert.save_and_pause": QT_TRANSLATE_NOOP("Fields", "save and pause"),
    "on_alert.shrink": QT_TRANSLATE_NOOP("Fields", "shrink the batch"),
    "on_alert.stop": QT_TRANSLATE_NOOP("Fields", "save and stop"),
    "on_oom.end": QT_TRANSLATE_NOOP("Fields", "end the run"),
    "on_oom.shrink": QT_TRANSLATE_NOOP("Fields", "shrink and go on"),
}
_GROUPS: Final = {
    FieldGroup.RUN: QT_TRANSLATE_NOOP("Fields", "Run"),
    FieldGroup.DATA: QT_TRANSLATE_NOOP("Fields", "Data"),
    FieldGroup.MODEL: QT_TRANSLATE_NOOP("Fields", "Model"),
    FieldGroup.OPTIMIZATION: QT_TRANSLATE_NOOP("Fields", "Training"),
    FieldGroup.DEVICE: QT_TRANSLATE_NOOP("Fields", "Device"),
    FieldGroup.CHECKPOINTS: QT_TRANSLATE_NOOP("Fields", "Checkpoints"),
}
_UNITS: Final = {
    "px": QT_TRANSLATE_NOOP("Fields", "px"),
    "s": QT_TRANSLATE_NOOP("Fields", "s"),
    "steps": QT_TRANSLATE_NOOP("Fields", "steps"),
    "epochs": QT_TRANSLATE_NOOP("Fields", "epochs"),
    "steps/s": QT_TRANSLATE_NOOP("Fields", "steps/s"),
}


def name(field: str) -> str:
    """The label of a field."""
    return QCoreApplication.translate("Fields", _NAMES[field]) if field in _NAMES else field


def explanation(field: str) -> str:
    """The tooltip of a field."""
    return QCoreApplication.translate("Fields", _HELP[field]) if field in _HELP else ""


def choice(field: str, value: str) -> str:
    """One value of a choice, as the form lists it."""
    key = f"{field}.{value}"
    return QCoreApplication.translate("Fields", _CHOICES[key]) if key in _CHOICES else value


def training(config: RunConfig) -> str:
    """``Small CNN, batch 64, fp32``: what memory depends on most."""
    return QCoreApplication.translate("Fields", "{0}, batch {1}, {2}").format(
        choice("model", config.model), numbers.integer(config.batch_size), choice("precision", config.precision)
    )


def group(which: FieldGroup) -> str:
    """The heading of a section."""
    return QCoreApplication.translate("Fields", _GROUPS[which])


def unit(spec: FieldSpec) -> str:
    """The unit after a number; empty for plain numbers."""
    return QCoreApplication.translate("Fields", _UNITS[spec.unit]) if spec.unit in _UNITS else spec.unit


def not_set() -> str:
    """The placeholder of an optional field."""
    return QCoreApplication.translate("Fields", "not set")


def expected(field: str) -> str:
    """What a field takes: ``Batch takes a whole number from 1 to 65,536.``"""
    return QCoreApplication.translate("Fields", "{0} takes {1}.").format(
        name(field), _expected_value(field_spec(field))
    )


def _expected_value(spec: FieldSpec) -> str:
    if spec.kind in (FieldKind.INTEGER, FieldKind.NUMBER):
        return _expected_number(spec)
    if spec.kind is FieldKind.CHOICE:
        options = ", ".join(choice(spec.name, value) for value in spec.choices)
        return QCoreApplication.translate("Fields", "one of {0}").format(options)
    if spec.kind is FieldKind.PATH:
        return QCoreApplication.translate("Fields", "a folder")
    if spec.kind is FieldKind.DEVICE:
        return QCoreApplication.translate("Fields", "auto, cpu, simulated, cuda or cuda:N")
    return QCoreApplication.translate("Fields", "plain text")


def _expected_number(spec: FieldSpec) -> str:
    whole = spec.kind is FieldKind.INTEGER
    if spec.minimum is None or spec.maximum is None:
        return (
            QCoreApplication.translate("Fields", "a whole number")
            if whole
            else QCoreApplication.translate("Fields", "a number")
        )
    low, high = _limit(spec.minimum), _limit(spec.maximum)
    if whole:
        return QCoreApplication.translate("Fields", "a whole number from {0} to {1}").format(low, high)
    return QCoreApplication.translate("Fields", "a number from {0} to {1}").format(low, high)


def _limit(value: float) -> str:
    return numbers.integer(value) if float(value).is_integer() else f"{value:g}"


_PHASES: Final[Mapping[str, str]] = {
    "build": QT_TRANSLATE_NOOP("Phases", "while the model was built"),
    "forward": QT_TRANSLATE_NOOP("Phases", "in the forward pass"),
    "backward": QT_TRANSLATE_NOOP("Phases", "in the backward pass"),
    "optimizer": QT_TRANSLATE_NOOP("Phases", "in the optimizer step"),
    "zero": QT_TRANSLATE_NOOP("Phases", "while gradients were cleared"),
    "validation": QT_TRANSLATE_NOOP("Phases", "during validation"),
    "save": QT_TRANSLATE_NOOP("Phases", "while a checkpoint was saved"),
}
_CATEGORIES: Final[Mapping[str, str]] = {
    "parameters": QT_TRANSLATE_NOOP("Categories", "Parameters"),
    "gradients": QT_TRANSLATE_NOOP("Categories", "Gradients"),
    "optimizer_state": QT_TRANSLATE_NOOP("Categories", "Optimizer state"),
    "activations": QT_TRANSLATE_NOOP("Categories", "Activations"),
    "workspace": QT_TRANSLATE_NOOP("Categories", "Workspace"),
    "temporaries": QT_TRANSLATE_NOOP("Categories", "Temporaries"),
    "inputs": QT_TRANSLATE_NOOP("Categories", "Inputs"),
    "other": QT_TRANSLATE_NOOP("Categories", "Other tensors"),
    "context": QT_TRANSLATE_NOOP("Categories", "CUDA context"),
    "others": QT_TRANSLATE_NOOP("Categories", "Other processes"),
    "idle": QT_TRANSLATE_NOOP("Categories", "Cached, idle"),
}


def phase(code: str) -> str:
    """Where in a step something happened: ``in the backward pass``."""
    return QCoreApplication.translate("Phases", _PHASES[code]) if code in _PHASES else code


def category(code: str) -> str:
    """An owner of memory; modules keep their own names."""
    return QCoreApplication.translate("Categories", _CATEGORIES[code]) if code in _CATEGORIES else code
