from __future__ import annotations

import dataclasses

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit
from pytestqt.qtbot import QtBot

from desktop_app.core.telemetry import Card
from desktop_app.training.config import FIELDS, FieldKind, RunConfig
from desktop_app.ui.run_form import ESSENTIAL, RunForm
from desktop_app.ui.texts import fields
from desktop_app.ui.theme import DARK
from tests.ui.fake_data import h100


@pytest.fixture
def form(qtbot: QtBot) -> RunForm:
    made = RunForm(DARK)
    qtbot.addWidget(made)
    made.resize(280, 900)
    made.show()
    return made


def type_into(form: RunForm, qtbot: QtBot, field: str, text: str) -> None:
    line = form.editor(field).focus_widget
    assert isinstance(line, QLineEdit)
    line.selectAll()
    qtbot.keyClick(line, Qt.Key.Key_Delete)
    qtbot.keyClicks(line, text)


def test_every_field_has_an_editor_a_name_and_an_explanation(form: RunForm) -> None:
    for spec in FIELDS:
        editor = form.editor(spec.name)
        assert fields.name(spec.name) != spec.name, spec.name
        assert fields.explanation(spec.name), spec.name
        assert fields.name(spec.name) in editor.focus_widget.accessibleName()
        assert editor.focus_widget.focusPolicy() is not Qt.FocusPolicy.NoFocus


def test_every_choice_has_a_text() -> None:
    for spec in FIELDS:
        for choice in spec.choices:
            assert fields.choice(spec.name, choice), f"{spec.name}.{choice}"


def test_form_shows_the_defaults_and_gives_them_back(form: RunForm) -> None:
    assert form.config() == RunConfig()


def test_any_config_goes_through_unchanged(form: RunForm) -> None:
    config = RunConfig(
        name="try 2",
        data="/some/folder",
        model="wide-mlp",
        batch_size=96,
        precision="bf16",
        learning_rate=2.5e-4,
        grad_clip=0.5,
        max_seconds=90.5,
        early_stop_epochs=3,
        foreach=False,
        device="cuda:3",
        card="GeForce GTX 1660",
        output_dir="/elsewhere",
    )
    form.set_config(config)
    assert form.config() == config


def test_setting_values_is_no_edit(form: RunForm, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(form.edited):
        form.set_config(RunConfig(batch_size=12, data="/x", foreach=False))


def test_typing_changes_the_config(form: RunForm, qtbot: QtBot) -> None:
    with qtbot.waitSignal(form.edited):
        type_into(form, qtbot, "batch_size", "96")
    config = form.config()
    assert config is not None
    assert config.batch_size == 96


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("batch_size", "0"),
        ("batch_size", "many"),
        ("batch_size", "3.5"),
        ("batch_size", ""),
        ("learning_rate", "nan"),
        ("learning_rate", "-1"),
        ("epochs", "99999999999"),
    ],
)
def test_wrong_value_is_marked_and_said_below_the_field(form: RunForm, qtbot: QtBot, field: str, text: str) -> None:
    type_into(form, qtbot, field, text)
    assert form.config() is None
    assert form.problem(field) == fields.expected(field)
    assert form.editor(field).focus_widget.property("invalid") is True


def test_repaired_value_is_no_longer_marked(form: RunForm, qtbot: QtBot) -> None:
    type_into(form, qtbot, "batch_size", "0")
    type_into(form, qtbot, "batch_size", "64")
    assert form.problem("batch_size") == ""
    assert form.editor("batch_size").focus_widget.property("invalid") is False
    assert form.config() == RunConfig()


def test_range_is_said_in_numbers() -> None:
    assert fields.expected("batch_size") == "Batch takes a whole number from 1 to 65,536."


def test_empty_optional_field_is_not_set(form: RunForm, qtbot: QtBot) -> None:
    form.show_all(shown=True)
    type_into(form, qtbot, "early_stop_epochs", "5")
    type_into(form, qtbot, "early_stop_epochs", "")
    config = form.config()
    assert config is not None
    assert config.early_stop_epochs is None


def test_problem_in_a_hidden_field_opens_the_fold(form: RunForm) -> None:
    line = form.editor("seed").focus_widget
    assert isinstance(line, QLineEdit)
    assert not line.isVisible()
    line.setText("x")
    line.textEdited.emit("x")
    assert line.isVisible()


def test_essential_fields_exist() -> None:
    assert set(ESSENTIAL) <= {spec.name for spec in FIELDS}


def test_simulated_card_is_asked_only_where_it_counts(form: RunForm) -> None:
    form.set_config(RunConfig(device="simulated"))
    assert form.editor("card").widget.isVisible()
    form.set_config(RunConfig(device="cpu"))
    assert not form.editor("card").widget.isVisible()


def test_device_lists_real_cards_by_their_torch_index(form: RunForm) -> None:
    cards: tuple[Card, ...] = tuple(h100(index) for index in range(2))
    form.set_cards(cards)
    box = form.editor("device").focus_widget
    assert isinstance(box, QComboBox)
    assert [box.itemData(row) for row in range(box.count())] == ["auto", "cpu", "simulated", "cuda:1", "cuda:0"]
    form.set_cards((dataclasses.replace(cards[0], simulated=True),))
    assert box.count() == 3


def test_locked_form_shows_but_does_not_take(form: RunForm) -> None:
    form.set_locked(locked=True)
    assert not any(form.editor(name).widget.isEnabled() for name in ESSENTIAL)
    form.set_locked(locked=False)
    assert all(form.editor(name).widget.isEnabled() for name in ESSENTIAL)


def test_wheel_over_a_list_scrolls_the_page_and_changes_nothing(form: RunForm, qtbot: QtBot) -> None:
    from PySide6.QtCore import QPoint, QPointF
    from PySide6.QtGui import QWheelEvent

    box = form.editor("model").focus_widget
    assert isinstance(box, QComboBox)
    event = QWheelEvent(
        QPointF(5, 5),
        QPointF(5, 5),
        QPoint(0, -120),
        QPoint(0, -120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    box.wheelEvent(event)
    assert not event.isAccepted()
    assert form.config() == RunConfig()


def test_kinds_have_the_controls_one_expects(form: RunForm) -> None:
    expected = {
        FieldKind.TEXT: QLineEdit,
        FieldKind.INTEGER: QLineEdit,
        FieldKind.NUMBER: QLineEdit,
        FieldKind.FLAG: QCheckBox,
        FieldKind.CHOICE: QComboBox,
        FieldKind.PATH: QComboBox,
        FieldKind.DEVICE: QComboBox,
    }
    for spec in FIELDS:
        assert isinstance(form.editor(spec.name).focus_widget, expected[spec.kind]), spec.name


def test_card_names_are_completed_from_the_catalogue(form: RunForm, qtbot: QtBot) -> None:
    form.set_config(RunConfig(device="simulated"))
    line = form.editor("card").focus_widget
    assert isinstance(line, QLineEdit)
    assert line.completer() is None
    qtbot.keyClicks(line, "1660")
    completer = line.completer()
    assert completer is not None
    completer.setCompletionPrefix("1660")
    assert "GeForce GTX 1660" in {
        completer.completionModel().index(row, 0).data() for row in range(completer.completionCount())
    }
    completer.popup().hide()


def test_a_long_value_is_in_the_tooltip(form: RunForm) -> None:
    """The name of a card is longer than its field."""
    name = "NVIDIA GeForce RTX 4090 Laptop GPU"
    form.set_config(RunConfig(card=name))
    assert name in form.editor("card").focus_widget.toolTip()
    assert "64" not in form.editor("batch_size").focus_widget.toolTip().splitlines()[0]
