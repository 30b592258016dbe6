"""Engines beside each other on one GGUF file: forwards, fidelity, and what they are judged by."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf_models import random_module, save_gguf

from accel.errors import ModelNotFound
from accel.execution.statistics import Statistics
from accel.models.model_file import model_file
from lsp_server.shared.errors import BenchError
from tests.benchmarks.completion.targets import target_of
from tests.benchmarks.forwards import command as forward
from tests.benchmarks.forwards import fidelity
from tests.benchmarks.forwards.measured_engine import MeasuredEngine
from tests.benchmarks.gguf_peers import with_best_chains
from tests.benchmarks.measurement import Measurement
from tests.benchmarks.peers.child_process import ChildProcess
from tests.benchmarks.peers.errors import PeerUnavailable
from tests.benchmarks.peers.fp32_reference import Fp32Reference
from tests.benchmarks.peers.judged import Judged, judge

WINDOW = 24


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A small random model whose weights are exact."""
    return save_gguf(tmp_path / "small.gguf", random_module("llama"), context_length=2048)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A folder with 60 bytes of code, 40 of them in rows, and a file that is none."""
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "a.py").write_text("value = 1  # twenty.\n"[:20], "utf-8")
    row = json.dumps({"path": "b.py", "content": "x" * 40})
    (folder / "b.jsonl").write_text(row + "\n", "utf-8")
    (folder / "notes.txt").write_text("y" * 400, "utf-8")
    return folder


def bench(module: Any, *options: str) -> int:
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    status: int = module.run(parser.parse_args(options))
    return status


def test_logits_are_judged_by_the_best_two_and_the_token_that_follows() -> None:
    logits = np.array([[0, 3, 1], [2, 2, 2]], np.float32)
    judged = judge(logits, np.array([2, 0], np.int32))
    assert judged.greedy.tolist() == [1, 0]
    assert judged.gaps.tolist() == [2, 0]
    whole = np.log(1 + np.e**3 + np.e)
    assert judged.log_likelihoods == pytest.approx([1 - whole, -np.log(3)])


def test_agreement_in_all_and_in_clear_places() -> None:
    def said(greedy: list[int], likelihood: float) -> Judged:
        gaps = np.array([0.1, 0.2, 5, 5], np.float32)
        return Judged(np.array(greedy, np.int32), gaps, np.full(4, likelihood))

    # It differs in the place with the small gap and in one of the three clear ones.
    found = fidelity.agreements({"redraft": said([9, 9, 3, 4], -1), "fp32": said([1, 2, 3, 4], -2)})
    assert found["redraft"]["greedy_agreement"] == 0.5
    assert found["redraft"]["greedy_agreement_clear"] == pytest.approx(2 / 3)
    assert found["redraft"]["perplexity"] == pytest.approx(np.e)
    assert found["fp32"] == {"perplexity": pytest.approx(np.e**2)}


def test_windows_are_cut_from_all_code_of_a_folder(file: Path, text: Path) -> None:
    tokenizer = model_file(file).tokenizer
    texts = fidelity.code_in(text)
    assert [len(each) for each in texts] == [20, 40]
    windows = fidelity.windows_of(texts, tokenizer, 1000, WINDOW)
    # Each has the token behind it, too, so the last 12 of 60 are too few.
    assert [len(window) for window in windows] == [WINDOW + 1, WINDOW + 1]
    assert windows[0][-1] == windows[1][0]
    assert len(fidelity.windows_of(texts, tokenizer, WINDOW, WINDOW)) == 1
    with pytest.raises(BenchError, match="has 60 tokens; give more of it"):
        fidelity.windows_of(texts, tokenizer, 1000, 60)


def test_a_child_process_answers_and_raises_as_its_object_does(file: Path) -> None:
    with ChildProcess("a counter", Counter, "aab") as child:
        assert child.pid != os.getpid()
        assert child.call("most_common", 1) == [("a", 2)]
        with pytest.raises(TypeError):
            child.call("most_common", "no number")
        assert child.call("total") == 3
    with pytest.raises(ModelNotFound, match="nothing of that name"):
        ChildProcess("a model", MeasuredEngine, str(file) + ".missing.gguf", "auto", 1)


def test_a_child_process_that_ends_is_told_by_name() -> None:
    with (
        pytest.raises(PeerUnavailable, match="the process of a peer ended"),
        ChildProcess("a peer", os._exit, 3),
    ):
        pass


def test_our_engine_says_what_the_slow_reference_says(file: Path) -> None:
    engine, reference = MeasuredEngine(str(file), "fp32", 1), Fp32Reference(file)
    tokens = np.random.default_rng(0).integers(0, 256, 201).astype(np.int32)
    # More tokens than one forward has rows.
    ours, slow = (each.judge(tokens[:-1], tokens[1:]) for each in (engine, reference))
    assert len(ours.greedy) == 200
    clear = slow.gaps > 1e-3
    assert clear.sum() > 150
    assert ours.greedy[clear].tolist() == slow.greedy[clear].tolist()
    assert ours.log_likelihoods == pytest.approx(slow.log_likelihoods, abs=1e-3)
    assert all(second > 0 for second in engine.forward_s(8, 64, 2))
    assert engine.prefill_s(64) > 0
    assert engine.about() == {"threads": 1, "type": "fp32", "form": "compiled", "kv_type": "f16"}


@pytest.mark.long
def test_fidelity_without_a_peer(file: Path, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    options = ("--dtype", "fp32", "--threads", "1", "--no-peer", "--json", str(out))
    files = ("--model", str(file), "--text", str(text))
    assert bench(fidelity, *files, "--tokens", "1000", "--window", str(WINDOW), *options) == 0
    document = json.loads(out.read_text("utf-8"))
    assert document["tokens"] == 2 * WINDOW
    assert document["redraft"]["greedy_agreement_clear"] == 1
    assert document["redraft"]["perplexity"] == pytest.approx(document["fp32"]["perplexity"], 1e-3)
    assert list(document["fp32"]) == ["perplexity"]


def test_the_fastest_chain_over_all_cases_stands_for_the_lookup() -> None:
    def took(method: str, case: str, decode_s: float) -> Measurement:
        statistics = Statistics(tokens=10, forwards=5, decode_s=decode_s)
        return Measurement(method, "group", case, statistics, [0] * 10, 10, decode_s)

    measured = [
        took(method, case, seconds)
        for case, times in (("one", (9, 1, 4, 8)), ("two", (9, 9, 4, 8)))
        for method, seconds in zip(
            ("plain", *(f"llama-cpp-ngram {count}" for count in (3, 7, 15))), times, strict=True
        )
    ]
    kept, speeds = with_best_chains(measured)
    assert [(each.method, each.case) for each in kept] == [
        ("plain", "one"),
        ("llama-cpp-ngram", "one"),
        ("plain", "two"),
        ("llama-cpp-ngram", "two"),
    ]
    assert speeds == {"llama-cpp-ngram": {"3": 2.0, "7": 2.5, "15": 1.25}}
    assert with_best_chains(measured[:1]) == (measured[:1], {})


def test_methods_that_need_a_model_choose_the_target() -> None:
    assert target_of(None, None) == target_of(None, "plain,redraft") == "replay"
    assert target_of(None, "plain, llama-cpp") == "model"
    assert target_of("replay", "llama-cpp") == "replay"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "folder"), "peers read GGUF files alone, not folder"),
        (("--model", "missing.gguf"), "peers read GGUF files alone, not missing.gguf"),
        (("--model", "m.gguf", "--shape", "0.5B"), "leave --shape"),
        (("--model", "m.gguf", "--dtype", "both"), "leave --shape and --dtype both out"),
        (("--model", "m.gguf", "--context", "0"), "give --context and --seconds above 0"),
    ],
)
def test_what_cannot_be_measured_beside_a_peer(options: tuple[str, ...], message: str) -> None:
    with pytest.raises(BenchError, match=message):
        bench(forward, "--peer", "llama-cpp", *options)


def test_a_missing_peer_says_how_to_install_it(
    file: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "llama_cpp" else find(name)
    )
    with pytest.raises(PeerUnavailable, match=r"pip install 'redraft\[llama-cpp\]'"):
        bench(forward, "--model", str(file), "--peer", "llama-cpp")
    with pytest.raises(PeerUnavailable, match="llama-cpp-python"):
        bench(fidelity, "--model", str(file), "--text", str(text), "--window", str(WINDOW))
