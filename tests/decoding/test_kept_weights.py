"""Packed weights that are kept between starts: the same to the byte, or packed again."""

from __future__ import annotations

import errno
import hashlib
import json
import mmap
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf_models import random_module, save_gguf
from text_cases import data_beside

from accel.errors import ModelNotFound
from accel.models import fingerprint
from accel.models.cpu import gguf_decoder, kept_weights
from accel.models.cpu.decoder import Decoder
from accel.models.cpu.kept_weights import KeptWeights
from accel.models.cpu.quantised.matrix import QuantisedMatrix
from accel.models.model_file import GgufModel, model_file

DATA = data_beside(__file__)

SIZES = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64}


@pytest.fixture(autouse=True)
def kept_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small, and before anything goes on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_weights, "LEAST_BYTES", 1)
    monkeypatch.setattr(kept_weights, "CHECK_AFTER_S", 0.0)
    monkeypatch.setattr(kept_weights, "lower_thread_priority", lambda steps: None)

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
    return sorted(Path(os.environ["XDG_CACHE_HOME"], "redraft", "packed").glob("*.weights"))


def is_mapped(decoder: Decoder) -> bool:
    base: object = decoder.matrices[0].packed
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, memoryview) and isinstance(base.obj, mmap.mmap)


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
    actual = decoder_of(file)
    assert is_mapped(actual)
    assert all(matrix.packed.ctypes.data % 128 == 0 for matrix in actual.matrices)
    assert bytes_of(actual) == bytes_of(packed)
    assert [(each.layout, each.out) for each in actual.matrices] == [
        (each.layout, each.out) for each in packed.matrices
    ]


def changed(kept: Path, change: Callable[[bytearray], object]) -> None:
    data = bytearray(kept.read_bytes())
    change(data)
    kept.write_bytes(data)


def with_places(kept: Path, change: Callable[[dict[str, list[int]]], object]) -> None:
    """Another header, with its own sum."""
    line, _, rest = kept.read_bytes().partition(b"\n")
    positions = json.loads(line.partition(b" ")[2])
    change(positions)
    other = json.dumps(positions).encode()
    digest = hashlib.sha256(other + b"\n").hexdigest().encode()
    whole = digest + b" " + other + b"\n"
    kept.write_bytes(whole + rest[len(whole) - len(line) - 1 :])


def first_of(places: dict[str, list[int]]) -> list[int]:
    return next(iter(places.values()))


Damage = Callable[[Path], object]
SEEN_AT_ONCE: dict[str, Damage] = {
    "empty": lambda kept: kept.write_bytes(b""),
    "no line": lambda kept: kept.write_bytes(b"\x00" * 5000),
    "cut": lambda kept: kept.write_bytes(kept.read_bytes()[:-1]),
    "cut in half": lambda kept: kept.write_bytes(kept.read_bytes()[: kept.stat().st_size // 2]),
    "longer": lambda kept: kept.write_bytes(kept.read_bytes() + b"\x00"),
    "the line alone": lambda kept: kept.write_bytes(kept.read_bytes().partition(b"\n")[0] + b"\n"),
    "a bit of the line": lambda kept: changed(
        kept, lambda data: data.__setitem__(100, data[100] ^ 1)
    ),
    "another version": lambda kept: changed(
        kept, lambda data: data.__setitem__(slice(0, 4), b"[1]")
    ),
    "a name is missing": lambda kept: with_places(kept, lambda places: places.popitem()),
    "another name": lambda kept: with_places(
        kept, lambda places: places.update(x=places.pop(next(iter(places))))
    ),
    "another layout": lambda kept: with_places(
        kept, lambda places: first_of(places).__setitem__(0, 99)
    ),
    "a huge size": lambda kept: with_places(
        kept, lambda places: first_of(places).__setitem__(1, 1 << 60)
    ),
    "no numbers": lambda kept: with_places(
        kept, lambda places: places.__setitem__(next(iter(places)), [])
    ),
    "a folder": lambda kept: (kept.unlink(), kept.mkdir()),
}


@pytest.mark.parametrize("damage", SEEN_AT_ONCE)
def test_what_is_damaged_is_packed_again(damage: str, tmp_path: Path) -> None:
    file = saved(tmp_path)
    packed = bytes_of(decoder_of(file))
    (kept,) = kept_files()
    SEEN_AT_ONCE[damage](kept)
    actual = decoder_of(file)
    assert not is_mapped(actual)
    assert bytes_of(actual) == packed
    if damage != "a folder":
        (again,) = kept_files()
        assert again != kept, "a file that may be mapped is not written again"
        actual = decoder_of(file)
        assert is_mapped(actual)
        assert bytes_of(actual) == packed


SEEN_LATER: dict[str, Damage] = {
    "one bit": lambda kept: changed(kept, lambda data: data.__setitem__(-1, data[-1] ^ 1)),
    "zeros at the end": lambda kept: changed(
        kept, lambda data: data.__setitem__(slice(-4096, None), bytes(4096))
    ),
    "zeros for all": lambda kept: changed(
        kept, lambda data: data.__setitem__(slice(1 << 14, None), bytes(len(data) - (1 << 14)))
    ),
}


@pytest.mark.parametrize("damage", SEEN_LATER)
def test_what_is_damaged_inside_is_packed_again_where_it_is_mapped(
    damage: str, tmp_path: Path
) -> None:
    file = saved(tmp_path)
    packed = bytes_of(decoder_of(file))
    (kept,) = kept_files()
    SEEN_LATER[damage](kept)
    other = decoder_of(file)
    assert is_mapped(other)
    assert bytes_of(other) == packed
    assert kept_files() == []
    assert bytes_of(decoder_of(file)) == packed
    assert len(kept_files()) == 1


def test_any_byte_that_changed_is_seen(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chosen = random.Random(seed)
    file = saved(tmp_path)
    packed = bytes_of(decoder_of(file))
    (kept,) = kept_files()
    whole = kept.read_bytes()
    unused = whole.index(b"\n") + 1, 1 << 14
    for _ in range(40):
        position = chosen.randrange(len(whole))
        if unused[0] <= position < unused[1]:
            continue
        data = bytearray(whole)
        data[position] ^= chosen.randrange(1, 256)
        kept.write_bytes(data)
        assert bytes_of(decoder_of(file)) == packed, position
        assert kept not in kept_files(), position
        for each in kept_files():
            each.unlink()


def test_what_was_looked_at_once_is_not_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = saved(tmp_path)
    decoder_of(file)
    (kept,) = kept_files()
    looked_at: list[Path] = []
    check = kept_weights._check
    monkeypatch.setattr(
        kept_weights, "_check", lambda file, *rest: (looked_at.append(file), check(file, *rest))
    )
    decoder_of(file)
    decoder_of(file)
    assert looked_at == [kept]
    status = kept.stat()
    changed(kept, lambda data: data.__setitem__(-1, data[-1] ^ 1))
    os.utime(kept, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    packed = decoder_of(file)
    assert looked_at == [kept, kept]
    assert kept_files() == []
    assert bytes_of(packed) == bytes_of(decoder_of(file))


def test_where_the_models_file_is_gone_too_the_next_start_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = saved(tmp_path)
    matrices = {str(position): each for position, each in enumerate(decoder_of(file).matrices)}
    store = KeptWeights(file)
    store.write_later(matrices)
    (kept,) = kept_files()
    SEEN_LATER["one bit"](kept)

    def is_gone(name: str) -> QuantisedMatrix:
        raise ModelNotFound(f"no file for {name}")

    assert store.read(matrices, is_gone) is not None
    assert kept_files() == []
    assert "start again" in caplog.text


def test_a_process_keeps_what_it_maps_when_the_file_goes(tmp_path: Path) -> None:
    file = saved(tmp_path)
    packed = bytes_of(decoder_of(file))
    mapped = decoder_of(file)
    (kept,) = kept_files()
    kept.unlink()
    decoder_of(file)
    assert is_mapped(mapped)
    assert bytes_of(mapped) == packed


def test_who_writes_at_a_time_leaves_one_file(tmp_path: Path) -> None:
    file = saved(tmp_path)
    decoder = decoder_of(file)
    (before,) = kept_files()
    matrices = dict(enumerate(decoder.matrices))
    threads = [
        threading.Thread(target=KeptWeights(file).write_later, args=(matrices,)) for _ in range(4)
    ]
    for thread in threads:
        threading.Thread.start(thread)
    for thread in threads:
        thread.join()
    assert before not in kept_files()
    assert 1 <= len(kept_files()) <= 4
    KeptWeights(file).write_later(matrices)  # type: ignore[arg-type]
    assert len(kept_files()) == 1


def test_where_a_mapped_file_cannot_go_a_new_one_is_written_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows."""
    file = saved(tmp_path)
    packed = bytes_of(decoder_of(file))
    (kept,) = kept_files()
    unlink, is_held = Path.unlink, True

    def unlink_unless_held(path: Path, missing_ok: bool = False) -> None:
        if is_held and path == kept:
            raise PermissionError(path)
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink_unless_held)
    SEEN_LATER["one bit"](kept)
    assert bytes_of(decoder_of(file)) == packed
    assert kept_files() == [kept]
    assert bytes_of(decoder_of(file)) == packed, "still damaged, and packed anew where it is"
    kept.write_bytes(b"")
    decoder_of(file)
    assert len(kept_files()) == 2
    actual = decoder_of(file)
    assert is_mapped(actual)
    assert bytes_of(actual) == packed
    is_held = False
    KeptWeights(file).write_later(dict(enumerate(actual.matrices)))  # type: ignore[arg-type]
    assert kept not in kept_files()
    assert len(kept_files()) == 1


def test_a_home_that_can_only_be_read_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = saved(tmp_path)
    packed = bytes_of(decoder_of(file))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr(kept_weights.os, "utime", refuse)
    monkeypatch.setattr(kept_weights, "write_private", refuse)
    actual = decoder_of(file)
    assert is_mapped(actual)
    assert bytes_of(actual) == packed


def test_a_disk_that_fills_up_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(kept_weights.os, "fsync", full)
    file = saved(tmp_path)
    assert bytes_of(decoder_of(file)) == bytes_of(decoder_of(file))
    assert list((tmp_path / "cache" / "redraft" / "packed").iterdir()) == []


def test_what_other_machines_may_remove_is_read_not_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_weights, "remote_file_system", lambda folder: "nfs4")
    file = saved(tmp_path)
    packed = decoder_of(file)
    without_packing(monkeypatch)
    actual = decoder_of(file)
    assert not is_mapped(actual)
    assert bytes_of(actual) == bytes_of(packed)


@pytest.mark.parametrize(
    "machine", DATA["test_another_machine_packs_its_own"], ids=lambda machine: machine[0]
)
def test_another_machine_packs_its_own(
    machine: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One home may be that of several machines."""
    file = saved(tmp_path)
    decoder_of(file)
    (kept,) = kept_files()
    monkeypatch.setattr(fingerprint, "compiled_for", lambda: machine)
    assert not is_mapped(decoder_of(file))
    assert len(kept_files()) == 2
    monkeypatch.undo()
    assert kept.exists()


def test_another_file_of_a_model_is_packed_anew(tmp_path: Path) -> None:
    """Written in any way, and of the same size."""
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
    old, fresh = first.with_name("x.new"), first.with_name("y.new")
    old.touch()
    fresh.touch()
    for file in (old, first):
        os.utime(file, (1, 1))
    decoder_of(files[1])
    (second,) = set(kept_files()) - {first}
    assert set(kept_files()) == {first, second}
    assert [each for each in first.parent.iterdir() if each.suffix == ".new"] == [fresh]
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
    assert not [each for each in kept_files() if each.suffix == ".weights"]
