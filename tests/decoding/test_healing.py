"""Tokens that agree with typed bytes."""

from __future__ import annotations

import numpy as np
from counted_calls import counted_calls
from small_model import SMALL_MODEL
from tiny_models import byte_tokenizer

from accel.draft_tree import DraftTree, Source
from accel.text.token_healing import prune, rest_after
from accel.text.tokenizer import Tokenizer
from tests.draft_trees import merged

EMBEDDED = Tokenizer.from_folder(SMALL_MODEL)
INDEX = EMBEDDED.byte_index


def test_agreeing_tokens_equal_a_scan_of_the_vocabulary() -> None:
    random = np.random.default_rng(3)
    texts = ["re", "\n    ", " self", "é", "(", "import numpy as np", "\n        return"]
    code = "for value in values:\n    total += value\n"
    texts += [code[i : i + int(random.integers(1, 6))] for i in random.integers(0, 30, 40)]
    for text in texts:
        required = text.encode()
        expected = {
            token
            for token in range(EMBEDDED.vocabulary_size)
            if (spelt := INDEX.bytes_of(token))
            and (spelt.startswith(required) or required.startswith(spelt))
        }
        assert set(INDEX.agreeing(required).tolist()) == expected
        assert expected, "single bytes always agree"
        grows = any(len(INDEX.bytes_of(t)) > len(required) for t in INDEX.starting_with(required))
        assert INDEX.can_grow(required) == grows


def test_bytes_at_the_end_of_the_order() -> None:
    index = Tokenizer(byte_tokenizer()).byte_index
    assert len(index.starting_with(b"\xff")) == 1
    assert len(index.starting_with(b"\xff\xff")) == 0
    assert len(index.starting_with(b"")) == 256


def test_control_tokens_never_agree() -> None:
    assert not set(INDEX.agreeing(b"<|fim").tolist()) & EMBEDDED.special_tokens


def test_a_mask_is_made_without_a_look_at_every_token() -> None:
    calls = counted_calls(lambda: INDEX.agreeing(b"\n            return self"))
    assert calls < EMBEDDED.vocabulary_size / 50


def test_rest_after_a_token() -> None:
    assert rest_after(b"abc", b"ab") == b"c"
    assert rest_after(b"abc", b"abcd") == b""
    assert rest_after(b"abc", b"ax") is None
    assert rest_after(b"abc", b"") is None


def test_pruned_trees_hold_the_branches_that_agree() -> None:
    tokenizer = Tokenizer(byte_tokenizer(extra=["return", "ref"]))
    token = {name: int(tokenizer.encode(name)[0]) for name in ("return", "ref", "r", "e", "x", "(")}
    branches = [["return", "("], ["x", "e"], ["r", "e", "x"], ["ref", "("], ["r", "x"]]
    tree = merged(
        [np.array([token[name] for name in branch], np.int32) for branch in branches],
        Source.REPOSITORY,
    )
    tree.probabilities[:] = 0.1
    kept = prune(tree, b"ret", tokenizer.byte_index)
    paths = set()
    for node in range(len(kept)):
        path: list[int] = []
        position = node
        while position >= 0:
            path.insert(0, int(kept.tokens[position]))
            position = int(kept.parents[position])
        paths.add(tokenizer.decode(path))
    assert paths == {"return", "return(", "r", "re"}
    assert (kept.probabilities > 0.1).all()
    assert (kept.parents < np.arange(len(kept))).all()
    assert len(prune(DraftTree.empty(), b"ret", tokenizer.byte_index)) == 0


def test_what_agrees_is_likelier_by_what_does_not() -> None:
    """Roots of 0.3, which agrees, and 0.5; a tenth of the 0.2 that is not seen may agree, too."""
    tokenizer = Tokenizer(byte_tokenizer())
    r, e, x = (int(tokenizer.encode(each)[0]) for each in "rex")
    tree = merged([np.array([r, e, x], np.int32), np.array([x], np.int32)], Source.PROMPT)
    chance = {(-1, r): 0.3, (-1, x): 0.5, (0, e): 0.25, (1, x): 0.2}
    for node, (parent, token) in enumerate(
        zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True)
    ):
        position = -1 if parent < 0 else int(tree.tokens[parent] == e)
        tree.probabilities[node] = chance[position, token]
    pruned = prune(tree, b"re", tokenizer.byte_index)
    assert pruned.tokens.tolist() == [r, e, x], "what stands behind the typed bytes stays"
    np.testing.assert_allclose(pruned.probabilities, np.array([0.3, 0.25, 0.2]) / 0.32, rtol=1e-6)
    tree.probabilities[:] = np.where(tree.parents < 0, 0.5, 0.4)
    sure = prune(tree, b"re", tokenizer.byte_index)
    np.testing.assert_allclose(sure.probabilities, [1.0, 0.8, 0.8], rtol=1e-6)
