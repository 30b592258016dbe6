"""Drafts change no bit of what llama.cpp computes: the numbers and the text are those of the same
request without drafts, by forwards of the same number of rows behind the same history.

Skipped where llama-cpp-python is not installed. ``REDRAFT_TEST_GGUF`` names more files, with colons
between them, for the long forms.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import conformance
import numpy as np
import pytest
from llama_cpp_worker import FREES_REJECTED
from quantised_by_llama_cpp import TYPES, opened, quantised
from tiny_models import Oracle, shuffled

from accel.decoding.request import GenerationRequest
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import DraftRequest
from accel.files.model_options import ModelOptions
from accel.models.base import Cache
from accel.models.batch import chain_batch, tree_batch
from accel.models.llama_cpp import process
from accel.models.llama_cpp.model import LlamaCppModel
from tests.llama_cpp_package import has_package

pytestmark = pytest.mark.skipif(not has_package(), reason="llama-cpp-python is not installed")

MORE = [Path(name) for name in os.environ.get("REDRAFT_TEST_GGUF", "").split(":") if name]
FILES = [*TYPES, *(pytest.param(path, id=path.name) for path in MORE)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: quantised(tmp_path_factory.mktemp(kind), kind) for kind in TYPES}


@pytest.fixture(autouse=True)
def waits_asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that wait for each other leave the cores to what else runs."""
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")


def step(model: LlamaCppModel, cache: Cache, token: int, tree: DraftTree, width: int) -> Any:
    """Logits of a forward of ``width`` rows, float32 [1 + nodes, vocabulary]."""
    batch = tree_batch(np.array([token], np.int32), tree, width - 1 - len(tree))
    logits = model.forward(batch, [cache])
    return np.array([logits.row(row) for row in range(1 + len(tree))])


def adversarial(
    ahead: TokenArray, nodes: int, draw: np.random.Generator
) -> tuple[DraftTree, list[int]]:
    """A tree and its right path: the right nodes stand among and behind wrong ones."""
    right = int(draw.integers(0, min(nodes, len(ahead)) + 1))
    tokens = np.concatenate([ahead[:right], draw.integers(0, 256, nodes - right)])
    parents = [
        *range(-1, right - 1),
        *(int(draw.integers(-1, node)) for node in range(right, nodes)),
    ]
    tree = DraftTree.chain(tokens.astype(np.int32), Source.PROMPT, 0.9)
    tree.parents = np.array(parents, np.int32)
    path_tokens = ahead[:right].tolist()
    mixed = shuffled(tree, draw)
    return mixed, right_path(mixed, path_tokens)


def right_path(tree: DraftTree, tokens: list[int]) -> list[int]:
    """The nodes that say ``tokens`` from the root on: the last of those that do."""
    path: list[int] = []
    for token in tokens:
        above = path[-1] if path else -1
        nodes = zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True)
        actual = [node for node, each in enumerate(nodes) if each == (token, above)]
        if not actual:
            break
        path.append(actual[-1])
    return path


def largest_difference(
    file: Path, threads: int, trees: int, seed: int, rounds: int = 4, **options: Any
) -> float:
    """Of logits along the paths of that many adversarial trees, against forwards of as many rows
    that draft nothing. Between rounds both texts are trimmed and go on otherwise."""
    draw = np.random.default_rng(seed)
    width = int(draw.choice([4, 8]))
    model = LlamaCppModel(file, ModelOptions(threads=threads, **options))
    plain, drafted = model.new_cache(64), model.new_cache(64)
    text = draw.integers(0, 256, 90).astype(np.int32)
    for cache in (plain, drafted):
        model.forward(tree_batch(text, DraftTree.empty()), [cache])
        cache.commit(range(len(text)))
    worst, none = 0.0, DraftTree.empty()
    for _ in range(rounds):
        ahead = draw.integers(0, 256, width * trees // rounds + 1).astype(np.int32)
        expected: list[Any] = []
        position, start = 0, drafted.length
        for _ in range(trees // rounds):
            tree, path = adversarial(ahead[position + 1 :], width - 1, draw)
            while len(expected) <= position + len(path):
                expected.append(step(model, plain, int(ahead[len(expected)]), none, width)[0])
                plain.commit([0])
            actual = step(model, drafted, int(ahead[position]), tree, width)
            rows = [0, *(node + 1 for node in path)]
            asked_for = np.array(expected[position : position + len(rows)])
            worst = max(worst, float(np.abs(actual[rows] - asked_for).max()))
            drafted.commit(rows)
            position += len(rows)
        length = int(draw.integers(start, start + position))
        for cache in (plain, drafted):
            cache.trim(length)
    return worst


def check_texts(file: Path, threads: int, count: int, seed: int) -> None:
    """Completions and edits by turns, each with drafts and without, each history with its own
    session: the texts are equal, and drafts were accepted."""
    engine = opened(file, threads)
    draw, accepted = np.random.default_rng(seed), 0
    source = engine.tokenizer.encode(Path(__file__).read_text("utf-8"))
    sessions = engine.session(), engine.session()
    start = 0
    for number in range(count):
        if number % 5 == 0:
            sessions = engine.session(), engine.session()
            start = int(draw.integers(0, len(source) - 400))
        # Most of a prompt is what the last one was, as it is while somebody types.
        prompt = source[start : start + int(draw.integers(20, 150))]
        is_edit = number % 2 == 1
        told = DraftRequest(prompt, original=prompt if is_edit else None)

        def written(drafter: Any, session: Any, prompt: Any = prompt, told: Any = told) -> Any:
            request = GenerationRequest(
                prompt, 24, drafter, told, ignore_end=True, plan=False, max_nodes=64
            )
            return engine.generate(request, session).finish()

        plain = written(None, sessions[0])
        # What was already written of a text is not right for another: wrong drafts, too.
        oracle = Oracle(plain.tokens, seed + number, 256, depth=6)
        drafted = written(oracle, sessions[1])
        assert drafted.tokens.tolist() == plain.tokens.tolist(), f"seed {seed}, text {number}"
        accepted += sum(drafted.statistics.accepted)
    assert accepted > count


def seed_of_a_test() -> int:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    return seed


@pytest.mark.parametrize("kind", TYPES)
def test_trees_change_no_bit(files: dict[str, Path], kind: str) -> None:
    assert largest_difference(files[kind], 1, 24, seed_of_a_test()) == 0


@pytest.mark.parametrize("options", [{"kv_type": "int8"}, {"flash_attention": "off"}])
def test_trees_change_no_bit_whatever_is_set(
    files: dict[str, Path], options: dict[str, Any]
) -> None:
    assert largest_difference(files["Q4_0"], 1, 24, seed_of_a_test(), **options) == 0


def test_drafts_change_no_text(files: dict[str, Path]) -> None:
    check_texts(files["Q4_0"], 1, 6, seed_of_a_test())


def test_a_long_prompt_behind_an_accepted_draft_has_the_same_numbers(
    files: dict[str, Path],
) -> None:
    """Rejected rows stand among those that are kept, when the next prompt goes on from them."""
    model, draw = LlamaCppModel(files["Q4_K_M"], ModelOptions(threads=1)), np.random.default_rng(3)
    text, more = (draw.integers(0, 256, count).astype(np.int32) for count in (30, 100))
    wrong = DraftTree.chain(draw.integers(0, 256, 7).astype(np.int32), Source.PROMPT)
    actual = []
    for tree in (DraftTree.empty(), wrong):
        cache = model.new_cache(256)
        conformance.feed(model, cache, text)
        for token in more[:5].tolist():
            step(model, cache, token, tree, 8)
            cache.commit([0])
        cache.trim(len(text) + 3)
        logits = model.forward(chain_batch(more[3:], 0), [cache])
        actual.append(np.array([logits.row(row) for row in range(len(more) - 3)]))
    assert np.abs(actual[0] - actual[1]).max() == 0


def test_freed_places_of_rejected_rows_would_change_numbers(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows the reason for which rejected rows keep their cells."""
    assert largest_difference(files["Q4_0"], 1, 24, 7, rounds=1) == 0
    monkeypatch.setattr(process, "COMMAND", FREES_REJECTED)
    assert largest_difference(files["Q4_0"], 1, 24, 7, rounds=1) > 0


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", FILES)
def test_two_hundred_trees_change_no_bit(
    files: dict[str, Path], kind: str | Path, threads: int
) -> None:
    file = kind if isinstance(kind, Path) else files[kind]
    assert largest_difference(file, threads, 200, seed_of_a_test()) == 0


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", FILES)
def test_drafts_change_none_of_fifty_texts(
    files: dict[str, Path], kind: str | Path, threads: int
) -> None:
    check_texts(kind if isinstance(kind, Path) else files[kind], threads, 50, seed_of_a_test())
