"""One row of a recorded run, as ``floodmark forecast`` reads it and the recorder exports it. Data only.

A row is one of three things:

- ``phase`` empty or ``step``: an optimizer step has ended; the figures are those of that step.
- ``phase`` a phase (``build``, ``forward``, ``backward``, ``optimizer``, ``zero``, ``validation``, ``save``): it is
  about to begin, and ``live_after_bytes`` is live now. The ``batch_…`` columns are those of the batch that comes.
- neither a step nor a phase: telemetry alone, as it comes once a second.

Other people's traces name phases in their own words and do not say whether a row is about the phase to come or the one
that is over (``trace_words``, ``trace_samples``).

``event`` holds words, separated by ``;``, each with figures of its own after a colon, as in
``demand:bytes=1073741824``. Words that mean something (others are kept and passed over):

=================== =============================== =================================================================
``run``             ``total_steps, steps_per_epoch`` how long the run and its epochs are
``demand``          ``bytes, host``                 this phase will certainly allocate this much (``host``: RAM)
``progress``        ``done, count``                 so many parts of the phase (batches, micro-steps) are over
``phase_begin``                                     the phase of this row is about to begin (else it is found out)
``phase_end``                                       the phase of this row is over, the figures are those right after it
``longest_batch``   ``samples, tokens, pixels, step`` the loader knows it beforehand
``checkpoint_saved``                                a checkpoint was written
``epoch``                                           an epoch has begun
``resume``                                          a checkpoint was loaded
``restart``                                         the run has gone back to an earlier step, or started anew
``alert``           ``cause, severity``             what a forecaster said while it was recorded; never read
``oom``                                             it ran out here (read by scores, never by the forecast)
=================== =============================== =================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """One row; ``None`` is unknown (an empty cell or a missing column). Bytes, seconds and counts as the names say."""

    t_s: float | None = None
    step: int | None = None
    phase: str = ""
    live_after_bytes: int | None = None
    live_peak_bytes: int | None = None
    reserved_peak_bytes: int | None = None
    idle_split_bytes: int | None = None
    alloc_retries: int | None = None
    device_used_bytes: int | None = None
    other_used_bytes: int | None = None
    capacity_bytes: int | None = None
    batch_samples: int | None = None
    batch_tokens: int | None = None
    step_s: float | None = None
    event: str = ""
    # Beyond the columns that every trace has.
    batch_pixels: int | None = None
    reserved_bytes: int | None = None
    returnable_bytes: int | None = None
    outside_bytes: int | None = None
    host_used_bytes: int | None = None
    host_total_bytes: int | None = None
    host_available_bytes: int | None = None
    own_rss_bytes: int | None = None
    children_rss_bytes: int | None = None
    children: int | None = None
    commit_used_bytes: int | None = None
    commit_limit_bytes: int | None = None
    spills: int | None = None  # 1: Windows or WSL, the driver may use RAM


TRACE_COLUMNS: Final = tuple(field.name for field in fields(TraceRow))
