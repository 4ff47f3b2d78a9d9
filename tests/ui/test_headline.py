"""The verdict of every state, word for word."""

from __future__ import annotations

import dataclasses

import pytest

from desktop_app.core.forecasts import AlertSeverity, Quantiles, Verdict
from desktop_app.core.steps import RunState
from desktop_app.core.telemetry import Reason
from desktop_app.core.units import GIB
from desktop_app.services import estimate_words as words
from desktop_app.services.facade import TelemetryStatus
from desktop_app.ui.headline import Band, Headline, HeadlineAction, current_headline, estimate_headline
from desktop_app.ui.i18n import Translators
from desktop_app.ui.texts import errors, verdicts
from desktop_app.ui.texts.numbers import NBSP
from tests.ui.fake_forecasts import ready_estimate
from tests.ui.fake_workspace import FakeState, FakeWorkspace


def headline(workspace: FakeWorkspace) -> Headline:
    found = current_headline(workspace)
    return dataclasses.replace(
        found, sentence=found.sentence.replace(NBSP, " "), evidence=found.evidence.replace(NBSP, " ")
    )


@pytest.mark.parametrize(
    ("state", "band", "sentence"),
    [
        (FakeState.NOTHING, Band.NEUTRAL, "No run. Here is the card"),
        (FakeState.NO_GPU, Band.WARN, "No card to watch: the driver lists none"),
        (FakeState.NO_DRIVER, Band.WARN, "No card to watch: no NVIDIA driver was found"),
        (FakeState.ESTIMATING, Band.NEUTRAL, "Estimating…"),
        (FakeState.ESTIMATE_FAILED, Band.WARN, "This cannot be run as it is"),
        (FakeState.TOO_BIG, Band.DANGER, "Does not fit: needs 7.90 GiB, the card has room for 5.69 GiB"),
        (FakeState.RESUME_OFFER, Band.OK, "Fits, 1.1 GiB to spare"),
        (FakeState.PREPARING, Band.NEUTRAL, "Preparing"),
        (FakeState.HEALTHY, Band.OK, "Fits, 1.4 GiB to spare"),
        (
            FakeState.LEAK,
            Band.DANGER,
            "Out of memory likely at step 1,840, in about 3 min 20 s  (2:50 to 4:10, 8 of 10)",
        ),
        (FakeState.FIRST_STEP, Band.DANGER, "Out of memory likely in the first optimizer step"),
        (FakeState.PAUSED, Band.NEUTRAL, "Paused at step 1,680"),
        (FakeState.STOPPING, Band.WARN, "Stopping: waits for step 1,681"),
        (FakeState.OUT_OF_MEMORY, Band.DANGER, "Out of memory at step 1,840, in the backward pass"),
        (FakeState.FINISHED, Band.OK, "Finished: 94.1 % after 12 min"),
        (FakeState.STOPPED, Band.NEUTRAL, "Stopped at step 1,680 after 12 min"),
        (FakeState.FAILED, Band.DANGER, "The run has failed"),
        (FakeState.GPU_LOST, Band.WARN, "GeForce GTX 1660 no longer answers"),
    ],
)
def test_sentence(state: FakeState, band: Band, sentence: str) -> None:
    found = headline(FakeWorkspace(state))
    assert (found.band, found.sentence) == (band, sentence)


def test_leak_says_its_evidence_and_asks_for_one_action() -> None:
    found = headline(FakeWorkspace(FakeState.LEAK))
    assert found.evidence == (
        "Memory that is never freed: +9.2 MiB a step for 212 steps, batch shape unchanged. "
        "Typical cause: a loss kept with its graph."
    )
    assert found.action is HeadlineAction.SAVE_AND_PAUSE
    assert found.alert_id == 1
    assert found.explained


def test_ignored_alert_stays_in_sight() -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    workspace.ignore_alert(1)
    found = headline(workspace)
    assert found.band is Band.WARN
    assert found.sentence.startswith("Ignored: Out of memory likely at step 1,840")
    assert found.action is HeadlineAction.NONE
    assert found.alert_id is None


def test_cleared_alert_is_not_said_any_more() -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    workspace.alerts.set(tuple(dataclasses.replace(alert, cleared_t_s=900.0) for alert in workspace.alerts.get()))
    assert "likely" not in headline(workspace).sentence


def test_watch_is_no_alarm() -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    watch = dataclasses.replace(workspace.alerts.get()[0], severity=AlertSeverity.WATCH)
    workspace.alerts.set((watch,))
    found = headline(workspace)
    assert (found.band, found.sentence) == (Band.WARN, "Memory grows from step to step. Watching")
    assert found.action is HeadlineAction.NONE


def test_danger_goes_before_a_lost_card() -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    workspace.telemetry.set(TelemetryStatus(lost={workspace.cards.get()[0].uuid: Reason.GPU_LOST}))
    assert headline(workspace).band is Band.DANGER


def test_paused_alert_offers_to_resume() -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    workspace.set_run(state=RunState.PAUSED)
    assert headline(workspace).action is HeadlineAction.RESUME


def test_error_keeps_its_line() -> None:
    found = headline(FakeWorkspace(FakeState.FAILED))
    assert found.evidence == "The picture cats/0412.png cannot be read: the file ends too early."


def test_too_big_offers_the_largest_batch_only_when_there_is_one() -> None:
    workspace = FakeWorkspace(FakeState.TOO_BIG)
    assert headline(workspace).action is HeadlineAction.USE_LARGEST_BATCH
    status = workspace.estimate.get()
    assert status.estimate is not None
    workspace.estimate.set(
        dataclasses.replace(status, estimate=dataclasses.replace(status.estimate, largest_batch=None))
    )
    found = headline(workspace)
    assert found.action is HeadlineAction.NONE
    assert "Not even a batch of one fits." in found.evidence


@pytest.mark.parametrize(
    ("largest", "warnings", "text"),
    [
        (88, (), "Largest batch that fits: 88."),
        (1600, ("batch_limited_by_data",), "All 1,600 training samples fit into one batch."),
        (1048576, ("batch_search_ended",), "A batch of 1,048,576 fits, larger ones perhaps."),
        (64, ("batch_search_limited",), "A batch of 64 fits, larger ones perhaps."),
        (None, ("batch_search_limited",), "The largest batch could not be found."),
        (None, (), "Not even a batch of one fits."),
    ],
)
def test_largest_batch_says_how_sure_it_is(largest: int | None, warnings: tuple[str, ...], text: str) -> None:
    answer = dataclasses.replace(ready_estimate(), largest_batch=largest, warnings=warnings)
    assert verdicts.largest_batch(answer) == text


@pytest.mark.parametrize(("probability", "shown"), [(0.9499, "94"), (0.94, "94"), (0.29, "29"), (0.5, "50")])
def test_a_tight_fit_never_reads_as_a_safe_one(probability: float, shown: str) -> None:
    """95 % and more is called a fit."""
    answer = dataclasses.replace(ready_estimate(), verdict=Verdict.TIGHT, fits_probability=probability)
    assert estimate_headline(answer).sentence == f"Tight: fits with a probability of {shown}{NBSP}%"
    assert words.verdict(answer).endswith(f"; {shown} % that it fits.")


def test_untraceable_operation_is_named() -> None:
    answer = dataclasses.replace(
        ready_estimate(), verdict=Verdict.CANNOT_SAY, warnings=("untraceable:aten::nonzero",), largest_batch=None
    )
    found = estimate_headline(answer)
    assert found.sentence == "Whether it fits cannot be said before it runs"
    assert found.evidence == "aten::nonzero cannot be traced without the card."


@pytest.mark.parametrize(
    ("code", "line", "text"),
    [
        ("training.loss_not_finite", "the loss became nan at step 7", "The loss became nan at step 7"),
        ("no.such_code", "plain words", "Plain words"),
        ("data.one_class", None, "The data have one class only; a classifier needs two."),
        (None, None, ""),
    ],
)
def test_error_text_in_english_is_the_line(code: str | None, line: str | None, text: str) -> None:
    assert errors.text(code, line) == text


def test_error_text_in_chinese_says_the_kind_and_keeps_the_line(qapp: object, translators: Translators) -> None:
    translators.use("zh_CN")
    assert errors.text("data.one_class", "only cats") == "数据只有一个类别，分类至少需要两个。  Only cats"


def test_error_text_in_chinese_leaves_out_an_english_line_that_says_no_more(
    qapp: object, translators: Translators
) -> None:
    translators.use("zh_CN")
    for code in ("recorder.trouble", "checkpoint.failed", "data.skipped"):
        found = errors.text(code, "An English line.")
        assert found
        assert "English" not in found, code


@pytest.mark.parametrize(
    ("language", "count", "said"),
    [
        ("en", 1, "1 file cannot be read and is left out: /d/a.png (ends too early)."),
        (
            "en",
            1200,
            "1,200 files cannot be read and are left out; the first: /d/a.png (ends too early). "
            "The log names all of them.",
        ),
        ("zh_CN", 2, "2 个文件无法读取，已跳过；第一个：/d/a.png（文件不完整）。日志列出全部。"),
    ],
)
def test_skipped_files_are_told_from_their_facts(
    qapp: object, translators: Translators, language: str, count: int, said: str
) -> None:
    translators.use(language)
    params = {"count": count, "path": "/d/a.png", "reason": "truncated"}
    assert errors.text("data.skipped", "line", params) == said


@pytest.mark.parametrize("state", [RunState.PREPARING, RunState.RUNNING])
def test_run_that_was_said_not_to_fit_is_still_said_not_to(state: RunState) -> None:
    """Until the forecast begins, the estimate's warning may not give way to a calm word."""
    workspace = FakeWorkspace(FakeState.TOO_BIG)
    workspace.set_run(state=state, run_name="too-big")
    found = headline(workspace)
    assert found.band is Band.DANGER
    assert found.sentence.startswith("Does not fit: needs 7.90 GiB")
    assert found.action is HeadlineAction.NONE


def test_estimate_of_another_run_says_nothing_about_this_one() -> None:
    workspace = FakeWorkspace(FakeState.TOO_BIG)
    workspace.run_config.set(dataclasses.replace(workspace.config, batch_size=8))
    workspace.set_run(state=RunState.RUNNING)
    assert headline(workspace).sentence == "Running. The forecast begins with the first steps"


def test_changed_form_turns_the_banner_to_the_next_run() -> None:
    workspace = FakeWorkspace(FakeState.OUT_OF_MEMORY)
    status = workspace.estimate.get()
    workspace.estimate.set(dataclasses.replace(status, config=dataclasses.replace(workspace.config, batch_size=8)))
    assert headline(workspace).sentence == "Fits, 2.9 GiB to spare"


def test_a_peak_that_is_known_exactly_has_no_range(qapp: object) -> None:
    answer = ready_estimate()
    exact = dataclasses.replace(answer, device_peak_bytes=Quantiles(3 * GIB, 3 * GIB, 3 * GIB))
    assert verdicts.peak_range(exact).replace(NBSP, " ") == "3.00 GiB"
    assert "(" in verdicts.peak_range(answer)
