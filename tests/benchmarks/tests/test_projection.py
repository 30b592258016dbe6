"""Projections: forwards of two documents and replayed drafts, worked out by hand."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_model import SMALL_MODEL

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import DraftRequest
from accel.text.tokenizer import Tokenizer
from lsp_server.shared.errors import BenchError
from tests.benchmarks.forwards import projection
from tests.benchmarks.forwards.projection_texts import ProjectedText, ProjectedTexts

COUNT = 24


class Counting:
    """Knows the three tokens that come next, and none further."""

    name = "counting"

    def begin(self, request: DraftRequest) -> None:
        self._next = 0

    def draft(self, max_nodes: int) -> DraftTree:
        tokens = np.arange(self._next, self._next + min(3, max_nodes), dtype=np.int32)
        tree = DraftTree.chain(tokens, Source.PROMPT)
        tree.probabilities[:] = 1
        return tree

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        self._next += len(tokens)


@pytest.fixture(scope="module")
def texts() -> ProjectedTexts:
    target = np.arange(COUNT, dtype=np.int32)
    text = ProjectedText(DraftRequest(np.full(1, 99, np.int32)), target)
    return ProjectedTexts([text], Counting, Tokenizer.from_folder(SMALL_MODEL))


def document(ours: dict[int, float], theirs: dict[int, float]) -> dict[str, Any]:
    """Of forwards that take so many milliseconds by rows."""
    engines = {"redraft": ours, "llama-cpp": theirs}
    return {
        "context": 512,
        "forward_ms": {
            name: {"threads": 2, "type": "Q8_0"} | {str(rows): ms for rows, ms in times.items()}
            for name, times in engines.items()
        },
    }


def test_the_bound_is_the_best_width_over_one_row_of_llama_cpp(texts: ProjectedTexts) -> None:
    ours = {1: 10.0, 2: 10.0, 4: 12.5, 8: 50.0, 64: 500.0}
    theirs = {1: 20.0, 4: 40.0, 64: 640.0}
    found = projection.projections(texts, {"shape": document(ours, theirs)})
    # One row brings one token, two bring two, four and more bring four.
    assert found["tokens_per_forward"]["1"] == 1
    assert found["tokens_per_forward"]["2"] == 2
    assert found["tokens_per_forward"]["4"] == found["tokens_per_forward"]["64"] == 4
    shape = found["forwards"]["shape"]
    assert shape["bound"] == pytest.approx(4 * 20 / 12.5)
    assert shape["bound_rows"] == 4
    assert shape["type"] == "Q8_0"
    assert shape["llama_cpp_tokens_per_s"] == pytest.approx(50)
    # No token stands in the text twice: its lookup finds nothing.
    assert shape["llama_cpp_ngram_tokens_per_s"] == pytest.approx(50)
    assert shape["over_llama_cpp"] == pytest.approx(shape["tokens_per_s"] / 50)
    # Every planned forward has four rows, whose time the drafting is added to.
    without_drafting = shape["tokens_per_s"] / (1 - shape["drafting_share"])
    assert without_drafting == pytest.approx(4 / 12.5e-3)
    assert shape["share_of_bound"] == pytest.approx(shape["over_llama_cpp"] / shape["bound"])


def test_a_lookup_that_finds_its_chain_is_paid_by_rows() -> None:
    period = np.tile(np.arange(8, dtype=np.int32), 4)
    text = ProjectedText(DraftRequest(period), np.tile(np.arange(8, dtype=np.int32), 2))
    texts = ProjectedTexts([text], Counting, Tokenizer.from_folder(SMALL_MODEL))
    assert texts.looked_up_rows(0) == {1: 16}
    # Four forwards of the pending token and three that are right.
    assert texts.looked_up_rows(3) == {4: 4}


def test_another_document_is_told_from_forwards_beside_a_peer(tmp_path: Path) -> None:
    file = tmp_path / "forwards.json"
    for content in ("{", "{}", json.dumps(document({1: 1.0}, {1: 1.0, 64: 2.0}))):
        file.write_text(content, "utf-8")
        with pytest.raises(BenchError, match="is no document of bench forward --peer llama-cpp"):
            projection.read_forwards(file)


def test_completions_and_edits_in_one_run(cases: Path, tmp_path: Path) -> None:
    rows = (1, 2, 4, 8, 12, 16, 32, 64)
    forwards = tmp_path / "shape-Q8_0.json"
    ours, theirs = ({count: scale * (4 + count) for count in rows} for scale in (1.0, 2.0))
    forwards.write_text(json.dumps(document(ours, theirs)), "utf-8")
    edit = {
        "id": "1",
        "instruction": "Rename.",
        "before": "a = 1\nb = a\n" * 9,
        "after": "c = 1\n" * 9,
    }
    edits = tmp_path / "edits.jsonl"
    edits.write_text(json.dumps(edit) + "\n", "utf-8")
    out = tmp_path / "out.json"
    parser = argparse.ArgumentParser()
    projection.add_arguments(parser)
    options = ["--cases", str(cases), "--edits", str(edits), "--common", "none", "--left-only"]
    files = ["--forwards", str(forwards), "--json", str(out)]
    assert projection.run(parser.parse_args([*files, *options, "--model", str(SMALL_MODEL)])) == 0
    found = json.loads(out.read_text("utf-8"))["texts"]
    assert list(found) == ["cases", "edits"]
    for kind in found.values():
        shape = kind["forwards"]["shape-Q8_0"]
        widths = kind["tokens_per_forward"]
        gains = [widths[str(count)] * theirs[1] / ours[count] for count in rows]
        assert shape["bound"] == pytest.approx(max(gains))
        assert shape["over_best_peer"] > 0
    with pytest.raises(BenchError, match="give --cases or --edits"):
        projection.run(parser.parse_args(files))
