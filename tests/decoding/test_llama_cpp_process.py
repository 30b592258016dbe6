"""Ends of llama.cpp's process: cancels, kills, assertions, damaged files.

Tests that need llama-cpp-python are skipped without it.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import conformance
import numpy as np
import psutil
import pytest
from damage import MUTATIONS, refuse_mutations
from gguf_writer import header_of
from llama_cpp_worker import TESTED
from quantised_by_llama_cpp import contents, opened, saved
from seeds import Amount
from tiny_models import Oracle

from accel.decoding.request import GenerationRequest
from accel.errors import AccelError, BackendDied, UnsupportedModel
from accel.execution.session import Session
from accel.files.model_options import ModelOptions
from accel.models.llama_cpp import process
from accel.models.llama_cpp.model import LlamaCppCache, LlamaCppModel
from accel.models.model_file import model_file
from tests.llama_cpp_package import has_package

installed = pytest.mark.skipif(not has_package(), reason="llama-cpp-python is not installed")

GROWTH_BYTES = 8 << 20


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("process") / "m.gguf")


@pytest.fixture
def model(file: Path, monkeypatch: pytest.MonkeyPatch) -> LlamaCppModel:
    monkeypatch.setattr(process, "COMMAND", TESTED)
    return LlamaCppModel(file, ModelOptions(threads=1))


def process_of(model: LlamaCppModel) -> psutil.Process:
    assert model._worker._process is not None
    return psutil.Process(model._worker._process.pid)


def ends(model: LlamaCppModel, session: Session) -> list[int]:
    assert isinstance(session.cache, LlamaCppCache)
    actual: list[int] = model._worker.call("ends", session.cache._number)
    return actual


@installed
def test_cancelled_requests_leave_nothing_behind(
    model: LlamaCppModel, file: Path, amount: Amount
) -> None:
    """That many requests, each cancelled before one of its forwards: all leaves end alike after
    each, the text stays the same, and the process has not grown at the end."""
    count = amount(30, 1000)
    seed = random.randrange(1 << 30)
    print("seed", seed)
    draw = np.random.default_rng(seed)
    engine = opened(file, model=model)
    # None begins as another: a prompt that is computed in other parts may fall otherwise at a tie.
    prompts = [draw.integers(0, 256, 300).astype(np.int32) for _ in range(4)]
    for number, prompt in enumerate(prompts):
        prompt[0] = number
    plain = [
        engine.generate(GenerationRequest(prompt, 40, ignore_end=True)).finish().tokens
        for prompt in prompts
    ]
    session, grown_from = engine.session(), 0
    for number in range(count):
        if number == count // 4:
            grown_from = process_of(model).memory_info().rss
        if draw.random() < 0.05:
            session = engine.session()
        which = int(draw.integers(0, len(prompts)))
        forwards = int(draw.integers(0, 25))
        asked = 0

        def is_cancelled(after: int = forwards) -> bool:
            nonlocal asked
            asked += 1
            return asked > after

        request = GenerationRequest(
            prompts[which],
            40,
            Oracle(plain[which], number, 256, depth=4),
            ignore_end=True,
            plan=False,
            cancelled=is_cancelled,
        )
        written = engine.generate(request, session).finish().tokens
        assert written.tolist() == plain[which][: len(written)].tolist(), f"request {number}"
        if session.length:
            assert ends(model, session) == [session.length - 1] * len(ends(model, session))
    assert process_of(model).memory_info().rss - grown_from < GROWTH_BYTES
    assert model._worker.call("held") < 12


def kill(model: LlamaCppModel, cache: LlamaCppCache) -> None:
    os.kill(process_of(model).pid, signal.SIGKILL)
    conformance.feed(model, cache, np.arange(3, dtype=np.int32))


def abort(model: LlamaCppModel, cache: LlamaCppCache) -> None:
    model._worker.call("abort", cache._number)


@installed
@pytest.mark.parametrize("end", [kill, abort])
def test_a_library_that_ended_is_loaded_once(
    model: LlamaCppModel, end: Callable[[LlamaCppModel, LlamaCppCache], None]
) -> None:
    text = np.arange(20, dtype=np.int32)
    cache = model.new_cache(64)
    assert isinstance(cache, LlamaCppCache)
    conformance.feed(model, cache, text)
    ended = model._worker.generation
    with pytest.raises(BackendDied, match="started again"):
        end(model, cache)
    with pytest.raises(BackendDied, match="computed anew"):
        conformance.feed(model, cache, text)
    conformance.feed(model, cache, text)
    assert cache.length == len(text)
    assert model._worker.generation == ended + 1


def test_damaged_headers_do_not_reach_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, amount: Amount
) -> None:
    """Damaged headers are refused before there is a process; what passes is a sound header."""
    count = amount(100, 10_000)
    monkeypatch.setattr("accel.models.model_file.is_installed", lambda: True)
    path = saved(tmp_path / "m.gguf")
    header = len(header_of(*contents()))
    refused = refuse_mutations(path, header, count, check)
    print(f"{count - refused} of {count} pass")
    assert count / 2 < refused < count, "some mutations change a token or a name, and no more"


def check(file: Path) -> None:
    model_file(file).check("llama-cpp")


@installed
def test_what_our_reader_lets_pass_ends_no_more_than_its_process(
    tmp_path: Path, amount: Amount
) -> None:
    """Damaged files that pass our reader are loaded, or refused, by another process."""
    count = amount(3, 200)
    seed = random.randrange(1 << 32)
    print("seed", seed)
    draw = random.Random(seed)
    path, passed = saved(tmp_path / "m.gguf"), 0
    whole, header = path.read_bytes(), len(header_of(*contents()))
    while passed < count:
        path.write_bytes(draw.choice(MUTATIONS)(bytearray(whole), header, draw))
        try:
            check(path)
        except AccelError:
            continue
        passed += 1
        with contextlib.suppress(UnsupportedModel, BackendDied):
            model = LlamaCppModel(path, ModelOptions(threads=1))
            conformance.feed(model, model.new_cache(32), np.arange(20, dtype=np.int32))
