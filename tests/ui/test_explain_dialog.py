"""Other people's errors: pasted, dropped, unreadable, endless."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QGraphicsView, QLabel, QWidget
from pytestqt.qtbot import QtBot

from desktop_app.services.oom_explanation import Full, Note, OomAction, OomCause
from desktop_app.ui.demos_dialog import DemosDialog
from desktop_app.ui.drops import can_take
from desktop_app.ui.explain_dialog import SHOWN_CHARACTERS, ExplainDialog, decode
from desktop_app.ui.i18n import Translators
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.texts import oom_words
from desktop_app.ui.texts.numbers import NBSP
from desktop_app.ui.theme import DARK, LIGHT
from desktop_app.ui.whose_bar import StackedBar
from tests.ui.clipping import clipped_texts
from tests.ui.fake_workspace import FakeState, FakeWorkspace

MakeWindow = Callable[..., MainWindow]
# A public message in torch 1.11's wording: 2.30 GiB reserved and idle, more than was asked for.
FRAGMENTED = (
    "RuntimeError: CUDA out of memory. Tried to allocate 1.22 GiB (GPU 0; 10.76 GiB total capacity; 6.90 GiB already "
    "allocated; 398.62 MiB free; 9.20 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try "
    "setting max_split_size_mb to avoid fragmentation."
)


@pytest.fixture
def dialog(qtbot: QtBot, qapp: object, show: Callable[..., QWidget]) -> ExplainDialog:
    made = show(ExplainDialog(DARK))
    assert isinstance(made, ExplainDialog)
    return made


def texts(widget: QWidget) -> list[str]:
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    for _ in range(3):  # the scroll bar takes its width, and the texts theirs anew
        QCoreApplication.processEvents()
    return [label.text().replace(NBSP, " ") for label in widget.findChildren(QLabel) if label.isVisible()]


def test_typed_text_is_read_after_a_pause(dialog: ExplainDialog, qtbot: QtBot) -> None:
    assert dialog.answer is None
    dialog.edit.insertPlainText(FRAGMENTED)
    qtbot.waitUntil(lambda: dialog.answer is not None)
    assert dialog.answer is not None
    assert dialog.answer.cause is OomCause.FRAGMENTATION
    shown = texts(dialog)
    assert "The card's memory was full" in shown
    assert "1.22 GiB were asked for. 399 MiB of 10.76 GiB were free." in shown
    assert "6.90 GiB" in shown
    assert "2.30 GiB" in shown  # 9.20 reserved less 6.90 allocated
    assert any("expandable_segments:True" in text.replace("\N{ZERO WIDTH SPACE}", "") for text in shown)
    bar = dialog.findChild(StackedBar)
    assert bar is not None
    assert "Idle in PyTorch's cache" in bar.accessibleName()
    assert clipped_texts(dialog) == []


def test_answer_is_copied_as_plain_text(dialog: ExplainDialog) -> None:
    dialog.show_text(FRAGMENTED)
    dialog._copy.click()
    copied = QGuiApplication.clipboard().text()
    assert copied.startswith("The card's memory was full\n")
    assert "  PYTORCH_ALLOC_CONF=expandable_segments:True\n" in copied
    assert NBSP not in copied


def test_text_without_a_message_says_what_is_looked_for(dialog: ExplainDialog) -> None:
    dialog.show_text("KeyError: 'loss'")
    assert dialog.answer is None
    assert "No out-of-memory message is in this text" in texts(dialog)
    dialog.show_text("")
    assert "No out-of-memory message is in this text" not in texts(dialog)
    assert not dialog._copy.isEnabled()


def test_endless_text_shows_its_end_and_is_read_from_further_up(dialog: ExplainDialog) -> None:
    dialog.show_text("x" * 3_000_000 + "\n" + FRAGMENTED + "\n" + "at a line of a stack\n" * 3_000)
    assert len(dialog.edit.toPlainText()) == SHOWN_CHARACTERS
    assert FRAGMENTED not in dialog.edit.toPlainText()
    assert dialog.answer is not None
    assert any(text.endswith("characters; the end is shown.") for text in texts(dialog))
    dialog.edit.insertPlainText("!")  # from here on it is what the field says
    dialog.read()
    assert dialog.answer is None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_logs_of_every_shell_are_read(encoding: str) -> None:
    assert FRAGMENTED in decode(FRAGMENTED.encode(encoding))


def test_file_is_read_by_its_end(dialog: ExplainDialog, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("loss 0.1\n" * 800_000 + FRAGMENTED, encoding="utf-8")
    dialog.read_file(path)
    assert dialog.answer is not None
    assert "train.log, 7 MiB." in texts(dialog)
    dialog.read_file(tmp_path / "gone.log")
    assert any(text.startswith("gone.log cannot be read: ") for text in texts(dialog))


def test_everything_that_can_be_said_has_words(qapp: object, translators: Translators) -> None:
    tables = (
        (Full, oom_words._FULL),
        (OomCause, oom_words._CAUSES),
        (OomAction, oom_words._ACTIONS),
        (Note, oom_words._NOTES),
    )
    for codes, words in tables:
        assert set(codes) == set(words)


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_answer_has_room(show: Callable[..., QWidget], translators: Translators, qapp: object, language: str) -> None:
    translators.use(language)
    made = show(ExplainDialog(LIGHT), width=560, height=480)
    assert isinstance(made, ExplainDialog)
    made.show_text(FRAGMENTED)
    texts(made)
    assert clipped_texts(made) == []


# -- dropped onto the window --------------------------------------------------------------------------------------


def dropped(*, text: str = "", path: Path | None = None) -> QMimeData:
    data = QMimeData()
    if text:
        data.setText(text)
    if path is not None:
        data.setUrls([QUrl.fromLocalFile(str(path))])
    return data


def test_what_is_dropped_goes_where_it_belongs(make_window: MakeWindow, tmp_path: Path) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    window = make_window(workspace)
    assert window.acceptDrops()
    window.drops.take(dropped(text=FRAGMENTED))
    dialog = window.findChild(ExplainDialog)
    assert dialog is not None
    assert dialog.answer is not None
    log = tmp_path / "run.log"
    log.write_text("nothing", encoding="utf-8")
    window.drops.take(dropped(path=log))
    assert window.findChildren(ExplainDialog) == [dialog]
    assert dialog.answer is None
    dialog.reject()
    snapshot = tmp_path / "memory.pickle"
    snapshot.write_bytes(b"")
    window.drops.take(dropped(path=snapshot))
    assert workspace.called("open_snapshot") == [("open_snapshot", snapshot)]
    run = tmp_path / "run.toml"
    run.write_text("batch_size = 24\n", encoding="utf-8")
    window.drops.take(dropped(path=run))
    config = window.side_panel.run.form.config()
    assert config is not None
    assert config.batch_size == 24
    assert can_take(dropped(path=run))
    assert not can_take(dropped(path=tmp_path))  # a folder
    assert not can_take(QMimeData())


def test_everywhere_on_the_window_can_be_dropped(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.NOTHING))
    views = window.findChildren(QGraphicsView)
    assert views
    assert not any(view.acceptDrops() or view.viewport().acceptDrops() for view in views)
    data = dropped(text=FRAGMENTED)
    where, none = QPointF(500, 300), Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(where.toPoint(), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, none)
    QCoreApplication.sendEvent(window, enter)
    assert enter.isAccepted()
    drop = QDropEvent(where, Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, none)
    QCoreApplication.sendEvent(window, drop)
    dialog = window.findChild(ExplainDialog)
    assert dialog is not None
    assert dialog.answer is not None
    dialog.reject()


# -- demonstrations -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_demonstration_has_words_and_a_button(make_window: MakeWindow, language: str) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    window = make_window(workspace, language=language)
    window.actions_.trigger("file.demos")
    dialog = window.findChild(DemosDialog)
    assert dialog is not None
    for row in dialog.rows:
        title, description, command = texts(row)
        assert title != row.name
        assert description
        assert command == f"floodmark demo {row.name}"
    assert clipped_texts(dialog) == []
    leak = next(row for row in dialog.rows if row.name == "leak")
    leak.start.click()
    assert workspace.called("start_demo") == [("start_demo", "leak")]
    window.actions_.trigger("file.demos")
    again = next(found for found in window.findChildren(DemosDialog) if found.isVisible())
    assert not any(row.start.isEnabled() for row in again.rows)
    again.reject()


def test_without_a_text_there_is_only_the_place_for_it(dialog: ExplainDialog) -> None:
    QCoreApplication.processEvents()
    empty = dialog.edit.height()
    assert empty > 0.6 * dialog.height()
    dialog.show_text(FRAGMENTED)
    QCoreApplication.processEvents()
    assert dialog.edit.height() < 0.5 * empty
    dialog.show_text("")
    QCoreApplication.processEvents()
    assert dialog.edit.height() == empty
