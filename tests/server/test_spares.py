"""What is kept for reuse, and what is let go of it."""

from __future__ import annotations

from lsp_server.engine.pool import Spares


def kept(spares: Spares[str]) -> set[str]:
    return set(spares)


def test_those_used_longest_ago_go_once_all_are_too_large_together():
    spares: Spares[str] = Spares(10, len)
    for name in ("aaaa", "bbb", "cc"):
        spares.give_back((name,), name)
    assert kept(spares) == {"aaaa", "bbb", "cc"}
    with spares.lend(("aaaa",), str):
        pass
    spares.give_back(("dddd",), "dddd")
    assert kept(spares) == {"aaaa", "cc", "dddd"}


def test_many_small_ones_are_kept():
    spares: Spares[str] = Spares(1000, len)
    for number in range(500):
        spares.give_back((str(number),), "aa")
    assert spares.newest(("0",)) == "aa"
    assert len(list(spares)) == 500


def test_the_one_used_last_is_kept_whatever_its_size():
    spares: Spares[str] = Spares(3, len)
    spares.give_back(("a",), "a")
    spares.give_back(("b",), "b" * 100)
    assert list(spares) == ["b" * 100]


def test_without_a_size_things_are_counted():
    spares: Spares[str] = Spares(2)
    for name in "abc":
        spares.give_back((name,), name)
    assert kept(spares) == {"b", "c"}
