"""A shape with random weights cuts code as the model whose tokenizer it was given."""

from __future__ import annotations

from pathlib import Path

import pytest
from gguf_models import gguf_metadata, gguf_tensors, random_module, save_gguf
from gguf_writer import write_gguf
from small_vocabularies import LETTERS

from accel.files.gguf.file import GgufFile
from accel.files.gguf.tokenizer import tokenizer_json
from accel.files.gguf.vocabulary import Vocabulary, read_vocabulary
from accel.text.tokenizer import Tokenizer
from tests.benchmarks.shape_with_vocabulary import copy_with_vocabulary

CODE = "def sum_of(values):\n    return sum(values) / len(values)\n"
MERGES = ["s u", "su m", "v a", "l u", "va lu"]
TOKENS = ["<|endoftext|>", *LETTERS, *(pair.replace(" ", "") for pair in MERGES)]
SIZE = 700


def test_a_shape_gets_the_tokens_of_another_file(tmp_path: Path) -> None:
    shape, real = random_module("qwen2", vocab_size=SIZE), random_module("llama")
    metadata = gguf_metadata(real) | {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [3] + [1] * (len(TOKENS) - 1),
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.eos_token_id": 0,
    }
    source = write_gguf(tmp_path / "real.gguf", metadata, gguf_tensors(real, "F16"))
    bare = write_gguf(tmp_path / "shape.gguf", gguf_metadata(shape), gguf_tensors(shape, "BF16"))
    made = copy_with_vocabulary(bare, source, tmp_path / "made.gguf")
    with GgufFile(bare) as before, GgufFile(made) as after:
        assert before.metadata.text("general.architecture") == "qwen2"
        assert after.metadata.text("general.architecture") == "qwen2"
        assert before.tensors.keys() == after.tensors.keys()
        for name in before.tensors:
            assert (before.read(name) == after.read(name)).all(), name
    vocabulary, tokenizer = _read(made)
    assert len(vocabulary.tokens) == len(vocabulary.types) == SIZE
    assert vocabulary.tokens[: len(TOKENS)] == TOKENS
    assert vocabulary.merges.count == SIZE - len(LETTERS) - 4  # the end and three of a hole
    names = {key: vocabulary.tokens[token] for key, token in vocabulary.fim_tokens.items()}
    assert names == {key: f"<|fim_{key}|>" for key in ("prefix", "suffix", "middle")}
    assert tokenizer.encode(CODE).tolist() == _read(source)[1].encode(CODE).tolist()


def test_a_vocabulary_that_is_too_large_is_refused(tmp_path: Path) -> None:
    module = random_module("qwen2", vocab_size=SIZE)
    file = save_gguf(tmp_path / "large.gguf", module)
    small = random_module("qwen2", vocab_size=300)
    bare = write_gguf(tmp_path / "small.gguf", gguf_metadata(small), gguf_tensors(small))
    with pytest.raises(ValueError, match="do not fit"):
        copy_with_vocabulary(bare, file, tmp_path / "made.gguf")


def _read(path: Path) -> tuple[Vocabulary, Tokenizer]:
    with GgufFile(path) as file:
        vocabulary = read_vocabulary(file.metadata)
        return vocabulary, Tokenizer(tokenizer_json(vocabulary, path))
