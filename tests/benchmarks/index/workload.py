"""Repositories for the bench of the index: the one given, made larger where it is too small."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from repo_index.corpus import standard_library
from repo_index.files import Limits
from repo_index.source_tree import FolderTree

TokenFiles = dict[str, NDArray[np.int32]]

_FUNCTION = re.compile(r"^(?=(?:async )?def |class )", re.MULTILINE)
_NAME = re.compile(r"\b[a-z]{4,}_[a-z_]{3,}\b")


def read_repository(folder: Path) -> dict[str, str]:
    """Text of every file that counts."""
    tree = FolderTree(folder, Limits())
    contents = {path: tree.read(path) for path, _ in tree.walk()}
    return {path: content.text for path, content in contents.items() if not content.reason}


def enlarge(texts: Mapping[str, str], characters: int, seed: int) -> dict[str, str]:
    """As many made files as it takes to reach ``characters``.

    Each is some of the functions of the repository and of the standard library, with some of their
    names changed throughout the file: much is new, much is repeated, as in a real repository.
    """
    generator = random.Random(seed)
    library = [path.read_text("utf-8") for path in sorted(standard_library().glob("*.py"))]
    pieces = [
        piece
        for text in [*library, *texts.values()]
        for piece in _FUNCTION.split(text)
        if 80 < len(piece) < 20_000
    ]
    made: dict[str, str] = {}
    total = 0
    while total < characters:
        chosen = generator.choices(pieces, k=generator.randint(5, 40))
        text = _renamed("".join(chosen), generator)
        made[f"made/{len(made) % 211}/{len(made)}.py"] = text
        total += len(text)
    return made


def _renamed(text: str, generator: random.Random) -> str:
    names = sorted(set(_NAME.findall(text)))
    parts = [part for name in names for part in name.split("_") if part]
    changed = {
        name: f"{generator.choice(parts)}_{generator.choice(parts)}"
        for name in names
        if generator.random() < 0.4
    }
    return _NAME.sub(lambda found: changed.get(found[0], found[0]), text)


def enlarge_tokens(files: Sequence[NDArray[np.int32]], tokens: int, seed: int) -> TokenFiles:
    """Made files of token ids: real ones with every twentieth token replaced, until ``tokens``."""
    rng = np.random.default_rng(seed)
    usable = [ids for ids in files if len(ids) > 50]
    everything = np.concatenate(usable)
    made: TokenFiles = {}
    total = 0
    while total < tokens:
        ids = usable[rng.integers(len(usable))].copy()
        count = max(1, len(ids) // 20)
        ids[rng.integers(0, len(ids), count)] = everything[rng.integers(0, len(everything), count)]
        made[f"{len(made)}.py"] = ids
        total += len(ids)
    return made


_IGNORED = ("*.o", "*.so", "build/", "dist/", "/out", "*.egg-info", "docs/_build/", "**/tmp/*.py")


def write_many(folder: Path, texts: Sequence[str], files: int, seed: int) -> None:
    """A workspace of many small files in folders of some dozens, with an ignore file at its root:
    pieces of the texts, each of another content."""
    generator = random.Random(seed)
    for i in range(files):
        lines = generator.choice(texts).splitlines()
        begin = generator.randrange(max(1, len(lines) - 20))
        place = folder / f"package{i % 17}" / f"module{i // 17 % 23}" / f"file{i}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("\n".join([*lines[begin : begin + 20], f"number = {i}", ""]), "utf-8")
    (folder / ".gitignore").write_text("\n".join(_IGNORED) + "\n")


def contexts_of(files: Sequence[NDArray[np.int32]], count: int, seed: int) -> NDArray[np.int32]:
    """Contexts to look up, int32 [count, 16]: ends of random places of real files.

    In every other one a token is another than in the file, so that matches of all lengths occur.
    """
    rng = np.random.default_rng(seed)
    usable = [ids for ids in files if len(ids) > 40]
    weights = np.array([len(ids) for ids in usable], np.float64)
    chosen = rng.choice(len(usable), count, p=weights / weights.sum())
    contexts = np.empty((count, 16), np.int32)
    for row, index in enumerate(chosen):
        ids = usable[index]
        place = int(rng.integers(16, len(ids)))
        contexts[row] = ids[place - 16 : place]
        if row % 2:
            contexts[row, rng.integers(0, 16)] = ids[rng.integers(0, len(ids))]
    return contexts
