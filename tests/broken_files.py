"""Model folders with a file that is damaged, missing or another's, one of each kind."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from breaking import (
    CONFIG,
    PAGE,
    POINTER,
    TOKENIZER,
    Broken,
    Kinds,
    weights,
    with_config,
    with_file,
    with_header,
    without,
)

AGAIN, WHOLE = "fetch that file again", "fetch the whole model"
WEIGHTS = "model.safetensors"
WITH_FILE: dict[str, tuple[str, bytes, str, str]] = {
    "empty_config": ("config.json", b"", "config.json is empty", AGAIN),
    "torn_config": (
        "config.json",
        json.dumps(CONFIG).encode()[:30],
        "config.json is not JSON",
        AGAIN,
    ),
    "config_list": ("config.json", b"[1, 2]", "does not hold a JSON object", AGAIN),
    "config_in_utf_16": ("config.json", json.dumps(CONFIG).encode("utf-16"), "is not UTF-8", AGAIN),
    "config_pointer": ("config.json", POINTER, "pointer of Git LFS", "git lfs pull"),
    "config_page": ("config.json", PAGE, "a web page", "signed in"),
    "empty_weights": (WEIGHTS, b"", "model.safetensors is empty", AGAIN),
    "five_bytes": (WEIGHTS, weights()[:5], "has 5 bytes", AGAIN),
    "torn_header": (WEIGHTS, weights()[:40], "ends within its header", AGAIN),
    "torn_weights": (WEIGHTS, weights()[:-100], "of its 272 bytes of weights", AGAIN),
    "weights_with_a_tail": (WEIGHTS, weights() + b"more", "goes on after its last tensor", AGAIN),
    "endless_header": (WEIGHTS, b"\xff" * 600, "its header has no end", AGAIN),
    "header_of_noise": (WEIGHTS, with_header(b"{{" * 40), "its header is not JSON", AGAIN),
    "header_list": (WEIGHTS, with_header([1, 2, 3]), "its header lists no tensors", AGAIN),
    "header_without_tensors": (
        WEIGHTS,
        with_header({"__metadata__": {}}),
        "holds no tensors",
        WHOLE,
    ),
    "weights_of_zeros": (WEIGHTS, bytes(5000), "begins with zeros", AGAIN),
    "weights_pointer": (
        WEIGHTS,
        POINTER,
        "model.safetensors is a pointer of Git LFS",
        "git lfs pull",
    ),
    "weights_page": (WEIGHTS, PAGE, "model.safetensors is a web page", "signed in"),
    "gguf_as_safetensors": (
        WEIGHTS,
        b"GGUF\x03\0\0\0" + bytes(64),
        "a GGUF file under another name",
        "*.safetensors",
    ),
    "pickle_as_safetensors": (
        WEIGHTS,
        b"PK\x03\x04" + bytes(64),
        "pickled weights under another name",
        "*.safetensors",
    ),
    "empty_tokenizer": ("tokenizer.json", b"", "tokenizer.json is empty", AGAIN),
    "torn_tokenizer": (
        "tokenizer.json",
        json.dumps(TOKENIZER).encode()[:-4],
        "tokenizer.json is not JSON",
        AGAIN,
    ),
    "tokenizer_of_nothing": ("tokenizer.json", b"{}", "holds no vocabulary", AGAIN),
    "tokenizer_pointer": (
        "tokenizer.json",
        POINTER,
        "tokenizer.json is a pointer of Git LFS",
        "git lfs pull",
    ),
}
"""A file of other content; what the cause names, and the remedy."""
WITH_CONFIG: dict[str, tuple[dict[str, Any], str, str]] = {
    "no_model_type": ({"model_type": None}, "names no model_type", AGAIN),
    "unknown_architecture": (
        {"model_type": "llama99"},
        "knows no causal language model 'llama99'",
        "update transformers",
    ),
    "foreign_code": (
        {"model_type": "own", "auto_map": {"AutoModelForCausalLM": "own.Own"}},
        "its own code",
        "another model",
    ),
    "encoder_decoder": (
        {"model_type": "t5", "is_encoder_decoder": True},
        "an encoder-decoder",
        "another model",
    ),
    "embedding_model": (
        {"model_type": "bert", "architectures": ["BertForMaskedLM"]},
        "writes no text",
        "another model",
    ),
    "senseless_size": ({"hidden_size": "wide"}, "as hidden_size", AGAIN),
    "quantised": (
        {"quantization_config": {"quant_method": "gptq", "bits": 4}},
        "quantised by gptq",
        "without quantisation",
    ),
    "config_of_another_model": ({"hidden_size": 16}, "config.json is of another model", WHOLE),
    "fewer_layers": ({"num_hidden_layers": 3}, "lacks the weights of layer 2", WHOLE),
}
"""Other values in config.json."""

FILES = Kinds()
for name, (file, content, *said) in WITH_FILE.items():
    FILES.append(Broken(name, partial(with_file, name=file, content=content), *said))
for name, (changed, *said) in WITH_CONFIG.items():
    FILES.append(Broken(name, partial(with_config, **changed), *said))

# config.json


@FILES.add("cannot be read (Is a directory)", "check its permissions")
def config_folder(folder: Path) -> str:
    model = without(folder, "config.json")
    (folder / "model" / "config.json").mkdir()
    return model


# Weights


@FILES.add("no weights", WHOLE)
def no_weights(folder: Path) -> str:
    return without(folder, "model.safetensors")


@FILES.add("pickled weights only", "convert them")
def pickled_weights(folder: Path) -> str:
    model = without(folder, "model.safetensors")
    (folder / "model" / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
    return model


@FILES.add("says nothing right of a", AGAIN)
def header_of_another_size(folder: Path) -> str:
    tensor = {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}
    return with_file(folder, "model.safetensors", with_header({"a": tensor}, 8))


@FILES.add("the unknown type F1", "update Redraft")
def unknown_numbers(folder: Path) -> str:
    tensor = {"dtype": "F1", "shape": [8], "data_offsets": [0, 1]}
    return with_file(folder, "model.safetensors", with_header({"a": tensor}, 1))


@FILES.add("not where its header says", AGAIN)
def tensors_over_each_other(folder: Path) -> str:
    tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    content = with_header({"a": tensor, "b": {**tensor, "data_offsets": [4, 12]}}, 12)
    return with_file(folder, "model.safetensors", content)


@FILES.add("which does not exist", WHOLE)
def weights_link_to_nothing(folder: Path) -> str:
    model = without(folder, "model.safetensors")
    (folder / "model" / "model.safetensors").symlink_to(folder / "gone")
    return model


@FILES.add("but no model.safetensors", WHOLE)
def weights_of_another_name(folder: Path) -> str:
    model = without(folder, "model.safetensors")
    (folder / "model" / "weights.safetensors").write_bytes(weights())
    return model


@FILES.add("lacks model.safetensors.index.json", WHOLE)
def parts_without_index(folder: Path) -> str:
    model = without(folder, "model.safetensors")
    (folder / "model" / "model-00001-of-00002.safetensors").write_bytes(weights())
    return model


def _in_parts(folder: Path, listed: Any, first: bytes | None = None) -> str:
    model = without(folder, "model.safetensors")
    index = folder / "model" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": listed}))
    if first is not None:
        (folder / "model" / "1.safetensors").write_bytes(first)
    return model


@FILES.add("1 of 2 weights files", WHOLE)
def missing_part(folder: Path) -> str:
    return _in_parts(folder, {"a": "1.safetensors", "b": "2.safetensors"}, weights({"a": (2,)}))


@FILES.add("lacks b, which", WHOLE)
def part_without_a_tensor(folder: Path) -> str:
    return _in_parts(folder, {"a": "1.safetensors", "b": "1.safetensors"}, weights({"a": (2,)}))


@FILES.add("lists no weights", AGAIN)
def index_of_nothing(folder: Path) -> str:
    return _in_parts(folder, {})


@FILES.add("1.safetensors was cut off", AGAIN)
def torn_part(folder: Path) -> str:
    return _in_parts(folder, {"a": "1.safetensors"}, weights({"a": (2,)})[:-3])


# The tokenizer


@FILES.add("holds no tokenizer", "tokenizer.json")
def no_tokenizer(folder: Path) -> str:
    return without(folder, "tokenizer.json")


@FILES.add("tokenizer.json was cut off", AGAIN)
def torn_large_tokenizer(folder: Path) -> str:
    large = json.dumps({**TOKENIZER, "more": "x" * 2_000_000}).encode()
    return with_file(folder, "tokenizer.json", large[:-4])
