"""Errors by their code. The line that comes with a code is English and knows the details; other languages say the
kind of error in their own words and keep the line behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import numbers

_KINDS: Final = {
    "config.choice": QT_TRANSLATE_NOOP("Errors", "A setting has a value it does not take."),
    "config.malformed": QT_TRANSLATE_NOOP("Errors", "The run file is not well-formed."),
    "config.range": QT_TRANSLATE_NOOP("Errors", "A setting is out of its range."),
    "config.type": QT_TRANSLATE_NOOP("Errors", "A setting has the wrong kind of value."),
    "config.unknown_field": QT_TRANSLATE_NOOP("Errors", "The run file has a setting that does not exist."),
    "config.unreadable": QT_TRANSLATE_NOOP("Errors", "The run file cannot be read."),
    "config.value": QT_TRANSLATE_NOOP("Errors", "A setting has a value it does not take."),
    "checkpoint.damaged": QT_TRANSLATE_NOOP("Errors", "The checkpoint is damaged."),
    "checkpoint.failed": QT_TRANSLATE_NOOP("Errors", "The checkpoint cannot be written."),
    "checkpoint.foreign": QT_TRANSLATE_NOOP("Errors", "The file is no checkpoint of Floodmark."),
    "checkpoint.missing": QT_TRANSLATE_NOOP("Errors", "The checkpoint does not exist."),
    "checkpoint.version": QT_TRANSLATE_NOOP("Errors", "The checkpoint comes from another version of Floodmark."),
    "data.class_without_validation": QT_TRANSLATE_NOOP("Errors", "A class has too few pictures for validation."),
    "data.damaged_package": QT_TRANSLATE_NOOP("Errors", "The built-in data set is damaged."),
    "data.empty_class": QT_TRANSLATE_NOOP("Errors", "A class has no readable picture."),
    "data.fewer_than_batch": QT_TRANSLATE_NOOP("Errors", "There are fewer pictures than one batch takes."),
    "data.file_changed": QT_TRANSLATE_NOOP("Errors", "A picture changed while it was read."),
    "data.missing_folder": QT_TRANSLATE_NOOP("Errors", "The data folder does not exist."),
    "data.missing_package": QT_TRANSLATE_NOOP("Errors", "The package with the built-in data set is missing."),
    "data.no_classes": QT_TRANSLATE_NOOP("Errors", "The data folder has no class folders."),
    "data.no_permission": QT_TRANSLATE_NOOP("Errors", "The data folder may not be read."),
    "data.not_a_folder": QT_TRANSLATE_NOOP("Errors", "The data are not a folder."),
    "data.one_image": QT_TRANSLATE_NOOP("Errors", "A class has only one image; it needs at least two."),
    "data.one_class": QT_TRANSLATE_NOOP("Errors", "The data have one class only; a classifier needs two."),
    "data.only_copies": QT_TRANSLATE_NOOP("Errors", "The pictures of a class are all copies of one another."),
    "data.skipped": QT_TRANSLATE_NOOP("Errors", "Some files cannot be read and are left out."),
    "data.unreadable": QT_TRANSLATE_NOOP("Errors", "A picture cannot be read."),
    "data.unreadable_folder": QT_TRANSLATE_NOOP("Errors", "The data folder cannot be read."),
    "data_folder.full": QT_TRANSLATE_NOOP("Errors", "The disk with the data folder is full."),
    "data_folder.unwritable": QT_TRANSLATE_NOOP("Errors", "The data folder cannot be written to."),
    "demo.not_enough_ram": QT_TRANSLATE_NOOP("Errors", "There is not enough main memory for this demonstration."),
    "demo.unknown_scenario": QT_TRANSLATE_NOOP("Errors", "There is no such demonstration."),
    "device.ambiguous_card": QT_TRANSLATE_NOOP("Errors", "The name fits several cards."),
    "device.memory_unknown": QT_TRANSLATE_NOOP("Errors", "The memory of this card is not known."),
    "device.unknown_card": QT_TRANSLATE_NOOP("Errors", "There is no card of this name in the catalogue."),
    "device.index_unknown": QT_TRANSLATE_NOOP("Errors", "There is no card with this number."),
    "device.no_answer": QT_TRANSLATE_NOOP("Errors", "The GPU driver does not answer."),
    "device.no_cuda": QT_TRANSLATE_NOOP("Errors", "The installed torch cannot use the card."),
    "device.no_such_index": QT_TRANSLATE_NOOP("Errors", "There is no card with this number."),
    "device.other_maker": QT_TRANSLATE_NOOP("Errors", "Runs need an NVIDIA card or a simulated one."),
    "device.not_known_yet": QT_TRANSLATE_NOOP("Errors", "The cards of this machine are not known yet."),
    "estimate.failed": QT_TRANSLATE_NOOP("Errors", "The model cannot be traced."),
    "metrics.exposed": QT_TRANSLATE_NOOP("Errors", "Metrics are served to whoever can reach this machine."),
    "metrics.listening": QT_TRANSLATE_NOOP("Errors", "Metrics are served for Prometheus, to this machine alone."),
    "recorder.disk_full": QT_TRANSLATE_NOOP("Errors", "Nothing more is recorded: the disk is full."),
    "recorder.trouble": QT_TRANSLATE_NOOP("Errors", "The session cannot be recorded at the moment."),
    "report.unwritable": QT_TRANSLATE_NOOP("Errors", "The report cannot be written."),
    "run.active": QT_TRANSLATE_NOOP("Errors", "A run is under way already."),
    "resume.failed": QT_TRANSLATE_NOOP("Errors", "The interrupted run cannot be resumed."),
    "run.unexpected": QT_TRANSLATE_NOOP("Errors", "The training has ended unexpectedly."),
    "screenshot.unwritable": QT_TRANSLATE_NOOP("Errors", "The picture cannot be written."),
    "snapshot.damaged": QT_TRANSLATE_NOOP("Errors", "The memory snapshot is damaged."),
    "snapshot.malformed": QT_TRANSLATE_NOOP("Errors", "The file is no memory snapshot."),
    "snapshot.not_pickle": QT_TRANSLATE_NOOP("Errors", "The file is no memory snapshot."),
    "snapshot.not_plain": QT_TRANSLATE_NOOP("Errors", "The memory snapshot holds more than plain data."),
    "snapshot.too_large": QT_TRANSLATE_NOOP("Errors", "The memory snapshot is too large."),
    "snapshot.unreadable": QT_TRANSLATE_NOOP("Errors", "The memory snapshot cannot be read."),
    "telemetry.simulated": QT_TRANSLATE_NOOP("Errors", "No NVIDIA card can be used; a simulated one stands in."),
    "trace.no_interpreter": QT_TRANSLATE_NOOP("Errors", "There is no such Python to trace with."),
    "trace.not_python": QT_TRANSLATE_NOOP("Errors", "What should trace is no Python."),
    "trace.interpreter_too_old": QT_TRANSLATE_NOOP("Errors", "The Python that traces is too old."),
    "trace.missing_torch": QT_TRANSLATE_NOOP("Errors", "The Python that traces has no torch."),
    "trace.old_torch": QT_TRANSLATE_NOOP("Errors", "The torch that traces is too old."),
    "trace.bad_spec": QT_TRANSLATE_NOOP("Errors", "A setting does not go with the model."),
    "trace.bad_model": QT_TRANSLATE_NOOP("Errors", "The model cannot be built."),
    "trace.syntax_error": QT_TRANSLATE_NOOP("Errors", "The file with the model has a syntax error."),
    "trace.function_missing": QT_TRANSLATE_NOOP("Errors", "The file with the model has no such function."),
    "trace.unknown_model": QT_TRANSLATE_NOOP("Errors", "There is no model of this name."),
    "trace.unknown_optimizer": QT_TRANSLATE_NOOP("Errors", "There is no optimizer of this name."),
    "trace.not_installed": QT_TRANSLATE_NOOP("Errors", "A package that the model needs is not installed."),
    "trace.recipe_needs_own_python": QT_TRANSLATE_NOOP(
        "Errors", "Built-in recipes are traced by the program's own Python."
    ),
    "trace.needs_data": QT_TRANSLATE_NOOP("Errors", "The model asks for values that a trace does not have."),
    "trace.interrupted": QT_TRANSLATE_NOOP("Errors", "The trace was interrupted."),
    "trace.cancelled": QT_TRANSLATE_NOOP("Errors", "The estimate was given up for a newer one."),
    "trace.killed": QT_TRANSLATE_NOOP("Errors", "The process that traces was killed."),
    "trace.crashed": QT_TRANSLATE_NOOP("Errors", "The process that traces ended by itself."),
    "trace.time_limit": QT_TRANSLATE_NOOP("Errors", "The trace took too long."),
    "trace.memory_limit": QT_TRANSLATE_NOOP("Errors", "The trace needed too much main memory."),
    "trace.no_space": QT_TRANSLATE_NOOP("Errors", "There is no room on the disk for the trace."),
    "trace.failed": QT_TRANSLATE_NOOP("Errors", "The trace has failed."),
    "training.host_memory": QT_TRANSLATE_NOOP("Errors", "The computer's own memory is full, not the card's."),
    "training.loss_not_finite": QT_TRANSLATE_NOOP("Errors", "The loss is no longer a finite number."),
    "training.unexpected": QT_TRANSLATE_NOOP("Errors", "The training has ended unexpectedly."),
    "window.error": QT_TRANSLATE_NOOP("Errors", "Something in the window went wrong; the run is not affected."),
}


# Whose own words say all that matters: their English line is not shown behind a translation.
_COMPLETE: Final = frozenset(
    {
        "checkpoint.failed",
        "data.damaged_package",
        "data.missing_package",
        "data.skipped",
        "demo.not_enough_ram",
        "device.no_answer",
        "device.no_cuda",
        "device.not_known_yet",
        "recorder.disk_full",
        "recorder.trouble",
        "run.active",
        "training.host_memory",
        "training.loss_not_finite",
    }
)
# Why a file of the data is left out (codes of ``training.recipes``).
_SKIP_REASONS: Final = {
    "damaged": QT_TRANSLATE_NOOP("Errors", "damaged"),
    "empty_file": QT_TRANSLATE_NOOP("Errors", "empty file"),
    "missing": QT_TRANSLATE_NOOP("Errors", "missing"),
    "no_permission": QT_TRANSLATE_NOOP("Errors", "no permission"),
    "not_a_file": QT_TRANSLATE_NOOP("Errors", "not a file"),
    "not_an_image": QT_TRANSLATE_NOOP("Errors", "not an image"),
    "too_large": QT_TRANSLATE_NOOP("Errors", "too large"),
    "truncated": QT_TRANSLATE_NOOP("Errors", "ends too early"),
    "unreadable": QT_TRANSLATE_NOOP("Errors", "unreadable"),
}


def text(code: str | None, line: str | None, params: Mapping[str, object] | None = None) -> str:
    """One line for the window. English: the line itself; else the translated kind of error, and the line behind it
    where it knows more. ``data.skipped`` is worded from its ``params`` (count, path, reason) in every language.
    """
    if code == "data.skipped" and params and {"count", "path", "reason"} <= params.keys():
        return _skipped(params)
    kind = _KINDS.get(code or "")
    translated = kind and QCoreApplication.translate("Errors", kind)
    if not line:
        return translated or code or ""
    line = line[0].upper() + line[1:]
    if not translated or translated == kind:
        return line
    return translated if code in _COMPLETE else f"{translated}  {line}"


def skip_reason(code: str) -> str:
    """Two or three words; a code that is not known stands for itself."""
    words = _SKIP_REASONS.get(code)
    return code if words is None else QCoreApplication.translate("Errors", words)


def _skipped(params: Mapping[str, object]) -> str:
    count, path, reason = params["count"], str(params["path"]), skip_reason(str(params["reason"]))
    if count == 1:
        return QCoreApplication.translate("Errors", "1 file cannot be read and is left out: {0} ({1}).").format(
            path, reason
        )
    return QCoreApplication.translate(
        "Errors", "{0} files cannot be read and are left out; the first: {1} ({2}). The log names all of them."
    ).format(numbers.integer(count) if isinstance(count, int) else count, path, reason)
