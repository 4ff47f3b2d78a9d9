"""Trainings in an import: the tables of our own runs, beside the cards on one axis; nothing where times are unknown."""

from __future__ import annotations

import json
import sqlite3
import sys
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "telemetry" / "logs"))
from training_samples import (
    BARS,
    BY_TENSORBOARD,
    LIGHTNING,
    NANOGPT,
    START_S,
    STATE,
    TRAINER,
    event,
    record,
    version,
)

from desktop_app import cli
from desktop_app.core.steps import STEP_COLUMNS, VALIDATION_COLUMNS
from desktop_app.services.import_axis import Clock
from desktop_app.services.import_report import as_text
from desktop_app.services.import_result import Import
from desktop_app.services.log_import import import_logs
from desktop_app.telemetry.logs.record import Stamp

HEAD = "timestamp, index, utilization.gpu [%], memory.used [MiB]\n"
# Local time of a place two hours east of Greenwich: 09:00:00 UTC to 09:00:12 UTC.
GPU = HEAD + "".join(f"2026/07/14 11:00:{second:02}.000, 0, {second} %, {100 * second} MiB\n" for second in range(13))
EAST = timezone(timedelta(hours=2))
FILES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "files"


def put(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def table(result: Import, query: str, *, session: int = 0) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(result.sessions[session].database_path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def names(result: Import, *, session: int = 0) -> set[str]:
    return {name for (name,) in table(result, "SELECT name FROM sqlite_master WHERE type = 'table'", session=session)}


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    return tmp_path / "imported"


def test_loss_beside_the_card(tmp_path: Path, parent: Path) -> None:
    log = put(tmp_path, "gpu.csv", GPU)
    events = put(tmp_path, "run/events.out.tfevents.1", BY_TENSORBOARD)
    for order in ([log, events], [events, log]):
        result = import_logs(order, parent=parent, zone=EAST)
        found = table(result, "SELECT t_s, step, epoch, loss, learning_rate, grad_norm FROM steps")
        assert found == [
            (0.5, 1, None, 4.5, 0.0010000000474974513, None),
            (1.5, 2, None, None, None, None),  # NaN, as our own runs keep it
            (2.5, 3, None, 3.25, None, 1.5),
            (10.5, 4, None, 3.0, None, None),
            (11.5, 5, 1.0, 2.5, None, None),
        ]
        assert table(result, "SELECT t_s, step, loss FROM validation") == [(3.0, 3, 3.5)]
        cards = table(result, "SELECT t_s, utilization_percent FROM telemetry ORDER BY t_s")
        assert cards == [(float(second), float(second)) for second in range(13)]
        # The load of the card at the newest step before it.
        beside = (
            "SELECT step, (SELECT utilization_percent FROM telemetry AS c WHERE c.t_s <= steps.t_s ORDER BY c.t_s DESC)"
        )
        assert table(result, f"{beside} FROM steps") == [(1, 0.0), (2, 1.0), (3, 2.0), (4, 10.0), (5, 11.0)]
        assert result.clock is Clock.UTC
        assert result.session.read_facts()["clock_anchor_wall_s"] == START_S
        columns = [[row[1] for row in table(result, f"PRAGMA table_info({name})")] for name in ("steps", "validation")]
        assert columns == [["t_s", *STEP_COLUMNS], ["t_s", *VALIDATION_COLUMNS]]


def test_a_restart_takes_back_what_was_logged_for_later_steps(tmp_path: Path, parent: Path) -> None:
    result = import_logs([put(tmp_path, "events", BY_TENSORBOARD)], parent=parent)
    query = "SELECT step, t_s, value, text, purged FROM import_scalars WHERE name = 'train/loss' ORDER BY t_s"
    assert table(result, query) == [
        (1, 0.0, 4.5, None, 0),
        (2, 1.0, None, "nan", 0),
        (3, 2.0, 3.25, None, 0),
        (4, 3.0, 9.0, None, 1),
        (4, 10.0, 3.0, None, 0),
        (5, 11.0, 2.5, None, 0),
    ]
    text = as_text(result)
    assert "taken back by a restart: 1" in text
    assert "steps.loss: train/loss, 4 values, 2.5 to 4.5, last 2.5; NaN or infinite: 1" in text
    assert "not imported, histograms (1): weights" in text
    assert "under their own names in import_scalars (3): tf2/float32, tf2/float64, tf2/int64" in text


def test_a_run_that_goes_on_in_a_second_file(tmp_path: Path, parent: Path) -> None:
    """Without a mark of a restart TensorBoard takes nothing back (cases UI-07): on an axis of time both are true."""
    first = [record(event(START_S + step, step, "loss", 10.0 + step)) for step in range(5)]
    again = [record(event(START_S + 100 + step, step, "loss", 20.0 + step)) for step in range(3, 6)]
    files = [
        put(tmp_path, f"run/events.{name}", record(version()) + b"".join(rows))
        for name, rows in (("1", first), ("2", again))
    ]
    result = import_logs(reversed(files), parent=parent)
    assert len(result.runs) == 1
    steps = table(result, "SELECT t_s, step, loss FROM steps")
    assert [(t_s, step) for t_s, step, _ in steps] == [(n, n) for n in range(5)] + [(100 + n, n) for n in range(3, 6)]
    assert [loss for _, _, loss in steps] == [10, 11, 12, 13, 14, 23, 24, 25]
    assert "steps go back 1 times" in as_text(result)


def test_local_times_beside_utc_are_this_computers_and_said(
    tmp_path: Path, parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        result = import_logs([put(tmp_path, "gpu.csv", GPU), put(tmp_path, "events", BY_TENSORBOARD)], parent=parent)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert result.assumes_zone
    assert table(result, "SELECT min(t_s) FROM telemetry") == [(7199.5,)]
    text = as_text(result)
    assert "local times are taken as this computer's" in text
    assert "no step lies in the time of the cards' rows (2026-07-14 11:00:00 to 2026-07-14 11:00:12" in text
    assert "with --zone +02:00 they would share 12 s" in text


def test_two_runs_are_two_sessions_with_the_card_in_each(tmp_path: Path, parent: Path) -> None:
    for name, first in (("a", 2), ("b", 6)):
        rows = [record(event(START_S + second, second, "loss", float(second))) for second in range(first, first + 3)]
        put(tmp_path, f"logs/{name}/events", record(version()) + b"".join(rows))
    put(tmp_path, "logs/gpu.csv", GPU)
    put(tmp_path, "logs/model.pt", b"PK\x03\x04" + bytes(100))
    result = import_logs([tmp_path / "logs"], parent=parent, zone=EAST)
    assert [run.name for run in result.runs] == ["a", "b"]
    assert [session.path.name.rpartition("import-")[2] for session in result.sessions] == ["gpu-csv", "b"]
    for session, steps in enumerate(([2.0, 3.0, 4.0], [6.0, 7.0, 8.0])):
        assert [t_s for (t_s,) in table(result, "SELECT t_s FROM steps", session=session)] == steps
        assert table(result, "SELECT count(*), max(t_s) FROM telemetry", session=session) == [(13, 12.0)]
        assert result.sessions[session].read_facts()["import"]["run"] == "ab"[session]
    assert "Passed over in folders, of no kind that is read (1):" in as_text(result)


def test_a_log_that_does_not_say_when_stays_apart_from_the_cards(tmp_path: Path, parent: Path) -> None:
    files = [put(tmp_path, "gpu.csv", GPU), put(tmp_path, "train.log", NANOGPT)]
    result = import_logs(files, parent=parent)
    assert "steps" not in names(result)
    assert table(result, "SELECT t_s, step, loss, step_s FROM steps_untimed") == [
        (1.0, 0, 4.2685, 19.21069),
        (2.0, 10, 3.1401, 0.0215),
        (3.0, 20, None, 0.02175),
    ]
    assert table(result, "SELECT t_s, loss FROM validation_untimed") == [(0.0, 4.2823)]
    assert table(result, "SELECT count(*) FROM telemetry") == [(13,)]
    assert "--start TIME --interval SECONDS sets them beside the cards" in as_text(result)
    placed = import_logs(files, parent=parent, start=Stamp(START_S + 7200), interval_s=2.0)
    assert [row[:2] for row in table(placed, "SELECT t_s, step FROM steps")] == [(2.0, 0), (4.0, 10), (6.0, 20)]
    assert "train loss as written only" in as_text(placed)


def test_times_of_a_day_are_not_compared_with_others(tmp_path: Path, parent: Path) -> None:
    dmon = "#Time        gpu    pwr\n#HH:MM:SS    Idx      W\n 09:00:00      0     70\n 09:00:02      0     71\n"
    files = [put(tmp_path, "dmon.txt", dmon), put(tmp_path, "events", BY_TENSORBOARD)]
    result = import_logs(files, parent=parent)
    assert table(result, "SELECT t_s FROM telemetry") == [(0.0,), (2.0,)]
    assert [step for (step,) in table(result, "SELECT step FROM steps_untimed")] == [1, 2, 3, 4, 5]
    assert "dmon -o DT" in as_text(result)
    assert result.session.read_facts()["run_name"] == f"import {tmp_path.name}"


def test_bars_say_how_long_and_not_when(tmp_path: Path, parent: Path) -> None:
    bars = put(tmp_path, "train.log", BARS)
    alone = import_logs([bars], parent=parent)
    assert table(alone, "SELECT t_s, step, loss FROM steps") == [(5.0, 10, 0.125), (10.0, 20, 0.25)]
    assert alone.clock is Clock.ELAPSED
    assert alone.session.read_facts()["clock_anchor_wall_s"] is None
    beside = import_logs([put(tmp_path, "gpu.csv", GPU), bars], parent=parent, start=Stamp(START_S + 7200))
    assert table(beside, "SELECT t_s, step FROM steps") == [(5.0, 10), (10.0, 20)]
    assert table(beside, "SELECT max(t_s) FROM telemetry") == [(12.0,)]


def test_tables_without_times_are_numbered(tmp_path: Path, parent: Path) -> None:
    lightning = import_logs([put(tmp_path, "metrics.csv", LIGHTNING)], parent=parent)
    query = "SELECT step, epoch, loss, learning_rate FROM steps"
    assert table(lightning, query) == [(49, 0, 2.5, 0.001), (99, 0, 2.25, None)]
    assert table(lightning, "SELECT step, epoch, loss, accuracy FROM validation") == [(99, 0, 2.125, 0.75)]
    assert "steps.loss is train_loss_step; train_loss_epoch as written only" in as_text(lightning)
    trainer = import_logs([put(tmp_path, "out.txt", TRAINER)], parent=parent)
    assert table(trainer, query) == [(None, 0.5, 2.5, 5e-5), (None, 1.0, 2.0, 4e-5)]
    assert table(trainer, "SELECT step, epoch, loss FROM validation") == [(None, 1.0, 2.25)]
    state = import_logs([put(tmp_path, "trainer_state.json", STATE)], parent=parent)
    assert table(state, query) == [(10, 0.5, 2.5, 5e-5)]
    assert state.clock is Clock.NONE


def test_a_history_that_goes_on_in_another_file_counts_once(tmp_path: Path, parent: Path) -> None:
    rows = [{"epoch": step / 4, "loss": 5.0 - step, "step": step} for step in range(1, 4)]
    for checkpoint in (2, 1, 3):
        text = json.dumps({"log_history": rows[:checkpoint]})
        put(tmp_path, f"out/checkpoint-{checkpoint}/trainer_state.json", text)
    result = import_logs([tmp_path / "out"], parent=parent)
    assert len(result.sessions) == 1
    assert table(result, "SELECT step, loss FROM steps") == [(1, 4.0), (2, 3.0), (3, 2.0)]
    assert [bool(file.problem and "is the beginning of" in file.problem) for file in result.files] == [
        True,
        True,
        False,
    ]


def test_a_file_with_cards_whose_steps_go_on_in_another_is_read(tmp_path: Path, parent: Path) -> None:
    both = put(tmp_path, "both.log", GPU + "step 1 loss 2.0\n")
    longer = put(tmp_path, "longer.log", "step 1 loss 2.0\nstep 2 loss 1.0\n")
    result = import_logs([both, longer], parent=parent)
    assert table(result, "SELECT count(*) FROM telemetry") == [(13,)]
    assert [row.values["step"] for run in result.runs for row in run.tables["steps"]] == [1, 2]
    text = as_text(result)
    assert "Not read" not in text
    assert f"Note: both.log, line 15: its steps are the beginning of those in {longer}, and count once" in text


def test_histories_that_begin_alike_are_told_apart_in_a_moment(tmp_path: Path, parent: Path) -> None:
    """The whole is the longest; what differs in one number only is none's beginning, nor is NaN another than itself."""
    rows = [{"step": step, "lr": 0.5, "loss": float("nan") if step == 2 else 5.0 - step} for step in range(1, 5)]
    files = {"1": rows[:1], "3": rows[:3], "4": rows, "other": [*rows[:2], {"step": 3, "lr": 0.5, "loss": 1.0}]}
    paths = [put(tmp_path, f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in f)) for name, f in files.items()]
    result = import_logs(paths, parent=parent)
    assert [run.name for run in result.runs] == ["4.jsonl", "other.jsonl"]
    assert [file.problem for file in result.files[:2]] == [f" is the beginning of {paths[2]}; its steps count once"] * 2


def test_steps_of_another_rank_are_no_restarts(tmp_path: Path, parent: Path) -> None:
    late = "".join(
        f'{{"step":{step},"loss":1.5}}\n' + (f'{{"step":{step - 1},"loss":9}}\n' if step % 10 == 0 else "")
        for step in range(1, 40)
    )
    result = import_logs([put(tmp_path, "late.jsonl", late)], parent=parent)
    assert (result.runs[0].restarts, result.runs[0].out_of_order) == (0, 3)
    assert table(result, "SELECT count(*) FROM steps WHERE loss = 9") == [(3,)], "and none covers another"
    assert "steps come a row late 3 times" in as_text(result)
    again = "".join(f'{{"step":{step},"loss":1.5}}\n' for step in [*range(10, 60, 10), *range(30, 60, 10)])
    result = import_logs([put(tmp_path, "again.jsonl", again)], parent=parent)
    assert (result.runs[0].restarts, result.runs[0].out_of_order) == (1, 0)
    assert "steps go back 1 times" in as_text(result)


def test_names_out_of_files_do_not_steer_the_terminal(
    tmp_path: Path, parent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07"
    events = [record(event(START_S, 1, f"{evil}loss", 2.5)), record(event(START_S, 1, f"{evil}{'x' * 300}", 2.5))]
    put(tmp_path, f"logs/{evil}/events", record(version()) + b"".join(events))
    put(tmp_path, f"logs/{evil}.csv", f"step,loss,{evil}word\n1,2.5,{evil}\n")
    head = "timestamp, name, utilization.gpu [%], memory.used [MiB]\n"
    put(tmp_path, f"logs/{evil}gpu.csv", f"{head}2026/07/14 11:00:00.000, {evil}card, 1 %, 2 MiB\n")
    code = cli.run(["import", str(tmp_path / "logs"), "--out", str(parent)])
    text = capsys.readouterr().out
    assert code == 0
    assert "]0;owned loss" in text
    assert all(line.isprintable() for line in text.splitlines())
    assert "x" * 200 not in text
    assert cli.run(["import", str(put(tmp_path, f"{evil}.txt", "dear diary\n")), "--out", str(parent)]) == 2
    assert capsys.readouterr().err.rstrip("\n").isprintable()


def test_percent_is_no_share(tmp_path: Path, parent: Path) -> None:
    result = import_logs([put(tmp_path, "m.csv", "step,loss,train_acc\n1,2.5,55.5\n2,2.25,0.5\n")], parent=parent)
    assert table(result, "SELECT loss, train_accuracy FROM steps") == [(2.5, None), (2.25, None)]
    assert "train_acc: values above 1 are no shares" in as_text(result)


def test_two_names_that_may_both_be_it_are_neither(tmp_path: Path, parent: Path) -> None:
    text = "step,loss,lr-Adam,lr-SGD\n1,2.5,0.1,0.2\n2,2.25,0.1,0.2\n"
    result = import_logs([put(tmp_path, "m.csv", text)], parent=parent)
    assert table(result, "SELECT loss, learning_rate FROM steps") == [(2.5, None), (2.25, None)]
    wandb = '"Step","sun-1 - train/loss","sun-1 - train/loss__MIN"\n1,2.5,2.4\n'
    assert table(import_logs([put(tmp_path, "w.csv", wandb)], parent=parent), "SELECT step, loss FROM steps") == [
        (1, 2.5)
    ]
    two = '"Step","sun-1 - train/loss","moon-2 - train/loss"\n1,2.5,\n2,2.25,4.5\n'
    assert table(import_logs([put(tmp_path, "w2.csv", two)], parent=parent), "SELECT loss FROM steps") == [
        (None,),
        (None,),
    ]
    assert "lr-Adam, lr-SGD may all be steps.learning_rate: none is taken for it" in as_text(result)


def test_the_standard_input_patterns_and_the_same_file_again(
    tmp_path: Path, parent: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    put(tmp_path, "one.csv", GPU)
    put(tmp_path, "two.csv", GPU)
    code = cli.run(["import", str(tmp_path / "*.csv"), "--json", "--out", str(parent)])
    found = json.loads(capsys.readouterr().out)
    assert (code, found["rows"]) == (0, 13)
    assert "byte for byte" in found["files"][1]["problem"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GPU.encode())))
    code = cli.run(["import", "-", "--json", "--out", str(parent)])
    found = json.loads(capsys.readouterr().out)
    assert (code, found["rows"], found["files"][0]["file"]) == (0, 13, "-")


@pytest.mark.parametrize(
    ("option", "value"), [("--zone", "+25:00"), ("--zone", "Mars/Base"), ("--start", "noon"), ("--start", "10:00:00")]
)
def test_options_that_say_nothing(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.run(["import", "x.csv", option, value])
    assert ended.value.code == 2
    assert value in capsys.readouterr().err


def test_event_files_that_hold_no_scalar(tmp_path: Path, parent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.run(["import", str(put(tmp_path, "events", record(version()))), "--out", str(parent)])
    assert code == 1
    assert "has no scalar yet; log one" in capsys.readouterr().err
    assert not parent.exists()


@pytest.mark.skipif(not FILES.is_dir(), reason="the captures are not beside the checkout")
def test_every_given_file_is_imported(parent: Path) -> None:
    files = sorted(path for path in FILES.rglob("*") if path.is_file() and path.name != "index.csv")
    result = import_logs(files, parent=parent)
    assert [file.path.name for file in result.files if file.problem or not file.records] == []
    assert len(files) == 25
    assert len(result.runs) == len(result.sessions) == 4


@pytest.mark.skipif(not FILES.is_dir(), reason="the captures are not beside the checkout")
def test_given_trainings(parent: Path) -> None:
    lax = import_logs([FILES / "tfevents" / "lax"], parent=parent)
    steps = table(lax, "SELECT step, t_s FROM steps")
    assert [step for step, _ in steps] == list(range(120))
    assert (steps[0][1], round(steps[-1][1], 6)) == (0.0, 0.029002)
    assert table(lax, "SELECT count(*) FROM import_scalars") == [(360,)]
    assert lax.session.read_facts()["clock_anchor_wall_s"] == 1622543341.818728
    mnist = import_logs([FILES / "tfevents" / "mnist_lightning"], parent=parent)
    found = table(mnist, "SELECT step, epoch, round(loss, 6), round(t_s, 3) FROM steps")
    assert (found[0], found[-1]) == ((1718, 0.0, 0.14648, 33.891), (8594, 4.0, 0.019999, 187.566))
    assert table(mnist, "SELECT step, epoch, round(accuracy, 4) FROM validation")[-1] == (8594, 4.0, 0.9846)
    llmc = import_logs([FILES / "text_logs" / "llmc_track2_main.log"], parent=parent)
    losses = table(llmc, "SELECT step, loss FROM validation ORDER BY step")
    assert (len(losses), losses[0], losses[-1]) == (241, (0, 10.983), (60000, 2.9282))
    modded = import_logs([FILES / "text_logs" / "modded_nanogpt_smi_plus_steps.txt"], parent=parent)
    # Its clock begins again after step 10, at 25.020 s.
    assert table(modded, "SELECT count(*), min(t_s), max(t_s) FROM steps") == [(1480, 23.764, 261.792)]
    assert table(modded, "SELECT t_s, step, loss FROM validation")[-1] == (261.863, 1480, 3.2773)
    assert table(modded, "SELECT count(*) FROM telemetry_untimed") == [(8,)], "one moment of another clock"
    assert modded.session.read_facts()["clock_anchor_wall_s"] is None
