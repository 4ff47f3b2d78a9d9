"""Lines of training scripts as their authors print them, and lines that only look like it."""

# ruff: noqa: E501 - logs are as wide as their tools write them

from __future__ import annotations

import math

import pytest
from training_samples import BARS, JSON_LINES, LIGHTNING, NANOGPT, STATE, TRAINER, columns, opened

from desktop_app.telemetry.logs.record import Notes
from desktop_app.telemetry.logs.training_lines import TrainingLines
from desktop_app.telemetry.logs.training_names import target_of

COLOURED = (
    "\x1b[32m[titan] 2026-12-01 10:00:00,123 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  8.1234  "
    "\x1b[35mmemory:  5.20GiB(10.95%)  \x1b[34mtps: 1,234  \x1b[36mtflops: 5.5  \x1b[35mmfu: 1.23%\x1b[39m"
)
MEGATRON = (
    " [2026-12-01 10:00:00] iteration       10/     100 | consumed samples:           80 | elapsed time per iteration (ms): "
    "123.4 | learning rate: 1.000000E-05 | global batch size:     8 | lm loss: 1.045234E+01 | loss scale: 1.0 | grad norm: "
    "1.234 | number of skipped iterations:   0 |"
)
# The line, its step, and what is a column of ours.
KNOWN = (
    ("s:250 tel:6.3097", 250, {"validation.loss": 6.3097}),
    ("s:10 trl:3.5000 lr:0.000600 norm:1.25", 10, {"steps.loss": 3.5, "steps.learning_rate": 6e-4, "steps.grad_norm": 1.25}),
    ("s:250 eval:0.2963", 250, {}),
    (
        "step    1/19560 | loss 10.993189 (+nanz)| norm 15.2123 (+nanz)| lr 2.57e-07 | 370.29 ms | 52.6% bf16 MFU | 1415811 tok/s",
        1,
        {"steps.loss": 10.993189, "steps.grad_norm": 15.2123, "steps.learning_rate": 2.57e-7, "steps.step_s": 0.37029},
    ),
    (
        "step 2/60 | train loss 4.36 | norm 1.0 | lr 1e-4 | (12.5 ms | 12345 tok/s)",
        2,
        {"steps.loss": 4.36, "steps.grad_norm": 1.0, "steps.learning_rate": 1e-4, "steps.step_s": 0.0125},
    ),
    (
        "step     0 | loss: 10.955 | lr 0.0006 | norm: 1.2 | dt: 338.02ms | tok/sec: 48469.99",
        0,
        {"steps.loss": 10.955, "steps.learning_rate": 6e-4, "steps.grad_norm": 1.2, "steps.step_s": 0.33802},
    ),
    ("100 train 3.250000", 100, {"steps.loss": 3.25}),
    ("100 val 3.5000", 100, {"validation.loss": 3.5}),
    ("step:0/1480 val_loss:10.8258 train_time:0ms step_avg:nanms", 0, {"validation.loss": 10.8258}),
    ("step:3/1480 train_time:24025ms step_avg:nanms", 3, {}),
    ("Epoch [1/5], Step [100/600], Loss: 0.2345", 100, {"steps.loss": 0.2345, "steps.epoch": 1.0}),
    ("[rank0]: step 5 | loss 3.5", 5, {"steps.loss": 3.5}),
    ("2026-12-01 10:00:01,123 - INFO - step 7 - loss: 3.21 - lr: 0.1", 7, {"steps.loss": 3.21, "steps.learning_rate": 0.1}),
    ("step=7 loss=3.21 acc=97%", 7, {"steps.loss": 3.21, "steps.train_accuracy": 0.97}),
    (COLOURED, 10, {"steps.loss": 8.1234}),
    (
        MEGATRON,
        10,
        {
            "steps.step_s": 0.1234,
            "steps.learning_rate": 1e-5,
            "steps.batch_samples": 8.0,
            "steps.loss": 10.45234,
            "steps.grad_norm": 1.234,
        },
    ),
    ("val loss 11.0112", None, {"validation.loss": 11.0112}),
)  # fmt: skip


@pytest.mark.parametrize(("line", "step", "expected"), KNOWN)
def test_lines_of_known_scripts(line: str, step: int | None, expected: dict[str, float]) -> None:
    lines = TrainingLines(Notes())
    assert lines.feed(1, line)
    log = lines.log
    assert len(log) == 1
    assert math.isnan(log.step[0]) if step is None else log.step[0] == step
    found = {}
    for number, value in zip(log.scalar_name, log.scalar_value, strict=True):
        target = log.targets[number]
        if target is not None:
            scale = target.scale
            found[f"{target.table}.{target.column}"] = value if scale == 1 else value / round(1 / scale)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "line",
    [
        "Validation: step 100 | loss 3.2",
        "[eval] step 100 | loss 3.2",
        "step 100 | split: val | loss 3.2",
        "Step 3/5 : RUN pip install x=1",
        "step 1,000 | loss 3.2",
        "step 1.5 | loss 3.2",
        "steps: 100%|██████████| 10/10 [00:05<00:00,  1.98it/s]",
        "Downloading: 45%|████      | 450/1000 [00:05<00:06, 90.0it/s, loss of packets=3]",
        "the loss at step 5 was 3.2",
        "In step 2 we iterate: loss = f(x)",
        "{'loss': open('x').read()}",
        "{'a': 1.0, 'epoch': 2.0}",
        "step " + "9" * 30 + " | loss 1",
    ],
)
def test_lines_that_only_look_like_it(line: str) -> None:
    lines = TrainingLines(Notes())
    assert not lines.feed(1, line)
    assert not lines.log


def test_times_of_lines() -> None:
    lines = TrainingLines(Notes())
    lines.feed(1, COLOURED)
    lines.feed(2, MEGATRON)
    assert [round(seconds, 3) for seconds in lines.log.seconds] == [1796119200.123, 1796119200.0]
    assert lines.log.stamp is not None
    assert not lines.log.stamp.zoned


def test_other_ranks_say_the_same_again() -> None:
    notes = Notes()
    lines = TrainingLines(notes)
    for rank in range(4):
        assert lines.feed(rank + 1, f"[rank{rank}]: step 5 | loss 3.{rank}")
    assert columns(lines.log, "loss") == [(5.0, 3.0)]
    assert notes.counts == {"a step as another rank has it": 3}


def test_nanogpt() -> None:
    log = opened(NANOGPT).training
    assert columns(log, "loss")[:2] == [(0.0, 4.2685), (10.0, 3.1401)]
    assert math.isnan(columns(log, "loss")[2][1])
    assert columns(log, "val loss") == [(0.0, 4.2823)]
    assert columns(log, "time [ms]")[1] == (10.0, 21.5)


def test_transformers_trainer() -> None:
    log = opened(TRAINER).training
    assert [value for _, value in columns(log, "loss")] == [2.5, 2.0]
    assert [value for _, value in columns(log, "epoch")] == [0.5, 1.0, 1.0, 1.0]
    assert log.targets[log.names.index("train_loss")] is None, "printed once, of the whole run"
    assert all(math.isnan(step) for step in log.step)
    state = opened(STATE)
    assert state.kinds == {"trainer_state.json": 1}
    assert columns(state.training, "loss") == [(10.0, 2.5)]
    assert columns(state.training, "eval_loss") == [(20.0, 2.25)]


def test_lightning() -> None:
    log = opened(LIGHTNING)
    assert log.kinds == {"metrics CSV": 1}
    assert columns(log.training, "train_loss_step") == [(49.0, 2.5), (99.0, 2.25)]
    assert columns(log.training, "val_acc") == [(99.0, 0.75)]
    assert target_of("lr-AdamW").column == "learning_rate"


def test_json_lines() -> None:
    log = opened(JSON_LINES + "{cut off\n")
    assert columns(log.training, "total_loss")[0] == (19.0, 1.5)
    assert math.isnan(columns(log.training, "total_loss")[1][1])
    assert log.training.texts == [(0, "note", "warm")]
    assert [(item.line, item.why) for item in log.notes.left_out] == [(3, "not an object of JSON")]


def test_of_two_steps_the_global_one_counts_and_the_other_is_kept() -> None:
    rows = '{"iter": 10, "step": 1, "global_step": 100, "loss": 1.5}\n{"iter": 20, "step": 2, "loss": 1.25}\n'
    log = opened(rows)
    assert columns(log.training, "loss") == [(100.0, 1.5), (20.0, 1.25)]
    assert columns(log.training, "iter") == [(100.0, 10.0)]
    assert columns(log.training, "step") == [(100.0, 1.0), (20.0, 2.0)]
    assert log.notes.remarks == {"the step is iter here, and global_step before": 2}
    table = opened("iter,step,global_step,loss\n10,1,100,1.5\n20,2,200,1.25\n").training
    assert columns(table, "loss") == [(100.0, 1.5), (200.0, 1.25)]
    assert columns(table, "iter") == [(100.0, 10.0), (200.0, 20.0)]


def test_a_step_that_is_none_leaves_its_row_out_as_in_a_table() -> None:
    log = opened('{"iter":10,"step":10,"loss":1.5}\n{"step":1,"iter":20.5,"loss":1.25}\n{"iter":NaN,"loss":1}\n')
    assert columns(log.training, "loss") == [(10.0, 1.5)]
    assert columns(log.training, "step") == [(10.0, 10.0)]
    assert [(item.line, item.why, item.text) for item in log.notes.left_out] == [
        (2, "iter: not a number of a step", "20.5"),
        (3, "iter: not a number of a step", "nan"),
    ]


def test_a_value_that_is_nested_as_deep_as_can_be_read() -> None:
    for depth in range(900, 1000, 5):
        log = opened('{"step":1,"loss":2.0}\n{"step":2,"loss":1.5,"x":' + "[" * depth + "]" * depth + "}\n")
        assert columns(log.training, "loss")[0] == (1.0, 2.0)
        assert len(log.training) + len(log.notes.left_out) == 2


def test_bars_that_are_drawn_again() -> None:
    log = opened(BARS)
    assert columns(log.training, "loss") == [(10.0, 0.125), (20.0, 0.25)]
    assert log.training.elapsed_s.tolist() == [5.0, 10.0]
    assert log.notes.left_out[0].line == 1


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("Loss/train", "loss"),
        ("train/loss", "loss"),
        ("Train Loss", "loss"),
        ("epoch_loss", None),
        ("test_loss", None),
        ("loss_scale", None),
        ("step_time", None),
        ("step_time_ms", "step_s"),
        ("train/train_loss", None),
        ("train_samples_per_second", None),
        ("tokens_per_second", None),
    ],
)
def test_names(name: str, column: str | None) -> None:
    target = target_of(name)
    assert (None if target is None else target.column) == column


@pytest.mark.parametrize(
    "head",
    [
        "step,name",
        "a,b,c",
        "step,tokens",
        "epoch,comment",
        "timestamp, index, utilization.gpu [%], step, loss",
        "1,2,loss",
    ],
)
def test_tables_that_are_of_something_else(head: str) -> None:
    from desktop_app.telemetry.logs.training_tables import metrics_header

    assert metrics_header(head) is None


def test_exports_of_tensorboard_and_wandb() -> None:
    log = opened("Wall time,Step,Value\n1784019600.5,10,2.5\n1784019601.25,20,2.25\n").training
    assert columns(log, "Value") == [(10.0, 2.5), (20.0, 2.25)]
    assert log.seconds.tolist() == [1784019600.5, 1784019601.25]
    log = opened(
        '"_timestamp","_runtime","_step","step","train/loss","note"\n1784019600.123456789,3.5,0,10,2.5,x\n'
    ).training
    assert log.stamp is not None
    assert log.stamp.zoned
    assert columns(log, "train/loss") == [(10.0, 2.5)]
    assert log.texts == [(0, "note", "x")]
    damaged = opened("step,loss\n1,2.5\n2.5,2\n3\n4,2.25,x\n5,\n6,n/a\n")
    assert columns(damaged.training, "loss") == [(1.0, 2.5)]
    assert [item.line for item in damaged.notes.left_out] == [3, 4, 5]
