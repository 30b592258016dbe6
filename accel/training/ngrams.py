"""Word n-grams as 64-bit hashes: overlap with measuring data and near-duplicate files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

OVERLAP_WORDS = 13

_WORD = re.compile(r"\w+")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_hash_of_word: dict[str, int] = {}


def words(text: str) -> list[str]:
    """Identifiers, numbers and words of a text in lower case, punctuation left out."""
    return _WORD.findall(text.lower())


def without_header(text: str) -> str:
    """The text without its leading comment lines: licence headers are everywhere the same."""
    lines = text.splitlines(keepends=True)
    start = 0
    while start < len(lines) and (not lines[start].strip() or lines[start].startswith("#")):
        start += 1
    return "".join(lines[start:])


def _word_hash(word: str) -> int:
    found = _hash_of_word.get(word)
    if found is None:
        found = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
        _hash_of_word[word] = found
    return found


def ngram_hashes(text_words: list[str], length: int) -> Hashes:
    """Hash of every run of `length` words, in order; empty when there are fewer words."""
    count = len(text_words) - length + 1
    if count <= 0:
        return np.empty(0, dtype=np.uint64)
    each = np.fromiter((_word_hash(word) for word in text_words), np.uint64, len(text_words))
    total = np.zeros(count, dtype=np.uint64)
    for offset in range(length):
        total = total * _FACTOR + each[offset : offset + count]
        total ^= total >> np.uint64(29)
    return total


def overlap_set(texts: Iterable[str], length: int = OVERLAP_WORDS) -> Hashes:
    """Sorted distinct n-gram hashes of all texts."""
    found = [ngram_hashes(words(without_header(text)), length) for text in texts]
    return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.uint64)


def overlaps(text: str, avoid: Hashes, length: int = OVERLAP_WORDS) -> bool:
    """Whether any n-gram of the text stands in the sorted set `avoid`."""
    if not len(avoid):
        return False
    own = ngram_hashes(words(without_header(text)), length)
    places = np.minimum(np.searchsorted(avoid, own), len(avoid) - 1)
    return bool((avoid[places] == own).any())


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def texts_below(path: Path) -> Iterator[str]:
    """Every string of the JSON-lines files, and every other text file, at or below a path."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    for file in files:
        if file.suffix == ".jsonl":
            for line in file.read_text(encoding="utf-8").splitlines():
                yield from _strings(json.loads(line))
        elif file.is_file():
            yield file.read_text(encoding="utf-8", errors="replace")


class NearDuplicates:
    """MinHash with banding: tells whether a text resembles one that was seen before.

    64 minima over shingles of 5 words in 16 bands of 4; two texts count as near duplicates
    when they share a band and at least `threshold` of their minima.
    """

    def __init__(self, threshold: float = 0.8) -> None:
        generator = np.random.default_rng(0)
        self._factors = generator.integers(1, 2**63, size=64, dtype=np.uint64) | np.uint64(1)
        self._offsets = generator.integers(0, 2**63, size=64, dtype=np.uint64)
        self._threshold = threshold
        self._bands: dict[tuple[int, bytes], list[int]] = {}
        self._signatures: list[Hashes] = []

    def signature(self, text: str) -> Hashes | None:
        """The 64 minima of a text, or None for one with fewer than 5 words."""
        shingles = np.unique(ngram_hashes(words(text), 5))
        if not len(shingles):
            return None
        minima = [
            (shingles * f + o).min() for f, o in zip(self._factors, self._offsets, strict=True)
        ]
        return np.array(minima, dtype=np.uint64)

    def seen(self, text: str) -> bool:
        """Whether a near duplicate was given before; a text without one is remembered."""
        signature = self.signature(text)
        if signature is None:
            return False
        keys = [(band, signature[4 * band : 4 * band + 4].tobytes()) for band in range(16)]
        rivals = {number for key in keys for number in self._bands.get(key, ())}
        for number in rivals:
            if float((self._signatures[number] == signature).mean()) >= self._threshold:
                return True
        for key in keys:
            self._bands.setdefault(key, []).append(len(self._signatures))
        self._signatures.append(signature)
        return False
