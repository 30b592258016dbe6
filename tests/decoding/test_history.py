"""Outputs of earlier requests as a source."""

from __future__ import annotations

import numpy as np

from accel.draft_tree import Source
from accel.drafting import history as history_module
from accel.drafting.history import History


def ids(*tokens):
    return np.array(tokens, np.int32)


def look_up(history, workspace, *context):
    return history.lookup(workspace, ids(*context), max_match=8, limit=10, depth=3)


def test_remembers_outputs_with_their_context():
    history = History()
    history.remember("a", ids(1, 2), ids(3, 4, 5))
    actual = look_up(history, "a", 9, 2)
    assert actual.tokens.tolist() == [[3, 4, 5]]
    assert actual.lengths.tolist() == [1]
    assert actual.sources.tolist() == [Source.HISTORY]
    assert len(look_up(history, "b", 9, 2)) == 0


def test_outputs_do_not_run_into_each_other():
    history = History()
    history.remember("a", ids(1), ids(2, 3))
    history.remember("a", ids(7), ids(8, 9))
    assert look_up(history, "a", 3).tokens.tolist() == []
    assert look_up(history, "a", 2).tokens.tolist() == [[3, -1, -1]]


def test_old_outputs_and_workspaces_go(monkeypatch):
    monkeypatch.setattr(history_module, "TOKENS", 40)
    monkeypatch.setattr(history_module, "WORKSPACES", 2)
    history = History()
    for start in range(0, 600, 10):
        history.remember("a", ids(), np.arange(start, start + 10, dtype=np.int32))
    assert len(look_up(history, "a", 3)) == 0
    assert look_up(history, "a", 594).tokens[0].tolist() == [595, 596, 597]
    history.remember("b", ids(1), ids(2))
    history.remember("c", ids(1), ids(2))
    assert len(look_up(history, "a", 594)) == 0
    assert len(look_up(history, "c", 1)) == 1
