"""Model folders with a file that is damaged, missing or another's, one of each kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from breaking import (
    CONFIG,
    PAGE,
    POINTER,
    TOKENIZER,
    Kinds,
    weights,
    with_config,
    with_file,
    with_header,
    without,
)

FILES = Kinds()

# config.json


@FILES.add("config.json is empty", "fetch that file again")
def empty_config(folder: Path) -> str:
    return with_file(folder, "config.json", b"")


@FILES.add("config.json is no JSON", "fetch that file again")
def torn_config(folder: Path) -> str:
    return with_file(folder, "config.json", json.dumps(CONFIG).encode()[:30])


@FILES.add("holds no JSON object", "fetch that file again")
def config_list(folder: Path) -> str:
    return with_file(folder, "config.json", b"[1, 2]")


@FILES.add("is not UTF-8", "fetch that file again")
def config_in_utf_16(folder: Path) -> str:
    return with_file(folder, "config.json", json.dumps(CONFIG).encode("utf-16"))


@FILES.add("pointer of Git LFS", "git lfs pull")
def config_pointer(folder: Path) -> str:
    return with_file(folder, "config.json", POINTER)


@FILES.add("a web page", "signed in")
def config_page(folder: Path) -> str:
    return with_file(folder, "config.json", PAGE)


@FILES.add("cannot be read (Is a directory)", "who may read it")
def config_folder(folder: Path) -> str:
    model = without(folder, "config.json")
    (folder / "model" / "config.json").mkdir()
    return model


@FILES.add("names no model_type", "fetch that file again")
def no_model_type(folder: Path) -> str:
    return with_config(folder, model_type=None)


@FILES.add("knows no causal language model 'llama99'", "update transformers")
def unknown_architecture(folder: Path) -> str:
    return with_config(folder, model_type="llama99")


@FILES.add("its own code", "another model")
def foreign_code(folder: Path) -> str:
    return with_config(folder, model_type="own", auto_map={"AutoModelForCausalLM": "own.Own"})


@FILES.add("an encoder-decoder", "another model")
def encoder_decoder(folder: Path) -> str:
    return with_config(folder, model_type="t5", is_encoder_decoder=True)


@FILES.add("writes no text", "another model")
def embedding_model(folder: Path) -> str:
    return with_config(folder, model_type="bert", architectures=["BertForMaskedLM"])


@FILES.add("as hidden_size", "fetch that file again")
def senseless_size(folder: Path) -> str:
    return with_config(folder, hidden_size="wide")


@FILES.add("quantised by gptq", "without quantisation")
def quantised(folder: Path) -> str:
    return with_config(folder, quantization_config={"quant_method": "gptq", "bits": 4})


@FILES.add("config.json is of another model", "fetch the whole model")
def config_of_another_model(folder: Path) -> str:
    return with_config(folder, hidden_size=16)


@FILES.add("lacks the weights of layer 2", "fetch the whole model")
def fewer_layers(folder: Path) -> str:
    return with_config(folder, num_hidden_layers=3)


# Weights


@FILES.add("no weights", "fetch the whole model")
def no_weights(folder: Path) -> str:
    return without(folder, "model.safetensors")


@FILES.add("pickled weights only", "convert them")
def pickled_weights(folder: Path) -> str:
    model = without(folder, "model.safetensors")
    (folder / "model" / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
    return model


@FILES.add("model.safetensors is empty", "fetch that file again")
def empty_weights(folder: Path) -> str:
    return with_file(folder, "model.safetensors", b"")


@FILES.add("has 5 bytes", "fetch that file again")
def five_bytes(folder: Path) -> str:
    return with_file(folder, "model.safetensors", weights()[:5])


@FILES.add("ends within its header", "fetch that file again")
def torn_header(folder: Path) -> str:
    return with_file(folder, "model.safetensors", weights()[:40])


@FILES.add("of its 272 bytes of weights", "fetch that file again")
def torn_weights(folder: Path) -> str:
    return with_file(folder, "model.safetensors", weights()[:-100])


@FILES.add("goes on after its last tensor", "fetch that file again")
def weights_with_a_tail(folder: Path) -> str:
    return with_file(folder, "model.safetensors", weights() + b"more")


@FILES.add("its header has no end", "fetch that file again")
def endless_header(folder: Path) -> str:
    return with_file(folder, "model.safetensors", b"\xff" * 600)


@FILES.add("its header is no JSON", "fetch that file again")
def header_of_noise(folder: Path) -> str:
    return with_file(folder, "model.safetensors", with_header(b"{{" * 40))


@FILES.add("its header lists no tensors", "fetch that file again")
def header_list(folder: Path) -> str:
    return with_file(folder, "model.safetensors", with_header([1, 2, 3]))


@FILES.add("holds no tensors", "fetch the whole model")
def header_without_tensors(folder: Path) -> str:
    return with_file(folder, "model.safetensors", with_header({"__metadata__": {}}))


@FILES.add("says nothing right of a", "fetch that file again")
def header_of_another_size(folder: Path) -> str:
    tensor = {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}
    return with_file(folder, "model.safetensors", with_header({"a": tensor}, 8))


@FILES.add("the unknown type F1", "update Redraft")
def unknown_numbers(folder: Path) -> str:
    tensor = {"dtype": "F1", "shape": [8], "data_offsets": [0, 1]}
    return with_file(folder, "model.safetensors", with_header({"a": tensor}, 1))


@FILES.add("not where its header says", "fetch that file again")
def tensors_over_each_other(folder: Path) -> str:
    tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    content = with_header({"a": tensor, "b": {**tensor, "data_offsets": [4, 12]}}, 12)
    return with_file(folder, "model.safetensors", content)


@FILES.add("begins with zeros", "fetch that file again")
def weights_of_zeros(folder: Path) -> str:
    return with_file(folder, "model.safetensors", bytes(5000))


@FILES.add("model.safetensors is a pointer of Git LFS", "git lfs pull")
def weights_pointer(folder: Path) -> str:
    return with_file(folder, "model.safetensors", POINTER)


@FILES.add("model.safetensors is a web page", "signed in")
def weights_page(folder: Path) -> str:
    return with_file(folder, "model.safetensors", PAGE)


@FILES.add("a GGUF file under another name", "*.safetensors")
def gguf_as_safetensors(folder: Path) -> str:
    return with_file(folder, "model.safetensors", b"GGUF\x03\0\0\0" + bytes(64))


@FILES.add("pickled weights under another name", "*.safetensors")
def pickle_as_safetensors(folder: Path) -> str:
    return with_file(folder, "model.safetensors", b"PK\x03\x04" + bytes(64))


@FILES.add("where nothing is", "fetch the whole model")
def weights_link_to_nothing(folder: Path) -> str:
    model = without(folder, "model.safetensors")
    (folder / "model" / "model.safetensors").symlink_to(folder / "gone")
    return model


@FILES.add("but no model.safetensors", "fetch the whole model")
def weights_of_another_name(folder: Path) -> str:
    model = without(folder, "model.safetensors")
    (folder / "model" / "weights.safetensors").write_bytes(weights())
    return model


@FILES.add("lacks model.safetensors.index.json", "fetch the whole model")
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


@FILES.add("1 of 2 weights files", "fetch the whole model")
def missing_part(folder: Path) -> str:
    return _in_parts(folder, {"a": "1.safetensors", "b": "2.safetensors"}, weights({"a": (2,)}))


@FILES.add("lacks b, which", "fetch the whole model")
def part_without_a_tensor(folder: Path) -> str:
    return _in_parts(folder, {"a": "1.safetensors", "b": "1.safetensors"}, weights({"a": (2,)}))


@FILES.add("lists no weights", "fetch that file again")
def index_of_nothing(folder: Path) -> str:
    return _in_parts(folder, {})


@FILES.add("1.safetensors was cut off", "fetch that file again")
def torn_part(folder: Path) -> str:
    return _in_parts(folder, {"a": "1.safetensors"}, weights({"a": (2,)})[:-3])


# The tokenizer


@FILES.add("holds no tokenizer", "tokenizer.json")
def no_tokenizer(folder: Path) -> str:
    return without(folder, "tokenizer.json")


@FILES.add("tokenizer.json is empty", "fetch that file again")
def empty_tokenizer(folder: Path) -> str:
    return with_file(folder, "tokenizer.json", b"")


@FILES.add("tokenizer.json is no JSON", "fetch that file again")
def torn_tokenizer(folder: Path) -> str:
    return with_file(folder, "tokenizer.json", json.dumps(TOKENIZER).encode()[:-4])


@FILES.add("tokenizer.json was cut off", "fetch that file again")
def torn_large_tokenizer(folder: Path) -> str:
    large = json.dumps({**TOKENIZER, "more": "x" * 2_000_000}).encode()
    return with_file(folder, "tokenizer.json", large[:-4])


@FILES.add("holds no vocabulary", "fetch that file again")
def tokenizer_of_nothing(folder: Path) -> str:
    return with_file(folder, "tokenizer.json", b"{}")


@FILES.add("tokenizer.json is a pointer of Git LFS", "git lfs pull")
def tokenizer_pointer(folder: Path) -> str:
    return with_file(folder, "tokenizer.json", POINTER)
