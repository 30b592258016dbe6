"""Learning, looking up and growing in one call, against the same part by part."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest
from seeds import for_each_seed
from small_mixture import IndexOfText, drafter, paths_of, request_of

from accel.drafting.history import History
from accel.drafting.retrieval.kernels import ARENA_NODES
from tests.draft_trees import accepted_path


class DirectText(IndexOfText):
    """The same, as an index that compiled code calls: back into Python here."""

    def __init__(self, text):
        super().__init__(text)
        self._call = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 8)(self._called)
        self.entry = np.array([ctypes.cast(self._call, ctypes.c_void_p).value, 77], np.int64)
        self.calls = 0

    def lookup_into(self, context, places, *, max_match, limit, depth):
        actual = self.lookup(context, max_match=max_match, limit=limit, depth=depth)
        count, room, width = len(actual), *places[4:].tolist()
        assert count <= room
        tokens = array_at(places[0], ctypes.c_int32, room * width).reshape(room, width)
        tokens[:count, :depth], tokens[:count, depth:] = actual.tokens, -1
        for address, kind, rows in (
            (places[1], ctypes.c_int32, actual.lengths),
            (places[2], ctypes.c_float, actual.counts),
            (places[3], ctypes.c_int8, actual.sources),
        ):
            array_at(address, kind, room)[:count] = rows
        return count

    def _called(self, first, context, length, places, max_match, limit, depth):
        assert first == 77
        self.calls += 1
        return self.lookup_into(
            array_at(context, ctypes.c_int32, length),
            array_at(places, ctypes.c_int64, 6),
            max_match=max_match,
            limit=limit,
            depth=depth,
        )


def array_at(address, kind, count):
    return np.ctypeslib.as_array((kind * count).from_address(int(address)))


@for_each_seed(range(4))
def test_what_is_added_in_one_call_equals_what_is_added_part_by_part(seed):
    random = np.random.default_rng(seed)
    request, text = request_of(random), random.integers(1, 40, 60).astype(np.int32)
    whole, parts = drafter(), drafter()
    whole.begin(request)
    parts.begin(request)
    done = 0
    while done < len(text):
        tree, same = whole.draft(24), parts.draft(24)
        assert paths_of(tree) == paths_of(same)
        path = accepted_path(tree, text[done:])
        tokens = text[done : done + len(path) + 1]
        whole.commit(tree, path, tokens)
        parts.commit(same.prefix(len(same)), path, tokens)  # not the tree that was drafted
        done += len(tokens)


@pytest.mark.parametrize("has_history", [False, True])
def test_an_index_called_by_compiled_code_gives_the_same_trees(has_history):
    random = np.random.default_rng(3)
    request, text = request_of(random), random.integers(1, 40, 90).astype(np.int32)
    text[20:60] = request.prompt[60:100]
    known = random.integers(1, 40, 300)
    indexes = IndexOfText(known), DirectText(known)
    pair = [drafter(history=History() if has_history else None) for _ in indexes]
    for start in (0, 45):  # the second request finds the first in the history
        for drafting, index in zip(pair, indexes, strict=True):
            drafting.begin(replace(request, index=index, workspace="a"))
        done = start
        while done < len(text):
            trees = [drafting.draft(24) for drafting in pair]
            assert np.allclose(trees[0].probabilities, trees[1].probabilities, rtol=1e-4)
            assert set(paths_of(trees[0])[:20]) <= set(paths_of(trees[1]))
            path = accepted_path(trees[0], text[done:])
            tokens = text[done : done + len(path) + 1]
            for drafting, tree in zip(pair, trees, strict=True):
                drafting.commit(tree, accepted_path(tree, text[done:]), tokens)
            done += len(tokens)
    assert indexes[1].calls > 20


def test_trees_stay_as_they_were_handed_out():
    random = np.random.default_rng(4)
    drafting = drafter()
    drafting.begin(request_of(random))
    handed = []
    for token in random.integers(1, 40, 200):
        tree = drafting.draft(64)
        handed.append((tree, [each.copy() for each in fields_of(tree)]))
        drafting.commit(tree, [], np.array([token], np.int32))
    assert sum(len(tree) for tree, _ in handed) > 2 * ARENA_NODES
    for tree, copies in handed:
        for now, before in zip(fields_of(tree), copies, strict=True):
            assert (now == before).all()


def fields_of(tree):
    return tree.tokens, tree.parents, tree.probabilities, tree.sources


def test_tokens_beyond_the_vocabulary_so_far_are_learnt_with_the_next_draft():
    random = np.random.default_rng(5)
    request, high = request_of(random), np.array([99_999], np.int32)
    drafting, other = drafter(), drafter()
    drafting.begin(request)
    other.begin(request)
    drafting.commit(drafting.draft(16), [], high)
    tree = other.draft(16)
    other.commit(tree.prefix(len(tree)), [], high)  # added apart
    assert paths_of(drafting.draft(24)) == paths_of(other.draft(24))


def test_a_larger_tree_after_a_smaller_one_follows_the_path_of_the_smaller():
    random = np.random.default_rng(6)
    request = request_of(random)
    drafting, other = drafter(), drafter()
    for each in (drafting, other):
        each.begin(request)
        tree = each.draft(8)
        path = accepted_path(tree, tree.tokens[:1])
        tokens = np.array([*tree.tokens[path], 7], np.int32)
        each.commit(tree if each is drafting else tree.prefix(8), path, tokens)
    assert paths_of(drafting.draft(40)) == paths_of(other.draft(40))
