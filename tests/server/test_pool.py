"""What is kept for reuse, and what is let go of it."""

from __future__ import annotations

from lsp_server.engine.pool import Pool


def test_those_used_longest_ago_go_first():
    pool: Pool[str] = Pool(3)
    for name in "abc":
        pool.release((name,), name)
    with pool.acquire(("a",), str) as lent:
        assert lent == "a"
    pool.release(("d",), "d")
    assert set(pool) == {"a", "c", "d"}


def test_a_key_keeps_all_its_things():
    pool: Pool[str] = Pool(1)
    for thing in "abc":
        pool.release(("key",), thing)
    assert list(pool) == ["a", "b", "c"]
