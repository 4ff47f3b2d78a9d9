"""Other people's out-of-memory errors: paste or drop one, and read what was full, whose it was, what to change."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QEvent, QMimeData, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QIcon
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from desktop_app.services.oom_explanation import Explanation, explain
from desktop_app.ui.labels import Divider, Label, clear_layout, type_scale
from desktop_app.ui.lever_row import CodeLine
from desktop_app.ui.texts import numbers, oom_words
from desktop_app.ui.theme import FontRole, Theme
from desktop_app.ui.whose_bar import WhoseBar

_WIDTH: Final = 720
_HEIGHT: Final = 640
_EDITOR_LINES: Final = 7
_MOST_HEIGHT: Final = (1 << 24) - 1  # QWIDGETSIZE_MAX
DEBOUNCE_MS: Final = 150
# The reader looks at the end of a text only, a million characters; the field shows as many as one can read.
READ_CHARACTERS: Final = 1 << 20
SHOWN_CHARACTERS: Final = 20_000
_ZEROS: Final = 15  # of the first forty characters


class MessageEdit(QPlainTextEdit):
    """``pasted`` carries what was pasted or dropped, of any length; what is typed comes by ``textChanged``."""

    pasted = Signal(str)
    dropped = Signal(object)  # a Path

    def insertFromMimeData(self, source: QMimeData) -> None:
        urls = source.urls()
        if len(urls) == 1 and urls[0].isLocalFile():
            self.dropped.emit(Path(urls[0].toLocalFile()))
        elif source.hasText():
            text = source.text()
            if len(text) > SHOWN_CHARACTERS:
                self.pasted.emit(text)
            else:
                self.insertPlainText(text)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasText() or source.hasUrls()


class ExplainDialog(QDialog):
    """Empty, unrecognised, or the answer. Reads as one types, after a short pause."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._whole: str | None = None  # a text longer than the field shows
        self._note_text = ""
        self._answer: Explanation | None = None
        self._intro = Label(role="muted", wrap=True)
        self.edit = MessageEdit()
        self._note = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._open = QPushButton()
        self._clear = QPushButton()
        self._copy = QPushButton()
        self._area = QScrollArea()
        self._line = Divider()
        self._result = QVBoxLayout()
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self._debounce = QTimer(self, singleShot=True, interval=DEBOUNCE_MS)
        self._build()
        self._connect()
        self.retranslate()

    def _build(self) -> None:
        self.setAcceptDrops(True)
        self.edit.setObjectName("message")
        self.edit.setTabChangesFocus(True)
        row = QHBoxLayout()
        row.addWidget(self._note, stretch=1)
        row.addWidget(self._clear)
        row.addWidget(self._open)
        content = QWidget()
        content.setObjectName("panelContent")
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 8, 0)
        self._result.setSpacing(8)
        column.addLayout(self._result)
        column.addStretch()
        area = self._area
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(content)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(10)
        layout.addWidget(self._intro)
        layout.addWidget(self.edit, stretch=1)
        layout.addLayout(row)
        layout.addWidget(self._line)
        layout.addWidget(area, stretch=1)
        self._buttons.addButton(self._copy, QDialogButtonBox.ButtonRole.ActionRole)
        layout.addWidget(self._buttons)
        scale = type_scale()
        self.resize(round(_WIDTH * scale), round(_HEIGHT * scale))

    def _connect(self) -> None:
        self.edit.textChanged.connect(self._on_edited)
        self.edit.pasted.connect(self.show_text)
        self.edit.dropped.connect(self.read_file)
        self._debounce.timeout.connect(self.read)
        self._open.clicked.connect(self._ask_for_file)
        self._clear.clicked.connect(lambda: self.show_text(""))
        self._copy.clicked.connect(self._on_copy)
        self._buttons.rejected.connect(self.reject)

    @property
    def answer(self) -> Explanation | None:
        """What the message means; ``None`` while none was recognised."""
        return self._answer

    def show_text(self, text: str, *, note: str = "") -> None:
        """Explain ``text`` at once. Of a very long one the field shows the end."""
        long = len(text) > SHOWN_CHARACTERS
        self._whole = text[-READ_CHARACTERS:] if long else None
        blocked = self.edit.blockSignals(True)
        self.edit.setPlainText(text[-SHOWN_CHARACTERS:])
        self.edit.blockSignals(blocked)
        self._note_text = note or (self._long_note(len(text)) if long else "")
        self.read()

    def read_file(self, path: Path) -> None:
        """Explain the end of a log file; what cannot be read is said."""
        try:
            size_bytes = path.stat().st_size
            with path.open("rb") as file:
                file.seek(max(0, size_bytes - 4 * READ_CHARACTERS) // 2 * 2)  # UTF-16 comes in pairs
                text = decode(file.read(4 * READ_CHARACTERS))
        except OSError as error:
            self.show_text("", note=self.tr("{0} cannot be read: {1}").format(path.name, error.strerror or error))
            return
        self.show_text(text, note=self.tr("{0}, {1}.").format(path.name, numbers.size(size_bytes)))

    def read(self) -> None:
        """Read what is there now and show the answer."""
        self._debounce.stop()
        text = self._whole if self._whole is not None else self.edit.toPlainText()
        self._answer = explain(text)
        self._note.setText(self._note_text)
        self._make_room(answered=bool(text.strip()))
        self._clear.setEnabled(bool(text))
        self._copy.setEnabled(self._answer is not None)
        clear_layout(self._result)
        if self._answer is not None:
            self._show_answer(self._answer)
        elif text.strip():
            self._show_unrecognised()

    def _make_room(self, *, answered: bool) -> None:
        """Without a text there is nothing but the place for it."""
        lines = round((_EDITOR_LINES + 1) * self.edit.fontMetrics().lineSpacing())
        self.edit.setMinimumHeight(lines)
        self.edit.setMaximumHeight(lines if answered else _MOST_HEIGHT)
        self._line.setVisible(answered)
        self._area.setVisible(answered)

    def _show_unrecognised(self) -> None:
        self._add(self.tr("No out-of-memory message is in this text"), font=FontRole.VERDICT)
        self._add(
            self.tr(
                "Looked for are the messages of PyTorch for CUDA, ROCm, XPU, NPU and MPS, of cuBLAS and cuDNN, and of "
                "main memory. Paste the last lines of the error, from 'out of memory' on."
            ),
            role="muted",
        )

    def _show_answer(self, found: Explanation) -> None:
        self._add(oom_words.headline(found), font=FontRole.VERDICT)
        self._add(oom_words.cause(found))
        facts = oom_words.facts(found)
        if facts:
            self._add(facts, role="muted")
        if any(size > 0 for size in found.shares.values()):
            self._add(self.tr("Whose memory it was"), font=FontRole.TITLE)
            self._result.addWidget(WhoseBar(found.shares, self._theme))
            others = oom_words.processes(found)
            if others:
                self._add(others, font=FontRole.LABEL, role="muted")
        self._add(self.tr("What to change"), font=FontRole.TITLE)
        for number, (words, line) in enumerate(oom_words.actions(found), start=1):
            self._add(f"{number}.  {words}")
            if line:
                self._result.addWidget(CodeLine("", line, self.tr("Copy")))
        for note in oom_words.notes(found):
            self._add(note, font=FontRole.LABEL, role="muted")

    def _add(self, text: str, *, font: FontRole = FontRole.BODY, role: str = "") -> None:
        label = Label(text, font=font, role=role, wrap=True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._result.addWidget(label)

    def _on_edited(self) -> None:
        self._whole, self._note_text = None, ""
        self._debounce.start()

    def _on_copy(self) -> None:
        if self._answer is not None:
            QGuiApplication.clipboard().setText(oom_words.as_text(self._answer))

    def _ask_for_file(self) -> None:
        dialog = QFileDialog(self, self.tr("Open a log"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda chosen: self.read_file(Path(chosen)))
        dialog.open()

    def _long_note(self, length: int) -> str:
        return self.tr("{0} characters; the end is shown.").format(numbers.integer(length))

    def done(self, result: int) -> None:
        self._debounce.stop()
        super().done(result)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)

    def retranslate(self) -> None:
        self.setWindowTitle(self.tr("Explain an error"))
        self._intro.setText(
            self.tr("Paste an out-of-memory error or drop a log: of PyTorch on any card, in any version.")
        )
        self.edit.setPlaceholderText("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 …")
        self.edit.setAccessibleName(self.tr("Error message"))
        self._clear.setText(self.tr("Clear"))
        self._open.setText(self.tr("Open a log…"))
        self._copy.setText(self.tr("Copy the answer"))
        close = self._buttons.button(QDialogButtonBox.StandardButton.Close)
        close.setText(self.tr("Close"))
        close.setIcon(QIcon())
        self.read()


def decode(data: bytes) -> str:
    """Text of a log: UTF-8, or UTF-16 as PowerShell writes it; what is neither is shown as far as it goes."""
    even, odd = data[0:80:2].count(0), data[1:80:2].count(0)  # Latin letters of UTF-16 have a zero on one side
    if data[:2] == b"\xfe\xff" or even > max(odd, _ZEROS):
        return data.decode("utf-16-be", errors="replace")
    if data[:2] == b"\xff\xfe" or odd > max(even, _ZEROS):
        return data.decode("utf-16-le", errors="replace")
    return data.decode("utf-8", errors="replace")
