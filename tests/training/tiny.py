"""A corpus, a tokenizer and a model small enough to train within a test."""

from __future__ import annotations

from pathlib import Path

import frozen_corpus

from accel.training.corpus import Package, SourceFile, TrainingCorpus
from accel.training.tokenizer import save_tokenizer, train_tokenizer
from accel.training.trainer import TrainedShape, TrainingPlan

SHAPE = TrainedShape(
    vocabulary=700,
    width=32,
    layers=2,
    heads=2,
    kv_heads=1,
    feed_forward=48,
    context=512,
    copying=False,
)
PLAN = TrainingPlan(
    steps=6,
    batch_tokens=512,
    row_length=128,
    chunk_characters=30_000,
    warm_up_steps=2,
    held_out_seconds=1e9,
    checkpoint_seconds=1e9,
)


def corpus() -> TrainingCorpus:
    """The frozen corpus; two of its files held out."""
    files = [
        SourceFile("redraft", path.name, path.read_text(encoding="utf-8"))
        for path in frozen_corpus.files()
    ]
    return TrainingCorpus(files[3:], files[1:3], [Package("redraft", "0", "Apache-2.0")], {})


def sources(folder: Path) -> Path:
    """Three files of small functions."""
    folder.mkdir()
    for name in ("one", "two", "three"):
        lines = [f"def {name}_{n}(value):\n    return value + {n}\n\n" for n in range(90)]
        (folder / f"{name}.py").write_text("".join(lines))
    return folder


def run_folder(folder: Path) -> Path:
    """A folder with corpus and tokenizer, as `prepare` leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    found = corpus()
    found.save(folder / "corpus.jsonl")
    texts = [file.text for file in found.training]
    save_tokenizer(train_tokenizer(texts, SHAPE.vocabulary), folder, SHAPE.context)
    return folder
