"""llama.cpp beside our engine, where llama-cpp-python is installed."""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf_models import gguf_metadata, gguf_tensors, random_module, vocabulary_metadata
from gguf_writer import write_gguf
from small_vocabularies import NORMAL
from tiny_models import VOCABULARY, random_prompt

from accel.errors import InvalidRequest
from lsp_server.shared.errors import BenchError
from tests.benchmarks.completion import command as completion
from tests.benchmarks.forwards import command as forward
from tests.benchmarks.peers.child_process import ChildProcess
from tests.benchmarks.peers.llama_cpp import LlamaCpp

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("llama_cpp") is None,
    reason="llama-cpp-python is not installed; it is the extra llama-cpp",
)
CONTEXT = 640


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random model whose weights are exact."""
    folder = tmp_path_factory.mktemp("llama")
    module = random_module("llama", tie_word_embeddings=False)
    metadata = gguf_metadata(module, context_length=2048) | vocabulary_metadata(VOCABULARY)
    # It takes no empty list of merges.
    metadata["tokenizer.ggml.merges"] = ["h e"]
    place = metadata["tokenizer.ggml.tokens"].index("[PAD0]")
    metadata["tokenizer.ggml.tokens"][place] = "he"
    metadata["tokenizer.ggml.token_type"][place] = NORMAL
    return write_gguf(folder / "small.gguf", metadata, gguf_tensors(module))


@pytest.fixture(scope="module")
def llama(file: Path) -> Iterator[ChildProcess]:
    with ChildProcess("llama-cpp", LlamaCpp, file, 1, CONTEXT) as child:
        yield child


def bench(module: Any, out: Path, *options: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    assert module.run(parser.parse_args([*options, "--json", str(out)])) == 0
    document: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return document


def test_chains_are_drafted_and_tokens_counted(llama: ChildProcess) -> None:
    # A text that repeats: its lookup finds something at every place.
    prompt = np.tile(random_prompt(3, 16), 8).astype(np.int32)
    plain = llama.call("generate", prompt, 40)
    assert plain.statistics.forwards == plain.statistics.tokens == len(plain.tokens) == 40
    assert plain.statistics.nodes == 0
    again = llama.call("generate", prompt, 40)
    assert again.tokens.tolist() == plain.tokens.tolist()
    assert again.statistics.prompt_tokens_reused == len(prompt) - 1
    for draft_tokens in (3, 15):
        drafted = llama.call("generate", prompt, 40, draft_tokens)
        statistics = drafted.statistics
        assert statistics.tokens == len(drafted.tokens) == 40
        assert statistics.tokens == statistics.forwards + sum(statistics.accepted)
        assert 0 < statistics.nodes <= draft_tokens * statistics.forwards
        # Rows of another number may be summed in another order, but the first is the prompt's.
        assert drafted.tokens[0] == plain.tokens[0]


def test_a_text_that_does_not_fit_is_refused(llama: ChildProcess) -> None:
    with pytest.raises(InvalidRequest, match="a text of 700 tokens does not fit"):
        llama.call("generate", np.zeros(650, np.int32), 50)


@pytest.mark.long
def test_forwards_by_turns_are_the_document_that_is_promised(file: Path, tmp_path: Path) -> None:
    options = ("--peer", "llama-cpp", "--context", "64", "--threads", "1", "--seconds", "0.1")
    document = bench(
        forward, tmp_path / "f.json", "--model", str(file), "--dtype", "fp32", *options
    )
    assert {"forward_ms", "prefill_ms", "resident_mb"} <= document.keys()
    for engine in ("redraft", "llama-cpp"):
        figures = document["forward_ms"][engine]
        assert figures["threads"] == 1
        assert figures["type"]
        assert all(figures[str(rows)] > 0 for rows in (1, 2, 4, 8, 16, 32, 64))
        assert document["prefill_ms"][engine]["512"] > 0
        assert document["resident_mb"][engine] > 10


@pytest.mark.long
def test_completion_by_both_engines(file: Path, cases: Path, tmp_path: Path) -> None:
    names = "plain,redraft,llama-cpp,llama-cpp-ngram"
    options = ("--methods", names, "--left-only", "--common", "none", "--max-tokens", "24")
    files = ("--model", str(file), "--cases", str(cases), "--dtype", "fp32", "--threads", "1")
    document = bench(completion, tmp_path / "c.json", *files, *options, "--one-dtype")
    assert list(document["methods"]) == names.split(",")
    for name, fields in document["methods"].items():
        assert fields["cases"] == 3, name
        assert fields["tokens_per_s"] > 0, name
        assert fields["tokens"] == document["methods"]["plain"]["tokens"], name
    assert document["methods"]["redraft"]["identical"] == 3
    assert document["methods"]["llama-cpp"]["identical"] is None
    chosen = document["methods"]["llama-cpp-ngram"]
    assert chosen["draft_tokens"] in (3, 7, 15)
    assert set(chosen["tokens_per_s_by_draft_tokens"]) == {"3", "7", "15"}
    fastest = max(
        document["methods"][name]["tokens_per_s"] for name in ("llama-cpp", "llama-cpp-ngram")
    )
    ours = document["methods"]["redraft"]
    assert ours["over_best_peer"] == pytest.approx(ours["tokens_per_s"] / fastest)
    assert document["llama-cpp"]["threads"] == 1


def test_it_is_not_asked_to_sample(file: Path, cases: Path, tmp_path: Path) -> None:
    options = ("--methods", "llama-cpp", "--temperature", "1", "--common", "none", "--left-only")
    files = ("--model", str(file), "--cases", str(cases), "--dtype", "fp32", "--threads", "1")
    with pytest.raises(BenchError, match="decodes greedily"):
        bench(completion, tmp_path / "c.json", *files, *options)
