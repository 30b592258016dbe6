"""llama.cpp as a backend, in its own process. Skipped where llama-cpp-python is not installed."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import conformance
import numpy as np
import pytest
from gguf_writer import write_gguf
from quantised_by_llama_cpp import opened, saved

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.errors import BackendDied, UnsupportedModel
from accel.files.model_options import ModelOptions
from accel.models.llama_cpp import tree_context
from accel.models.llama_cpp.model import LlamaCppModel
from accel.models.llama_cpp.tree_context import LEAVES
from accel.planning.planner import FixedBatchPlanner
from tests.llama_cpp_package import has_package

installed = pytest.mark.skipif(not has_package(), reason="llama-cpp-python is not installed")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("llama-cpp") / "m.gguf")


@pytest.fixture(scope="module")
def engine(file: Path) -> Engine:
    return opened(file)


class RandomDrafter:
    """Random drafts: right tokens, wrong ones, and several branches."""

    def __init__(self, truth: TokenArray, seed: int) -> None:
        self._truth, self._random = truth, np.random.default_rng(seed)
        self._place = 0

    def begin(self, _request: Any) -> None:
        self._place = 0

    def draft(self, max_nodes: int) -> DraftTree:
        count = int(self._random.integers(0, max_nodes + 1))
        tokens = self._random.integers(0, 256, count).astype(np.int32)
        parents = np.array([int(self._random.integers(-1, node + 0)) for node in range(count)])
        right = int(self._random.integers(0, count + 1))
        ahead = self._truth[self._place : self._place + right]
        # A right branch that is not the first: rows that are kept stand behind rejected ones.
        above, order = -1, sorted(self._random.permutation(count)[: len(ahead)].tolist())
        for node, token in zip(order, ahead.tolist(), strict=True):
            tokens[node], parents[node], above = token, above, node
        tree = DraftTree.chain(tokens, Source.PROMPT, 0.9)
        tree.parents = parents.astype(np.int32)
        return tree

    def commit(self, _tree: DraftTree, _path: list[int], tokens: TokenArray) -> None:
        self._place += len(tokens)


def written(engine: Engine, prompt: TokenArray, drafter: Any) -> list[int]:
    request = GenerationRequest(prompt, max_tokens=40, drafter=drafter, plan=False)
    return [token for chunk in engine.generate(request, engine.session()) for token in chunk.tokens]


@installed
def test_drafts_change_no_token(engine: Engine) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    prompts = np.random.default_rng(seed)
    for number in range(20):
        prompt = prompts.integers(0, 256, int(prompts.integers(5, 90))).astype(np.int32)
        plain = written(engine, prompt, None)
        drafter = RandomDrafter(np.array(plain, np.int32), seed + number)
        assert written(engine, prompt, drafter) == plain


@installed
def test_a_killed_library_costs_the_running_request_alone(file: Path) -> None:
    model = LlamaCppModel(file, ModelOptions(threads=1))
    text = np.arange(20, dtype=np.int32)
    cache = model.new_cache(64)
    expected = conformance.one_by_one(model, text)
    conformance.feed(model, cache, text[:10])
    process = model._worker._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(BackendDied, match="started again"):
        conformance.feed(model, cache, text[10:])
    with pytest.raises(BackendDied, match="computed anew"):
        conformance.feed(model, cache, text[10:])
    assert cache.length == 0
    conformance.feed(model, cache, text[:-1])
    actual = conformance.numbers(model, conformance.chain_batch(text[-1:], 0), cache)
    conformance.close(actual, expected[-1:])


@installed
@pytest.mark.parametrize("is_running", [True, False], ids=["while it writes", "between requests"])
def test_a_session_goes_on_after_a_killed_library(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_running: bool
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engine = Engine.load(file, backend="llama-cpp", threads=1)
    assert isinstance(engine.model, LlamaCppModel)
    session, prompt = engine.session(), np.arange(30, dtype=np.int32)
    request = GenerationRequest(prompt, max_tokens=20, drafter=None)

    def text() -> list[int]:
        return [token for chunk in engine.generate(request, session) for token in chunk.tokens]

    expected = text()
    process = engine.model._worker._process
    assert process is not None
    if is_running:
        generation = iter(engine.generate(request, session))
        next(generation)
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(BackendDied):
            list(generation)
    else:
        # It is gone before anybody asks: a call finds that out, and costs its request.
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(BackendDied):
            text()
    assert text() == expected


@installed
def test_a_file_that_the_library_refuses_says_why(tmp_path: Path, file: Path) -> None:
    broken = tmp_path / "m.gguf"
    broken.write_bytes(file.read_bytes()[:4000])
    with pytest.raises(UnsupportedModel, match=r"llama\.cpp does not load .*m\.gguf: .*; fetch"):
        LlamaCppModel(broken, ModelOptions(threads=1))


@installed
def test_a_family_that_the_library_does_not_know_is_named(tmp_path: Path) -> None:
    strange = write_gguf(tmp_path / "m.gguf", {"general.architecture": "martian"}, {})
    told = r"m\.gguf is built as 'martian', which this llama\.cpp does not know; take a newer one"
    with pytest.raises(UnsupportedModel, match=told):
        LlamaCppModel(strange, ModelOptions(threads=1))


@installed
def test_an_engine_opens_a_file_by_llama_cpp(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engine = Engine.load(file, backend="llama-cpp", threads=1)
    assert engine.execution_path == "llama.cpp"
    assert isinstance(engine.planner, FixedBatchPlanner)
    assert len(written(engine, np.arange(30, dtype=np.int32), None)) > 0
    # Without being asked, it computes what we do not.
    assert Engine.load(file, dtype="fp32").execution_path != "llama.cpp"


def test_without_the_library_it_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accel.models.model_file.is_installed", lambda: False)
    with pytest.raises(UnsupportedModel, match=r"pip install 'redraft\[llama-cpp\]'"):
        Engine.load(saved(tmp_path / "m.gguf"), backend="llama-cpp")


def test_leaves_are_those_below_a_row() -> None:
    parents = np.array([-1, 0, 0, 1, 1, 2], np.int32)
    actual = tree_context._leaves(parents)
    spare = list(range(3, LEAVES))
    assert actual == [[0, 1, 2, *spare], [0, 1, *spare], [2], [0, *spare], [1], [2]]
    assert tree_context._depths(parents) == [0, 1, 1, 2, 2, 2]
