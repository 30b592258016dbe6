"""Checks that every backend passes.

They use the contract alone (``accel.models.base``) and compare a backend with itself, one token
after another: other tests show that its numbers are a model's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from tiny_models import Oracle, numbers, random_prompt, shuffled

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.models.base import BatchKind, Cache, Logits, Model
from accel.models.batch import ForwardBatch, chain_batch, tree_batch

TOLERANCE = 2e-3
"""Of logits in fp32, which lie some units apart."""


def one_by_one(model: Model, text: TokenArray) -> NDArray[np.float32]:
    """Logits behind every token of a text that is computed token by token."""
    cache = model.new_cache(len(text))
    actual = []
    for token in text:
        actual.append(numbers(model, chain_batch(np.array([token], np.int32), 0), cache)[0])
        cache.commit([0])
    return np.array(actual)


def check_chains(model: Model, seed: int) -> None:
    """A text in parts of any length is the same text."""
    random, text = np.random.default_rng(seed), random_prompt(seed, 40)
    expected = one_by_one(model, text)
    cache, position = model.new_cache(4), 0
    while position < len(text):
        count = int(random.integers(1, 12)) if model.capability.kind > BatchKind.PLAIN else 1
        part = text[position : position + count]
        close(
            numbers(model, chain_batch(part, 0), cache), expected[position : position + len(part)]
        )
        cache.commit(list(range(len(part))))
        position += len(part)
        assert cache.length == position


def check_trees(model: Model, seed: int) -> None:
    """Every node is computed behind its own path, and the path that is kept becomes text."""
    random, text = np.random.default_rng(seed), random_prompt(seed, 24)
    cache = model.new_cache(4)
    feed(model, cache, text[:-1])
    pending = text[-1:]
    for _ in range(6):
        tree = tree_for(model, random, int(random.integers(1, 14)))
        actual = numbers(model, tree_batch(pending, tree), cache)
        assert len(actual) == len(tree) + 1
        node = int(random.integers(-1, len(tree)))
        path = path_to(tree, node)
        behind = np.concatenate([text, tree.tokens[path]]).astype(np.int32)
        expected = one_by_one(model, behind)[len(text) - 1 :]
        close(actual[[0, *(other + 1 for other in path)]], expected)
        cache.commit([0, *(other + 1 for other in path)])
        assert cache.length == len(behind)
        pending = random.integers(0, 256, 1).astype(np.int32)
        text = np.concatenate([behind, pending]).astype(np.int32)
    close(numbers(model, chain_batch(pending, 0), cache), one_by_one(model, text)[-1:])


def check_trims(model: Model, seed: int) -> None:
    """Trim a cache: the cut rows are forgotten; a backend may cut more, as its length shows."""
    random, text = np.random.default_rng(seed), random_prompt(seed, 30)
    cache = model.new_cache(8)
    feed(model, cache, text)
    for _ in range(5):
        length = int(random.integers(0, cache.length + 1))
        cache.trim(length)
        assert cache.length <= length
        text = np.concatenate([text[: cache.length], random_prompt(seed + length + 1, 9)])
        feed(model, cache, text[cache.length : -1])
        close(numbers(model, chain_batch(text[-1:], 0), cache), one_by_one(model, text)[-1:])
        cache.commit([0])
        assert cache.length == len(text)


def check_copies(model: Model, seed: int) -> bool:
    """A copy goes on as its original does, and each by itself. Whether there are copies."""
    text, other = random_prompt(seed, 30), random_prompt(seed + 1, 9)
    original, copy = model.new_cache(8), model.new_cache(8)
    feed(model, original, text)
    feed(model, copy, other)
    if not copy.copy(original):
        assert copy.length == len(other), "what it holds is left as it is"
        return False
    assert copy.length == len(text)
    for cache, rest in ((original, other), (copy, other[::-1].copy())):
        feed(model, cache, rest[:-1])
        whole = np.concatenate([text, rest])
        close(numbers(model, chain_batch(rest[-1:], 0), cache), one_by_one(model, whole)[-1:])
    return True


def check_rejected_rows(model: Model, seed: int) -> None:
    """Rows that are not kept leave no trace, and neither does a forward of which nothing is."""
    text, rejected = random_prompt(seed, 20), random_prompt(seed + 1, 7)
    cache = model.new_cache(8)
    feed(model, cache, text[:-1])
    numbers(model, chain_batch(rejected, 0), cache)
    cache.commit([])
    assert cache.length == len(text) - 1
    close(numbers(model, chain_batch(text[-1:], 0), cache), one_by_one(model, text)[-1:])


def check_memory(model: Model, seed: int) -> None:
    """A cache says what it holds, grows when it is asked to, and keeps what it has."""
    text = random_prompt(seed, 60)
    cache = model.new_cache(2)
    feed(model, cache, text[:20])
    held = cache.nbytes
    cache.reserve(300)
    assert cache.length == 20
    assert cache.nbytes >= held > 0
    feed(model, cache, text[20:-1])
    close(numbers(model, chain_batch(text[-1:], 0), cache), one_by_one(model, text)[-1:])
    other = model.new_cache(2)
    assert other.length == 0
    close(numbers(model, chain_batch(text[:1], 0), other), one_by_one(model, text[:1]))


def check_likeliest(model: Model, seed: int) -> None:
    """Compare the likeliest tokens with the numbers, for any rows in any order."""
    random, text = np.random.default_rng(seed), random_prompt(seed, 20)
    cache = model.new_cache(4)
    feed(model, cache, text[:-1])
    tree = (
        tree_for(model, random, 20)
        if model.capability.kind == BatchKind.TREE
        else DraftTree.empty()
    )
    batch = tree_batch(text[-1:], tree)
    if model.capability.kind > BatchKind.PLAIN:
        expected = numbers(model, batch, cache).argmax(-1)
        actual = model.forward(batch, [cache]).argmax()
    else:
        actual = model.forward(batch, [cache]).argmax()
        expected = one_by_one(model, text)[-1:].argmax(-1)
    assert len(actual) == len(tree) + 1
    for row in random.permutation(len(actual)).tolist():
        assert actual[row] == expected[row], f"seed {seed}, row {row}"


def check_company(model: Model, seed: int) -> None:
    """Requests that share forwards get, to the last bit, what each gets alone: pending tokens,
    trees and parts of prompts, with numbers wanted, likeliest tokens or nothing. At every step some
    join and some leave; some are trimmed, and some cancelled, so that nothing of what was computed
    for them becomes text."""
    random, most = np.random.default_rng(seed), min(max(model.capability.requests, 2), 12)
    under_way = list[tuple[Cache, Cache]]()
    for _ in range(6):
        staying = random.random(len(under_way)) < 0.8
        under_way = [pair for pair, stays in zip(under_way, staying, strict=True) if stays]
        while len(under_way) < 2 or (len(under_way) < most and random.random() < 0.7):
            pair = model.new_cache(4), model.new_cache(4)
            text = random.integers(0, 256, int(random.integers(4, 44))).astype(np.int32)
            for cache in pair:
                feed(model, cache, text)
            under_way.append(pair)
        asked = [under_way[number] for number in random.permutation(len(under_way))]
        asked = asked[: int(random.integers(2, len(asked) + 1))]
        _check_step(model, random, asked, seed)
        if random.random() < 0.5:
            pair = under_way[int(random.integers(len(under_way)))]
            length = int(random.integers(0, pair[0].length + 1))
            for cache in pair:
                cache.trim(length)
        for alone, shared in under_way:
            assert alone.length == shared.length


def _check_step(
    model: Model, random: np.random.Generator, asked: list[tuple[Cache, Cache]], seed: int
) -> None:
    """A forward of each request with the first of its caches, and one of all with the others."""
    batches = [_any_batch(model, random) for _ in asked]
    paths = [_any_path(model, random, batch) for batch in batches]
    expected = []
    for (alone, _), batch, path in zip(asked, batches, paths, strict=True):
        expected.append(_given(model.forward(batch, [alone]), batch))
        alone.commit(path)
    caches = [shared for _, shared in asked]
    actual = model.forward_all(batches, caches)
    answers = zip(caches, batches, paths, actual, expected, strict=True)
    for number, (cache, batch, path, logits, same) in enumerate(answers):
        assert np.array_equal(_given(logits, batch), same), f"seed {seed}, request {number}"
        cache.commit(path)


def _any_batch(model: Model, random: np.random.Generator) -> ForwardBatch:
    """A pending token, a tree behind one, or a part of a prompt; often padded to a number of rows
    that the model computes fast."""
    pending, wants_numbers = random.integers(0, 256, 1).astype(np.int32), bool(random.integers(2))
    kind, capability = random.integers(4), model.capability
    if kind == 0 and capability.kind > BatchKind.PLAIN:
        tokens = random.integers(0, 256, int(random.integers(1, 40))).astype(np.int32)
        return chain_batch(tokens, len(tokens))
    tree, padding = DraftTree.empty(), 0
    if kind > 1 and capability.kind == BatchKind.TREE:
        tree = tree_for(model, random, int(random.integers(1, 20)))
    if random.random() < 0.7 and capability.kind == BatchKind.TREE:
        rows = len(tree) + 1
        padding = next((each for each in capability.widths or () if each >= rows), rows) - rows
    return tree_batch(pending, tree, padding, wants_numbers=wants_numbers)


def _any_path(model: Model, random: np.random.Generator, batch: ForwardBatch) -> list[int]:
    """Rows of a batch that become text: all of a part of a prompt, else a path from the first, or
    none where the request is cancelled and the model can take them back."""
    if batch.logits_from == len(batch):
        return list(range(len(batch)))
    can_reject = model.capability.kind == BatchKind.TREE
    row, path = int(random.integers(-can_reject, batch.meant)), list[int]()
    while row >= 0:
        path.insert(0, row)
        row = int(batch.parents[row])
    return path


def _given(logits: Logits, batch: ForwardBatch) -> NDArray[Any]:
    """Return the results of a forward for the rows whose logits are asked for: numbers, or
    likeliest tokens."""
    expected = range(max(batch.meant - batch.logits_from, 0))
    if batch.wants_numbers:
        return np.array([logits.row(row) for row in expected])
    likeliest = logits.argmax() if expected else []
    return np.array([likeliest[row] for row in expected])


def check_cancel(engine: Engine, seed: int) -> None:
    """A generation ends with the forward that is computed when it is cancelled, and what was
    computed until then serves the next request."""
    prompt, session = random_prompt(seed, 20), engine.session()
    whole = engine.generate(GenerationRequest(prompt, 30, ignore_end=True)).finish()
    chunks = 0
    cancelled = GenerationRequest(
        prompt, 30, ignore_end=True, cancelled=lambda: chunks >= 3, drafter=None
    )
    generation = engine.generate(cancelled, session)
    for _ in generation:
        chunks += 1
    assert chunks == 3
    assert generation.stopped_by == "cancelled"
    assert whole.tokens[: len(generation.tokens)].tolist() == generation.tokens.tolist()
    again = engine.generate(GenerationRequest(prompt, 30, ignore_end=True), session).finish()
    assert again.tokens.tolist() == whole.tokens.tolist()


def check_drafted_text(engine: Engine, seed: int) -> None:
    """With any drafts the text is that of plain decoding."""
    prompt, session = random_prompt(seed, 25), engine.session()
    plain = engine.generate(GenerationRequest(prompt, 40, ignore_end=True)).finish().tokens
    accepted = 0
    for more in range(3):
        request = GenerationRequest(
            prompt, 40, Oracle(plain, seed + more), ignore_end=True, plan=False
        )
        drafted = engine.generate(request, session).finish()
        assert drafted.tokens.tolist() == plain.tolist()
        accepted += sum(drafted.statistics.accepted)
    assert (accepted > 0) == engine.takes_chains


def feed(model: Model, cache: Cache, tokens: TokenArray) -> None:
    """Compute and keep tokens, in one part where the backend takes that."""
    step = len(tokens) if model.capability.kind > BatchKind.PLAIN else 1
    for start in range(0, len(tokens), max(step, 1)):
        part = tokens[start : start + step]
        model.forward(chain_batch(part, len(part)), [cache])
        cache.commit(list(range(len(part))))


def random_tree(random: np.random.Generator, nodes: int) -> DraftTree:
    """Branches that leave each other anywhere, in any order that has parents first."""
    tokens = random.integers(0, 256, nodes).astype(np.int32)
    tree = DraftTree.chain(tokens, Source.PROMPT, 0.9)
    tree.parents = np.array([int(random.integers(-1, node)) for node in range(nodes)], np.int32)
    return shuffled(tree, random)


def tree_for(model: Model, random: np.random.Generator, nodes: int) -> DraftTree:
    """A random tree with at most as many leaves as a model takes."""
    tree, leaves = random_tree(random, nodes), model.capability.leaves
    return tree if leaves is None else tree.with_leaves(leaves)


def path_to(tree: DraftTree, node: int) -> list[int]:
    """The nodes from the root's child down to ``node``."""
    path: list[int] = []
    while node >= 0:
        path.insert(0, node)
        node = int(tree.parents[node])
    return path


def close(found: NDArray[np.float32], expected: NDArray[np.float32]) -> None:
    """Equal up to the rounding of fp32."""
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < TOLERANCE * max(np.abs(expected).max(), 1.0)
