"""Where the time of a forward goes, of a small model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from conformance import feed
from gguf_models import random_module, save_gguf
from tiny_models import compiled

from accel.models.batch import chain_batch
from tests.benchmarks.forwards import shares


def test_what_is_timed_computes_the_same_and_every_weight_has_its_step(tmp_path: Path) -> None:
    file = save_gguf(tmp_path / "m.gguf", random_module("llama"), "Q8_0")
    model = compiled(file, "int8")
    model.threads = 2
    cache, text = model.new_cache(64), np.arange(20, dtype=np.int32)
    feed(model, cache, text)
    batch = chain_batch(text[:5], 0)
    before = [list(model.forward(batch, [cache]).argmax())]
    descriptors = [each.copy() for each in shares._matrices(model)]
    found = shares.measured(model, cache, 2, 0.01)
    assert set(found["kinds"]) == set(shares.KINDS)
    assert len(found["ahead"]) == len(shares.AHEAD)
    read = sum(kind["mb"] for kind in found["kinds"].values())
    assert round(read * 1e6) == sum(shares._bytes_of(each) for each in descriptors)
    assert all(map(np.array_equal, descriptors, shares._matrices(model)))
    for lines in ((0, 0), (16, 64)):
        with shares._products_at(model, shares._addresses(model, lines)):
            before.append(list(model.forward(batch, [cache]).argmax()))
    assert before[0] == before[1] == before[2]
