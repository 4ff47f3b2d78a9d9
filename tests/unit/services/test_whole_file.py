"""A file that is written whole or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from desktop_app.services.whole_file import whole_file


def test_it_takes_the_place_of_the_old_one_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")
    with whole_file(path) as file:
        file.write("水位线\n")
        assert path.read_text() == "old"
    assert path.read_bytes() == "水位线\n".encode()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_the_old_one_stays_where_writing_ends_early(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")

    def write_half() -> None:
        with whole_file(path) as file:
            file.write("half")
            raise error

    with pytest.raises(type(error)):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_still_leads_to_the_file(tmp_path: Path) -> None:
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    try:
        link.symlink_to(target)
    except OSError:
        pytest.skip("no links here")
    with whole_file(link) as file:
        file.write("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes have no name there")
def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with whole_file(path) as file:
            file.write("row\n")
        assert os.read(reader, 10) == b"row\n"
    finally:
        os.close(reader)
    assert path.is_fifo()


def test_a_folder_that_takes_no_new_file_but_has_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")
    opened = Path.open

    def refuse(self: Path, *args: object, **options: object) -> object:
        if self.name.endswith(".part"):
            raise PermissionError(13, "Permission denied")
        return opened(self, *args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    with whole_file(path) as file:
        file.write("new")
    assert path.read_text() == "new"


def test_two_at_once_in_one_folder_do_not_meet(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    with whole_file(first) as one, whole_file(second) as other:
        one.write("first")
        other.write("second")
    assert (first.read_text(), second.read_text()) == ("first", "second")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json"]
