"""The sentences and evidence lines of the banner in every state of a run that is not an alert."""

from __future__ import annotations

import math

from PySide6.QtCore import QCoreApplication

from desktop_app.core.forecasts import Estimate
from desktop_app.core.steps import OomReport, Phase, RunState, RunStatus
from desktop_app.core.telemetry import Card, Reason
from desktop_app.ui.texts import fields, numbers, reasons


def no_run() -> str:
    return QCoreApplication.translate("Verdict", "No run. Here is the card")


def card_facts(card: Card, free_bytes: int | None) -> str:
    """``GeForce GTX 1660, 6.00 GiB, 5.69 GiB free``."""
    capacity = card.capacity_bytes
    if capacity is None:
        return QCoreApplication.translate("Verdict", "{0}. Its memory cannot be read.").format(card.name)
    if free_bytes is None:
        return QCoreApplication.translate("Verdict", "{0}, {1}.").format(card.name, numbers.size(capacity))
    return QCoreApplication.translate("Verdict", "{0}, {1}, of which {2} are free.").format(
        card.name, numbers.size(capacity), numbers.size(free_bytes)
    )


def no_card(reason: Reason | None) -> str:
    if reason is Reason.NO_DRIVER:
        return QCoreApplication.translate("Verdict", "No card to watch: no NVIDIA driver was found")
    if reason is None:
        return QCoreApplication.translate("Verdict", "No card to watch: the driver lists none")
    if reason is Reason.NOT_READ_YET:
        return QCoreApplication.translate("Verdict", "Looking for the cards of this machine")
    return QCoreApplication.translate("Verdict", "No card to watch: {0}").format(reasons.short(reason))


def no_card_help() -> str:
    return QCoreApplication.translate(
        "Verdict", "Trainings run all the same, on the CPU or on a simulated card. Choose the device in the form."
    )


def card_lost(card_name: str) -> str:
    return QCoreApplication.translate("Verdict", "{0} no longer answers").format(card_name)


def card_lost_help(reason: Reason) -> str:
    return QCoreApplication.translate("Verdict", "{0} The curves show a gap until it is back.").format(
        reasons.sentence(reason)
    )


def estimating() -> str:
    return QCoreApplication.translate("Verdict", "Estimating…")


def estimating_help() -> str:
    return QCoreApplication.translate("Verdict", "Two training steps are traced without the card.")


def no_estimate() -> str:
    return QCoreApplication.translate("Verdict", "This cannot be run as it is")


def fits(spare_bytes: int) -> str:
    return QCoreApplication.translate("Verdict", "Fits, {0} to spare").format(numbers.spare(spare_bytes))


def tight(probability: float) -> str:
    """Rounded down: from 95 % on it fits."""
    return QCoreApplication.translate("Verdict", "Tight: fits with a probability of {0}").format(
        numbers.percent(math.floor(100.0 * probability + 1e-9))
    )


def does_not_fit(estimate: Estimate) -> str:
    return QCoreApplication.translate("Verdict", "Does not fit: needs {0}, the card has room for {1}").format(
        numbers.size(estimate.device_peak_bytes.p50), numbers.size(room_bytes(estimate))
    )


def room_bytes(estimate: Estimate) -> int:
    """What the card has for this process: its capacity less what others hold."""
    return estimate.capacity_bytes - estimate.others_bytes


def cannot_say() -> str:
    return QCoreApplication.translate("Verdict", "Whether it fits cannot be said before it runs")


def cannot_say_help(estimate: Estimate) -> str:
    known = [warning.partition(":")[2] for warning in estimate.warnings if warning.startswith("untraceable:")]
    if not known:
        return QCoreApplication.translate("Verdict", "A part of the model cannot be traced without the card.")
    return QCoreApplication.translate("Verdict", "{0} cannot be traced without the card.").format(", ".join(known))


def peak_range(estimate: Estimate) -> str:
    """``4.31 GiB  (4.3 – 4.6 GiB)``."""
    device = estimate.device_peak_bytes
    middle = numbers.size(device.p50)
    return f"{middle}  ({numbers.size_range(device.p50, device.p95)})" if device.p95 > device.p50 else middle


def estimate_facts(estimate: Estimate) -> str:
    """The peak with its range, where it lies, and the largest batch."""
    peak = QCoreApplication.translate("Verdict", "Peak before the first step: {0} of {1}, {2}.").format(
        peak_range(estimate), numbers.size(room_bytes(estimate)), fields.phase(estimate.peak_phase.value)
    )
    return numbers.sentences(peak, largest_batch(estimate))


def largest_batch(estimate: Estimate) -> str:
    if "pending" in estimate.warnings:
        return QCoreApplication.translate("Verdict", "The largest batch is being searched.")
    searched = not {"batch_search_limited", "batch_search_ended"}.intersection(estimate.warnings)
    if estimate.largest_batch is None:
        return (
            QCoreApplication.translate("Verdict", "Not even a batch of one fits.")
            if searched
            else QCoreApplication.translate("Verdict", "The largest batch could not be found.")
        )
    size = numbers.integer(estimate.largest_batch)
    if "batch_limited_by_data" in estimate.warnings:
        return QCoreApplication.translate("Verdict", "All {0} training samples fit into one batch.").format(size)
    if not searched:
        return QCoreApplication.translate("Verdict", "A batch of {0} fits, larger ones perhaps.").format(size)
    return QCoreApplication.translate("Verdict", "Largest batch that fits: {0}.").format(size)


def preparing() -> str:
    return QCoreApplication.translate("Verdict", "Preparing")


def preparing_help(status: RunStatus) -> str:
    return QCoreApplication.translate("Verdict", "Reading the data of {0} and tracing the model.").format(
        status.run_name
    )


def running() -> str:
    """Before the forecaster has said anything."""
    return QCoreApplication.translate("Verdict", "Running. The forecast begins with the first steps")


def running_on_cpu() -> str:
    return QCoreApplication.translate("Verdict", "Running on the CPU, without a card to fill")


def flood_facts(low_bytes: int, high_bytes: int, capacity_bytes: int) -> str:
    return QCoreApplication.translate("Verdict", "Flood mark {0} of {1}.").format(
        numbers.size_range(low_bytes, high_bytes), numbers.size(capacity_bytes)
    )


def progress(status: RunStatus) -> str:
    """``Step 1,680, epoch 14 of 100.``"""
    return QCoreApplication.translate("Verdict", "Step {0}, epoch {1} of {2}.").format(
        numbers.integer(status.step), numbers.integer(status.epoch), numbers.integer(status.epochs)
    )


def paused(status: RunStatus) -> str:
    return QCoreApplication.translate("Verdict", "Paused at step {0}").format(numbers.integer(status.step))


def paused_help(device_bytes: int | None) -> str:
    if device_bytes is None:
        return QCoreApplication.translate("Verdict", "Resume goes on with the same next batch.")
    return QCoreApplication.translate(
        "Verdict", "{0} of the card stay occupied. Resume goes on with the same next batch."
    ).format(numbers.size(device_bytes))


def waiting(status: RunStatus) -> str:
    """``Stopping: waits for step 412``."""
    pausing = status.state is RunState.PAUSING
    if status.waiting_step is None:
        return (
            QCoreApplication.translate("Verdict", "Pausing")
            if pausing
            else QCoreApplication.translate("Verdict", "Stopping")
        )
    step = numbers.integer(status.waiting_step)
    if pausing:
        return QCoreApplication.translate("Verdict", "Pausing: waits for step {0}").format(step)
    return QCoreApplication.translate("Verdict", "Stopping: waits for step {0}").format(step)


def waiting_help() -> str:
    return QCoreApplication.translate("Verdict", "The step under way is finished first, so that nothing is lost.")


def finished(status: RunStatus) -> str:
    """``Finished: 94.1 % after 12 min``."""
    took = _took(status)
    if status.accuracy_best is None:
        return QCoreApplication.translate("Verdict", "Finished after {0}").format(took)
    accuracy = numbers.percent(100.0 * status.accuracy_best, 1)
    return QCoreApplication.translate("Verdict", "Finished: {0} after {1}").format(accuracy, took)


def ended_help(status: RunStatus) -> str:
    """Where it stands and where the checkpoint is."""
    if status.checkpoint_path is None:
        nothing_saved = QCoreApplication.translate("Verdict", "No checkpoint was saved.")
        return numbers.sentences(progress(status), nothing_saved)
    saved = QCoreApplication.translate("Verdict", "Checkpoint: {0}").format(status.checkpoint_path)
    return numbers.sentences(progress(status), saved)


def stopped(status: RunStatus) -> str:
    return QCoreApplication.translate("Verdict", "Stopped at step {0} after {1}").format(
        numbers.integer(status.step), _took(status)
    )


def failed() -> str:
    return QCoreApplication.translate("Verdict", "The run has failed")


def out_of_memory(report: OomReport) -> str:
    """``Out of memory at step 1,840, in the backward pass``."""
    return QCoreApplication.translate("Verdict", "Out of memory at step {0}, {1}").format(
        numbers.integer(report.step), fields.phase(report.phase.value)
    )


def out_of_memory_help(report: OomReport) -> str:
    if report.requested_bytes is None:
        return QCoreApplication.translate("Verdict", "The card was full. Its memory is free again; the window goes on.")
    return QCoreApplication.translate(
        "Verdict", "{0} were asked for and not there. The memory is free again; the window goes on."
    ).format(numbers.size(report.requested_bytes))


def rescued(report: OomReport, status: RunStatus) -> str:
    """``Out of memory at step 1,840; goes on with micro-batch 16 × 4``."""
    step = numbers.integer(report.step)
    if report.phase is Phase.VALIDATION and report.rescued_batch_size is not None:
        return QCoreApplication.translate(
            "Verdict", "Out of memory at step {0}; goes on with validation batches of {1}"
        ).format(step, numbers.integer(report.rescued_batch_size))
    if report.phase is Phase.SAVE:
        return QCoreApplication.translate(
            "Verdict", "Out of memory at step {0}; saves by way of main memory and goes on"
        ).format(step)
    if report.rescued_batch_size == report.batch_size:
        return QCoreApplication.translate(
            "Verdict", "Out of memory at step {0}; goes on, with parameters updated one by one"
        ).format(step)
    return QCoreApplication.translate("Verdict", "Out of memory at step {0}; goes on with micro-batch {1}").format(
        step, micro_batch(report.rescued_batch_size or status.batch_size, status)
    )


def micro_batch(size: int, status: RunStatus) -> str:
    """``16 × 4``: samples of a micro-step times micro-steps; how many these are where the status is of another size."""
    whole = status.batch_size * status.accumulation
    steps = status.accumulation if size == status.batch_size else max(1, round(whole / size)) if size else 1
    times = f"{numbers.integer(size)}{numbers.NBSP}×{numbers.NBSP}{numbers.integer(steps)}"
    return times if steps > 1 else numbers.integer(size)


def rescued_help(report: OomReport) -> str:
    """Nothing is lost: what was asked for, and from where it goes on."""
    kept = QCoreApplication.translate(
        "Verdict", "The step was done again from the last good state; the batch is as large as before."
    )
    return numbers.sentences(not_there(report), kept)


def not_there(report: OomReport) -> str:
    """What was asked for; empty when nobody said."""
    if report.requested_bytes is None:
        return ""
    return QCoreApplication.translate("Verdict", "{0} were asked for and not there.").format(
        numbers.size(report.requested_bytes)
    )


def with_stop(sentence: str) -> str:
    """A headline as a sentence in running text."""
    return QCoreApplication.translate("Verdict", "{0}.").format(sentence)


def ignored(sentence: str) -> str:
    return QCoreApplication.translate("Verdict", "Ignored: {0}").format(sentence)


def _took(status: RunStatus) -> str:
    if status.started_t_s is None or status.ended_t_s is None:
        return numbers.duration(0.0)
    return numbers.duration(status.ended_t_s - status.started_t_s)
