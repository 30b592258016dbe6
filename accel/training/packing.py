"""Whole units packed into rows of one length, and the batches of a training run."""

from __future__ import annotations

import bisect
import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from accel.training.corpus import SourceFile
from accel.training.functions import function_units
from accel.training.units import Unit, UnitMaker, copy_units, definitions, edit_units, text_units


@dataclass(frozen=True)
class PackedRows:
    """ids: int32 [rows, length]; weights: float32 [rows, length], 0 where nothing is predicted."""

    ids: NDArray[np.int32]
    weights: NDArray[np.float32]


def pack(units: list[Unit], length: int, pad: int, rng: random.Random) -> PackedRows:
    """Best fit: the longest unit first, each into the fullest row that still takes it whole.

    Raises ValueError for a unit longer than a row.
    """
    rows: list[list[Unit]] = []
    room: list[tuple[int, int]] = []
    for unit in sorted(units, key=lambda unit: -len(unit.ids)):
        size = len(unit.ids)
        if size > length:
            raise ValueError(f"a unit of {size} tokens does not fit into a row of {length}")
        place = bisect.bisect_left(room, (size, -1))
        if place == len(room):
            rows.append([unit])
            bisect.insort(room, (length - size, len(rows) - 1))
        else:
            left, row = room.pop(place)
            rows[row].append(unit)
            bisect.insort(room, (left - size, row))
    ids = np.full((len(rows), length), pad, dtype=np.int32)
    weights = np.zeros((len(rows), length), dtype=np.float32)
    rng.shuffle(rows)
    for number, row_units in enumerate(rows):
        rng.shuffle(row_units)
        row_ids = [token for unit in row_units for token in unit.ids]
        row_weights = [weight for unit in row_units for weight in unit.weights]
        ids[number, : len(row_ids)] = row_ids
        weights[number, : len(row_ids)] = row_weights
    weights[:, 0] = 0.0
    return PackedRows(ids, weights)


@dataclass(frozen=True)
class Mix:
    """How a chunk of data is made."""

    seed: int
    characters: int = 800_000
    edit_share: float = 0.40
    drill_share: float = 0.0
    function_share: float = 0.0


def chunk_of_rows(
    files: list[SourceFile], tokenizer: Tokenizer, mix: Mix, number: int, row_length: int
) -> PackedRows:
    """The rows of one chunk of files; the same arguments give the same rows.

    Chunks go through the files in order and begin anew at their end, with new holes and edits.
    """
    rng = random.Random(f"{mix.seed} {number} {row_length}")
    total = sum(len(file.text) for file in files)
    begin = (number * mix.characters) % total
    chosen: list[SourceFile] = []
    place = taken = 0
    for file in [*files, *files]:
        if place >= begin and taken < mix.characters:
            chosen.append(file)
            taken += len(file.text)
        place += len(file.text)
        if taken >= mix.characters:
            break
    maker = UnitMaker(tokenizer)
    units = [unit for file in chosen for unit in text_units(file, maker, row_length, rng)]
    tokens = sum(len(unit.ids) for unit in units)
    whole = tokens / (1.0 - mix.edit_share - mix.drill_share - mix.function_share)
    sources = [text for file in chosen for text in definitions(file, int(row_length * 1.7))]
    units += edit_units(sources, maker, row_length, int(whole * mix.edit_share), rng)
    units += function_units(sources, maker, row_length, int(whole * mix.function_share), rng)
    units += copy_units(maker, row_length, int(whole * mix.drill_share), rng)
    pad = tokenizer.token_to_id("<|pad|>")
    assert pad is not None, "the tokenizer lacks <|pad|>"
    return pack(units, row_length, pad, rng)
