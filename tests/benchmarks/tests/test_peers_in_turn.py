"""Engines beside each other on one GGUF file: their forwards, and their processes."""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from gguf_models import random_module, save_gguf
from text_cases import data_cases

from accel.errors import ModelNotFound
from accel.execution.statistics import Statistics
from lsp_server.shared.errors import BenchError
from tests.benchmarks.completion.targets import target_of
from tests.benchmarks.forwards import command as forward
from tests.benchmarks.forwards.measured_engine import MeasuredEngine
from tests.benchmarks.gguf_peers import with_best_chains
from tests.benchmarks.measurement import Measurement
from tests.benchmarks.peers.child_process import ChildProcess
from tests.benchmarks.peers.errors import PeerUnavailable


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A small random model whose weights are exact."""
    return save_gguf(tmp_path / "small.gguf", random_module("llama"), context_length=2048)


def bench(module: Any, *options: str) -> int:
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    status: int = module.run(parser.parse_args(options))
    return status


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


def test_our_engine_is_timed(file: Path) -> None:
    engine = MeasuredEngine(str(file), "fp32", 1)
    assert all(second > 0 for second in engine.forward_s(8, 64, 2))
    assert engine.prefill_s(64) > 0
    assert engine.about() == {"threads": 1, "type": "fp32", "form": "compiled", "kv_type": "f16"}


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


@data_cases()
def test_what_cannot_be_measured_beside_a_peer(options: tuple[str, ...], message: str) -> None:
    with pytest.raises(BenchError, match=message):
        bench(forward, "--peer", "llama-cpp", *options)


def test_a_missing_peer_says_how_to_install_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "llama_cpp" else find(name)
    )
    with pytest.raises(PeerUnavailable, match=r"pip install 'redraft\[llama-cpp\]'"):
        bench(forward, "--model", str(file), "--peer", "llama-cpp")
