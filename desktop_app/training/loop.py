"""The training loop: knows a recipe, a device, a sink and a token, and nothing of threads, windows or files beside
its checkpoint. Imported late: needs torch."""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch

from desktop_app.core.clock import SessionClock
from desktop_app.core.errors import FloodmarkError
from desktop_app.core.events import Event, EventKind, Level
from desktop_app.core.steps import BatchShape, OomReport, Phase, RunState, ValidationSample
from desktop_app.training.checkpoints import Progress
from desktop_app.training.config import RunConfig
from desktop_app.training.control import ControlToken, RunCancelled, Shrink
from desktop_app.training.devices import TrainingDevice
from desktop_app.training.gate import BusyLoad, Gate, NoLoad
from desktop_app.training.learning import LearningWatch
from desktop_app.training.look_ahead import LookAhead, part_of, shape_of, state_bytes
from desktop_app.training.memory_errors import is_device_out_of_memory, is_host_out_of_memory
from desktop_app.training.micro_batches import split_sizes
from desktop_app.training.optimizer_memory import first_step_demand
from desktop_app.training.outcome import EndReason, RunOutcome
from desktop_app.training.phase_reports import PhaseReports
from desktop_app.training.post_mortem import as_too_large, write_post_mortem
from desktop_app.training.recipes.data import Batch, PreparedData, ShapedSource
from desktop_app.training.recipes.faults import Fault
from desktop_app.training.recipes.recipe import Recipe
from desktop_app.training.rescue import GaveUp, Rescue
from desktop_app.training.resume import ResumePoint
from desktop_app.training.run_saver import RunSaver
from desktop_app.training.schedule import Schedule
from desktop_app.training.status_board import StatusBoard
from desktop_app.training.step import StepEngine, set_random_state
from desktop_app.training.step_reports import StepReports, StepSink

__all__ = ["StepSink", "Trainer"]

_log = logging.getLogger(__name__)


class Trainer:
    """One run, from the first step to its end. ``run`` is called once, in the thread that owns the device.

    ``threads``: torch threads for this thread's work on the CPU; ``None`` leaves torch's own choice. The device stays
    open: who made it closes it. ``largest_batch``: what an estimate says would fit, asked when less is needed;
    ``name_cause``: the cause of an out-of-memory error, where somebody knows it.
    """

    def __init__(
        self,
        recipe: Recipe,
        config: RunConfig,
        data: PreparedData,
        *,
        device: TrainingDevice,
        sink: StepSink,
        token: ControlToken,
        clock: SessionClock,
        resume_from: Path | None = None,
        fault: Fault | None = None,
        load: BusyLoad | None = None,
        threads: int | None = None,
        largest_batch: Callable[[], int | None] | None = None,
        name_cause: Callable[[OomReport], str | None] | None = None,
    ) -> None:
        self._recipe = recipe
        self._config = config
        self._data = data
        self._device = device
        self._sink = sink
        self._token = token
        self._clock = clock
        self._resume_from = resume_from
        self._fault = fault
        self._load: BusyLoad = load or NoLoad()
        self._threads = threads
        self._progress = Progress()
        self._engine: StepEngine | None = None
        self._steps_per_epoch = data.train.batches // config.accumulation
        self._schedule = Schedule(config, steps_per_epoch=self._steps_per_epoch)
        self._board = StatusBoard(
            config, clock=clock, token=token, publish=sink.on_status, skipped_files=len(data.info.skipped)
        )
        self._name_cause = name_cause or (lambda _: None)
        self._rescue = Rescue(
            config, data, device=device, board=self._board, post=self._post, largest_batch=largest_batch
        )
        self._saver = RunSaver(config, data, post=self._post, saved=self._note_checkpoint)
        self._gate = Gate(
            token,
            clock=clock,
            load=self._load,
            show=lambda state: self._board.show(state, self._progress),
            save=self._save,
            shrink=self._shrink,
            max_steps_per_s=config.max_steps_per_s,
        )
        self._reports = StepReports(
            config,
            sink=sink,
            clock=clock,
            learning=LearningWatch(data.class_counts),
            steps_per_epoch=self._steps_per_epoch,
        )
        self._phases = PhaseReports(sink, clock=clock, device=device)
        self._look_ahead = LookAhead(data.train)
        self._cycle = (0.0, 0.0)  # time and held seconds at the end of the last step or validation

    def run(self) -> RunOutcome:
        """Train until the end, a stop or a failure. Never raises: an error is part of the outcome."""
        threads_before = torch.get_num_threads()
        if self._threads is not None and self._device.torch_device.type == "cpu":
            torch.set_num_threads(self._threads)
        try:
            return self._guarded()
        finally:
            self._load.end_busy(self._clock.now_s())
            self._engine = None
            if self._fault is not None:
                self._fault.clear()
            torch.set_num_threads(threads_before)

    def _guarded(self) -> RunOutcome:
        """What goes wrong is put into words inside ``except`` and acted upon outside: an exception that is alive
        keeps the frames of the failed step alive, and with them most of the memory."""
        oom: OomReport | None = None
        error: tuple[str, str] | None = None
        try:
            return self._finished(self._train())
        except RunCancelled:
            pass
        except GaveUp as end:
            oom = self._last_words(end.report)
        except FloodmarkError as failure:
            error = failure.code, failure.message
        except Exception as failure:  # thread main of the training
            if is_device_out_of_memory(failure):
                oom = self._post_mortem(str(failure), None)
            else:
                error = _in_words(failure)
            _log.log(logging.DEBUG if oom else logging.ERROR, "The run failed:\n%s", traceback.format_exc())
        if oom is not None:
            return self._out_of_memory(oom)
        if error is not None:
            return RunOutcome(self._board.end(RunState.FAILED, self._progress, error=error))
        return self._stopped()

    def _train(self) -> EndReason:
        self._engine = self._build()
        self._rescue.begin(self._engine, self._progress, resumed_from=self._resume_from)
        progress, per_epoch = self._progress, self._steps_per_epoch
        epochs_left = self._config.epochs - progress.epoch + 1
        self._board.begin(total_steps=progress.step + epochs_left * per_epoch - progress.step_in_epoch)
        self._announce_data()
        self._gate.check()
        self._board.show(RunState.RUNNING, progress)
        self._end_cycle()
        while progress.epoch <= self._config.epochs:
            self._tell_longest()
            while progress.step_in_epoch < per_epoch:
                self._gate.await_turn()
                self._step(self._engine)
                if progress.step_in_epoch < per_epoch and self._time_is_over():
                    self._validate(self._engine)
                    return EndReason.MAX_SECONDS
            self._end_epoch(self._engine)
            if self._patience_is_over():
                return EndReason.EARLY_STOP
            if self._time_is_over():
                return EndReason.MAX_SECONDS
        return EndReason.EPOCHS

    def _build(self) -> StepEngine:
        """Model, optimizer and, after a resume, all their state, on the device."""
        config, device = self._config, self._device
        point = None if self._resume_from is None else ResumePoint(self._resume_from, config, self._data)
        device.phase(Phase.BUILD)
        torch.manual_seed(config.seed)
        model = self._recipe.model(config, self._data.info)
        if self._fault is not None:
            model = self._fault.alter_model(model)
        if point is not None:
            point.fill_model(model)
            step, state = point.progress().step, state_bytes(model, point.checkpoint.optimizer)
            self._phases.tell(Phase.BUILD, step, known_demand_bytes=state)
        model.to(device.torch_device)
        device.track_model(model)
        optimizer = self._recipe.optimizer(config, model)
        if point is not None:
            point.fill_optimizer(optimizer)
        device.track_optimizer(optimizer)
        model.train()
        if point is not None:
            self._progress = point.progress()
            saved = point.checkpoint
            set_random_state(saved.random_state, saved.device_random_state, device.torch_device)
            if self._fault is not None:
                self._fault.on_resumed(saved, device)
            self._phases.tell(Phase.BUILD, self._progress.step, ended=True)
        return StepEngine(self._recipe, config, model=model, optimizer=optimizer, device=device, fault=self._fault)

    def _announce_data(self) -> None:
        skipped = self._data.info.skipped
        if skipped:
            first = skipped[0]
            details = {"count": len(skipped), "path": first.path, "reason": first.reason}
            self._post(EventKind.DATA_SKIPPED, Level.WARNING, "data.skipped", **details)
        for warning in self._data.warnings:
            self._post(EventKind.DATA_SKIPPED, Level.WARNING, warning.code, **warning.params)

    # Steps and epochs

    def _step(self, engine: StepEngine) -> None:
        """One optimizer step; after an out-of-memory error all that is needed for trying it again."""
        progress = self._progress
        start_s, held_s = self._clock.now_s(), self._gate.held_s
        learning_rate = self._schedule.rate(progress.step + 1)
        oom = self._attempt(lambda: self._compute(engine, learning_rate))
        made = engine.update_made
        if made:
            progress.step += 1
            progress.step_in_epoch += 1
        if oom is not None:
            self._recover(engine, oom)
            if not made:
                return
        end_s = self._clock.now_s()
        self._load.end_busy(end_s)
        step_s = end_s - start_s - (self._gate.held_s - held_s)
        progress.trained_s += step_s
        self._reports.report(
            progress,
            engine,
            end_s=end_s,
            step_s=step_s,
            learning_rate=learning_rate,
            memory=self._device.stats(),
            shape=self._look_ahead.of_step,
        )
        self._device.reset_peaks()
        self._board.pace.add_step(self._end_cycle())
        self._board.tick(progress, steps_per_epoch=self._steps_per_epoch, left_s=self._left_s())

    def _compute(self, engine: StepEngine, learning_rate: float) -> None:
        progress, accumulation = self._progress, self._config.accumulation
        engine.begin()
        self._look_ahead.begin_step()
        for micro in range(accumulation):
            self._gate.check()
            batch = self._data.train.batch(epoch=progress.epoch, index=progress.step_in_epoch * accumulation + micro)
            self._before_forward(batch, micro)
            for part, divisor in self._rescue.training.parts(batch):
                self._gate.check()
                self._load.begin_busy(self._clock.now_s())
                engine.micro_step(part, divisor=divisor)
                self._look_ahead.note_borne(shape_of(part))
        self._before_update(engine)
        engine.update(learning_rate)

    def _before_forward(self, batch: Batch, micro: int) -> None:
        """A batch larger than any before is told before it is on the card, so that a rule can make it smaller."""
        part = self._on_card(shape_of(batch))
        if self._look_ahead.is_larger(part):
            accumulation = self._config.accumulation
            self._phases.tell(Phase.FORWARD, self._progress.step + 1, batch=part, done=micro, count=accumulation)
            self._gate.check()

    def _on_card(self, batch: BatchShape) -> BatchShape:
        """The largest part of a batch that is computed at once."""
        limit = self._rescue.training.limit
        return batch if limit is None else part_of(batch, split_sizes(batch.samples, limit)[0])

    def _tell_longest(self) -> None:
        """The longest batch of the epoch that begins or goes on, as it will be cut, where the loader can tell."""
        progress, per_step = self._progress, self._config.accumulation
        first = progress.step_in_epoch * per_step
        found = self._look_ahead.longest(epoch=progress.epoch, first=first, per_step=per_step)
        if found is not None:
            self._board.note_longest(self._on_card(found[0]), progress.step + found[1])
            self._board.refresh(progress)

    def _before_update(self, engine: StepEngine) -> None:
        """The first update makes the optimizer's state: say so before, so that a rule can hold the run."""
        held_bytes = engine.enter_optimizer()
        if engine.state_missing:
            demand = first_step_demand(engine.optimizer)
            known = None if demand is None else demand.total_bytes
            self._phases.tell(
                Phase.OPTIMIZER, self._progress.step + 1, known_demand_bytes=known, in_peak_bytes=held_bytes
            )
        self._gate.check()

    def _end_epoch(self, engine: StepEngine) -> None:
        progress, config = self._progress, self._config
        if progress.validated_epoch < progress.epoch:
            self._validate(engine)
            progress.validated_epoch = progress.epoch
        ended = progress.epoch
        progress.epoch += 1
        progress.step_in_epoch = 0
        if config.checkpoint_every_epochs and ended % config.checkpoint_every_epochs == 0:
            self._save()

    def _validate(self, engine: StepEngine) -> None:
        progress, held_s, began_s = self._progress, self._gate.held_s, self._clock.now_s()
        figures: list[tuple[float, float]] = []
        while not figures:
            count = self._data.validation.batches
            self._phases.tell(Phase.VALIDATION, progress.step, batch=self._validation_shape(), count=count)
            oom = self._attempt(lambda: figures.append(engine.validate(self._validation_batches())))
            done = 0 if oom is not None else count
            self._phases.tell(Phase.VALIDATION, progress.step, done=done, count=count, ended=True)
            if oom is not None:
                self._recover(engine, oom)
        loss, accuracy = figures[0]
        self._device.reset_peaks()
        now_s = self._clock.now_s()
        self._load.end_busy(now_s)
        progress.last_accuracy = accuracy
        progress.epochs_since_best += 1
        if progress.best_accuracy is None or accuracy > progress.best_accuracy:
            progress.best_accuracy = accuracy
            progress.epochs_since_best = 0
        self._sink.on_validation(
            ValidationSample(t_s=now_s, step=progress.step, epoch=progress.epoch, loss=loss, accuracy=accuracy)
        )
        self._board.pace.add_validation(now_s - began_s - (self._gate.held_s - held_s))
        self._end_cycle()

    def _validation_shape(self) -> BatchShape:
        """Of its first batch, as far as that is known before it is made."""
        source, size = self._data.validation, self._rescue.validation.size
        if isinstance(source, ShapedSource):
            return part_of(source.shape(epoch=self._progress.epoch, index=0), size)
        return BatchShape(size)

    def _validation_batches(self) -> Iterator[Batch]:
        source = self._data.validation
        for index in range(source.batches):
            if index:
                self._phases.validation_goes_on(self._progress.step, done=index, count=source.batches)
            self._gate.check()
            batch = source.batch(epoch=self._progress.epoch, index=index)
            for part, _ in self._rescue.validation.parts(batch):
                self._gate.check()
                self._load.begin_busy(self._clock.now_s())
                yield part

    def _end_cycle(self) -> float:
        """Seconds since the last step or validation ended, pauses taken out."""
        (before_s, held_before_s), self._cycle = self._cycle, (self._clock.now_s(), self._gate.held_s)
        return self._cycle[0] - before_s - (self._cycle[1] - held_before_s)

    def _patience_is_over(self) -> bool:
        patience = self._config.early_stop_epochs
        return patience is not None and self._progress.epochs_since_best >= patience

    def _time_is_over(self) -> bool:
        left_s = self._left_s()
        return left_s is not None and left_s <= 0

    def _left_s(self) -> float | None:
        """Time until ``max_seconds`` of training are over."""
        if self._config.max_seconds is None:
            return None
        started_s = self._board.status.started_t_s or 0.0
        return self._config.max_seconds - (self._clock.now_s() - started_s - self._gate.held_s)

    # Out of memory, and before it

    def _attempt(self, work: Callable[[], None], *, phase: Phase | None = None) -> OomReport | None:
        """Do it, or say what the card had no room for. Strings only leave the ``except``: when this returns, nothing of
        the failed work is held by it."""
        try:
            work()
        except Exception as failure:
            if not is_device_out_of_memory(failure):
                raise
            oom = self._post_mortem(str(failure), phase)
            _log.debug("Out of memory:\n%s", traceback.format_exc())
        else:
            return None
        return oom

    def _recover(self, engine: StepEngine, oom: OomReport) -> None:
        """Back to the last whole step, which is saved, with less to hold; ``GaveUp`` where that cannot be."""
        rescued, part = self._rescue.recover(engine, oom, self._progress)
        self._save()
        self._rescue.tell(rescued, part)
        self._tell_longest()
        self._board.refresh(self._progress)
        self._end_cycle()

    def _shrink(self, part: Shrink) -> None:
        to = self._token.take_shrink_size() if part is Shrink.TRAINING else None
        self._rescue.obey(part, self._progress, to=to)
        self._tell_longest()
        self._board.refresh(self._progress)

    # Ends

    def _finished(self, reason: EndReason) -> RunOutcome:
        self._save()
        return RunOutcome(self._board.end(RunState.FINISHED, self._progress), reason)

    def _stopped(self) -> RunOutcome:
        if self._engine is not None:
            self._engine.undo()
            if self._token.save_on_stop:
                self._save_at_end()
        return RunOutcome(self._board.end(RunState.STOPPED, self._progress))

    def _out_of_memory(self, oom: OomReport) -> RunOutcome:
        """Free what the failed step held, then save the last whole one, unless the update itself was torn."""
        engine = self._engine
        if self._fault is not None:
            self._fault.clear()
        if engine is not None:
            engine.undo()
        self._rescue.free_cache()
        if engine is not None and engine.optimizer_intact:
            self._save_at_end()
        return RunOutcome(self._board.end(RunState.OUT_OF_MEMORY, self._progress, oom=oom))

    def _post_mortem(self, message: str, phase: Phase | None) -> OomReport:
        engine = self._engine
        if phase is None:
            phase = Phase.BUILD if engine is None else engine.phase
        report = write_post_mortem(
            message,
            t_s=self._clock.now_s(),
            step=self._progress.step,
            phase=phase,
            device=self._device,
            engine=engine,
            batch_size=self._rescue.micro_batch(phase),
        )
        return replace(report, cause=self._name_cause(report))

    def _last_words(self, report: OomReport) -> OomReport:
        """That no batch fits was found out after the post-mortem was written."""
        if not report.fits_no_batch:
            return report
        report = as_too_large(report, self._engine)
        return replace(report, cause=self._name_cause(report))

    # Saying and saving

    def _save(self) -> None:
        """The last whole step. Where the card has no room for that it goes through the host's memory, or there is no
        checkpoint of this step; ``GaveUp`` under the rule that ends a run."""
        engine, progress, rescue = self._engine, self._progress, self._rescue
        if engine is None or not self._saver.is_due(progress):
            return
        by_host = rescue.saves_by_host
        state = state_bytes(engine.model, {"state": engine.optimizer.state}) if by_host else None
        # The file is written tensor by tensor from where the state lies: nothing is copied on the card.
        self._phases.tell(Phase.SAVE, progress.step, known_demand_bytes=0, known_host_bytes=state)
        oom = self._attempt(lambda: self._saver.save(progress, engine, by_host=by_host), phase=Phase.SAVE)
        self._phases.tell(Phase.SAVE, progress.step, ended=True)
        if oom is None:
            return
        if not rescue.allowed:
            raise GaveUp(oom)
        rescue.free_cache(workspaces=False)
        rescue.saves_by_host = True
        again = self._attempt(lambda: self._saver.save(progress, engine, by_host=True), phase=Phase.SAVE)
        if again is None:
            rescue.tell(replace(oom, rescued_batch_size=oom.batch_size), "save")
        else:
            self._saver.failed(again.message, progress)

    def _save_at_end(self) -> None:
        with contextlib.suppress(GaveUp):
            self._save()

    def _note_checkpoint(self, path: str) -> None:
        self._board.note_checkpoint(path)
        self._rescue.note_checkpoint(Path(path))

    def _post(self, kind: EventKind, level: Level, code: str, **params: object) -> None:
        self._sink.on_event(Event(self._clock.now_s(), kind, level, code, params))


def _in_words(error: Exception) -> tuple[str, str]:
    """Code and one line of an unexpected error."""
    if is_host_out_of_memory(error):
        return (
            "training.host_memory",
            "the computer's own memory (RAM) is full, not the card's; close programs or lower batch_size",
        )
    detail = " ".join(str(error).split())[:300]
    return "training.unexpected", f"{type(error).__name__}: {detail}; the log has the details"
