"""Every model that is there is found, by each of its names, and no two are taken for one."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from text_cases import data_beside, data_cases

sys.path.insert(0, str(Path(__file__).parents[2] / "decoding"))

from gguf_models import gguf_metadata, gguf_tensors, random_module, vocabulary_metadata
from gguf_writer import Stored, write_gguf, write_parts

from accel.errors import ModelNotFound
from accel.files.file_identity import identity_of, sample
from accel.files.model_path import find_model_path
from accel.models.fingerprint import fingerprint
from lsp_server.engine.kv_folder import kv_name
from lsp_server.models.catalogue import find_model, known_models
from lsp_server.shared.errors import RedraftError


@pytest.fixture(autouse=True)
def home(bare_home: Path) -> Path:
    return bare_home


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model."""
    return saved(tmp_path_factory.mktemp("weights") / "m.gguf")


def contents(seed: int = 0) -> tuple[dict[str, object], dict[str, Stored]]:
    module = random_module("qwen2", seed)
    about = gguf_metadata(module) | vocabulary_metadata(module.config.vocab_size)
    return about, gguf_tensors(module)


def saved(path: Path, seed: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_gguf(path, *contents(seed))


def placed(weights: Path, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(weights, path)
    return path


def names() -> list[str]:
    return sorted(model.name for model in known_models())


@data_cases("name")
def test_a_name_with_of_is_a_name(name: str, weights: Path, home: Path) -> None:
    folder = home / ".cache" / "llama.cpp"
    if name == "model-00001-of-00001":
        folder.mkdir(parents=True)
        path = write_parts(folder, contents()[0], [contents()[1]])
        path.rename(folder / f"{name}.gguf")
    else:
        placed(weights, folder / f"{name}.gguf")
    (model,) = known_models()
    assert (model.name, model.problem) == (name, "")


def test_a_split_model_counts_once_and_what_is_left_of_one_says_what_is_missing(home: Path) -> None:
    folder = home / ".cache" / "llama.cpp"
    folder.mkdir(parents=True)
    about, tensors = contents()
    items = list(tensors.items())
    first = write_parts(folder, about, [dict(items[:4]), dict(items[4:8]), dict(items[8:])])
    (model,) = known_models()
    assert (model.paths, model.problem) == ((first,), "")
    first.unlink()
    (model,) = known_models()
    assert model.name == "m-00002-of-00003"
    assert "m-00001-of-00003.gguf" in model.problem


@pytest.mark.parametrize("name", ["mmproj", "mmproj-f16", "mmproj_q8", "MMPROJ.model"])
def test_a_projector_is_no_model(name: str, weights: Path, home: Path) -> None:
    placed(weights, home / ".cache" / "llama.cpp" / f"{name}.gguf")
    assert known_models() == []


class Hub:
    """The cache of the hub as its library makes it."""

    def __init__(self, home: Path, name: str = "ann/coder") -> None:
        self.model = home / ".cache" / "huggingface" / "hub" / f"models--{name.replace('/', '--')}"
        self.time = 1_000_000_000

    def put(self, revision: str, file: str, content: bytes) -> Path:
        """A file of a snapshot, newer than what was put before."""
        blob = self.model / "blobs" / f"{abs(hash(content)):x}"
        blob.parent.mkdir(parents=True, exist_ok=True)
        if not blob.exists():
            blob.write_bytes(content)
        link = self.model / "snapshots" / revision / file
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
        self.time += 60
        os.utime(self.model / "snapshots" / revision, (self.time, self.time))
        return link

    def main(self, revision: str) -> None:
        """What ``main`` names."""
        (self.model / "refs").mkdir(exist_ok=True)
        (self.model / "refs" / "main").write_text(revision)


def _put(hub: Hub, file: str, revision: str = "bbb") -> None:
    hub.put(revision, file, b"{}")
    hub.main(revision)


def _dangling(hub: Hub) -> None:
    (hub.model / "snapshots" / "bbb").mkdir()
    (hub.model / "snapshots" / "bbb" / "README.md").symlink_to("../../blobs/none")


CARDS: dict[str, Callable[[Hub], None]] = {
    "a card alone": lambda hub: _put(hub, "README.md"),
    "a config alone": lambda hub: _put(hub, "config.json"),
    "a tokenizer alone": lambda hub: _put(hub, "tokenizer.json"),
    "nothing": lambda hub: (hub.model / "snapshots" / "bbb").mkdir(),
    "a file that is not there any more": _dangling,
    "a revision that is not there": lambda hub: hub.main("ccc"),
    "a folder of another kind": lambda hub: _put(hub, "onnx/model.onnx"),
    "a card, and main is the older": lambda hub: (_put(hub, "README.md"), hub.main("aaa"))[1],
    "no refs": lambda hub: shutil.rmtree(hub.model / "refs"),
    "a part of the files": lambda hub: _put(hub, "generation_config.json"),
    "many": lambda hub: [_put(hub, "README.md", revision=f"b{n}") for n in range(9)] and None,
}


@pytest.mark.parametrize("case", CARDS)
def test_a_newer_snapshot_without_weights_hides_no_older_one(
    case: str, weights: Path, home: Path
) -> None:
    hub = Hub(home)
    path = hub.put("aaa", "coder-q8_0.gguf", weights.read_bytes())
    hub.main("aaa")
    CARDS[case](hub)
    (model,) = known_models()
    assert (model.name, model.paths, model.problem) == ("ann/coder/coder-q8_0", (path,), "")


def test_the_weights_of_two_snapshots_have_two_names(home: Path, tmp_path: Path) -> None:
    hub = Hub(home)
    older, newer = (saved(tmp_path / f"{n}.gguf", n).read_bytes() for n in (1, 2))
    first = hub.put("a" * 40, "coder.gguf", older)
    kept = hub.put("a" * 40, "other.gguf", older + b"more")
    hub.put("b" * 40, "other.gguf", older + b"more")
    second = hub.put("b" * 40, "coder.gguf", newer)
    hub.main("b" * 40)
    models = known_models()
    assert names() == ["ann/coder/coder", "ann/coder/coder@aaaaaaaa", "ann/coder/other"]
    assert find_model(models, "ann/coder/coder").paths == (second,)
    assert find_model(models, "ann/coder/coder@aaaaaaaa").paths == (first,)
    assert kept.resolve() == find_model(models, "ann/coder/other").paths[0].resolve()
    hub.main("a" * 40)
    assert find_model(known_models(), "ann/coder/coder").paths == (first,), "as main says"


def test_the_id_of_a_model_is_that_of_the_snapshot_with_weights(home: Path) -> None:
    hub = Hub(home)
    hub.put("aaa", "config.json", b"{}")
    hub.put("aaa", "model.safetensors", b"x")
    hub.put("bbb", "README.md", b"card")
    hub.main("bbb")
    from huggingface_hub import constants

    before, constants.HF_HUB_CACHE = constants.HF_HUB_CACHE, str(hub.model.parent)
    try:
        assert find_model_path("ann/coder") == hub.model / "snapshots" / "aaa"
        with pytest.raises(ModelNotFound):
            find_model_path("ann/none")
    finally:
        constants.HF_HUB_CACHE = before


DATA = data_beside(__file__)
TAGS = DATA["TAGS"]


@pytest.mark.parametrize("spelling", ["sha256-0a1b", "sha256:0a1b"])
def test_every_tag_of_a_blob_can_be_chosen(spelling: str, weights: Path, home: Path) -> None:
    store = home / ".ollama" / "models"
    blob = placed(weights, store / "blobs" / spelling)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:0a1b"}
    for place in TAGS:
        manifest = store / "manifests" / place
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text(json.dumps({"layers": [layer]}))
    models = known_models()
    (model,) = models
    assert set(model.names) == set(TAGS.values())
    assert model.paths == (blob,)
    for name in TAGS.values():
        assert find_model(models, name) is model


def test_models_of_one_name_are_called_by_their_folders(home: Path, weights: Path) -> None:
    folder = home / ".lmstudio" / "models"
    for number, place in enumerate(("ann/x", "ben/x", "ann/y", "carl"), 1):
        saved(folder / place / "model.gguf", number)
    placed(weights, home / ".cache" / "llama.cpp" / "single.gguf")
    assert names() == ["ann/x/model", "ben/x/model", "carl/model", "single", "y/model"]
    models = known_models()
    assert find_model(models, "y/model").paths == (folder / "ann" / "y" / "model.gguf",)
    with pytest.raises(RedraftError, match="4 models here are called model; give a path"):
        find_model(models, "model")


def changed_at(path: Path, place: int) -> None:
    """One byte of a file is another; its times stay."""
    state = path.stat()
    with path.open("r+b") as stream:
        stream.seek(place)
        byte = stream.read(1)
        stream.seek(place)
        stream.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def large(path: Path) -> Path:
    """A model of which samples leave most out."""
    about, tensors = contents()
    tensors = {**tensors, "unused.weight": Stored("F32", (1 << 20,), os.urandom(1 << 22))}
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_gguf(path, about, tensors)


def unsampled(path: Path) -> list[int]:
    """Places of a file at which a change is in no sample."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    draw, size, found = random.Random(seed), path.stat().st_size, list[int]()
    with path.open("rb") as stream:
        before = sample(stream)
    copy = path.with_name("tried")
    while len(found) < 12:
        place = draw.randrange(1 << 20, size - (1 << 19))
        shutil.copyfile(path, copy)
        changed_at(copy, place)
        with copy.open("rb") as stream:
            if sample(stream) == before:
                found.append(place)
    copy.unlink()
    return found


def test_two_fine_tunes_that_agree_in_size_header_and_end_are_two(home: Path) -> None:
    base = large(home / "base.gguf")
    places = unsampled(base)
    folder = home / ".cache" / "llama.cpp"
    for number, place in enumerate(places):
        changed_at(placed(base, folder / f"tuned-{number:02}.gguf"), place)
    placed(base, folder / "base.gguf")
    (folder / "link.gguf").hardlink_to(folder / "base.gguf")
    (folder / "symlink.gguf").symlink_to(folder / "base.gguf")
    placed(base, folder / "copy.gguf")
    models = known_models()
    tuned = [f"tuned-{number:02}" for number in range(len(places))]
    assert sorted(model.name for model in models) == ["base", "copy", *tuned]
    (file,) = (model for model in models if model.name == "base")
    assert set(file.names) == {"base", "link", "symlink"}


AGREEING: dict[str, Callable[[Path, Path], None]] = {
    "in their weights' middle": lambda _, other: changed_at(other, 2 << 20),
    "in nothing": lambda *_: None,
    "in their last byte": lambda _, other: changed_at(other, other.stat().st_size - 1),
    "in their first tensor": lambda _, other: changed_at(other, other.stat().st_size // 8),
}


@pytest.mark.parametrize("case", AGREEING)
def test_models_of_one_name_size_and_time_share_neither_costs_nor_caches(
    case: str, tmp_path: Path
) -> None:
    first = large(tmp_path / "a" / "m.gguf")
    other = placed(first, tmp_path / "b" / "m.gguf")
    AGREEING[case](first, other)
    state = first.stat()
    os.utime(other, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (first.name, state.st_size) == (other.name, other.stat().st_size)
    assert state.st_mtime_ns == other.stat().st_mtime_ns
    assert fingerprint(first, "cpu") == fingerprint(first, "cpu")
    assert fingerprint(first, "cpu") != fingerprint(other, "cpu")
    caches = {kv_name("w", "f.py", fingerprint(path, "cpu")) for path in (first, other)}
    assert len(caches) == 2


@pytest.mark.parametrize("place", [100, 1 << 17, 1 << 20, 3 << 20])
def test_a_file_that_was_written_over_has_another_identity(place: int, tmp_path: Path) -> None:
    path = large(tmp_path / "m.gguf")
    before = identity_of(path)
    changed_at(path, place)
    assert identity_of(path) != before
    moved = placed(path, tmp_path / "n.gguf")
    shutil.copystat(path, moved)
    again = identity_of(path)
    os.replace(moved, path)
    assert identity_of(path) != again
