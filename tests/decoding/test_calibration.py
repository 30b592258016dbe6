"""Corrections learnt online, and how they are kept."""

from __future__ import annotations

import numpy as np
import pytest

from accel.draft_tree import DraftTree, Source
from accel.drafting.retrieval.calibration import FARTHEST, Calibration, depth_group, file_of

MATCHES = np.full(4, 3, np.int32)


def chain(acceptance):
    return DraftTree.chain(np.arange(4, dtype=np.int32), Source.REPOSITORY, acceptance)


def learnt(acceptance, truth, steps=3000):
    """A calibration that saw drafts of one claimed acceptance and another true one."""
    random = np.random.default_rng(0)
    calibration = Calibration()
    for _ in range(steps):
        right = random.random(4) < truth
        path = list(range(4 if right.all() else int(np.argmin(right))))
        calibration.learn(chain(acceptance), MATCHES, path)
    return calibration


@pytest.mark.parametrize(("claimed", "true"), [(0.9, 0.7), (0.5, 0.8), (0.6, 0.6)])
def test_moves_towards_what_is_accepted(claimed, true):
    # The claim is not corrected here, so the correction keeps its sign and grows.
    correction = learnt(claimed, true, 400).corrections[0, Source.REPOSITORY, 3]
    if claimed == true:
        assert abs(correction) < 0.2
    else:
        assert np.sign(correction) == np.sign(true - claimed)
        assert abs(correction) > 0.3


def test_settles_where_claim_and_truth_meet():
    random = np.random.default_rng(1)
    calibration = Calibration()
    for _ in range(3000):
        odds = 0.9 / 0.1 * np.exp(calibration.corrections[0, Source.REPOSITORY, 3])
        claimed = odds / (1 + odds)
        tree = DraftTree.chain(np.array([1], np.int32), Source.REPOSITORY, claimed)
        calibration.learn(tree, MATCHES[:1], [0] if random.random() < 0.7 else [])
    assert abs(claimed - 0.7) < 0.06


def test_only_what_was_verified_counts():
    calibration = Calibration()
    calibration.learn(chain(0.9), MATCHES, [])  # below the root's child nothing is known
    assert calibration.information[0, Source.REPOSITORY, 3] > 0
    assert calibration.information[1:].sum() == 0
    calibration.learn(chain(0.9), MATCHES, [0])
    assert calibration.information[1, Source.REPOSITORY, 3] > 0
    assert (calibration.information > 0).sum() == 2


def test_never_goes_far():
    calibration = learnt(0.99, 0.0)
    assert calibration.corrections.min() >= -FARTHEST


def test_depths_are_grouped():
    assert [depth_group(depth) for depth in (1, 2, 4, 5, 40)] == [0, 1, 1, 2, 2]


def test_is_kept_on_disk(tmp_path):
    calibration = learnt(0.9, 0.5, 50)
    file = tmp_path / "deep" / "calibration.npz"
    calibration.save(file)
    assert [entry.name for entry in file.parent.iterdir()] == ["calibration.npz"]
    loaded = Calibration.load(file)
    assert np.array_equal(loaded.corrections, calibration.corrections)
    assert np.array_equal(loaded.information, calibration.information)


@pytest.mark.parametrize("content", [None, b"", b"no archive", b"PK\x03\x04 cut off"])
def test_a_damaged_file_is_a_new_beginning(tmp_path, content):
    file = tmp_path / "calibration.npz"
    if content is not None:
        file.write_bytes(content)
    assert not Calibration.load(file).corrections.any()


def test_a_file_of_another_form_is_a_new_beginning(tmp_path):
    file = tmp_path / "calibration.npz"
    np.savez(file, corrections=np.ones((2, 2)), information=np.ones((2, 2)))
    assert not Calibration.load(file).corrections.any()
    shape = Calibration().corrections.shape
    np.savez(file, corrections=np.full(shape, np.nan), information=np.ones(shape))
    assert not Calibration.load(file).corrections.any()


def test_models_have_files_of_their_own():
    assert file_of("one") != file_of("other")
