"""Lookups against a brute-force search of the files."""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from seeds import for_each_seed

from repo_index import lookup, ordering, residence
from repo_index.datastore import COMMON, NO_FILES_DEAD, REPOSITORY, IndexSnapshot
from repo_index.file_layer import FileLayer
from repo_index.ordering import DEPTH, sort_positions
from repo_index.segment import Segment, join_files
from repo_index.segment_file import read_segment, write_segment
from tests.token_files import datastore_of, path_of, token_count

Files = dict[str, NDArray[np.int32]]


def random_files(rng: np.random.Generator, count: int, vocabulary: int, length: int) -> Files:
    return {
        f"folder/{i}.py": rng.integers(0, vocabulary, rng.integers(0, length)).astype(np.int32)
        for i in range(count)
    }


def occurrences(files: Files, context: NDArray[np.int32], depth: int) -> Counter[object]:
    """(path, exact match length, continuation) of every place that matches the context."""
    found: Counter[object] = Counter()
    for path, ids in files.items():
        for position in range(1, len(ids)):
            length = 0
            while (
                length < min(position, len(context), DEPTH)
                and ids[position - length - 1] == context[-length - 1]
            ):
                length += 1
            if length:
                follows = tuple(int(t) for t in ids[position : position + depth])
                found[(path, length, follows)] += 1
    return found


def rows_of(
    snapshot: IndexSnapshot, context: NDArray[np.int32], layer: int, **options: int
) -> Counter[object]:
    matches = snapshot.lookup(context, **options)
    assert list(matches.lengths) == sorted(matches.lengths, reverse=True)
    rows: Counter[object] = Counter()
    for i in range(len(matches)):
        if matches.sources[i] == layer:
            follows = tuple(int(t) for t in matches.tokens[i] if t >= 0)
            assert (matches.tokens[i][len(follows) :] == -1).all()
            rows[(path_of(snapshot, int(matches.files[i])), int(matches.lengths[i]), follows)] += 1
    return rows


@pytest.mark.parametrize("vocabulary", [2, 5, 40, 70_000])
@for_each_seed(range(3))
def test_everything_that_matches_is_found(vocabulary: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    repository = random_files(rng, 12, vocabulary, 60)
    common = random_files(rng, 5, vocabulary, 60)
    snapshot = datastore_of(repository, common).snapshot()
    for _ in range(10):
        own = list(repository.values())[rng.integers(len(repository))]
        context = np.concatenate([rng.integers(0, vocabulary, 20), own[:9]]).astype(np.int32)
        for layer, files in ((REPOSITORY, repository), (COMMON, common)):
            found = rows_of(snapshot, context, layer, limit=2000, depth=7)
            assert found == occurrences(files, context, 7), f"seed {seed}"


@pytest.mark.parametrize("vocabulary", [5, 70_000])
@pytest.mark.parametrize("width", [7, 12])
@pytest.mark.parametrize("by_address", [False, True])
def test_rows_written_into_given_places_are_those_of_a_lookup(
    vocabulary: int, width: int, by_address: bool
) -> None:
    rng = np.random.default_rng(vocabulary + width)
    repository = random_files(rng, 12, vocabulary, 60)
    snapshot = datastore_of(repository, random_files(rng, 5, vocabulary, 60)).snapshot()
    tokens, lengths = np.full((200, width), 9, np.int32), np.empty(200, np.int32)
    counts, sources = np.empty(200, np.float32), np.empty(200, np.int8)
    addresses = [each.ctypes.data for each in (tokens, lengths, counts, sources)]
    places = np.array([*addresses, 200, width], np.int64)
    for limit in (1, 20, 1000):
        own = list(repository.values())[rng.integers(len(repository))]
        context = np.concatenate([rng.integers(0, vocabulary, 20), own[:9]]).astype(np.int32)
        wanted = snapshot.lookup(context, max_match=9, limit=min(limit, 100), depth=7)
        if by_address:
            function = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 8)(int(snapshot.entry[0]))
            given = context.ctypes.data, len(context), places.ctypes.data
            count = function(int(snapshot.entry[1]), *given, 9, limit, 7)
        else:
            count = snapshot.lookup_into(context, places, max_match=9, limit=limit, depth=7)
        assert count == len(wanted)
        assert count > 0
        order = np.argsort(-lengths[:count], kind="stable")
        assert (tokens[order, :7] == wanted.tokens).all()
        assert (tokens[:count, 7:8] == -1).all()
        for mine, its in ((lengths, wanted.lengths), (counts, wanted.counts)):
            assert (mine[order] == its).all()
        assert (sources[order] == wanted.sources).all()


@pytest.mark.parametrize("vocabulary", [2, 30, 70_000])
def test_a_search_that_begins_in_the_heads_finds_the_same(
    vocabulary: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a head for every fourth place, and for every one."""
    for stride in (4, 1):
        monkeypatch.setattr(ordering, "HEAD_STRIDE", stride)
        monkeypatch.setattr(lookup, "HEAD_STRIDE", stride)
        rng = np.random.default_rng(vocabulary + stride)
        files = random_files(rng, 12, vocabulary, 80)
        snapshot = datastore_of(files).snapshot()
        segment = snapshot.parts[0].segment
        assert len(segment.heads) == -(-len(segment.order) // stride)
        for _ in range(60):
            own = list(files.values())[rng.integers(len(files))]
            context = np.concatenate([rng.integers(0, vocabulary, 20), own[:11]]).astype(np.int32)
            found = rows_of(snapshot, context, REPOSITORY, limit=2000, depth=7)
            assert found == occurrences(files, context, 7)
        known = np.flatnonzero(segment.known_parts)
        assert len(known)
        before = segment.tokens[segment.order - 1]
        for token in known.tolist():
            first, last = divmod(int(segment.known_parts[token]), 1 << 32)
            assert np.flatnonzero(before == token).tolist() == list(range(first, last))


@pytest.mark.parametrize("vocabulary", [3, 300, 70_000])
@pytest.mark.parametrize("mapped", [0, 1 << 20])
def test_what_is_read_from_a_file_is_what_is_in_memory(
    vocabulary: int, mapped: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the order read, and with the tokens read too; some of the files dead."""
    monkeypatch.setattr(residence, "SMALL", 0)
    monkeypatch.setattr(residence, "MAX_MAPPED", mapped)
    rng = np.random.default_rng(vocabulary)
    files = random_files(rng, 40, vocabulary, 400)
    made = Segment.from_files(files)
    write_segment(FileLayer(), tmp_path / "a.segment", made, "hash")
    read = read_segment(tmp_path / "a.segment", "hash")
    dead = rng.random(len(files)) < 0.2
    in_memory = IndexSnapshot([(made, REPOSITORY, dead)])
    in_file = IndexSnapshot([(read, REPOSITORY, dead)])
    assert [offset >= 0 for offset in in_file.parts[0].source[1:]] == [True, not mapped]
    for limit in (5, 64, 5000):
        for _ in range(60):
            own = list(files.values())[rng.integers(len(files))]
            context = np.concatenate([rng.integers(0, vocabulary, 8), own[:9]]).astype(np.int32)
            for depth in (1, 16, 40):
                expected = in_memory.lookup(context, limit=limit, depth=depth)
                found = in_file.lookup(context, limit=limit, depth=depth)
                for field in ("tokens", "lengths", "counts", "files"):
                    assert (getattr(found, field) == getattr(expected, field)).all()


def test_a_file_that_somebody_cut_short_kills_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(residence, "SMALL", 0)
    monkeypatch.setattr(residence, "MAX_MAPPED", 0)
    path = tmp_path / "a.segment"
    files = random_files(np.random.default_rng(1), 40, 3, 400)
    write_segment(FileLayer(), path, Segment.from_files(files), "hash")
    snapshot = IndexSnapshot([(read_segment(path, "hash"), REPOSITORY, NO_FILES_DEAD)])
    for size in range(path.stat().st_size, -1, -997):
        os.truncate(path, size)
        for ids in files.values():
            snapshot.lookup(ids[:16])


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@pytest.mark.parametrize("threads", [1, 2])
def test_order_equals_a_plain_sort(dtype: type[np.unsignedinteger], threads: int) -> None:
    rng = np.random.default_rng(7)
    files = list(random_files(rng, 40, 3, 100).values())
    files.append(np.zeros(3000, np.int32))
    files.append(np.tile(np.arange(3, dtype=np.int32), 500))
    tokens, _ = join_files(files, dtype)
    separator = np.iinfo(dtype).max

    def context(position: int) -> tuple[list[int], int]:
        back: list[int] = []
        while len(back) < DEPTH and (not back or back[-1] != separator):
            back.append(int(tokens[position - len(back) - 1]))
        return back, position

    inside = [p for p in range(1, len(tokens)) if separator not in tokens[p - 1 : p + 1]]
    assert sorted(inside, key=context) == sort_positions(tokens, threads=threads).tolist()


def test_long_streams_are_sorted_by_several_threads() -> None:
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 50, 150_000).astype(np.int32)
    ids[100_000:] = ids[:50_000]
    tokens, _ = join_files([ids], np.uint16)
    assert (sort_positions(tokens, threads=1) == sort_positions(tokens, threads=3)).all()


def test_a_sample_favours_nothing() -> None:
    """Of 1,000 places that match alike, each is drawn as often as any other; counts add up."""
    ids = np.empty((1000, 3), np.int32)
    ids[:, 0] = np.arange(1000) // 2 + 10
    ids[:, 1] = 1
    ids[:, 2] = np.arange(1000) + 2000
    snapshot = datastore_of({"a": ids.ravel()}).snapshot()
    drawn: Counter[int] = Counter()
    rounds = 4000
    for i in range(rounds):
        matches = snapshot.lookup(np.array([5000 + i, 1], np.int32), limit=50, depth=1)
        assert len(matches) == 50
        assert matches.counts.sum() == pytest.approx(1000, rel=1e-5)
        drawn.update(int(token) for token in matches.tokens[:, 0])
    expected = rounds * 50 / 1000
    deviations = [(drawn[token] - expected) ** 2 / expected for token in range(2000, 3000)]
    assert sum(deviations) < 1000 + 5 * np.sqrt(2 * 1000)


def test_a_sample_over_segments_favours_nothing_and_leaves_out_the_dead() -> None:
    """Places that match one token, around those that match two, in two segments; some are dead."""
    parts = []
    living = []
    for segment in range(2):
        files = {}
        for file in range(30):
            first = 1000 + 100 * (30 * segment + file)
            # Odd places stand behind a 7, in the middle of the order of those that match a 1.
            ids = [t for i in range(10) for t in (7 if i % 2 else 5 + 4 * (i % 4), 1, first + i)]
            files[f"{segment}/{file}"] = np.array(ids, np.int32)
            if file % 3:
                living += [first + i for i in range(0, 10, 2)]
        dead = np.arange(30) % 3 == 0
        parts.append((Segment.from_files(files), REPOSITORY, dead))
    snapshot = IndexSnapshot(parts)
    drawn: Counter[int] = Counter()
    totals = []
    rounds = 3000
    for i in range(rounds):
        matches = snapshot.lookup(np.array([50_000 + i, 7, 1], np.int32), limit=40, depth=1)
        short = matches.lengths == 1
        drawn.update(int(token) for token in matches.tokens[short, 0])
        totals.append(float(matches.counts[short].sum()))
    assert set(drawn) == set(living)
    # How many stand for how many others, on average: the living alone.
    assert np.mean(totals) == pytest.approx(len(living), rel=0.05)
    expected = sum(drawn.values()) / len(living)
    deviations = [(drawn[token] - expected) ** 2 / expected for token in living]
    assert sum(deviations) < len(living) + 5 * np.sqrt(2 * len(living))


@for_each_seed(range(4))
def test_a_sample_stands_for_all_places_of_every_match_length(seed: int) -> None:
    """Of random files in several segments: each row another place, counts that add up."""
    rng = np.random.default_rng(seed)
    groups = [random_files(rng, 8, 3, 200) for _ in range(3)]
    renamed = [{f"{i}/{path}": ids for path, ids in g.items()} for i, g in enumerate(groups)]
    files = {path: ids for group in renamed for path, ids in group.items()}
    snapshot = IndexSnapshot([(Segment.from_files(g), COMMON, NO_FILES_DEAD) for g in renamed])
    for _ in range(40):
        own = list(files.values())[rng.integers(len(files))]
        context = np.concatenate([rng.integers(0, 3, 8), own[:9]]).astype(np.int32)
        everything = occurrences(files, context, 5)
        limit, longest = int(rng.integers(16, 200)), int(rng.integers(1, 17))
        capped: Counter[object] = Counter()
        for (path, length, follows), count in everything.items():  # type: ignore[misc]
            capped[(path, min(length, longest), follows)] += count
        found = rows_of(snapshot, context, COMMON, limit=limit, depth=5, max_match=longest)
        assert sum(found.values()) == min(limit, sum(capped.values()))
        assert not found - capped, f"seed {seed}: a place is given twice, or does not match"
        matches = snapshot.lookup(context, limit=limit, depth=5, max_match=longest)
        for length in range(1, longest + 1):
            places = sum(n for (_, exact, _), n in capped.items() if exact == length)  # type: ignore[misc]
            counted = float(matches.counts[matches.lengths == length].sum())
            assert counted == pytest.approx(places, rel=1e-4), f"seed {seed}, length {length}"


def test_shorter_matches_have_their_place_beside_a_frequent_longest_one() -> None:
    frequent = np.tile(np.array([1, 2, 3, 4], np.int32), 500)
    snapshot = datastore_of({"a": frequent, "b": np.array([9, 3, 7], np.int32)})
    matches = snapshot.snapshot().lookup(np.array([1, 2, 3], np.int32))
    assert len(matches) == 64
    assert matches.lengths[0] == 3
    assert 7 in matches.tokens[matches.lengths == 1][:, 0]


def test_contexts_without_a_match_and_empty_ones_find_nothing() -> None:
    snapshot = datastore_of({"a": np.arange(5, dtype=np.int32)}).snapshot()
    for context in ([], [77], [4], [-1], [99_999], [65_535]):
        assert len(snapshot.lookup(np.array(context, np.int32))) == 0
    assert len(datastore_of({}).snapshot().lookup(np.array([1], np.int32))) == 0


def test_a_token_of_the_value_of_the_separator_matches_nothing() -> None:
    snapshot = datastore_of({"a": np.arange(5, dtype=np.int32)}).snapshot()
    assert snapshot.lookup(np.array([65_535, 0], np.int32)).lengths.tolist() == [1]


def test_a_segment_gives_back_its_files() -> None:
    files = random_files(np.random.default_rng(3), 9, 30, 12)
    segment = Segment.from_files(files)
    assert token_count(segment) == sum(map(len, files.values()))
    for path, index in segment.file_ids.items():
        assert segment.file_tokens(index).tolist() == files[path].tolist()
