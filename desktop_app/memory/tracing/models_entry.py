"""Trainings of our own: a function of the package that returns a whole ``TraceSubject``."""

from __future__ import annotations

import importlib

from desktop_app.memory.trace import TraceSubject
from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.models_construction import construct, import_library
from desktop_app.memory.tracing.stage import Stage
from desktop_app.memory.tracing.subject_parts import TrainingParts
from desktop_app.memory.training_spec import TrainingSpec

_OURS = __name__.partition(".")[0]


def entry_parts(spec: TrainingSpec, *, name: str, stage: Stage) -> TrainingParts:
    """What ``MODULE:FUNCTION``, called with ``spec.arguments`` by name, returns. Nothing else of ``spec`` is told it.

    Raises ``TracerError``: ``function_missing``, ``not_installed`` for a module that cannot be imported,
    ``bad_model`` for a function that returns something else.
    """
    module_name, _, function_name = name.rpartition(":")
    is_ours = module_name.partition(".")[0] == _OURS
    module = importlib.import_module(module_name) if is_ours else import_library(module_name)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise TracerError("function_missing", f"{module_name} has no function {function_name!r}.")
    subject = construct(lambda: function(**spec.arguments), stage=stage)
    if not isinstance(subject, TraceSubject):
        raise TracerError("bad_model", f"{name} returned a {type(subject).__name__}, not a TraceSubject.")
    return TrainingParts(
        model=subject.model,
        batch=subject.batch,
        micro_step=subject.micro_step,
        optimizer=subject.optimizer,
        keeps_loss=subject.keeps_loss,
        keeps_norm=subject.keeps_norm,
    )
