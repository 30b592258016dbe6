"""Small random models, a byte tokenizer, and drafters that know what will come."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from text_cases import data_beside
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from accel.decoding.engine import Engine
from accel.decoding.loop import Generation
from accel.decoding.request import GenerationRequest
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import DraftRequest
from accel.files.model_options import KvType
from accel.models.base import Cache, Model
from accel.models.batch import ForwardBatch
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.cpu.llama import CompiledLlama
from accel.models.cpu.opening import compiled_model, decoder_of
from accel.models.model_file import ModelFile, model_file
from accel.models.torch_registry import open_model
from accel.planning.planner import AdaptivePlanner
from tests.draft_trees import merged

VOCABULARY = 300
END = 299

DATA = data_beside(__file__)
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    kind: (row["type"], DATA["BASES"][row["base"]] | row.get("changes", {}))
    for kind, row in DATA["CONFIGS"].items()
}


def byte_tokenizer(extra: list[str] = [], specials: list[str] = []) -> str:  # noqa: B006
    """``tokenizer.json`` of a byte-level vocabulary with some longer tokens and control tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {mark: index for index, mark in enumerate(alphabet)}
    merges: list[tuple[str, str]] = []
    for word in extra:
        shown = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        marks = shown.pre_tokenize_str(word)[0][0]
        for end in range(2, len(marks) + 1):
            if marks[:end] not in vocabulary:
                vocabulary[marks[:end]] = len(vocabulary)
                merges.append((marks[: end - 1], marks[end - 1]))
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in specials])
    return tokenizer.to_str()


def save(folder: Path, kind: str, seed: int = 0, **changes: Any) -> Path:
    """A random model of a kind in ``CONFIGS``, with a byte tokenizer, as a model folder."""
    model_type, values = CONFIGS[kind]
    config = CONFIG_MAPPING[model_type](**(values | changes))
    torch.manual_seed(seed)
    module = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    module.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(byte_tokenizer(), "utf-8")
    generation = folder / "generation_config.json"
    if generation.exists():
        generation.write_text(json.dumps({"eos_token_id": 299}), "utf-8")
    return folder


class MemoryStore:
    """A store that forgets."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        return self.kept.get(name)

    def put(self, name: str, value: Any) -> None:
        self.kept[name] = value


def numbers(model: Model, batch: ForwardBatch, cache: Cache) -> NDArray[np.float32]:
    """Logits of the batch's rows from ``logits_from`` on, a copy."""
    expected = replace(batch, wants_numbers=True)
    logits = model.forward(expected, [cache])
    rows = [logits.row(row) for row in range(len(batch) - batch.logits_from)]
    return np.array(rows).reshape(len(rows), model.vocabulary_size)


FLAT = ForwardCosts([256], [1, 128], np.array([[1.0, 1.01]]))
"""ForwardCosts under which every draft pays."""


def open_engine(
    folder: Path, costs: ForwardCosts = FLAT, *, dtype: str = "fp32", **options: Any
) -> Engine:
    """An engine on the CPU, without measuring."""
    about = model_file(folder)
    model, execution_path = opened_on_cpu(about, dtype)
    planner = AdaptivePlanner(costs)
    engine = Engine(model, about.tokenizer, planner, name=folder.name, threads=1, **options)
    engine.execution_path = execution_path
    return engine


def opened_on_cpu(about: ModelFile, dtype: str) -> tuple[Model, str]:
    """A model and its execution path, as a CPU has it, without measuring."""
    if about.has_compiled_forward and dtype != "bf16":
        return compiled(about.path, dtype), "compiled"
    store: Any = MemoryStore()
    return open_model(about.path, dtype, torch.device("cpu"), store)


def compiled(folder: Path, dtype: str = "fp32", kv_type: KvType = "f16") -> CompiledLlama:
    """A folder or a GGUF file as our own forward computes it."""
    about = model_file(folder)
    assert about.has_compiled_forward
    decoder = decoder_of(about, dtype)
    model = compiled_model(decoder, kv_type)
    model.end_tokens = decoder.end_tokens
    return model


def reference_module(folder: Path) -> Any:
    """The module as transformers itself loads it, in fp32."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def reference_tokens(module: Any, prompt: TokenArray, count: int, **options: Any) -> list[int]:
    """Return the tokens of ``generate`` of transformers after ``prompt``."""
    return reference_batch(module, prompt[None], count, **options)[0]


def reference_batch(
    module: Any, prompts: TokenArray, count: int, **options: Any
) -> list[list[int]]:
    """The same for prompts of one length, int32 [n, length]."""
    ids = torch.from_numpy(prompts.astype(np.int64))
    with torch.inference_mode():
        output = module.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=count,
            do_sample=False,
            pad_token_id=0,
            **options,
        )
    tokens: list[list[int]] = output[:, prompts.shape[1] :].tolist()
    return tokens


@dataclass
class Oracle:
    """Drafts the known answer, with random branches and mistakes. ``seed`` decides which."""

    answer: TokenArray
    seed: int = 0
    vocabulary: int = VOCABULARY
    depth: int = 12
    name: str = "oracle"
    committed: list[int] = field(default_factory=list)

    def begin(self, request: DraftRequest) -> None:
        self._random = np.random.default_rng(self.seed)
        self.committed = []

    def draft(self, max_nodes: int) -> DraftTree:
        random = self._random
        rest = self.answer[len(self.committed) :]
        branches = []
        for _ in range(int(random.integers(0, 6))):
            branch = rest[: random.integers(0, self.depth)].copy()
            if len(branch) and random.random() < 0.5:
                position = int(random.integers(0, len(branch)))
                branch[position:] = random.integers(0, self.vocabulary, len(branch) - position)
            tail = random.integers(0, self.vocabulary, random.integers(0, 3))
            branches.append(np.concatenate([branch, tail]).astype(np.int32))
        tree = merged(branches, Source.PROMPT)
        return shuffled(tree, random).prefix(max_nodes)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        assert [int(tree.tokens[node]) for node in path] == tokens[: len(path)].tolist()
        self.committed.extend(tokens.tolist())


def shuffled(tree: DraftTree, random: np.random.Generator) -> DraftTree:
    """The same tree with its nodes in another order, parents still before children."""
    remaining = set(range(len(tree)))
    position = {-1: -1}
    order: list[int] = []
    while remaining:
        ready = [node for node in remaining if int(tree.parents[node]) in position]
        node = ready[int(random.integers(0, len(ready)))]
        position[node] = len(order)
        order.append(node)
        remaining.remove(node)
    return DraftTree(
        tree.tokens[order],
        np.array([position[int(tree.parents[node])] for node in order], np.int32),
        tree.probabilities[order],
        tree.sources[order],
    )


def random_prompt(seed: int, length: int | None = None) -> TokenArray:
    random = np.random.default_rng(seed)
    return random.integers(0, 256, length or random.integers(1, 60)).astype(np.int32)


def run(engine: Engine, prompt: TokenArray, **options: Any) -> Generation:
    session = options.pop("session", None)
    request = GenerationRequest(prompt, **({"max_tokens": 32} | options))
    return engine.generate(request, session).finish()


def until_end(tokens: list[int]) -> list[int]:
    return tokens[: tokens.index(END)] if END in tokens else tokens
