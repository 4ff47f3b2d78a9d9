"""Made logs of trainings, and event files: one from TensorBoard's own writer, and a writer for damaged ones."""

# ruff: noqa: E501 - logs are as wide as their tools write them

from __future__ import annotations

import base64
import math
import re
import struct
import zlib

import google_crc32c

from desktop_app.telemetry.logs.kinds import OpenLog, open_log
from desktop_app.telemetry.logs.training_log import TrainingLog

START_S = 1784019600.0  # 2026-07-14 09:00:00 UTC
# Written by tensorboard 2.21.0 (EventFileWriter): ``WRITTEN`` is what its EventAccumulator reads from it again.
BY_TENSORBOARD = zlib.decompress(
    base64.b85decode(
        "c-r$|fPjCKJmzvr1e|!%d-#^46mL>dVrHJ6YguYuiIq{19+yr@YF=@EQBr<lQHox1X>M*}QKepaQD#YMkzOiDReV}zPHH?v<k#9=cWt2Np4h%P"
        "h?9XqVM*Q8TaE&ZTKZgqTwEm})Ae)mi;G1W7$!JyNpT57g;EoX@-p+%<BJkYQbqHHnytzfFHlr~nx*-6WdP8u1c+HoTEZA+9jITv>~y0ARQ=-0"
        "+Hj!y1rYVjTG|-u101--xcDJL=|zbt@p<`0xgc}w&(@!mmWP@X=<Ol_H0J=!93d_NF3!}l#2lD02@Vro);XX#^8rLT3l?VzI3C-vcd;#0eS+u5"
        "H$e3aOQGrwxMaE5%TqJcGfIlJgajdqKG;h_7y=Gl{9Nn>naL%kMX5?G9E<{tE#G%E@IwvD4c6ua8rHB3Vwe>Z2jktY;G<}6Td)kL+Z-G|rYQ28"
        "K-I??i^qWc0#VPZrH-Lq!GTMNiyI=8T9BWd0TgSnZ~M9AnJLtaYe!?Bf&8}|YK8`v8c;);k$zfEeqxESkrNjOqY#4@3s8x@7dICt7khDXVoqXF"
        "vGo(hWJ{<a-R$Nckqyz|(n2!C%*2V0gGq?Nh-21F5ZH-o(EI?KUHA;*1R0c>2Qo&0gHwnhi0kivC}2b}NKm~-K?7>g{{k^Dpg|50gV?mBxg>FT"
        "%fbF_{#qRXiB|F0"
    )
)
WRITTEN = {
    "train/loss": [(1, 0.5, 4.5), (2, 1.5, None), (3, 2.5, 3.25), (4, 10.5, 3.0), (5, 11.5, 2.5)],
    "train/learning_rate": [(1, 0.5, 0.0010000000474974513)],
    "train/grad_norm": [(3, 2.5, 1.5)],
    "eval/loss": [(3, 3.0, 3.5)],
    "train/epoch": [(5, 11.5, 1.0)],
    "tf2/float32": [(5, 12.0, 0.5), (6, 13.0, 0.75)],
    "tf2/float64": [(5, 12.0, 0.1)],
    "tf2/int64": [(5, 12.0, -3.0)],
}
TAKEN_BACK = ("train/loss", 4, 3.5, 9.0)  # by the restart at step 4

NANOGPT = """step 0: train loss 4.2874, val loss 4.2823
iter 0: loss 4.2685, time 19210.69ms, mfu -100.00%
iter 10: loss 3.1401, time 21.50ms, mfu 17.30%
iter 20: loss nan, time 21.75ms, mfu 17.31%
"""
TRAINER = """{'loss': 2.5, 'grad_norm': 1.25, 'learning_rate': 5e-05, 'epoch': 0.5}
{'eval_loss': 2.25, 'eval_runtime': 1.5, 'eval_samples_per_second': 10.0, 'epoch': 1.0}
{'loss': '2.0', 'grad_norm': '1.5', 'learning_rate': '4e-05', 'epoch': '1.0'}
{'train_runtime': 99.5, 'train_samples_per_second': 3.0, 'train_loss': 2.25, 'epoch': 1.0}
"""
LIGHTNING = """epoch,lr-AdamW,step,train_loss_epoch,train_loss_step,val_acc,val_loss
0,,49,,2.5,,
,0.001,49,,,,
0,,99,,2.25,,
0,,99,,,0.75,2.125
0,,99,2.375,,,
"""
STATE = """{
  "epoch": 1.0,
  "log_history": [
    {"epoch": 0.5, "grad_norm": 1.25, "learning_rate": 5e-05, "loss": 2.5, "step": 10},
    {"epoch": 1.0, "eval_loss": 2.25, "eval_runtime": 1.5, "step": 20},
    {"epoch": 1.0, "train_loss": 2.25, "train_runtime": 99.5, "step": 20}
  ]
}
"""
JSON_LINES = """{"iteration": 19, "total_loss": 1.5, "lr": 0.0025, "time": 0.25, "note": "warm"}
{"iteration": 39, "total_loss": NaN, "lr": 0.005, "time": 0.25, "note": "warm"}
"""
BARS = """steps:   0%|          | 0/1000 [00:00<?, ?it/s]
steps:   1%|          | 10/1000 [00:05<08:15,  2.00it/s, loss=0.125]\rsteps:   1%|          | 10/1000 [00:05<08:15,  2.00it/s, loss=0.125]
steps:   2%|▏         | 20/1000 [00:10<08:10,  2.00it/s, loss=0.25]
"""
LLM_C = "s:0 tel:10.9830\ns:250 tel:6.3097\ns:250 trl:6.25 lr:0.000600 norm:1.25\ns:500 tel:5.5887\n"
TITAN = "".join(
    f"[titan] 2026-12-01 10:00:{step:02},123 - root - INFO - step: {step}  loss:  8.{step}234  memory:  5.20GiB(10.95%)  "
    f"tps: 1,{step}34  tflops: 5.5  mfu: 1.2{step}%\n"
    for step in range(1, 10)
)
TRAININGS = {
    "nanogpt": NANOGPT,
    "trainer": TRAINER,
    "lightning": LIGHTNING,
    "state": STATE,
    "json_lines": JSON_LINES,
    "bars": BARS,
}


def opened(data: str | bytes) -> OpenLog:
    """The log, read to its end."""
    log = open_log(data.encode() if isinstance(data, str) else data)
    list(log.records)
    return log


def columns(log: TrainingLog, name: str) -> list[tuple[float, float]]:
    """(step, value) of one name."""
    number = log.names.index(name)
    return [
        (log.step[row], value)
        for row, of, value in zip(log.scalar_row, log.scalar_name, log.scalar_value, strict=True)
        if of == number
    ]


def record(content: bytes) -> bytes:
    """One record of an event file."""
    head = struct.pack("<Q", len(content))
    return head + _mark(head) + content + _mark(content)


def event(wall_s: float, step: int, tag: str, value: float) -> bytes:
    """An event with one ``simple_value``."""
    name = tag.encode()
    inner = _text(1, name) + b"\x15" + struct.pack("<f", value)
    return b"\x09" + struct.pack("<d", wall_s) + b"\x10" + _varint(step) + _text(5, _text(1, inner))


def version(wall_s: float = START_S) -> bytes:
    return b"\x09" + struct.pack("<d", wall_s) + _text(3, b"brain.Event:2")


def _text(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = b""
    value &= (1 << 64) - 1
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def _mark(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


_NUMBERS = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def strange_scalars(log: OpenLog, text: str) -> list[tuple[int, str, float]]:
    """(line, name, value) of scalars and steps that are no number of their own line."""
    training = log.training
    by_line = "trainer_state.json" not in log.kinds
    lines = text.split("\n") if by_line else [text]
    held: dict[int, set[float]] = {}
    found = []
    steps = [(row, "step", value) for row, value in enumerate(training.step)]
    scalars = zip(training.scalar_row, training.scalar_name, training.scalar_value, strict=True)
    for row, name, value in (*steps, *((row, training.names[name], value) for row, name, value in scalars)):
        line = training.line[row]
        place = line - 1 if by_line else 0
        if place not in held:
            held[place] = {float(number) for number in _NUMBERS.findall(lines[place])}
        if math.isfinite(value) and abs(value) not in held[place]:
            found.append((line, name, value))
    return found


def strange_events(log: OpenLog, original: OpenLog) -> set[tuple[str, float, float, float]]:
    """Scalars that the undamaged file does not have: both checksums of their record would have to hold by chance."""
    return _rows(log) - _rows(original)


def _rows(log: OpenLog) -> set[tuple[str, float, float, float]]:
    training = log.training
    return {
        (training.names[name], training.step[row], training.seconds[row], value)
        for row, name, value in zip(training.scalar_row, training.scalar_name, training.scalar_value, strict=True)
        if math.isfinite(value) and math.isfinite(training.seconds[row])
    }
