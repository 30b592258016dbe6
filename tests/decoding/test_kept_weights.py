"""Packed weights that are kept between starts: the same to the byte, or packed again."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf_models import random_module, save_gguf

from accel.models.cpu import gguf_decoder, kept_weights
from accel.models.cpu.decoder import Decoder
from accel.models.cpu.kept_weights import KeptWeights
from accel.models.model_file import GgufModel, model_file

SIZES = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64}


@pytest.fixture(autouse=True)
def kept_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small, and before anything goes on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_weights, "LEAST_BYTES", 1)

    class AtOnce(threading.Thread):
        def start(self) -> None:
            self.run()

    monkeypatch.setattr(kept_weights, "Thread", AtOnce)


def saved(folder: Path, kind: str = "Q8_0", seed: int = 0) -> Path:
    return save_gguf(folder / f"{kind}{seed}.gguf", random_module("qwen2", seed, **SIZES), kind)


def decoder_of(file: Path) -> Decoder:
    about = model_file(file)
    assert isinstance(about, GgufModel)
    return gguf_decoder.read_decoder(about)


def bytes_of(decoder: Decoder) -> list[bytes]:
    return [matrix.packed.tobytes() for matrix in decoder.matrices]


def kept_files() -> list[Path]:
    folder = Path(os.environ["XDG_CACHE_HOME"], "redraft", "packed")
    return sorted(folder.iterdir()) if folder.is_dir() else []


def without_packing(monkeypatch: pytest.MonkeyPatch) -> None:
    def packs(*_: object) -> None:
        raise AssertionError("it packs")

    monkeypatch.setattr(gguf_decoder._Reader, "_matrix", packs)


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "F32", "F16", "BF16"])
def test_what_was_kept_is_what_was_packed(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = saved(tmp_path, kind)
    packed = decoder_of(file)
    (kept,) = kept_files()
    assert kept.stat().st_mode & 0o777 == 0o600
    without_packing(monkeypatch)
    found = decoder_of(file)
    assert bytes_of(found) == bytes_of(packed)
    assert [(one.layout, one.out) for one in found.matrices] == [
        (one.layout, one.out) for one in packed.matrices
    ]


def changed(kept: Path, change: Callable[[bytearray], object]) -> None:
    data = bytearray(kept.read_bytes())
    change(data)
    kept.write_bytes(data)


def places_of(kept: Path) -> tuple[dict[str, list[int]], bytes]:
    line, _, rest = kept.read_bytes().partition(b"\n")
    return json.loads(line), rest


def with_places(kept: Path, change: Callable[[dict[str, list[int]]], object]) -> None:
    places, rest = places_of(kept)
    change(places)
    kept.write_bytes(json.dumps(places).encode() + b"\n" + rest)


def first_of(places: dict[str, list[int]]) -> list[int]:
    return next(iter(places.values()))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda kept: kept.write_bytes(b""),
    "no line": lambda kept: kept.write_bytes(b"\x00" * 5000),
    "cut": lambda kept: kept.write_bytes(kept.read_bytes()[:-1]),
    "cut in half": lambda kept: kept.write_bytes(kept.read_bytes()[: kept.stat().st_size // 2]),
    "the line alone": lambda kept: kept.write_bytes(kept.read_bytes().partition(b"\n")[0] + b"\n"),
    "one bit": lambda kept: changed(kept, lambda data: data.__setitem__(-1, data[-1] ^ 1)),
    "zeros at the end": lambda kept: changed(
        kept, lambda data: data.__setitem__(slice(-4096, None), bytes(4096))
    ),
    "another version": lambda kept: kept.write_bytes(b"[1, 2]\n" + places_of(kept)[1]),
    "a name is missing": lambda kept: with_places(kept, lambda places: places.popitem()),
    "another layout": lambda kept: with_places(
        kept, lambda places: first_of(places).__setitem__(0, 99)
    ),
    "a negative size": lambda kept: with_places(
        kept, lambda places: first_of(places).__setitem__(1, -5)
    ),
    "a huge size": lambda kept: with_places(
        kept, lambda places: first_of(places).__setitem__(1, 1 << 60)
    ),
    "another place": lambda kept: with_places(
        kept, lambda places: first_of(places).__setitem__(3, 64)
    ),
    "no numbers": lambda kept: with_places(
        kept, lambda places: places.__setitem__(next(iter(places)), [])
    ),
    "a folder": lambda kept: (kept.unlink(), kept.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_packed_again(damage: str, tmp_path: Path) -> None:
    file = saved(tmp_path)
    packed = bytes_of(decoder_of(file))
    (kept,) = kept_files()
    DAMAGES[damage](kept)
    assert bytes_of(decoder_of(file)) == packed
    if damage != "a folder":
        assert bytes_of(decoder_of(file)) == packed
        assert kept_files() == [kept]


def test_any_byte_that_changed_is_seen(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chosen = random.Random(seed)
    decoder_of(saved(tmp_path))
    (kept,) = kept_files()
    whole = kept.read_bytes()
    begin = whole.index(b"\n") + 1
    store = KeptWeights(tmp_path / "Q8_00.gguf")
    names = list(places_of(kept)[0])
    assert store.read(names) is not None
    for _ in range(40):
        place = chosen.randrange(begin, len(whole))
        kept.write_bytes(whole[:place] + bytes([whole[place] ^ chosen.randrange(1, 256)])
                         + whole[place + 1 :])  # fmt: skip
        assert store.read(names) is None, place


def test_another_file_of_a_model_is_packed_anew(tmp_path: Path) -> None:
    """By whatever means it came, and of the same size."""
    file = saved(tmp_path)
    before = bytes_of(decoder_of(file))
    other = saved(tmp_path, seed=1)
    assert other.stat().st_size == file.stat().st_size
    os.replace(other, file)
    assert bytes_of(decoder_of(file)) != before
    assert len(kept_files()) == 2


def test_weights_that_are_no_numbers_are_not_kept(tmp_path: Path) -> None:
    decoder = decoder_of(saved(tmp_path))
    (kept,) = kept_files()
    kept.unlink()
    decoder.matrices[0].is_finite = False
    KeptWeights(tmp_path / "Q8_00.gguf").write_later(dict(enumerate(decoder.matrices)))  # type: ignore[arg-type]
    assert kept_files() == []


def test_the_least_recently_used_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [saved(tmp_path, kind) for kind in ("Q8_0", "Q4_0", "F16")]
    decoder_of(files[0])
    (first,) = kept_files()
    (first.parent / "x.new").touch()
    os.utime(first, (1, 1))
    decoder_of(files[1])
    (second,) = set(kept_files()) - {first}
    assert set(kept_files()) == {first, second}, "what was not finished went"
    os.utime(second, (2, 2))
    # Its next start uses it.
    decoder_of(files[0])
    monkeypatch.setattr(kept_weights, "MOST_BYTES", 2 * first.stat().st_size)
    decoder_of(files[2])
    assert first in kept_files()
    assert second not in kept_files()


@pytest.mark.parametrize("trouble", ["no room", "no folder", "too large", "too small"])
def test_where_it_cannot_be_kept_it_is_packed_each_time(
    trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trouble == "no room":
        monkeypatch.setattr(kept_weights, "LEAST_FREE", 1 << 40)
    elif trouble == "no folder":
        (tmp_path / "cache").write_text("a file")
    elif trouble == "too large":
        monkeypatch.setattr(kept_weights, "MOST_BYTES", 1000)
    else:
        monkeypatch.setattr(kept_weights, "LEAST_BYTES", 1 << 30)
    file = saved(tmp_path)
    assert bytes_of(decoder_of(file)) == bytes_of(decoder_of(file))
    assert not [one for one in kept_files() if one.suffix == ".weights"]


def test_the_sum_of_a_matrix_is_that_of_its_words(tmp_path: Path) -> None:
    matrix = decoder_of(saved(tmp_path)).matrices[0]
    words = np.frombuffer(matrix.packed.tobytes(), np.uint64).tolist()
    assert kept_weights._sum(matrix) == sum(words) % (1 << 64)
