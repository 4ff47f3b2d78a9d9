"""Folders as people have them: nested, hidden, broken, looping, forbidden."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from desktop_app.core.errors import ExitCode, FloodmarkError
from desktop_app.training.config import RunConfig
from desktop_app.training.control import RunCancelled
from desktop_app.training.recipes import decoding, image_folder, image_stores
from desktop_app.training.recipes.image_folder import ImageFolder

RECIPE = ImageFolder()
CONFIG = RunConfig(batch_size=4, image_size=16)


def picture(seed: int, *, side: int = 20, mode: str = "RGB") -> Image.Image:
    random = np.random.default_rng(seed)
    return Image.fromarray(random.integers(0, 256, (side, side, 3), dtype=np.uint8)).convert(mode)


def make_folder(root: Path, *, classes: int = 2, images: int = 10, mode: str = "RGB") -> Path:
    for label in range(classes):
        folder = root / f"class_{label}"
        folder.mkdir(parents=True)
        for index in range(images):
            picture(100 * label + index, mode=mode).save(folder / f"{index}.png")
    return root


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "photos")


def test_a_folder_of_class_folders(folder: Path) -> None:
    config = replace(CONFIG, data=str(folder))
    info = RECIPE.describe(config)
    assert info.classes == ("class_0", "class_1")
    assert (info.channels, info.image_size, info.train_samples, info.validation_samples) == (3, 16, 16, 4)
    prepared = RECIPE.prepare(config)
    assert prepared.info == info
    assert prepared.class_counts == (8, 8)
    assert prepared.train.batches == 4
    assert prepared.validation.batches == 1
    batch = prepared.train.batch(epoch=1, index=0)
    assert batch.inputs.shape == (4, 3, 16, 16)
    assert batch.inputs.dtype == torch.uint8
    assert batch.targets.dtype == torch.int64


def test_every_sample_comes_once_an_epoch_with_its_own_label(folder: Path) -> None:
    prepared = RECIPE.prepare(replace(CONFIG, data=str(folder), augment=False))
    seen: dict[bytes, int] = {}
    for index in range(4):
        batch = prepared.train.batch(epoch=1, index=index)
        for image, label in zip(batch.inputs, batch.targets.tolist(), strict=True):
            seen[image.numpy().tobytes()] = label
    assert len(seen) == 16
    assert sorted(seen.values()) == [0] * 8 + [1] * 8
    validation = prepared.validation.batch(epoch=1, index=0)
    assert not {image.numpy().tobytes() for image in validation.inputs} & set(seen)


def test_the_split_depends_on_the_seed_alone(folder: Path) -> None:
    config = replace(CONFIG, data=str(folder))
    assert RECIPE.prepare(config).fingerprint == RECIPE.prepare(replace(config, batch_size=2)).fingerprint
    assert RECIPE.prepare(config).fingerprint != RECIPE.prepare(replace(config, seed=1)).fingerprint


@pytest.mark.parametrize(
    ("suffix", "save"),
    [
        ("png", {}),
        ("jpg", {"quality": 95}),
        ("JPEG", {}),
        ("gif", {}),
        ("bmp", {}),
        ("webp", {"lossless": True}),
        ("tiff", {}),
        ("ppm", {}),
    ],
)
def test_formats(tmp_path: Path, suffix: str, save: dict[str, object]) -> None:
    for label in ("a", "b"):
        (tmp_path / label).mkdir()
        for index in range(6):
            seed = index + (50 if label == "b" else 0)
            picture(seed, side=64).save(tmp_path / label / f"{index}.{suffix}", **save)
    prepared = RECIPE.prepare(replace(CONFIG, data=str(tmp_path)))
    assert prepared.info.train_samples + prepared.info.validation_samples == 12
    assert prepared.info.skipped == ()


def test_grey_pictures_have_one_channel_and_the_config_may_insist(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, mode="L")
    assert RECIPE.describe(replace(CONFIG, data=str(folder))).channels == 1
    assert RECIPE.prepare(replace(CONFIG, data=str(folder))).train.batch(epoch=1, index=0).inputs.shape[1] == 1
    assert RECIPE.prepare(replace(CONFIG, data=str(folder), channels="rgb")).info.channels == 3
    # Grey pictures saved as RGB are grey; one coloured picture among the first makes all of them colour.
    for path in (folder / "class_0").iterdir():
        Image.open(path).convert("RGB").save(path)
    assert RECIPE.describe(replace(CONFIG, data=str(folder))).channels == 1
    picture(1).save(folder / "class_0" / "0.png")
    assert RECIPE.describe(replace(CONFIG, data=str(folder))).channels == 3


def test_nested_files_count_hidden_and_other_files_do_not(folder: Path) -> None:
    deep = folder / "class_0" / "more" / "deep"
    deep.mkdir(parents=True)
    picture(500).save(deep / "x.png")
    for ignored in (".hidden.png", "._0.png", "notes.txt", "Thumbs.db", "0.png.part"):
        (folder / "class_0" / ignored).write_bytes(b"not an image")
    (folder / ".git").mkdir()
    (folder / "__MACOSX").mkdir()
    (folder / "readme.md").write_text("x")
    info = RECIPE.prepare(replace(CONFIG, data=str(folder))).info
    assert info.classes == ("class_0", "class_1")
    assert info.train_samples + info.validation_samples == 21
    assert info.skipped == ()


def _truncated(path: Path) -> None:
    picture(900, side=200).save(path)
    path.write_bytes(path.read_bytes()[:3000])


def _damaged(path: Path) -> None:
    picture(901, side=60).save(path)
    content = bytearray(path.read_bytes())
    content[60:200] = bytes(140)
    path.write_bytes(content)


def _bomb(path: Path, *, side: int = 60_000) -> None:
    """A PNG head that claims ``side`` × ``side`` pixels."""
    Image.new("L", (1, 1)).save(path)
    content = bytearray(path.read_bytes())
    content[16:24] = side.to_bytes(4, "big") * 2
    content[29:33] = zlib.crc32(bytes(content[12:29])).to_bytes(4, "big")
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "spoil", "reason"),
    [
        ("zero.png", lambda path: path.write_bytes(b""), "empty_file"),
        ("text.jpg", lambda path: path.write_text("not an image"), "not_an_image"),
        ("cut.png", _truncated, "truncated"),
        ("cut.jpg", _truncated, "truncated"),
        ("holes.png", _damaged, "damaged"),
        ("bomb.png", _bomb, "too_large"),
        ("pipe.png", os.mkfifo, "not_a_file"),
        ("gone.png", lambda path: path.symlink_to("nowhere"), "missing"),
        ("self.png", lambda path: path.symlink_to("self.png"), "unreadable"),
    ],
)
def test_broken_files_are_skipped_with_their_reason(
    folder: Path, name: str, spoil: Callable[[Path], object], reason: str
) -> None:
    path = folder / "class_1" / name
    spoil(path)
    info = RECIPE.prepare(replace(CONFIG, data=str(folder))).info
    assert [(file.path, file.reason) for file in info.skipped] == [(str(path), reason)]
    assert info.train_samples + info.validation_samples == 20


@pytest.mark.parametrize("side", [9460, 12_000, 13_400])  # 89,478,485 pixels are the limit, twice that Pillow's own
def test_large_pictures_are_left_out_without_a_warning(folder: Path, side: int) -> None:
    path = folder / "class_1" / "0.png"
    _bomb(path, side=side)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        info = RECIPE.prepare(replace(CONFIG, data=str(folder))).info
    assert [(file.path, file.reason) for file in info.skipped] == [(str(path), "too_large")]
    assert raised == []


def test_pictures_up_to_the_limit_are_tried(folder: Path) -> None:
    _bomb(folder / "class_1" / "0.png", side=9459)  # 89,472,681 pixels, and no rows behind the head
    info = RECIPE.prepare(replace(CONFIG, data=str(folder))).info
    assert [file.reason for file in info.skipped] != ["too_large"]
    assert len(info.skipped) == 1


def test_forbidden_files_and_folders_are_skipped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "class_0" / "secret").mkdir()
    real_open, real_scan = Path.open, os.scandir

    def guarded_open(path: Path, *options: object, **more: object) -> object:
        if path.name == "3.png":
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, *options, **more)  # type: ignore[call-overload]

    def guarded_scan(path: object) -> object:
        if str(path).endswith("secret"):
            raise PermissionError(13, "Permission denied", str(path))
        return real_scan(path)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", guarded_open)
    monkeypatch.setattr(os, "scandir", guarded_scan)
    info = RECIPE.prepare(replace(CONFIG, data=str(folder))).info
    assert sorted((Path(file.path).name, file.reason) for file in info.skipped) == [
        ("3.png", "no_permission"),
        ("3.png", "no_permission"),
        ("secret", "no_permission"),
    ]


def test_the_home_folder_may_be_a_tilde(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    assert RECIPE.describe(replace(CONFIG, data=f"~/{folder.name}")).train_samples == 16


def test_a_description_needs_no_torch() -> None:
    """The form asks for it while the window starts."""
    script = (
        "import sys; from desktop_app.training.config import RunConfig; "
        "from desktop_app.training.recipes.recipe import RECIPES; "
        "RECIPES['image-folder'].describe(RunConfig()); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 0


def test_link_loops_end(folder: Path) -> None:
    (folder / "class_0" / "up").symlink_to(folder)
    (folder / "class_0" / "self").symlink_to(folder / "class_0")
    (folder / "class_0" / "loop").symlink_to("loop")
    info = RECIPE.prepare(replace(CONFIG, data=str(folder))).info
    assert info.classes == ("class_0", "class_1")
    # Through "up" class_0 sees the other class too: what a link says is what the user gets, once.
    assert info.train_samples + info.validation_samples <= 30


def _error(config: RunConfig) -> FloodmarkError:
    with pytest.raises(FloodmarkError) as caught:
        RECIPE.prepare(config)
    assert "\n" not in str(caught.value)
    return caught.value


def test_folders_that_cannot_be_learnt_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = _error(replace(CONFIG, data=str(tmp_path / "none")))
    assert missing.code == "data.missing_folder"
    assert str(missing) == f"data: there is no folder {tmp_path / 'none'}; give a folder of class folders, or cats-dogs"
    assert str(_error(replace(CONFIG, data="cat-dogs"))).endswith("did you mean cats-dogs?")
    file = tmp_path / "file.png"
    picture(1).save(file)
    assert _error(replace(CONFIG, data=str(file))).code == "data.not_a_folder"
    loose = _error(replace(CONFIG, data=str(tmp_path)))
    assert loose.code == "data.no_classes"
    assert "1 images lie in it directly; sort the images into one folder per class" in str(loose)
    (tmp_path / "only").mkdir()
    one = _error(replace(CONFIG, data=str(tmp_path)))
    assert one.code == "data.one_class"
    assert "only one class folder, only" in str(one)
    monkeypatch.setattr(os, "scandir", _forbid)
    assert _error(replace(CONFIG, data=str(tmp_path))).code == "data.no_permission"


def _forbid(path: object) -> object:
    raise PermissionError(13, "Permission denied", str(path))


def test_an_empty_class_says_which_and_why(folder: Path) -> None:
    empty = folder / "empty"
    empty.mkdir()
    error = _error(replace(CONFIG, data=str(folder)))
    assert error.code == "data.empty_class"
    assert str(error) == (f"class folder {empty} has no image that can be read; add images or remove the folder")
    (empty / "a.png").write_bytes(b"x")
    (empty / "b.png").write_bytes(b"")
    error = _error(replace(CONFIG, data=str(folder)))
    assert f"(2 skipped, the first: {empty / 'b.png'}, empty_file)" in str(error)
    (empty / "a.png").unlink()
    with pytest.raises(FloodmarkError):
        RECIPE.describe(replace(CONFIG, data=str(folder)))


def test_fewer_images_than_a_step(folder: Path) -> None:
    error = _error(replace(CONFIG, data=str(folder), batch_size=8, accumulation=3))
    assert error.code == "data.fewer_than_batch"
    assert "16 training images are fewer than one step of 24 (batch_size 8 × accumulation 3)" in str(error)
    assert RECIPE.prepare(replace(CONFIG, data=str(folder), batch_size=8, accumulation=2)).train.batches == 2
    with pytest.raises(FloodmarkError) as caught:
        RECIPE.describe(replace(CONFIG, data=str(folder), batch_size=8, accumulation=3))
    assert (caught.value.code, str(caught.value), caught.value.params) == (error.code, str(error), error.params)
    with pytest.raises(FloodmarkError, match="1600 training images are fewer than one step of 1601 "):
        RECIPE.describe(RunConfig(batch_size=1601))
    assert RECIPE.describe(RunConfig(batch_size=1600)).train_samples == 1600


def test_one_image_of_each_class(tmp_path: Path) -> None:
    config = replace(CONFIG, data=str(make_folder(tmp_path, images=1)))
    error = _error(config)
    assert error.code == "data.one_image"
    assert str(error) == (
        f"data {tmp_path}: class class_0 has only one image; it needs at least two different ones, one to learn from "
        "and one for validation"
    )
    with pytest.raises(FloodmarkError) as caught:
        RECIPE.describe(config)
    assert (caught.value.code, str(caught.value)) == (error.code, str(error))


def test_a_place_for_checkpoints_that_cannot_be_one_is_told_before_decoding(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder.parent / "file"
    file.write_text("x")
    config = replace(CONFIG, data=str(folder))
    RECIPE.prepare(replace(config, output_dir=str(folder.parent / "new" / "deep")))
    assert not (folder.parent / "new").exists()
    monkeypatch.setattr(decoding, "decode", None)
    taken = _error(replace(config, output_dir=str(file)))
    assert (taken.code, taken.exit_code, taken.params["field"]) == ("config.value", ExitCode.USAGE, "output_dir")
    assert str(taken) == f"output_dir takes a folder: {file} is a file; give another"
    under = _error(replace(config, output_dir=str(file / "a" / "b")))
    assert str(under) == f"output_dir takes a folder: {file} is a file and cannot hold {file / 'a' / 'b'}; give another"


def test_copies_only(tmp_path: Path) -> None:
    for label in ("a", "b"):
        (tmp_path / label).mkdir()
        for index in range(10):
            picture(ord(label)).save(tmp_path / label / f"{index}.png")
    assert _error(replace(CONFIG, data=str(tmp_path))).code == "data.only_copies"
    for index in range(10):
        picture(index).save(tmp_path / "a" / f"{index}.png")
    prepared = RECIPE.prepare(replace(CONFIG, data=str(tmp_path)))
    assert [(warning.code, warning.params) for warning in prepared.warnings] == [
        ("data.class_without_validation", {"class": "b"})
    ]


def test_a_stop_ends_the_preparation(folder: Path) -> None:
    with pytest.raises(RunCancelled):
        RECIPE.prepare(replace(CONFIG, data=str(folder)), cancelled=lambda: True)
    asked = iter([False] * 5 + [True] * 100)
    with pytest.raises(RunCancelled):
        RECIPE.prepare(replace(CONFIG, data=str(folder)), cancelled=lambda: next(asked))


def test_sets_too_large_for_memory_are_decoded_batch_by_batch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(CONFIG, data=str(folder))
    held = RECIPE.prepare(config)
    monkeypatch.setattr(image_folder, "_MEMORY_BYTES", 5 * 3 * 16 * 16)
    lazy = RECIPE.prepare(config)
    assert lazy.fingerprint == held.fingerprint
    for epoch in (1, 2):
        for index in range(4):
            first, second = (part.train.batch(epoch=epoch, index=index) for part in (held, lazy))
            assert torch.equal(first.inputs, second.inputs)
            assert torch.equal(first.targets, second.targets)
    for path in folder.rglob("*.png"):
        path.write_bytes(b"changed")
    with pytest.raises(FloodmarkError, match="can no longer be read") as caught:
        [lazy.train.batch(epoch=1, index=index) for index in range(4)]
    assert caught.value.code == "data.file_changed"


def test_the_cache_keeps_the_most_recent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    real = decoding.decode

    def counted(path: Path, *, channels: int, side: int) -> decoding.DecodedImage:
        reads.append(path.name)
        return real(path, channels=channels, side=side)

    monkeypatch.setattr(image_stores, "decode", counted)
    paths = sorted((folder / "class_0").iterdir())
    store = image_stores.FolderImages(paths, torch.zeros(10), channels=3, side=16, cache_bytes=2 * 3 * 16 * 16)
    for wanted in ([0, 1], [1, 0], [2], [0], [1]):
        store.read(torch.tensor(wanted))
    assert reads == ["0.png", "1.png", "2.png", "1.png"]


def test_built_in_data_at_other_sizes_and_in_colour() -> None:
    config = RunConfig(image_size=56, channels="rgb", validation_fraction=0.9)
    prepared = RECIPE.prepare(config)
    assert prepared.info == RECIPE.describe(config)
    assert prepared.train.batch(epoch=1, index=0).inputs.shape == (64, 3, 56, 56)


@pytest.mark.parametrize("model", ["small-cnn", "wide-mlp"])
@pytest.mark.parametrize("size", [8, 28, 33])
def test_models_and_example_batches_on_meta(model: str, size: int) -> None:
    config = RunConfig(model=model, image_size=size, hidden=64, depth=2)
    info = RECIPE.describe(config)
    with torch.device("meta"):
        network = RECIPE.model(config, info)
    batch = RECIPE.example_batch(info, batch_size=3, device="meta")
    real = RECIPE.example_batch(info, batch_size=3, device="cpu")
    assert (batch.inputs.shape, batch.inputs.dtype) == (real.inputs.shape, torch.uint8)
    loss, logits = RECIPE.loss(network, batch)
    assert logits.shape == (3, 2)
    assert loss.shape == ()


def test_wide_mlp_has_the_parameters_one_counts_by_hand() -> None:
    config = RunConfig(model="wide-mlp", hidden=100, depth=2)
    network = RECIPE.model(config, RECIPE.describe(config))
    assert sum(p.numel() for p in network.parameters()) == (784 + 1) * 100 + (100 + 1) * 100 + (100 + 1) * 2


@pytest.mark.parametrize(("name", "foreach"), [("adamw", True), ("adam", False), ("sgd", True), ("sgd", False)])
def test_the_optimizer_gets_its_switches(name: str, foreach: bool) -> None:
    config = RunConfig(optimizer=name, foreach=foreach, weight_decay=0.25, learning_rate=0.5)
    optimizer = RECIPE.optimizer(config, RECIPE.model(config, RECIPE.describe(config)))
    assert type(optimizer).__name__.lower() == name
    group = optimizer.param_groups[0]
    assert (group["foreach"], group["weight_decay"], group["lr"]) == (foreach, 0.25, 0.5)
    assert not group["fused"]
