"""KV caches on disk: warm after a restart, within a budget, private, and never of secrets."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from small_model import SMALL_MODEL
from steady_costs import DTYPE, THREADS, keep_costs

from accel.decoding.engine import Engine
from accel.execution.forwards import alone
from accel.models.batch import chain_batch
from lsp_server.engine import kv_folder
from lsp_server.engine.caches import Caches
from lsp_server.engine.kv_files import KvFile, KvFiles
from lsp_server.engine.kv_store import kv_store_of
from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.jobs import CompletionJob, ContextSnippet
from lsp_server.shared.contract.notes import ForgetDocument
from lsp_server.shared.contract.options import EngineOptions
from tests.prefill_alone import prefill

TEXT = "".join(f"def function_{n}(value):\n    return value + {n}\n" for n in range(40))
OTHER = ContextSnippet("prices.py", "def price_of(shape):\n    return 1\n")
JOB = CompletionJob("", "a.py", TEXT, "", snippets=[OTHER], context_tokens=128, max_tokens=8)
SECRET = f"key = '{'ghp_' + 'aB3dE6gH9k' * 3 + 'Zx4Yw7'}'\n"


def small_file(seed: int = 0) -> KvFile:
    state = [np.full((3, 2, 5), seed, np.int16), np.arange(24, dtype=np.float32).reshape(2, 3, 4)]
    return KvFile({"line": seed}, np.arange(seed, seed + 9, dtype=np.int32), state)


def test_what_was_saved_is_loaded_bit_by_bit(tmp_path: Path) -> None:
    files, saved = KvFiles(tmp_path / "kv", 1 << 20), small_file(7)
    # Views of larger arrays, as caches give them.
    views = [np.repeat(array, 2, axis=1)[:, ::2] for array in saved.state]
    assert files.save("a", replace(saved, state=views))
    found = files.load("a")
    assert found is not None
    assert found.about == saved.about
    assert found.tokens.tolist() == saved.tokens.tolist()
    for one, other in zip(found.state, saved.state, strict=True):
        assert (one.dtype, one.tolist()) == (other.dtype, other.tolist())


def test_keys_and_values_of_another_type_are_another_file(tmp_path: Path) -> None:
    engine = SimpleNamespace(
        model=SimpleNamespace(fingerprint="m", kv_type="f16"),
        execution_path="compiled",
        dtype="Q8_0",
        tokenizer=SimpleNamespace(decode=None),
    )
    names = []
    for engine.model.kv_type in ("f16", "int8"):
        caches = kv_store_of(cast("Engine", engine), 1, tmp_path)
        assert caches is not None
        names.append(caches._name(("", "a.py")))
    assert names[0] != names[1]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_nobody_else_can_read_them(tmp_path: Path) -> None:
    KvFiles(tmp_path / "kv", 1 << 20).save("a", small_file())
    (file,) = (tmp_path / "kv").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "kv").stat().st_mode & 0o777 == 0o700


def test_damaged_files_are_deleted(tmp_path: Path) -> None:
    files = KvFiles(tmp_path, 1 << 20)
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(200):
        assert files.save("a", small_file())
        whole = (tmp_path / "a.kv").read_bytes()
        data = bytearray(whole)
        if chance.random() < 0.5:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        else:
            del data[chance.randrange(len(data)) :]
        (tmp_path / "a.kv").write_bytes(data)
        assert files.load("a") is None
        assert not (tmp_path / "a.kv").exists()


def test_the_files_used_longest_ago_make_room(tmp_path: Path) -> None:
    one = small_file()
    files = KvFiles(tmp_path, 1 << 20)
    files.save("0", one)
    size = (tmp_path / "0.kv").stat().st_size
    files = KvFiles(tmp_path, 3 * size + size // 2)
    for number in range(1, 3):
        files.save(f"{number}", one)
    for number in range(3):
        os.utime(tmp_path / f"{number}.kv", (1000 + number, 1000 + number))
    assert files.load("0") is not None, "now it was used last"
    files.save("3", one)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.kv", "2.kv", "3.kv"]


def test_what_is_larger_than_the_budget_is_not_saved(tmp_path: Path) -> None:
    assert not KvFiles(tmp_path, 100).save("a", small_file())
    assert list(tmp_path.iterdir()) == []


def test_what_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    asked = iter([False, False, False, True])
    assert not KvFiles(tmp_path, 1 << 20).save("a", small_file(), lambda: next(asked))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    files = KvFiles(tmp_path / "file", 1 << 20)
    assert not files.save("a", small_file())
    assert files.load("a") is None
    files.evict()
    files.delete("a")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kv_folder, "kv_folder", lambda: tmp_path / "kv")
    return tmp_path / "kv"


@pytest.fixture(scope="module")
def loaded() -> Iterator[EngineService]:
    keep_costs()
    service = EngineService(
        EngineOptions(path=str(SMALL_MODEL), dtype=DTYPE, threads=THREADS, common=False)
    )
    service.load()
    yield service
    service.close()


class Restarted:
    """The service after a restart: nothing is left but what is on disk."""

    def __init__(self, service: EngineService, megabytes: int = 64) -> None:
        self.service = service
        self.left = -1
        service.use(service.model, Caches.kept(service.engine, megabytes, kv_folder.kv_folder()))

    def write(self, job: CompletionJob = JOB) -> str:
        """The completion of a job; ``left``: tokens of its prompt that were computed."""
        engine = self.service.engine
        prepare = engine.prepare

        def watched(session: Any, prompt: Any) -> int:
            reused = prepare(session, prompt)
            self.left = max(self.left, len(prompt) - reused)
            return reused

        self.left = -1
        engine.prepare = watched  # type: ignore[method-assign]
        try:
            return self.service.write(job).text
        finally:
            engine.prepare = prepare  # type: ignore[method-assign]

    def save_caches(self) -> None:
        self.service.save_caches()


def written(folder: Path) -> list[Path]:
    return sorted(folder.glob("*")) if folder.exists() else []


def test_a_document_is_warm_after_a_restart(loaded: EngineService, folder: Path) -> None:
    first = Restarted(loaded)
    text = first.write()
    assert first.left > 300
    first.save_caches()
    second = Restarted(loaded)
    assert second.write() == text
    assert second.left <= 8
    third = Restarted(loaded)
    assert prefill(third.service, replace(JOB, opening=True)) > 300
    assert third.write() == text
    assert third.left <= 8


def test_what_follows_is_the_same_bit_by_bit(loaded: EngineService) -> None:
    engine = loaded.engine
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    for length in (1, 5, 63, 64, 65, 300):
        tokens = chance.integers(0, 4000, length).astype(np.int32)
        session, other = engine.session(), engine.session()
        session.restore(tokens, _state_of(engine, tokens))
        alone(engine.prefill_steps(np.append(tokens, np.int32(7)), other))
        following = chain_batch(np.array([7, 8, 9], np.int32), 0, wants_numbers=True)
        rows = [
            [np.array(alone(engine.forward_steps(following, each)).row(row)) for row in range(3)]
            for each in (session, other)
        ]
        assert np.array_equal(rows[0], rows[1])


def _state_of(engine: Any, tokens: Any) -> list[Any]:
    session = engine.session()
    alone(engine.prefill_steps(np.append(tokens, np.int32(7)), session))
    return [array.copy() for array in session.cache.state()]


def test_a_file_of_another_form_counts_as_none(loaded: EngineService, folder: Path) -> None:
    first = Restarted(loaded)
    text = first.write()
    first.save_caches()
    (file,) = written(folder)
    found = KvFiles(folder, 1 << 30).load(file.stem)
    assert found is not None
    KvFiles(folder, 1 << 30).save(file.stem, replace(found, state=[one[:1] for one in found.state]))
    second = Restarted(loaded)
    assert second.write() == text
    assert second.left > 300


def test_little_that_is_new_is_not_written_again(loaded: EngineService, folder: Path) -> None:
    service = Restarted(loaded)
    service.write()
    service.save_caches()
    (file,) = written(folder)
    file.unlink()
    service.write(replace(JOB, prefix=TEXT + "x = 1\n"))
    service.save_caches()
    assert written(folder) == []
    service.write(replace(JOB, prefix=TEXT[len(TEXT) // 2 :]))
    service.save_caches()
    assert len(written(folder)) == 1


def test_nothing_is_written_of_a_document_that_may_hold_secrets(
    loaded: EngineService, folder: Path
) -> None:
    service = Restarted(loaded)
    service.write(replace(JOB, secret=True))
    service.save_caches()
    assert written(folder) == []
    # Said by nobody, seen by the engine.
    service.write(replace(JOB, prefix=TEXT + SECRET))
    service.save_caches()
    service.write(replace(JOB, path=".env"))
    service.save_caches()
    assert written(folder) == []


def test_what_turns_out_to_hold_secrets_is_deleted(loaded: EngineService, folder: Path) -> None:
    for how in ("a job", "a frame", "the daemon"):
        service = Restarted(loaded)
        service.write()
        service.save_caches()
        assert len(written(folder)) == 1
        if how == "a job":
            service.write(replace(JOB, secret=True))
        elif how == "a frame":
            service.service.tell(ForgetDocument("/w", "a.py"))
            service.save_caches()
        else:
            kv_folder.forget_everywhere("/w", "a.py")
        assert written(folder) == [], how


def test_the_setting_0_keeps_nothing_and_deletes_what_there_is(
    loaded: EngineService, folder: Path
) -> None:
    service = Restarted(loaded)
    service.write()
    service.save_caches()
    assert written(folder)
    without = Restarted(loaded, megabytes=0)
    assert written(folder) == []
    without.write()
    without.save_caches()
    assert written(folder) == []
