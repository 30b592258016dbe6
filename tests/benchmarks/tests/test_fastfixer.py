"""FastFixer's rule, on words that stand for tokens."""

from __future__ import annotations

from edit_words import WordCodec, edit_request

from accel.draft_tree import DraftTree
from tests.benchmarks.peers.fastfixer import FastFixerDrafter


def test_fastfixer_drafts_what_follows_the_last_token():
    codec = WordCodec("@x")
    before = " a b c a d e f"
    drafter = FastFixerDrafter()
    drafter.begin(edit_request(codec, "x", before))
    assert codec.decode(drafter.draft(10).tokens) == before
    drafter.commit(DraftTree.empty(), [], codec.encode(" z a"))
    assert codec.decode(drafter.draft(10).tokens) == " b c a d e f"
    drafter.commit(DraftTree.empty(), [], codec.encode(" q a"))
    assert codec.decode(drafter.draft(10).tokens) == " d e f"
    drafter.commit(DraftTree.empty(), [], codec.encode(" q"))
    assert len(drafter.draft(10)) == 0
