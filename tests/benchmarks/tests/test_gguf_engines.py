"""Other engines on a GGUF file, with libraries that stand in for theirs: a model that counts up."""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import importlib.util
import sys
import types
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from accel.errors import BrokenModel, InvalidRequest
from accel.verification.sampling import Sampling
from lsp_server.shared.errors import BenchError
from tests.benchmarks.completion import command as completion
from tests.benchmarks.edits import command as edit
from tests.benchmarks.gguf_peers import GgufPeers, owed_text
from tests.benchmarks.peers import gguf_engines
from tests.benchmarks.peers.errors import PeerUnavailable
from tests.benchmarks.peers.gguf_engine import is_built_here, until_stop
from tests.benchmarks.peers.ik_llama_cpp import IkLlamaCpp
from tests.benchmarks.peers.openvino import OpenVino

VOCABULARY = 50
Install = Callable[..., None]


def following(token: int) -> int:
    return (token + 1) % VOCABULARY


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs modules and the metadata of packages that are none."""

    def put(name: str, package: str, **members: Any) -> None:
        module = types.ModuleType(name)
        module.__dict__.update(members, __spec__=ModuleSpec(name, None))
        monkeypatch.setitem(sys.modules, name, module)
        found = types.SimpleNamespace(version="7", read_text=lambda _: "Tag: cp311-linux_x86_64")
        known = importlib.metadata.distribution
        monkeypatch.setattr(
            importlib.metadata,
            "distribution",
            lambda asked: found if asked == package else known(asked),
        )

    return put


class CountingLibrary:
    """The C API of ik_llama.cpp, so far as it is called: a row's likeliest token is the next."""

    def __init__(self) -> None:
        self.cells: list[int] = []
        self.rows: list[int] = []
        self.batches: list[int] = []
        names = ("print_system_info", "synchronize", "get_logits", "vocab_n_tokens", "log_set")
        for name in (*names, "kv_cache_seq_rm"):
            setattr(self, f"llama_{name}", _Function(getattr(self, name)))

    def print_system_info(self) -> bytes:
        return b"AVX2 = 1 | AVX512 = 0 | FMA = 1 | "

    def synchronize(self, _context: Any) -> None:
        pass

    def log_set(self, _callback: Any, _data: Any) -> None:
        pass

    def vocab_n_tokens(self, _vocabulary: Any) -> int:
        return VOCABULARY

    def get_logits(self, _context: Any) -> Any:
        return self.logits_of(0)

    def kv_cache_seq_rm(self, _context: Any, _sequence: int, first: int, last: int) -> None:
        assert last == -1
        del self.cells[first:]

    def logits_of(self, row: int) -> Any:
        logits = (ctypes.c_float * VOCABULARY)()
        logits[following(self.rows[row])] = 1.0
        return ctypes.cast(logits, ctypes.POINTER(ctypes.c_float))

    def decode(self, _context: Any, batch: Any) -> int:
        count = batch.n_tokens
        assert batch.pos[0] == len(self.cells), "a gap, or what was not trimmed"
        self.rows = [batch.token[row] for row in range(count)]
        self.cells += self.rows
        self.batches.append(count)
        return 0


class _Function:
    """What takes ``argtypes`` and ``restype`` as a function of ctypes does."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


def new_batch(rows: int, _embeddings: int, _sequences: int) -> Any:
    return types.SimpleNamespace(
        n_tokens=0,
        token=[0] * rows,
        pos=[0] * rows,
        n_seq_id=[0] * rows,
        seq_id=[[0] for _ in range(rows)],
        logits=[0] * rows,
    )


@pytest.fixture
def library(install: Install) -> CountingLibrary:
    made = CountingLibrary()
    settings: dict[str, Any] = {"loaded": []}

    def load(path: bytes, given: Any) -> int:
        settings["loaded"].append((path, given.repack_tensors))
        return 1

    made.settings = settings  # type: ignore[attr-defined]
    install("ik_llama_cpp", "ik-llama-cpp-python")
    install(
        "ik_llama_cpp._ctypes_api",
        "ik-llama-cpp-python",
        _lib=made,
        llama_backend_init=lambda: None,
        llama_model_default_params=lambda: types.SimpleNamespace(repack_tensors=False),
        llama_context_default_params=types.SimpleNamespace,
        llama_model_load_from_file=load,
        llama_init_from_model=lambda _model, _settings: 1,
        llama_model_get_vocab=lambda _model: 1,
        llama_model_desc=lambda _model, room, _size: setattr(room, "value", b"llama 135M Q8_0"),
        llama_batch_init=new_batch,
        llama_decode=made.decode,
        llama_get_logits_ith=lambda _context, row: made.logits_of(row),
    )
    return made


def test_ik_llama_cpp_is_called_by_the_names_of_llama_cpp(library: CountingLibrary) -> None:
    engine = IkLlamaCpp(Path("m.gguf"), 2, 64, repacked=True)
    assert library.settings["loaded"] == [(b"m.gguf", True)]  # type: ignore[attr-defined]
    answer = engine.generate(np.array([3, 4], np.int32), 5)
    assert answer.tokens.tolist() == [5, 6, 7, 8, 9]
    # The prompt but its last token, and then token by token.
    assert library.batches == [1] * 6
    assert engine.about() == {
        "threads": 2,
        "type": "Q8_0",
        "version": "7",
        "built_here": True,
        "instructions": ["AVX2", "FMA"],
    }
    assert len(engine.forward_s(4, 8, 3)) == 3
    assert library.batches[-4:] == [8, 4, 4, 4]


def test_what_a_lookup_drafts_right_takes_no_forward_of_its_own(library: CountingLibrary) -> None:
    engine = IkLlamaCpp(Path("m.gguf"), 1, 64)
    prompt = np.array([*range(1, 9), 1, 2], np.int32)
    answer = engine.generate(prompt, 6, 3)
    assert answer.tokens.tolist() == [3, 4, 5, 6, 7, 8]
    assert answer.statistics.forwards == 2
    # A second text keeps what the two have in common.
    again = engine.generate(prompt, 6, 3)
    assert again.tokens.tolist() == answer.tokens.tolist()
    assert again.statistics.prompt_tokens_reused == len(prompt) - 1
    simple = engine.generate(prompt, 6, (2, 4))
    assert simple.tokens.tolist() == answer.tokens.tolist()
    assert simple.statistics.forwards == 2


def test_a_text_ends_before_the_stop_token(library: CountingLibrary) -> None:
    engine = IkLlamaCpp(Path("m.gguf"), 1, 64)
    prompt = np.array([*range(1, 9), 1, 2], np.int32)
    for draft_tokens in (0, 3, 7):
        answer = engine.generate(prompt, 20, draft_tokens, frozenset({6, 40}))
        assert answer.tokens.tolist() == [3, 4, 5]
        assert answer.statistics.tokens == 3
    with pytest.raises(InvalidRequest, match="a text of 70 tokens does not fit"):
        engine.generate(prompt, 60)
    assert until_stop(np.array([1, 2]), frozenset()).tolist() == [1, 2]


def test_a_wheel_of_an_index_is_not_built_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for tag, built in (("manylinux_2_28_x86_64", False), ("linux_x86_64", True)):
        found = types.SimpleNamespace(read_text=lambda _, tag=tag: f"Tag: cp311-cp311-{tag}")
        monkeypatch.setattr(importlib.metadata, "distribution", lambda _, found=found: found)
        assert is_built_here("any") is built


class CountingPipeline:
    """``LLMPipeline``: it counts up, and the first token takes a second, each other one 10 ms."""

    made: ClassVar[list[tuple[str, dict[str, Any]]]] = []

    def __init__(self, path: str, device: str, **settings: Any) -> None:
        assert device == "CPU"
        if Path(path).name == "model.gguf" and Path(path).resolve().name == "broken.gguf":
            raise RuntimeError("Check failed\nno such architecture")
        self.made.append((path, settings))

    def generate(self, inputs: Any, settings: Any) -> Any:
        tokens, last = [], int(inputs.tokens[0, -1])
        for _ in range(settings.max_new_tokens):
            last = following(last)
            tokens.append(last)
            if not settings.ignore_eos and last in settings.stop_token_ids:
                break
        first = types.SimpleNamespace(get_ttft=lambda: types.SimpleNamespace(mean=1.0))
        return types.SimpleNamespace(tokens=[tokens], perf_metrics=first)


class CountingRequest:
    """An infer request whose state is how many rows it has seen."""

    def __init__(self) -> None:
        self.state = np.zeros((1, 0))
        self.positions: list[list[int]] = []

    def reset_state(self) -> None:
        self.state = np.zeros((1, 0))

    def query_state(self) -> list[Any]:
        return [_State(self)]

    def infer(self, inputs: dict[str, Any], share_inputs: bool) -> None:
        assert share_inputs
        rows = inputs["input_ids"].shape[1]
        positions = inputs["position_ids"][0].tolist()
        assert positions[0] == self.state.shape[1]
        assert inputs["attention_mask"].shape == (1, positions[-1] + 1)
        self.positions.append(positions)
        self.state = np.zeros((1, self.state.shape[1] + rows))

    def get_compiled_model(self) -> Any:
        chosen = types.SimpleNamespace(to_string=lambda: "f32")
        return types.SimpleNamespace(get_property=lambda _: chosen)


class _State:
    def __init__(self, request: CountingRequest) -> None:
        self.__dict__["request"] = request

    @property
    def state(self) -> Any:
        return types.SimpleNamespace(data=self.request.state)

    @state.setter
    def state(self, value: Any) -> None:
        self.request.state = value


@pytest.fixture
def request_made(install: Install) -> CountingRequest:
    CountingPipeline.made.clear()
    request = CountingRequest()
    compiled = types.SimpleNamespace(create_infer_request=lambda: request)
    core = types.SimpleNamespace(
        read_model=lambda path: path, compile_model=lambda _model, _device, _settings: compiled
    )
    install(
        "openvino_genai",
        "openvino-genai",
        LLMPipeline=CountingPipeline,
        GenerationConfig=types.SimpleNamespace,
        TokenizedInputs=lambda tokens, mask: types.SimpleNamespace(tokens=tokens, mask=mask),
    )
    install("openvino", "openvino", Core=lambda: core, Tensor=lambda array: array)
    return request


def test_openvino_writes_plainly_and_with_its_lookup(request_made: CountingRequest) -> None:
    engine = OpenVino(Path("m.gguf"), 2, 64, "f32")
    prompt = np.array([3, 4], np.int32)
    assert engine.generate(prompt, 4).tokens.tolist() == [5, 6, 7, 8]
    answer = engine.generate(prompt, 9, 7, frozenset({7}))
    assert answer.tokens.tolist() == [5, 6]
    assert answer.statistics.tokens == 2
    (first, plain), (folder, looking_up) = CountingPipeline.made
    assert Path(first).parent == Path(folder)
    assert plain["INFERENCE_NUM_THREADS"] == looking_up["INFERENCE_NUM_THREADS"] == 2
    assert plain["INFERENCE_PRECISION_HINT"] == "f32"
    assert "prompt_lookup" not in plain
    assert looking_up["prompt_lookup"] is True
    assert engine.prefill_s(12) == pytest.approx(1e-3)
    assert engine.about()["type"] == "f32"
    with pytest.raises(InvalidRequest, match="a text of 66 tokens does not fit"):
        engine.generate(prompt, 64)


def test_every_forward_of_openvino_is_behind_the_same_rows(request_made: CountingRequest) -> None:
    engine = OpenVino(Path("m.gguf"), 1, 64)
    engine.forward_s(4, 8, 2)
    engine.forward_s(1, 8, 2)
    assert [(each[0], len(each)) for each in request_made.positions] == [
        *((0, 8), (8, 4), (8, 4)),
        *((8, 1), (8, 1)),
    ]


def test_what_openvino_does_not_read_is_told(request_made: CountingRequest, tmp_path: Path) -> None:
    with pytest.raises(BrokenModel, match=r"does not load .*: no such architecture"):
        OpenVino(tmp_path / "broken.gguf", 1, 64)


def test_peers_bring_their_methods(library: CountingLibrary, request_made: CountingRequest) -> None:
    assert gguf_engines.with_peers("plain", "") == "plain"
    assert gguf_engines.with_peers("plain", "ik-llama-cpp, openvino") == (
        "plain,ik-llama-cpp,ik-llama-cpp-ngram,openvino,openvino-prompt-lookup"
    )
    assert gguf_engines.with_peers(None, "openvino-f32") == (
        "plain,redraft,openvino-f32,openvino-f32-prompt-lookup"
    )
    assert gguf_engines.decoders_of("openvino") == {"openvino": 0}
    assert list(gguf_engines.decoders_of("ik-llama-cpp-ngram").values()) == [3, 7, 15]
    assert owed_text("openvino-prompt-lookup", ["openvino"]) == "openvino"
    assert owed_text("openvino-prompt-lookup", ["plain"]) is owed_text("openvino", []) is None
    with pytest.raises(BenchError, match="--peer exllama: no such peer; known are llama-cpp, ik"):
        gguf_engines.chosen_engines("exllama")
    assert [*gguf_engines.ENGINE_OF] == [
        *[each.lookup for each in gguf_engines.ENGINES.values()],
        *gguf_engines.ENGINES,
    ]


@pytest.mark.parametrize(
    ("peer", "module"), [("ik-llama-cpp", "ik_llama_cpp"), ("openvino", "openvino_genai")]
)
def test_a_peer_that_is_missing_says_so(
    peer: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == module else find(name)
    )
    with pytest.raises(PeerUnavailable, match=f"{peer} needs"):
        gguf_engines.chosen_engines(peer)


def test_peers_are_not_asked_to_sample_and_need_a_model() -> None:
    args = argparse.Namespace(model="m.gguf", threads=1)
    with pytest.raises(BenchError, match="openvino decodes greedily"):
        GgufPeers(args, Sampling(temperature=0.5), 64).decodings("openvino-prompt-lookup")
    with pytest.raises(BenchError, match="peers read GGUF files alone"):
        GgufPeers(args, Sampling(), 64).decodings("openvino")


def test_both_benches_know_the_methods_of_peers() -> None:
    for module in (completion, edit):
        parser = argparse.ArgumentParser()
        module.add_arguments(parser)
        args = parser.parse_args(["--cases", "c.jsonl", "--peer", "ik-llama-cpp,openvino"])
        assert args.peer == "ik-llama-cpp,openvino"
    assert gguf_engines.ENGINE_OF.keys() <= set(completion.known_methods("model"))
