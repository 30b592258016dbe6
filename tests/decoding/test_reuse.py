"""The default drafter for edits: what it drafts, and that any edit can be replayed with it."""

from __future__ import annotations

import random

import numpy as np
from edit_words import END, WordCodec, edit_request, replay_edit
from seeds import for_each_seed
from text_cases import data_beside

from accel.draft_tree import DraftTree, Source
from accel.drafting.base import Continuations, DraftRequest
from accel.drafting.copy.drafter import CopyDrafter
from tests.benchmarks.replay import replay
from tests.draft_trees import accepted_path

DATA = data_beside(__file__)

FUNCTION = DATA["FUNCTION"]


def forwards(instruction: str, after: str, before: str = FUNCTION) -> int:
    codec = WordCodec(before, after, instruction, "@")
    drafter = CopyDrafter(codec, (END,))
    return replay_edit(drafter, codec, instruction, before, after).forwards


def test_an_unchanged_text_takes_one_forward_with_its_end():
    assert forwards("nothing", FUNCTION) == 1


def test_a_changed_word_takes_two_forwards():
    assert forwards("wait longer", FUNCTION.replace("30", "sixty")) == 2


def test_inserted_and_deleted_lines_are_rejoined():
    gone = FUNCTION.replace("    channel.timeout = 30\n", "")
    assert forwards("no limit", gone) <= 3
    added = FUNCTION.replace("    return channel\n", "    audit(channel)\n    return channel\n")
    assert forwards("audit it", added) <= 5


def test_a_rename_is_learnt_from_its_first_place():
    renamed = FUNCTION.replace("host", "server")
    assert FUNCTION.count("host") == 5
    assert forwards("better words", renamed) <= 4


def test_a_spoken_rename_needs_no_example():
    renamed = FUNCTION.replace("host", "server")
    assert forwards("rename the parameter host to server", renamed) <= 2


def test_an_indented_block_is_learnt():
    lines = FUNCTION.splitlines(keepends=True)
    body = "".join("    " + line for line in lines[1:10])
    wrapped = lines[0] + "    with lock:\n" + body + "".join(lines[10:])
    assert forwards("hold the lock", wrapped) <= 8


def test_moved_code_is_found_again():
    first, second = FUNCTION.split("\n\n\n")
    moved = second + "\n\n" + first + "\n"
    assert forwards("close first", moved) <= 6


def test_a_quoted_phrase_is_drafted():
    text = "Raised when no answer came in time"
    documented = FUNCTION.replace(
        "def close(channel):\n", f'def close(channel):\n    note("{text}")\n'
    )
    plain = forwards("say so", documented)
    assert forwards(f'say "{text}"', documented) <= plain - 4


def test_an_answer_that_rewrites_a_window_is_drafted_as_its_copy_from_the_first_token_on():
    codec = WordCodec(FUNCTION, "@")
    original = codec.encode(FUNCTION)
    likely = []
    for rewrites in (None, (), (("host", "server"),)):
        drafter = CopyDrafter(codec, (END,))
        drafter.begin(DraftRequest(np.empty(0, np.int32), original=original, rewrites=rewrites))
        likely.append(float(drafter.draft(1).probabilities[0]))
    assert likely[0] < 0.9 < min(likely[1:]), likely


class OneRow:
    """An index that always knows one continuation."""

    def __init__(self, tokens: np.ndarray) -> None:
        self.tokens = tokens

    def lookup(self, context, *, max_match=16, limit=64, depth=16):
        row = np.full((1, depth), -1, np.int32)
        row[0, : len(self.tokens)] = self.tokens
        return Continuations(
            row,
            np.array([9], np.int32),
            np.ones(1, np.float32),
            np.array([Source.COMMON], np.int8),
            np.array([-1], np.int32),
        )


def test_an_index_gives_new_text():
    codec = WordCodec(FUNCTION, "brand new entirely fresh words", "@x")
    drafter = CopyDrafter(codec, (END,))
    request = edit_request(codec, "x", FUNCTION)
    request.index = OneRow(codec.encode("entirely fresh words"))
    drafter.begin(request)
    drafter.commit(DraftTree.empty(), [], codec.encode("brand new"))
    tree = drafter.draft(64)
    path = accepted_path(tree, codec.encode("entirely fresh words"))
    assert len(path) >= 2
    assert all(tree.sources[node] == Source.COMMON for node in path)


def random_edit(rng: random.Random, words: list[str]) -> tuple[str, str]:
    before = [rng.choice(words) for _ in range(rng.randrange(0, 60))]
    after = list(before)
    for _ in range(rng.randrange(0, 6)):
        start = rng.randrange(0, len(after) + 1)
        stop = min(len(after), start + rng.randrange(0, 8))
        after[start:stop] = [rng.choice(words) for _ in range(rng.randrange(0, 8))]
    return "".join(before), "".join(after)


@for_each_seed(range(40))
def test_trees_are_sound_on_random_edits(seed):
    rng = random.Random(seed)
    words = ["a", " b", "foo", " bar", "\n", "\n    ", "\n        ", "(", ")", " =", "ü", "1"]
    before, after = random_edit(rng, words)
    codec = WordCodec("".join(words), before, after, "@rename foo to bar")
    drafter = CopyDrafter(codec, (END,))
    drafter.begin(edit_request(codec, "rename foo to bar", before))
    reference = np.append(codec.encode(after), np.int32(END))
    done = 0
    while done < len(reference):
        limit = rng.choice((0, 1, 2, 7, 64, 128))
        tree = drafter.draft(limit)
        check_tree(tree, limit, seed)
        path = accepted_path(tree, reference[done:])
        taken = reference[done : done + len(path) + 1]
        drafter.commit(tree, path, taken)
        done += len(taken)


def check_tree(tree: DraftTree, limit: int, seed: int) -> None:
    assert len(tree) <= limit, f"seed {seed}"
    for node, parent in enumerate(tree.parents):
        assert -1 <= parent < node, f"seed {seed}"
        above = 1.0 if parent < 0 else tree.probabilities[parent]
        assert 0 < tree.probabilities[node] <= above + 1e-6, f"seed {seed}"
    pairs = list(zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs), f"seed {seed}: two children alike"
    assert (np.diff(tree.probabilities) <= 1e-6).all(), f"seed {seed}: not best first"
    assert (tree.tokens >= 0).all(), f"seed {seed}"


def test_children_of_a_node_share_its_probability():
    codec = WordCodec(FUNCTION, "@x")
    drafter = CopyDrafter(codec, (END,))
    drafter.begin(edit_request(codec, "x", FUNCTION))
    tree = drafter.draft(128)
    for node in range(-1, len(tree)):
        above = 1.0 if node < 0 else tree.probabilities[node]
        assert tree.probabilities[tree.parents == node].sum() <= above + 1e-5


def test_drafting_works_without_an_original():
    codec = WordCodec("a b c a b c a b c")
    drafter = CopyDrafter(codec, (END,))
    drafter.begin(DraftRequest(codec.encode("a b c a b")))
    tree = drafter.draft(8)
    assert accepted_path(tree, codec.encode("a b c a b c")[5:])


def test_what_closes_an_answer_is_drafted_with_it():
    codec = WordCodec(FUNCTION, "@x ) ) )")
    drafter = CopyDrafter(codec, (END,))
    request = edit_request(codec, "x", FUNCTION)
    request.closing = codec.encode(" ) ) )")
    reference = np.concatenate([request.original, request.closing, [END]]).astype(np.int32)
    assert replay(drafter, request, reference, 128).forwards == 1


def test_the_same_wish_elsewhere_changes_names_as_before():
    other = FUNCTION.replace("channel", "line").replace("30", "60")
    codec = WordCodec(FUNCTION, other, "@better words @else")
    renamed, other_renamed = FUNCTION.replace("host", "server"), other.replace("host", "server")
    forwards_by_wish = {}
    for wish in ("better words", "else"):
        drafter = CopyDrafter(codec, (END,))
        replay_edit(drafter, codec, "better words", FUNCTION, renamed)
        done = replay_edit(drafter, codec, wish, other, other_renamed)
        forwards_by_wish[wish] = done.forwards
    assert forwards_by_wish["better words"] <= 2
    assert forwards_by_wish["better words"] < forwards_by_wish["else"]


def test_requests_do_not_leak_into_each_other():
    codec = WordCodec(FUNCTION, "@x", "@y")
    drafter, fresh = CopyDrafter(codec, (END,)), CopyDrafter(codec, (END,))
    renamed = FUNCTION.replace("host", "server")
    replay_edit(drafter, codec, "y", FUNCTION, renamed)
    drafter.begin(edit_request(codec, "x", FUNCTION))
    fresh.begin(edit_request(codec, "x", FUNCTION))
    left, right = drafter.draft(64), fresh.draft(64)
    assert left.tokens.tolist() == right.tokens.tolist()
    assert left.parents.tolist() == right.parents.tolist()
