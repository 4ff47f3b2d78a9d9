"""The config: every field in the table, every mistake one clear line."""

from __future__ import annotations

import dataclasses
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.errors import ConfigError, ExitCode
from desktop_app.training.config import (
    FIELDS,
    FieldKind,
    FieldSpec,
    RunConfig,
    config_from_mapping,
    config_to_toml,
    field_spec,
    load_config,
)


def test_the_table_has_every_field_once_and_in_order() -> None:
    assert [spec.name for spec in FIELDS] == [field.name for field in dataclasses.fields(RunConfig)]
    assert {spec.name: spec.default for spec in FIELDS} == dataclasses.asdict(RunConfig())


def test_numbers_have_limits_and_choices_have_choices() -> None:
    for spec in FIELDS:
        if spec.kind in (FieldKind.INTEGER, FieldKind.NUMBER):
            assert spec.minimum is not None
            assert spec.maximum is not None
            assert spec.minimum < spec.maximum
        assert not spec.optional or spec.default is None  # TOML has no word for "not set"
        if spec.kind is FieldKind.CHOICE:
            assert spec.default in spec.choices
    assert {spec.name for spec in FIELDS if spec.optional} == {
        "schedule_epochs",
        "early_stop_epochs",
        "max_seconds",
        "max_steps_per_s",
        "log_every_steps",
        "card",
        "cpu_threads",
        "output_dir",
    }


@pytest.mark.parametrize(
    ("values", "code", "line"),
    [
        ({"batch_size": "many"}, "config.type", "batch_size takes a whole number from 1 to 65536, not 'many'"),
        ({"batch_size": 64.0}, "config.type", "batch_size takes a whole number from 1 to 65536, not 64.0"),
        ({"batch_size": True}, "config.type", "batch_size takes a whole number from 1 to 65536, not true"),
        ({"batch_size": 0}, "config.range", "batch_size takes a whole number from 1 to 65536, not 0"),
        ({"epochs": 10**40}, "config.range", f"epochs takes a whole number from 1 to 1000000, not {10**40}"),
        ({"epochs": None}, "config.type", "epochs takes a whole number from 1 to 1000000, not nothing"),
        ({"learning_rate": float("nan")}, "config.range", "learning_rate takes a number from 1e-09 to 100, not nan"),
        ({"learning_rate": float("inf")}, "config.range", "learning_rate takes a number from 1e-09 to 100, not inf"),
        ({"foreach": 1}, "config.type", "foreach takes true or false, not 1"),
        (
            {"model": "smal-cnn"},
            "config.choice",
            "model takes one of small-cnn, wide-mlp, not 'smal-cnn' (did you mean small-cnn?)",
        ),
        ({"device": "cuda:"}, "config.choice", "device takes auto, cpu, simulated, cuda or cuda:N, not 'cuda:'"),
        ({"data": " "}, "config.value", "data takes cats-dogs or a folder, not ' '"),
        ({"name": "two\nlines"}, "config.value", r"name takes text, not 'two\nlines'"),
        ({"name": "\ud800"}, "config.value", r"name takes text, not '\ud800'"),
        ({"card": 1660}, "config.type", "card takes text, not 1660"),
    ],
)
def test_a_wrong_value_is_one_line(values: dict[str, Any], code: str, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_from_mapping(values)
    assert caught.value.code == code
    assert str(caught.value) == line
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.params["field"] == next(iter(values))


def test_an_unknown_name_gets_its_nearest() -> None:
    with pytest.raises(ConfigError, match=r"^unknown setting 'learning_rat'; did you mean learning_rate\?$"):
        config_from_mapping({"learning_rat": 0.1})
    with pytest.raises(ConfigError, match=r"^unknown setting 'zzz'$"):
        config_from_mapping({"zzz": 0.1})


def test_long_values_are_cut_in_the_message() -> None:
    with pytest.raises(ConfigError) as caught:
        RunConfig(model="x" * 10_000)
    assert len(str(caught.value)) < 200


def test_whole_numbers_do_for_numbers_and_become_floats() -> None:
    config = RunConfig(learning_rate=1, grad_clip=0)
    assert type(config.learning_rate) is float
    assert type(config.grad_clip) is float


def test_effective_batch_and_title() -> None:
    assert RunConfig(batch_size=24, accumulation=3).effective_batch == 72
    assert RunConfig().title == "small-cnn on cats-dogs"
    assert RunConfig(data="/photos/birds/").title == "small-cnn on birds"
    assert RunConfig(name="mine").title == "mine"


def _values(spec: FieldSpec) -> st.SearchStrategy[Any]:
    kinds: dict[FieldKind, Any] = {
        FieldKind.FLAG: st.booleans(),
        FieldKind.CHOICE: st.sampled_from(spec.choices or ("",)),
        FieldKind.DEVICE: st.sampled_from(["auto", "cpu", "simulated", "cuda", "cuda:7"]),
        FieldKind.TEXT: st.text(st.characters(exclude_categories=["Cs", "Cc"])),
        FieldKind.PATH: st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip),
    }
    if spec.kind is FieldKind.INTEGER:
        values = st.integers(int(spec.minimum or 0), int(spec.maximum or 0))
    elif spec.kind is FieldKind.NUMBER:
        values = st.floats(spec.minimum, spec.maximum)
    else:
        values = kinds[spec.kind]
    return st.none() | values if spec.optional else values


@settings(max_examples=25, deadline=None)
@given(st.fixed_dictionaries({spec.name: _values(spec) for spec in FIELDS}))
def test_any_config_survives_toml(values: dict[str, Any]) -> None:
    config = RunConfig(**values)
    assert config_from_mapping(tomllib.loads(config_to_toml(config))) == config


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"batch_size = ", r"not valid TOML: .*line 1, column 14|not valid TOML: .*end of document"),
        (b"epochs = 3\nbatch_size 64\n", r"not valid TOML: .*\(at line 2, column 12\)"),
        (b"a = " + b"[" * 16_000, "not valid TOML: nested too deeply$"),
        (b"epochs = " + b"9" * 5000, "not valid TOML: a number with too many digits$"),
        (b"epochs = 0x" + b"f" * 5000, "epochs takes a whole number .*, not a number with too many digits$"),
        (b"a = {" + b"k" * 5000 + b" = 1, " + b"k" * 5000 + b" = 2}", r"not valid TOML: .*\.\.\.$"),
        (b"\xff\xfe\x00e", r"not UTF-8 text \(byte 0\); save it as UTF-8"),
        (b"epochs = 3\x00", "not valid TOML"),
        (b"x" * 16_385, "far too large for a run file"),
        (b"[train]\nepochs = 3\n", "unknown setting 'train'"),
        (b"epoch = 3\n", r"unknown setting 'epoch'; did you mean epochs\?"),
        (b"epochs = '3'\n", "epochs takes a whole number"),
        (b"epochs = 1979-05-27\n", "epochs takes a whole number"),
        (b"epochs = [3]\n", "epochs takes a whole number"),
        (b"learning_rate = nan\n", "learning_rate takes a number"),
        (b"'' = 1\n", "unknown setting ''"),
    ],
)
def test_a_hostile_file_is_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert re.search(words, line), line
    assert "\n" not in line
    assert len(line) < 400


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file; check the path"):
        load_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="this is a folder; give the TOML file of a run"):
        load_config(tmp_path)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / ("long" * 100))
    with pytest.raises(ConfigError):
        load_config(Path("nul\0byte"))
    os.mkfifo(tmp_path / "pipe")
    for endless in (Path("/dev/zero"), tmp_path / "pipe"):
        with pytest.raises(ConfigError, match=f"^{endless}: not a regular file; give the TOML file of a run$"):
            load_config(endless)


def test_a_file_at_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(b"epochs = 3\n".ljust(16_384, b"\n"))
    assert load_config(path).epochs == 3


def test_an_empty_file_is_the_default_run_and_a_byte_order_mark_is_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(b"")
    assert load_config(path) == RunConfig()
    path.write_bytes(b"\xef\xbb\xbfepochs = 3\n")
    assert load_config(path).epochs == 3


def test_folders_start_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('data = "photos"\noutput_dir = "out"\n')
    config = load_config(path)
    assert config.data == str(tmp_path / "photos")
    assert config.output_dir == str(tmp_path / "out")
    path.write_text('data = "~/photos"\n')
    assert load_config(path).data == "~/photos"
    path.write_text('data = "/photos"\n')
    assert load_config(path).data == "/photos"
    path.write_text('data = "cats-dogs"\n')
    assert load_config(path).data == "cats-dogs"


def test_a_field_is_found_by_name() -> None:
    assert field_spec("epochs").default == 10
    with pytest.raises(KeyError):
        field_spec("none")
