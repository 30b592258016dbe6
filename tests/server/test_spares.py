"""What is kept for reuse, and what is let go of it."""

from __future__ import annotations

from lsp_server.engine.pool import Spares


def test_those_used_longest_ago_go_first():
    spares: Spares[str] = Spares(3)
    for name in "abc":
        spares.give_back((name,), name)
    with spares.lend(("a",), str) as lent:
        assert lent == "a"
    spares.give_back(("d",), "d")
    assert set(spares) == {"a", "c", "d"}


def test_a_key_keeps_all_its_things():
    spares: Spares[str] = Spares(1)
    for thing in "abc":
        spares.give_back(("key",), thing)
    assert list(spares) == ["a", "b", "c"]
