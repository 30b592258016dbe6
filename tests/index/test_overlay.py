"""Open buffers equal an index made afresh from their texts."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from seeds import for_each_seed

from repo_index import overlay as overlay_module
from repo_index.datastore import Datastore, Matches
from repo_index.ordering import sort_positions
from repo_index.overlay import Overlay
from repo_index.reading import unix_lines
from repo_index.secrets import secret_content
from repo_index.segment import join_files
from repo_index.splicing import splice
from repo_index.tokens import TextTokenizer
from tests.index.conftest import source_text
from tests.index.test_edited_text import random_edit
from tests.token_files import path_of, token_count


def check_equal_to_fresh(overlay: Overlay, texts: dict[str, str], tokenizer: TextTokenizer) -> None:
    segment = overlay.segment()
    paths = sorted(texts)
    assert list(segment.paths) == paths
    fresh = tokenizer.encode([texts[path] for path in paths])
    tokens, starts = join_files(fresh, type(segment.tokens[0]))
    assert np.array_equal(segment.tokens, tokens)
    assert np.array_equal(segment.starts, starts)
    assert np.array_equal(segment.order, sort_positions(tokens))


@for_each_seed(range(2))
def test_buffers_equal_a_fresh_index(tokenizer: TextTokenizer, seed: int) -> None:
    generator = random.Random(seed)
    source = source_text()
    overlay = Overlay(tokenizer)
    texts: dict[str, str] = {}
    for step in range(120):
        path = generator.choice(["a.py", "b.py", "c/d.py", "e.py"])
        action = generator.random()
        if path not in texts or action < 0.1:
            begin = generator.randint(0, len(source) - 3000)
            texts[path] = source[begin : begin + generator.choice([0, 10, 3000])]
            overlay.set_buffer(path, texts[path])
        elif action < 0.15:
            del texts[path]
            overlay.close_buffer(path)
        else:
            start, stop, inserted = random_edit(generator, texts[path])
            raw = texts[path][:start] + inserted + texts[path][stop:]
            overlay.set_buffer(path, raw)
            texts[path] = unix_lines(raw)
        print(f"seed {seed}, step {step}")
        check_equal_to_fresh(overlay, texts, tokenizer)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_spliced_order_equals_a_sorted_one(dtype: type[np.unsignedinteger]) -> None:
    rng = np.random.default_rng(5)
    separator = np.iinfo(dtype).max
    tokens, _ = join_files([rng.integers(0, 3, 200) for _ in range(4)], dtype)
    order = sort_positions(tokens)
    for step in range(200):
        start = int(rng.integers(1, len(tokens)))
        stop = min(len(tokens), start + int(rng.integers(0, 30)))
        inserted = rng.integers(0, 3, rng.integers(0, 30)).astype(dtype)
        if len(inserted) and step % 3 == 0:
            inserted[rng.integers(len(inserted))] = separator
        if stop == len(tokens):
            inserted = np.append(inserted, dtype(separator))
        before = tokens.copy()
        new, order_of_new = splice(tokens, order, start, stop, inserted)
        assert np.array_equal(tokens, before), "arrays in use must stay"
        assert np.array_equal(new, np.concatenate([tokens[:start], inserted, tokens[stop:]]))
        assert np.array_equal(order_of_new, sort_positions(new)), f"step {step}"
        tokens, order = new, order_of_new


def test_a_buffer_with_a_credential_is_left_out_and_comes_back(tokenizer: TextTokenizer) -> None:
    overlay = Overlay(tokenizer)
    clean = source_text()[:4000]
    key = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z0K"
    overlay.set_buffer("a.py", clean)
    place = clean.index("\n", 2000) + 1
    overlay.set_buffer("a.py", clean[:place] + f'key = "{key}"\n' + clean[place:])
    assert token_count(overlay.segment()) == 0
    assert overlay.paths == {"a.py"}
    overlay.set_buffer("a.py", clean)
    check_equal_to_fresh(overlay, {"a.py": clean}, tokenizer)
    overlay.set_buffer(".env", "A=1\n")
    assert ".env" not in overlay.segment().paths


def test_what_is_not_open_or_not_new_changes_nothing(tokenizer: TextTokenizer) -> None:
    overlay = Overlay(tokenizer)
    overlay.set_buffer("a.py", "x = 1\n")
    version = overlay.version
    overlay.set_buffer("a.py", "x = 1\r\n")
    overlay.close_buffer("other.py")
    assert overlay.version == version


def test_of_an_edit_in_a_long_buffer_little_is_read(
    tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (source_text() * 2)[:200_000]
    overlay = Overlay(tokenizer)
    overlay.set_buffer("long.py", text)
    read: list[int] = []

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: (read.append(len(given[-1])), function(*given))[1]

    monkeypatch.setattr(overlay_module, "secret_content", counting(secret_content))
    encode = counting(TextTokenizer.encode_with_starts)
    monkeypatch.setattr(TextTokenizer, "encode_with_starts", encode)
    for i in range(5):
        offset = text.index("\n", 30_000 * i) + 1
        text = text[:offset] + f"value_{i} = {i}\n" + text[offset:]
        overlay.set_buffer("long.py", text)
    assert len(read) >= 10
    assert max(read) < 5000


def test_what_stands_at_the_cursor_does_not_continue_what_stands_before_it(
    tokenizer: TextTokenizer,
) -> None:
    overlay = Overlay(tokenizer)
    datastore = Datastore(overlay=overlay)
    text = "first = alpha + beta\nsecond = gamma\n"
    overlay.set_buffer("a.py", "z = 1\n")
    overlay.set_buffer("b.py", text)
    overlay.set_buffer("c.py", text)
    place = text.index("+") - 1
    context = tokenizer.encode([text[:place]])[0]
    everywhere = datastore.snapshot().lookup(context)
    elsewhere = datastore.snapshot(cursor=("b.py", place)).lookup(context)

    def longest(matches: Matches) -> list[str]:
        paths = [path_of(datastore.snapshot(), int(f)) for f in matches.files]
        return sorted(p for p, n in zip(paths, matches.lengths, strict=True) if n == len(context))

    assert longest(everywhere) == ["b.py", "c.py"]
    assert longest(elsewhere) == ["c.py"]
    assert longest(datastore.snapshot(cursor=("none.py", 3)).lookup(context)) == ["b.py", "c.py"]


def test_a_long_line_among_short_ones_does_not_shut_a_buffer_out(tokenizer: TextTokenizer) -> None:
    overlay = Overlay(tokenizer)
    text = "a = 1\n" * 500 + "table = [" + "1, " * 900 + "]\n" + "b = 2\n" * 500
    overlay.set_buffer("a.py", text)
    place = text.index("table")
    text = text[:place] + "long_" + text[place:]
    overlay.set_buffer("a.py", text)
    check_equal_to_fresh(overlay, {"a.py": text}, tokenizer)
