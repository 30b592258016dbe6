"""Places where copying goes wrong, and drafts that are as long as copying goes well."""

from __future__ import annotations

import numpy as np
from edit_words import END, WordCodec, edit_request
from seeds import for_each_seed

from accel.draft_tree import DraftTree
from accel.drafting.copy.alignment import AT, OFF_TRACK
from accel.drafting.copy.candidates import INSTRUCTED
from accel.drafting.copy.deviation_rate import (
    ELSEWHERE,
    FOLLOWING,
    LOOK_BACK,
    PRIOR,
    REPEATED,
    UNIQUE,
    copy_rate,
    mark_places,
    odds,
)
from accel.drafting.copy.drafter import CopyDrafter
from tests.draft_trees import accepted_path


@for_each_seed(range(30))
def test_places_after_repeated_tokens_that_go_on_differently(seed):
    random = np.random.default_rng(seed)
    text = random.integers(0, 2 + seed % 4, random.integers(0, 60)).tolist()
    pool = np.array([7, *text, 7], np.int32)
    positions = np.zeros(len(pool) + 1, np.int8)
    mark_places(pool, positions, 1, 1 + len(text))
    for position in range(len(text)):
        before = text[position - LOOK_BACK : position] if position >= LOOK_BACK else None
        elsewhere = {
            text[other]
            for other in range(LOOK_BACK, len(text))
            if text[other - LOOK_BACK : other] == before
        }
        expected = REPEATED if len(elsewhere) > 1 else UNIQUE
        assert positions[1 + position] == expected, f"seed {seed}, place {position}"
    assert positions[0] == 0


def test_what_is_left_more_often_is_drafted_with_less_hope():
    slips = PRIOR.copy()
    slips[UNIQUE] += (5.0, 10.0)
    assert copy_rate(slips, UNIQUE) < copy_rate(PRIOR, UNIQUE)
    assert copy_rate(slips, REPEATED) == copy_rate(PRIOR, REPEATED)
    assert all(copy_rate(PRIOR, position) > 0.9 for position in (UNIQUE, REPEATED))
    assert copy_rate(PRIOR, ELSEWHERE) == 1.0
    assert odds(PRIOR, FOLLOWING) > 10


WISH = "rename the size to length"


def follow_wish(drafter, codec, request, text, slips_at=()):
    """Write ``text`` token by token; other words stand where it slips."""
    drafter.begin(request)
    for position, token in enumerate(codec.encode(text)):
        other = codec.encode("wrong")[0] if position in slips_at else token
        drafter.commit(DraftTree.empty(), [], np.array([other], np.int32))


def test_the_longer_a_text_goes_as_instructed_the_more_is_it_expected_to():
    before = "".join(f"{name} = read ( {name} , size )\n" for name in "abcdefgh")
    after = before.replace("size", "length")
    codec = WordCodec(before, after, "wrong", "@", WISH)
    request = edit_request(codec, WISH, before)
    drafter = CopyDrafter(codec, (END,))
    lines = after.splitlines(keepends=True)
    follow_wish(drafter, codec, request, "".join(lines[:4]))
    obeyed = odds(drafter._pool.slips, FOLLOWING)
    assert obeyed > odds(PRIOR, FOLLOWING)
    rest = codec.encode("".join(lines[4:]))
    obedient = drafter.draft(64)
    follow_wish(drafter, codec, request, "".join(before.splitlines(keepends=True)[:4]))
    assert odds(drafter._pool.slips, FOLLOWING) < 1
    stubborn = drafter.draft(64)
    assert chance_of(obedient, rest) > 0.5 > chance_of(stubborn, rest)


def is_in_version(drafter: CopyDrafter) -> bool:
    first, last = drafter._pool.version_at(INSTRUCTED)
    return first <= int(drafter._pool.cursor[AT]) < last


def test_a_cursor_outside_of_the_version_does_not_lead():
    """At every place of the pool, as the version's own place says."""
    before = "".join(f"{name} = read ( {name} , size )\n" for name in "abcdefgh")
    codec = WordCodec(before, before.replace("size", "length"), "wrong", "@", WISH)
    drafter = CopyDrafter(codec, (END,))
    drafter.begin(edit_request(codec, WISH, before))
    led = 0
    for position in range(len(drafter._pool.tokens)):
        drafter._pool.cursor[AT] = position
        assert drafter._as_instructed() == is_in_version(drafter), position
        led += drafter._as_instructed()
    assert led > 40
    drafter.begin(edit_request(codec, "do something", before))
    assert not drafter._as_instructed()


def chance_of(tree: DraftTree, text: np.ndarray) -> float:
    """Chance that a tree gives a whole text."""
    path = accepted_path(tree, text)
    return float(tree.probabilities[path[-1]]) if len(path) == len(text) else 0.0


def test_a_slip_does_not_lead_away_from_what_is_instructed():
    before = "".join(f"{name} = read ( {name} , size )\n" for name in "abcdefgh")
    after = before.replace("size", "length")
    codec = WordCodec(before, after, "wrong", "@", WISH)
    drafter = CopyDrafter(codec, (END,))
    lines = after.splitlines(keepends=True)
    request = edit_request(codec, WISH, before)
    follow_wish(drafter, codec, request, "".join(lines[:3]), slips_at=(3, 12))
    assert drafter._as_instructed()
    assert is_in_version(drafter)
    drafter._pool.slips[FOLLOWING] = (3.0, 5.0)
    assert not drafter._as_instructed()
    drafter._pool.slips[FOLLOWING] = PRIOR[FOLLOWING]
    rest = np.append(codec.encode("".join(lines[3:])), np.int32(END))
    assert len(accepted_path(drafter.draft(64), rest)) == len(rest)


def test_a_model_that_slips_gets_drafts_with_less_hope_until_the_next_request():
    lines = "".join(f"{name} = read ( {name} , size )\n" for name in "abcdefghijklmnop")
    codec = WordCodec(lines, "wrong", "@x", "@y")
    drafter = CopyDrafter(codec, (END,))
    request = edit_request(codec, "x", lines)
    wrong = codec.encode("wrong")
    drafter.begin(request)
    first = drafter.draft(40)
    text = codec.encode(lines)
    for start in range(0, 64, 8):
        drafter.commit(first, [], np.concatenate([text[start : start + 3], wrong]))
        drafter.commit(first, [], text[start + 4 : start + 8])
    assert drafter._pool.cursor[OFF_TRACK] == 0
    later = drafter.draft(40)
    assert hope(later) < 0.8 * hope(first)
    other = edit_request(codec, "y", lines)
    drafter.begin(other)
    fresh = CopyDrafter(codec, (END,))
    fresh.begin(other)
    assert drafter.draft(40).probabilities.tolist() == fresh.draft(40).probabilities.tolist()


def hope(tree: DraftTree) -> float:
    """Chance of the twenty nodes behind the first."""
    return float(tree.probabilities[20] / tree.probabilities[0])
