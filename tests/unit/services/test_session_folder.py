"""A run on disk: facts that are whole or old, a lock that dies with its program, and which run is offered again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import filelock
import pytest

from desktop_app import __version__
from desktop_app.services import session_folder
from desktop_app.services.session_folder import SavedPoint, SessionFolder, create_session, find_resume_offer, sessions
from desktop_app.training.checkpoints import FILE_NAME

from .doubles import PATIENCE_S


def new_session(parent: Path, name: str = "run", **facts: object) -> SessionFolder:
    folder = create_session(parent, run_name=name, config_toml="epochs = 3\n", card={}, anchor_wall_s=1.0)
    if facts:
        folder.write_facts({**folder.read_facts(), **facts})
    return folder


def cut_off(parent: Path, name: str, *, step: int = 12, epoch: int = 3) -> SessionFolder:
    """A run that was killed after its checkpoint at ``step``."""
    folder = new_session(parent, name)
    path = folder.checkpoints_path / FILE_NAME
    path.write_bytes(b"weights")
    folder.note_checkpoint(SavedPoint(path, step, epoch))
    return folder


@pytest.fixture
def numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions made one after the other get names in that order, though the test takes less than a second."""
    seconds = iter(range(10, 60))
    monkeypatch.setattr(session_folder.time, "strftime", lambda *_: f"2026-01-02_03-04-{next(seconds)}")


def test_a_new_session_says_what_and_where(tmp_path: Path) -> None:
    checkpoint = tmp_path / "old" / FILE_NAME
    folder = create_session(
        tmp_path / "sessions",
        run_name="Katzen & 狗: 1/2",
        config_toml='name = "x"\n',
        card={"name": "GeForce GTX 1660", "simulated": True},
        anchor_wall_s=1234.5,
        resumed_from=checkpoint,
    )
    facts = json.loads(folder.facts_path.read_text(encoding="utf-8"))
    assert facts["schema"] == 1
    assert facts["run_name"] == "Katzen & 狗: 1/2"
    assert facts["clock_anchor_wall_s"] == 1234.5
    assert facts["card"] == {"name": "GeForce GTX 1660", "simulated": True}
    assert facts["resumed_from"] == str(checkpoint)
    assert (facts["ended"], facts["checkpoint"]) == (None, None)
    assert facts["versions"]["floodmark"] == __version__
    assert facts["versions"]["torch"]
    assert folder.config_path.read_text(encoding="utf-8") == 'name = "x"\n'
    assert folder.path.name.endswith("_Katzen-狗-1-2")
    assert list(folder.checkpoints_path.iterdir()) == []


def test_two_runs_in_one_second_have_two_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_folder.time, "strftime", lambda *_: "2026-01-02_03-04-05")
    first, second = new_session(tmp_path), new_session(tmp_path)
    assert (first.path.name, second.path.name) == ("2026-01-02_03-04-05_run", "2026-01-02_03-04-05_run-2")
    assert [folder.path for folder in sessions(tmp_path)] == [second.path, first.path]


def test_facts_are_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = new_session(tmp_path)
    before = folder.facts_path.read_bytes()

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        folder.mark_ended(state="finished")
    assert folder.facts_path.read_bytes() == before
    monkeypatch.undo()
    folder.mark_ended(state="finished", details={"step": 9})
    ended = folder.read_facts()["ended"]
    assert (ended["state"], ended["step"]) == ("finished", 9)
    assert folder.read_facts()["run_name"] == "run"


@pytest.mark.parametrize("damage", [b"", b"{", b"[1, 2]", b"\xff\xfe", b'{"ended": ' + b"[" * 100_000])
def test_damaged_facts_are_no_facts(tmp_path: Path, damage: bytes) -> None:
    folder = new_session(tmp_path)
    folder.facts_path.write_bytes(damage)
    assert folder.read_facts() == {}


def test_missing_facts_are_no_facts_and_no_session(tmp_path: Path) -> None:
    folder = new_session(tmp_path)
    folder.facts_path.unlink()
    assert folder.read_facts() == {}
    assert list(sessions(tmp_path)) == []
    assert list(sessions(tmp_path / "nowhere")) == []


# The lock

HOLDER = """
import sys
from pathlib import Path
from desktop_app.services.session_folder import SessionFolder
lock = SessionFolder(Path(sys.argv[1])).lock()
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_of_another_program_holds_until_kill_9(tmp_path: Path) -> None:
    folder = new_session(tmp_path)
    assert not folder.is_being_written()
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        assert folder.is_being_written()
        with pytest.raises(filelock.Timeout):
            folder.lock().acquire()
    finally:
        child.kill()
        child.communicate(timeout=PATIENCE_S)
    assert not folder.is_being_written()


def test_the_lock_may_be_released_by_another_thread(tmp_path: Path) -> None:
    folder = new_session(tmp_path)
    lock = folder.lock()
    taker = threading.Thread(target=lock.acquire)
    taker.start()
    taker.join(PATIENCE_S)
    assert folder.is_being_written()
    lock.release()
    assert not folder.is_being_written()


# What is offered

in_order = pytest.mark.usefixtures("numbered")


@in_order
def test_nothing_is_offered_where_nothing_was_cut_off(tmp_path: Path) -> None:
    assert find_resume_offer(tmp_path) is None
    new_session(tmp_path, "without a checkpoint")
    cut_off(tmp_path, "stopped").mark_ended(state="stopped")
    gone = cut_off(tmp_path, "gone")
    (gone.checkpoints_path / FILE_NAME).unlink()
    assert find_resume_offer(tmp_path) is None


@in_order
def test_the_newest_run_that_was_cut_off_is_offered(tmp_path: Path) -> None:
    cut_off(tmp_path, "older")
    wanted = cut_off(tmp_path, "cats & dogs", step=1480, epoch=12)
    os.utime(wanted.checkpoints_path / FILE_NAME, (5000.0, 5000.0))
    new_session(tmp_path, "newer, without a checkpoint")
    cut_off(tmp_path, "newer, ended").mark_ended(state="out_of_memory")
    writing = cut_off(tmp_path, "newest, being written")
    with writing.lock():
        offer = find_resume_offer(tmp_path)
    assert offer is not None
    assert offer.session_path == wanted.path
    assert offer.checkpoint_path == wanted.checkpoints_path / FILE_NAME
    assert (offer.run_name, offer.step, offer.epoch, offer.ended_wall_s) == ("cats & dogs", 1480, 12, 5000.0)


@in_order
def test_a_run_with_damaged_facts_is_still_offered(tmp_path: Path) -> None:
    folder = cut_off(tmp_path, "cats")
    folder.facts_path.write_text("{")
    offer = find_resume_offer(tmp_path)
    assert offer is not None
    assert (offer.run_name, offer.step, offer.epoch) == (folder.path.name, 0, 0)
    assert offer.checkpoint_path == folder.checkpoints_path / FILE_NAME
    folder.mark_ended(state="abandoned")
    assert find_resume_offer(tmp_path) is None


@in_order
def test_a_checkpoint_outside_the_session_is_found_and_belongs_to_the_last_who_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "elsewhere" / FILE_NAME
    path.parent.mkdir()
    path.write_bytes(b"weights")
    older, newer = new_session(tmp_path / "s", "older"), new_session(tmp_path / "s", "newer")
    older.note_checkpoint(SavedPoint(path, 5, 1))
    assert find_resume_offer(tmp_path / "s").checkpoint_path == path  # type: ignore[union-attr]
    newer.note_checkpoint(SavedPoint(path, 7, 2))
    newer.mark_ended(state="finished")
    assert find_resume_offer(tmp_path / "s") is None


@in_order
@pytest.mark.parametrize("state", ["stopped", "failed", "out_of_memory"])
def test_a_resumed_run_that_saved_nothing_leaves_the_old_one_on_offer(tmp_path: Path, state: str) -> None:
    old = cut_off(tmp_path, "old", step=12)
    new = new_session(tmp_path, "new", resumed_from=str(old.checkpoints_path / FILE_NAME))
    new.mark_ended(state=state)
    offer = find_resume_offer(tmp_path)
    assert offer is not None
    assert offer.session_path == old.path


def test_one_damaged_folder_does_not_hide_the_others(tmp_path: Path) -> None:
    old = cut_off(tmp_path, "old", step=12)
    damaged = cut_off(tmp_path, "damaged", step=20)
    damaged.facts_path.write_text(damaged.facts_path.read_text().replace("20", "Infinity"))
    offer = find_resume_offer(tmp_path)
    assert offer is not None
    assert offer.session_path in (old.path, damaged.path)


def test_a_resumed_run_takes_the_place_of_the_old_one_with_its_first_checkpoint(tmp_path: Path) -> None:
    old = cut_off(tmp_path, "old", step=12)
    origin = str(old.checkpoints_path / FILE_NAME)
    new = new_session(tmp_path, "new", resumed_from=origin)
    with new.lock():
        assert find_resume_offer(tmp_path) is None  # it is under way in another window
    offer = find_resume_offer(tmp_path)  # it was cut off before it had anything of its own
    assert offer is not None
    assert offer.session_path == old.path
    own = new.checkpoints_path / FILE_NAME
    own.write_bytes(b"weights")
    new.note_checkpoint(SavedPoint(own, 20, 4))
    offer = find_resume_offer(tmp_path)
    assert offer is not None
    assert (offer.session_path, offer.step) == (new.path, 20)
    new.mark_ended(state="finished")
    assert find_resume_offer(tmp_path) is None
