"""From the rows of a recorded run to the samples that a forecaster takes, one row at a time and never a later one.

What a row says of a phase is either that it is about to begin or that it is over, and other people's traces do not say
which. Ours do (``phase_begin``, ``phase_end``, ``progress``, ``demand``); else a row whose peak is one of its own,
neither live nor the peak of the step before, is taken for figures of the phase, and any other for its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from desktop_app.core.steps import BatchShape, MemoryStats, Phase, PhaseSample, StepSample, Surroundings
from desktop_app.forecast.trace_clock import RowClock, RowEpochs
from desktop_app.forecast.trace_memory import RowMemory
from desktop_app.forecast.trace_rows import TraceRow
from desktop_app.forecast.trace_words import Mark, PhaseWord, Words, read_event, read_phase

_OWN_PEAK_SHARE: Final = 0.002  # of a peak: two figures closer than this are the same figure
_STANDS_OUT_SHARE: Final = 0.02  # of the peak of the step before: a peak above that has something else in it
_BACK_STEPS: Final = 2  # a step number this far back is another start; one back is two writers at once
_IN_STEP: Final = frozenset({Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.ZERO})


@dataclass(frozen=True, slots=True)
class Setting:
    """What a row says about the run as a whole; ``None`` where it says nothing."""

    total_steps: int | None = None
    steps_per_epoch: int | None = None
    longest_batch: BatchShape | None = None
    longest_batch_step: int | None = None


Sample = StepSample | PhaseSample | Surroundings | Setting


class RowReader:
    """Reads the rows of one run in their order. Memory does not grow."""

    def __init__(self, *, steps_per_epoch: int | None = None) -> None:
        self._memory = RowMemory()
        self._clock = RowClock()
        self._epochs = RowEpochs()
        if steps_per_epoch:
            self._epochs.know(steps_per_epoch)
        self._step = 0  # the newest step that has ended
        self._steps = 0  # how many have
        self._open = _OpenStep()
        self._validation = _Validation()
        self._step_peak: int | None = None
        self._step_live: int | None = None
        self._first_forward: PhaseSample | None = None
        self._ended_rows_seen = False  # rows of forward, backward … are written when those are over

    def samples(self, row: TraceRow) -> Iterator[Sample]:
        """What ``row`` says, in the order in which it happened."""
        words, cell = read_event(row.event), read_phase(row.phase)
        t_s = self._clock.time(row, is_step=cell.phase is None)
        setting = self._setting(words)
        if setting is not None:
            if setting.steps_per_epoch:
                self._epochs.know(setting.steps_per_epoch)
            yield setting
        around = self._surroundings(row, t_s)
        if around is not None:
            yield around
        if Mark.RESTART in words.marks:
            self._memory.restart()
        if cell.phase is not None:
            yield from self._of_phase(row, cell, words, t_s)
            return
        peak_before = self._step_peak
        if self._ends_step(row, cell):
            yield from self._of_step(row, words, t_s)
        elif Mark.RESUME in words.marks:
            yield self._resumed(row, t_s)
        if words.phase is not None and (row.step is not None or words.begins or words.ends):
            yield from self._of_event(row, words, t_s, peak_before=peak_before)

    def _ends_step(self, row: TraceRow, cell: PhaseWord) -> bool:
        """A step row has a step of its own, or figures of a step where nobody counts them."""
        if row.step is not None:
            return row.step != self._step or not self._steps or self._open.step == row.step
        if not cell.known:
            return False
        return bool(row.phase) or row.step_s is not None or _has_allocator_figures(row)

    def _of_step(self, row: TraceRow, words: Words, t_s: float) -> Iterator[Sample]:
        step = row.step if row.step is not None else self._step + 1
        if step > self._open.step:
            yield from self._close_open_step(row, t_s)
        yield from self._leave_validation(row, t_s)
        went_back = step <= self._step - _BACK_STEPS and Mark.RESTART not in words.marks
        if Mark.RESUME in words.marks or went_back:
            yield self._resumed(row, t_s)
        memory = self._memory.figures(row, within_step=False)
        sample = StepSample(
            t_s=t_s,
            step=step,
            epoch=self._epochs.take(step, words),
            loss=None,
            train_accuracy=None,
            learning_rate=0.0,
            grad_norm=None,
            step_s=row.step_s if row.step_s is not None else self._clock.since_step_s(t_s),
            batch_samples=row.batch_samples if row.batch_samples is not None else 1,
            memory=memory,
            batch_tokens=row.batch_tokens,
            batch_pixels=row.batch_pixels,
        )
        yield self._end_step(sample)
        learnt = self._epochs.steps_per_epoch_news()
        if learnt is not None:
            yield Setting(steps_per_epoch=learnt)

    def _end_step(self, sample: StepSample) -> StepSample:
        self._step = sample.step
        self._steps += 1
        self._open = _OpenStep()
        self._clock.step_ended(sample.t_s)
        if sample.memory is not None:
            self._step_peak, self._step_live = sample.memory.live_peak_bytes, sample.memory.live_bytes
        return sample

    def _of_phase(self, row: TraceRow, cell: PhaseWord, words: Words, t_s: float) -> Iterator[Sample]:
        phase = cell.phase
        assert phase is not None
        if phase in _IN_STEP:
            yield from self._of_phase_in_step(row, phase, cell, words, t_s)
            return
        yield from self._close_open_step(row, t_s)
        step = row.step if row.step is not None else self._step
        memory = self._memory.figures(row, within_step=True)
        if phase is not Phase.VALIDATION:
            yield from self._leave_validation(row, t_s)
        if phase is Phase.BUILD:
            is_over = cell.ends or words.ends or _has_resumed(cell, words)
            if is_over:
                self._note_resumed(memory)
            yield PhaseSample(t_s, step, phase, memory, **_demand(words), ended=is_over)
        elif phase is Phase.SAVE:
            yield from self._of_save(cell, words, step, t_s, memory)
        else:
            yield self._of_validation(row, cell, words, step, t_s, memory)

    def _of_save(
        self, cell: PhaseWord, words: Words, step: int, t_s: float, memory: MemoryStats | None
    ) -> Iterator[PhaseSample]:
        is_over = self._is_over(cell, words, memory)
        if is_over and not words.ours and memory is not None and memory.live_peak_bytes > memory.live_bytes:
            yield PhaseSample(t_s, step, Phase.SAVE, memory, done=1)  # one row for all of it, its peak included
        yield PhaseSample(t_s, step, Phase.SAVE, memory, **_demand(words), ended=is_over)

    def _of_validation(
        self, row: TraceRow, cell: PhaseWord, words: Words, step: int, t_s: float, memory: MemoryStats | None
    ) -> PhaseSample:
        explicit_end = cell.ends or words.ends
        over = not explicit_end and self._is_over(cell, words, memory)
        done = self._validation.take(step, memory, words, is_part=over)
        sample = PhaseSample(
            t_s,
            step,
            Phase.VALIDATION,
            memory,
            **_demand(words),
            batch=_shape(row),
            done=done,
            count=self._validation.count,
            ended=explicit_end,
        )
        if explicit_end:
            self._validation = _Validation()
        return sample

    def _of_phase_in_step(
        self, row: TraceRow, phase: Phase, cell: PhaseWord, words: Words, t_s: float
    ) -> Iterator[Sample]:
        step = row.step if row.step is not None else max(self._open.step, self._step + 1)
        if step > self._open.step:
            yield from self._close_open_step(row, t_s)
        yield from self._leave_validation(row, t_s)
        memory = self._memory.figures(row, within_step=True)
        if Mark.RESUME in words.marks and not words.begins and not self._ended_rows_seen:
            yield self._resumed(row, t_s)
            words = replace(words, ends=False)  # what is over is the loading
        ended = self._phase_is_over(phase, cell, words, memory)
        self._open.take(step, row, memory)
        self._ended_rows_seen = self._ended_rows_seen or ended
        pending, self._first_forward = self._first_forward, None
        if pending is not None and not self._ended_rows_seen:
            yield pending
        if not ended:
            batch = _shape(row) if phase is Phase.FORWARD else None
            sample = PhaseSample(t_s, step, phase, memory, **_demand(words), **_progress(words), batch=batch)
            plain = words.ours or words.begins or cell.begins or words.figures
            if phase is Phase.FORWARD and self._step_live is None and memory is not None and not plain:
                # Nothing to compare it with: the next row says whether this one is about the begin or the end.
                self._first_forward = sample
                sample = replace(sample, memory=None)
            yield sample
            return
        yield PhaseSample(t_s, step, phase, memory, **_demand(words), ended=True)
        if phase is Phase.BACKWARD:  # the optimizer is next, and its own row will come when it is over
            yield PhaseSample(t_s, step, Phase.OPTIMIZER, memory)

    def _phase_is_over(self, phase: Phase, cell: PhaseWord, words: Words, memory: MemoryStats | None) -> bool:
        """Whether a row within a step is about a part of it that is over."""
        if cell.ends or words.ends:
            return True
        if cell.begins or words.begins or words.figures or memory is None:
            return False
        if phase is Phase.BACKWARD:  # it ends far below its peak, and begins at it
            return memory.live_bytes < (1.0 - _OWN_PEAK_SHARE) * memory.live_peak_bytes
        if phase is Phase.FORWARD:  # it ends near its peak, and begins where the step before has ended
            if self._step_live is None or self._step_peak is None:
                return False
            return memory.live_bytes - self._step_live > 0.25 * max(self._step_peak - self._step_live, 1)
        return self._ended_rows_seen

    def _is_over(self, cell: PhaseWord, words: Words, memory: MemoryStats | None) -> bool:
        """Whether a row about validating or saving has figures from within it rather than from before."""
        if cell.ends or words.ends or words.figures.get("done"):
            return True
        if cell.begins or words.begins or words.figures or memory is None:
            return False
        own = _OWN_PEAK_SHARE * memory.live_peak_bytes
        of_step = self._step_peak is not None and abs(memory.live_peak_bytes - self._step_peak) <= own
        return memory.live_peak_bytes - memory.live_bytes > own and not of_step

    def _of_event(self, row: TraceRow, words: Words, t_s: float, *, peak_before: int | None) -> Iterator[Sample]:
        """A phase that the event of a step row names: it comes after the step, or the row's peak is already its own."""
        phase, step = words.phase, row.step if row.step is not None else self._step
        memory = self._memory.figures(row, within_step=True)
        if phase in (Phase.SAVE, Phase.VALIDATION):
            stands_out = (
                memory is not None
                and peak_before is not None
                and not words.begins
                and memory.live_peak_bytes > (1.0 + _STANDS_OUT_SHARE) * peak_before
            )
            if stands_out:
                yield PhaseSample(t_s, step, phase, memory, done=1)
            ended = words.ends or stands_out or (phase is Phase.SAVE and not words.begins)
            yield PhaseSample(t_s, step, phase, memory, **_demand(words), **_progress(words), ended=ended)
        elif phase is Phase.OPTIMIZER and not words.ends and (step > self._step or not self._step):
            yield PhaseSample(t_s, step, phase, memory, **_demand(words))

    def _resumed(self, row: TraceRow, t_s: float) -> PhaseSample:
        step = row.step if row.step is not None else self._step
        memory = self._memory.figures(row, within_step=True)
        self._note_resumed(memory)
        return PhaseSample(t_s, step, Phase.BUILD, memory, ended=True)

    def _note_resumed(self, memory: MemoryStats | None) -> None:
        """What is left of the loading lies below the next step, whose rows are not to be taken for their ends."""
        if memory is None or self._step_live is None or self._step_peak is None:
            return
        self._step_peak += memory.live_bytes - self._step_live
        self._step_live = memory.live_bytes

    def _close_open_step(self, row: TraceRow, t_s: float) -> Iterator[Sample]:
        """A step of which only phases were recorded is over as soon as something else comes."""
        step = self._open.step
        if not step:
            return
        memory = self._open.memory(row, self._memory)
        yield from self._leave_validation(row, t_s)
        samples, tokens, pixels = self._open.batch
        yield self._end_step(
            StepSample(
                t_s=t_s,
                step=step,
                epoch=self._epochs.epoch,
                loss=None,
                train_accuracy=None,
                learning_rate=0.0,
                grad_norm=None,
                step_s=self._clock.since_step_s(t_s),
                batch_samples=samples if samples is not None else 1,
                memory=memory,
                batch_tokens=tokens,
                batch_pixels=pixels,
            )
        )

    def _leave_validation(self, row: TraceRow, t_s: float) -> Iterator[Sample]:
        """Validation whose parts were recorded, and not its end, is over when the training goes on."""
        validation, self._validation = self._validation, _Validation()
        if not validation.parts or validation.ours:
            return
        memory = validation.memory
        if memory is not None and row.live_after_bytes is not None and validation.peak_bytes:
            memory = replace(memory, live_peak_bytes=max(validation.peak_bytes, memory.live_bytes))
        yield PhaseSample(
            t_s,
            validation.step,
            Phase.VALIDATION,
            memory,
            done=validation.parts,
            count=validation.count,
            ended=True,
        )

    def _setting(self, words: Words) -> Setting | None:
        figures = words.figures
        if not figures and words.longest_batch is None:
            return None
        setting = Setting(
            figures.get("total_steps"),
            figures.get("steps_per_epoch"),
            words.longest_batch,
            words.longest_batch_step,
        )
        return setting if setting != Setting() else None

    def _surroundings(self, row: TraceRow, t_s: float) -> Surroundings | None:
        self._memory.note_others(row)
        around = Surroundings(
            t_s=t_s,
            device_used_bytes=row.device_used_bytes,
            others_bytes=row.other_used_bytes,
            outside_bytes=self._memory.outside_bytes(row),
            capacity_bytes=row.capacity_bytes,
            host_used_bytes=row.host_used_bytes,
            host_total_bytes=row.host_total_bytes,
            host_available_bytes=row.host_available_bytes,
            own_rss_bytes=row.own_rss_bytes,
            children_rss_bytes=row.children_rss_bytes,
            children=row.children,
            commit_used_bytes=row.commit_used_bytes,
            commit_limit_bytes=row.commit_limit_bytes,
            spills=row.spills is None or bool(row.spills),  # a trace that does not say may be of any system
        )
        nothing = Surroundings(
            t_s=t_s, outside_bytes=around.outside_bytes, spills=around.spills
        )  # which is with the allocator's figures
        return around if around != nothing else None


class _OpenStep:
    """A step of which phases have come, and no row of its own."""

    def __init__(self) -> None:
        self.step = 0
        self.batch: tuple[int | None, int | None, int | None] = (None, None, None)
        self._last: MemoryStats | None = None
        self._peak = 0

    def take(self, step: int, row: TraceRow, memory: MemoryStats | None) -> None:
        self.step = step
        before = self.batch
        new = (row.batch_samples, row.batch_tokens, row.batch_pixels)
        self.batch = (new[0] or before[0], new[1] or before[1], new[2] or before[2])
        if memory is not None:
            self._last = memory
            self._peak = max(self._peak, memory.live_peak_bytes)

    def memory(self, following: TraceRow, figures: RowMemory) -> MemoryStats | None:
        """Its figures: what is live as the row after it begins, if that says so, else as its last phase said."""
        if self._last is None:
            return None
        live = self._last.live_bytes
        if following.live_after_bytes is not None and read_phase(following.phase).phase is Phase.FORWARD:
            live = min(live, following.live_after_bytes)
        return replace(self._last, live_bytes=live, live_peak_bytes=max(self._peak, live))


class _Validation:
    """The parts of one validation, as rows come."""

    def __init__(self) -> None:
        self.parts = 0
        self.count: int | None = None
        self.step = 0
        self.memory: MemoryStats | None = None
        self.peak_bytes = 0
        self.ours = False  # its end will be said
        self._rows = 0

    def take(self, step: int, memory: MemoryStats | None, words: Words, *, is_part: bool) -> int:
        """How many parts are over with this row."""
        self.count = words.figures.get("count", self.count)
        self.ours = self.ours or words.ours
        self.step, self.memory = step, memory
        if memory is not None:
            self.peak_bytes = max(self.peak_bytes, memory.live_peak_bytes)
        done = words.figures.get("done")
        if done is None:
            done = self.parts + 1 if is_part or self._rows else 0
        self._rows += 1
        self.parts = done
        return done


def _demand(words: Words) -> dict[str, Any]:
    return {"known_demand_bytes": words.figures.get("demand"), "known_host_bytes": words.figures.get("host")}


def _has_resumed(cell: PhaseWord, words: Words) -> bool:
    """Loading is over, unless the row says that it begins or what it will take."""
    if cell.begins or words.begins or "demand" in words.figures:
        return False
    return cell.resumes or Mark.RESUME in words.marks


def _progress(words: Words) -> dict[str, Any]:
    return {"done": words.figures.get("done", 0), "count": words.figures.get("count")}


def _shape(row: TraceRow) -> BatchShape | None:
    if row.batch_samples is None and row.batch_tokens is None and row.batch_pixels is None:
        return None
    samples = row.batch_samples if row.batch_samples is not None else 1
    return BatchShape(samples, row.batch_tokens, row.batch_pixels)


def _has_allocator_figures(row: TraceRow) -> bool:
    figures = (row.live_after_bytes, row.live_peak_bytes, row.reserved_peak_bytes, row.reserved_bytes)
    return any(figure is not None for figure in figures)
