"""What is kept for reuse, and what is let go of it."""

from __future__ import annotations

from lsp_server.tasks.pool import Pool


def test_those_used_longest_ago_go_first():
    pool: Pool[str] = Pool(3)
    for name in "abc":
        pool.release((name,), name)
    with pool.acquire(("a",), str) as lent:
        assert lent == "a"
    pool.release(("d",), "d")
    assert set(pool) == {"a", "c", "d"}


def test_an_item_that_makes_room_is_told():
    dropped: list[tuple[tuple[str, ...], str]] = []
    pool: Pool[str] = Pool(2, lambda key, item: dropped.append((key, item)))
    for name in "abc":
        pool.release(("key",), name)
    assert (list(pool), dropped) == (["b", "c"], [(("key",), "a")])


def test_of_several_the_one_that_fits_best_is_used_and_none_that_does_not() -> None:
    pool: Pool[str] = Pool(3)
    for item in ("abcd", "abxx", "zzzz"):
        pool.release(("k",), item)

    def fits(item: str) -> int:
        return sum(left == right for left, right in zip(item, "abce", strict=True))

    with pool.acquire(("k",), lambda: "new", fits) as item:
        assert item == "abcd"
        with pool.acquire(("k",), lambda: "new", fits) as second:
            assert second == "abxx"
            with pool.acquire(("k",), lambda: "new", fits) as third:
                assert third == "new", "the one that is left does not fit"
