"""Spans of generated text: those that cutting it token by token gives."""

from __future__ import annotations

import codecs
from itertools import pairwise

import numpy as np

from lsp_server.shared.contract.jobs import Span
from lsp_server.tasks.spans import SpanBuilder


def spans_of(chunks: list[tuple[list[bytes], list[str]]], skip: int) -> list[list[Span]]:
    """The spans that each chunk adds, byte for byte: of neighbours of one source one."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    found: list[list[Span]] = []
    for pieces, sources in chunks:
        letters: list[tuple[str, str]] = []
        for piece, source in zip(pieces, sources, strict=True):
            for byte in piece:
                skip -= 1
                if skip < 0:
                    letters += [(letter, source) for letter in decoder.decode(bytes([byte]))]
        added: list[Span] = []
        for letter, source in letters:
            if added and added[-1].source == source:
                added[-1] = Span(added[-1].text + letter, source)
            else:
                added.append(Span(letter, source))
        found.append(added)
    return found


def test_spans_are_those_of_every_byte_and_its_source() -> None:
    """Letters of several bytes cut anywhere, bytes that are no text, sources that change inside of
    a letter, and bytes that are typed already."""
    seed = int(np.random.default_rng().integers(2**31))
    random = np.random.default_rng(seed)
    letters = [*"ab \n", "é", "漢", "🙂"]
    for _ in range(300):
        text = "".join(random.choice(letters, 40)).encode()
        data = bytes(255 if random.random() < 0.05 else byte for byte in text)
        places = np.sort(random.integers(0, len(data), 24)).tolist()
        starts, stops = [0, *places], [*places, len(data)]
        pieces = [data[start:stop] for start, stop in zip(starts, stops, strict=True)]
        sources = random.choice(["model", "prompt", "suffix"], len(pieces)).tolist()
        cuts = [0, *np.sort(random.integers(0, len(pieces), 6)).tolist(), len(pieces)]
        parts = [slice(one, other) for one, other in pairwise(cuts)]
        skip = int(random.integers(0, 6))
        builder = SpanBuilder(pieces.__getitem__, skip)
        tokens = list(range(len(pieces)))
        found = [builder.add(tokens[part], sources[part]) for part in parts]
        expected = spans_of([(pieces[part], sources[part]) for part in parts], skip)
        assert found == expected, f"seed {seed}"
        whole = "".join(span.text for added in found for span in added)
        assert "".join(span.text for span in builder.spans) == whole, f"seed {seed}"
