"""Checks of a folder's names and headers before its model is loaded.

Loads no torch: faults are reported before a process is started for them.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from accel.errors import BrokenModel, ModelError, ModelNotFound, UnsupportedModel
from accel.files.safetensors import FLOATS, WeightsEntry, check_not_stand_in, read_header, shards_of

WHOLE = "fetch the whole model"
OTHER = "use another model"

SMALL_BYTES = 1 << 20
"""Tokenizer files up to this size are read to their end."""

_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt")
_UNFINISHED = ("*.incomplete", "*.part", "*.partial", "*.crdownload", "*.aria2", "*.tmp")
_TABLE = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_FOREIGN: dict[str, str] = _TABLE["foreign"]
_NO_WRITERS = (
    *("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification"),
    *("ForQuestionAnswering", "ForImageClassification", "ForMultipleChoice"),
)
_PACKAGES: dict[str, str] = _TABLE["packages"]
"""Packages that transformers needs for weights that are quantised by a method."""
_BY_TRANSFORMERS = ("fp8", "fbgemm_fp8", "mxfp4", "bitnet", "torchao", "quark", "higgs", "spqr")
"""Methods that transformers runs, or refuses, itself. It ignores a method that it does not know."""
_TOLD_ELSEWHERE = {
    "hf_quant_config.json": "ModelOpt",
    "quantize_config.json": "GPTQ",
    "quant_config.json": "AWQ",
}
"""Files that say that weights are quantised, where ``config.json`` may not."""
_OF_QUANTISED = re.compile(
    r"(?:^|[._])(?:weight_(?:scale|scale_inv|scale_2|global_scale|packed|zero_point)"
    r"|(?:input|k|v|q|output)_scale|qweight|qzeros|g_idx|SCB|absmax|quant_map|scale_inv)$"
)
"""Tensors that weights are multiplied with, or unpacked by."""
_UNQUANTISED = "use the same model without quantisation"


def check_folder(folder: Path) -> dict[str, Any]:
    """Return the parsed ``config.json`` of a folder that can be loaded without running foreign
    code. Raises ModelNotFound, BrokenModel or UnsupportedModel."""
    try:
        names = {entry.name for entry in folder.iterdir()}
    except OSError as error:
        raise BrokenModel(
            f"{folder} cannot be read ({error.strerror})", "check its permissions"
        ) from error
    if "config.json" not in names:
        raise _without_config(folder, names)
    config = _read_object(folder / "config.json")
    _check_kind(folder, config)
    tensors = _read_weights(folder)
    _check_quantisation(folder, names, config, tensors)
    _check_fit(folder, config, tensors)
    _check_tokenizer(folder, names)
    return config


def _read_weights(folder: Path) -> dict[str, WeightsEntry]:
    """Return every tensor of the model, from the headers of transformers' files."""
    file, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if file.is_symlink() and not file.exists():
        raise BrokenModel(f"{file} is a link to {file.readlink()}, which does not exist", WHOLE)
    if file.exists():
        return read_header(file)
    if not index.exists():
        raise _without_weights(folder)
    listed = _read_object(index).get("weight_map")
    files = shards_of(index, listed)
    missing = [name for name in files if not (folder / name).exists()]
    if missing:
        raise BrokenModel(
            f"{folder} lacks {missing[0]}, {len(missing)} of {len(files)} weights files", WHOLE
        )
    held = {name: read_header(folder / name) for name in files}
    assert isinstance(listed, dict), "its files are known"
    for tensor, name in listed.items():
        if tensor not in held[name]:
            raise BrokenModel(f"{folder / name} lacks {tensor}, which {index.name} lists", WHOLE)
    return {name: tensor for tensors in held.values() for name, tensor in tensors.items()}


@cache
def known_kinds() -> frozenset[str]:
    """Model types of which transformers has a causal language model; read from its source, as its
    import takes longer than all else at a start. Nothing where it is written otherwise."""
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        return frozenset()
    file = Path(spec.origin).parent / "models" / "auto" / "modeling_auto.py"
    try:
        tree = ast.parse(file.read_text("utf-8"))
        (pairs,) = [
            ast.literal_eval(statement.value.args[0])
            for statement in tree.body
            if isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Name)
            and statement.targets[0].id == "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES"
            and isinstance(statement.value, ast.Call)
        ]
        return frozenset(str(kind) for kind, _ in pairs)
    except (OSError, SyntaxError, ValueError, IndexError, TypeError):
        return frozenset()


def _read_object(file: Path) -> dict[str, Any]:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise BrokenModel(
            f"{file} cannot be read ({error.strerror})", "check its permissions"
        ) from error
    check_not_stand_in(file, content)
    try:
        parsed = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise BrokenModel(f"{file} is not UTF-8 text", "fetch that file again") from None
    except (ValueError, RecursionError) as error:
        raise BrokenModel(f"{file} is not JSON ({error})", "fetch that file again") from None
    if not isinstance(parsed, dict):
        raise BrokenModel(f"{file} does not hold a JSON object", "fetch that file again")
    return parsed


def _check_kind(folder: Path, config: dict[str, Any]) -> None:
    kind = config.get("model_type")
    if not isinstance(kind, str):
        raise BrokenModel(f"{folder / 'config.json'} names no model_type", "fetch that file again")
    kinds = known_kinds()
    if kinds and kind not in kinds:
        if "auto_map" in config:
            raise UnsupportedModel(f"{folder} needs its own code, which is never run", OTHER)
        if config.get("is_encoder_decoder"):
            raise UnsupportedModel(
                f"{folder} is an encoder-decoder ({kind}), not a causal language model", OTHER
            )
        raise UnsupportedModel(
            f"{folder}: transformers knows no causal language model {kind!r}",
            "update transformers or use another model",
        )
    classes = config.get("architectures") or []
    if (
        isinstance(classes, list)
        and classes
        and all(str(name).endswith(_NO_WRITERS) for name in classes)
    ):
        raise UnsupportedModel(f"{folder} is a {classes[0]}, which writes no text", OTHER)
    for name in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"):
        value = config.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise BrokenModel(
                f"{folder / 'config.json'} has {value!r} as {name}", "fetch that file again"
            )


def _check_quantisation(
    folder: Path, names: set[str], config: dict[str, Any], tensors: dict[str, WeightsEntry]
) -> None:
    """Raise UnsupportedModel for quantised weights that no package here runs. Transformers loads
    weights of a method that it does not know as if they were not quantised, in silence."""
    quantisation = config.get("quantization_config")
    if isinstance(quantisation, dict) and quantisation:
        method = str(quantisation.get("quant_method") or "a method without a name")
        package = _PACKAGES.get(method, "").split(".", maxsplit=1)[0]
        if method in _BY_TRANSFORMERS or (package and importlib.util.find_spec(package)):
            return
        raise _quantised(folder, f"by {method}")
    compressed = config.get("compression_config")
    if isinstance(compressed, dict) and compressed:
        method = str(compressed.get("quant_method") or "compressed-tensors")
        raise _quantised(folder, f"by {method}, as compression_config says")
    if file := next((name for name in _TOLD_ELSEWHERE if name in names), ""):
        raise _quantised(folder, f"by {_TOLD_ELSEWHERE[file]}, as {file} says")
    for name, entry in tensors.items():
        is_weight = name.endswith("weight") or entry.dtype.startswith("F")
        if _OF_QUANTISED.search(name) or (is_weight and entry.dtype not in FLOATS):
            tensor = f"({name} is in {entry.dtype})"
            raise _quantised(folder, f"{tensor}, of which config.json says nothing")


def _quantised(folder: Path, how: str) -> UnsupportedModel:
    return UnsupportedModel(f"{folder} is quantised {how}, which is not run here", _UNQUANTISED)


def _check_fit(folder: Path, config: dict[str, Any], tensors: dict[str, WeightsEntry]) -> None:
    """Raise BrokenModel if names and sizes show config and weights of different models."""
    if "quantization_config" in config or "text_config" in config:
        return
    embedding = tensors.get("model.embed_tokens.weight")
    sizes = config.get("vocab_size"), config.get("hidden_size")
    if embedding is not None and None not in sizes and embedding.shape != sizes:
        raise BrokenModel(
            f"{folder}: config.json is of another model than the weights, {sizes[0]} tokens by "
            f"{sizes[1]} against {' by '.join(map(str, embedding.shape))}",
            WHOLE,
        )
    layers = {
        int(match[1]) for name in tensors if (match := re.match(r"model\.layers\.(\d+)\.", name))
    }
    listed = config.get("num_hidden_layers")
    if layers and listed is not None and (missing := sorted(set(range(listed)) - layers)):
        raise BrokenModel(
            f"{folder} lacks the weights of layer {missing[0]}; config.json names {listed} layers",
            WHOLE,
        )


def _check_tokenizer(folder: Path, names: set[str]) -> None:
    if not names.intersection(_TOKENIZERS) and not any(
        name.endswith(".tiktoken") for name in names
    ):
        raise ModelNotFound(f"{folder} holds no tokenizer", f"{WHOLE}, with tokenizer.json")
    file = folder / "tokenizer.json"
    if not file.exists():
        return
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            start = stream.read(SMALL_BYTES)
            stream.seek(max(0, size - 64))
            end = stream.read(64)
    except OSError as error:
        raise BrokenModel(
            f"{file} cannot be read ({error.strerror})", "check its permissions"
        ) from error
    check_not_stand_in(file, start)
    if size <= SMALL_BYTES:
        model = _read_object(file).get("model")
        if not isinstance(model, dict) or "vocab" not in model:
            raise BrokenModel(f"{file} holds no vocabulary", "fetch that file again")
    elif not start.lstrip().startswith(b"{") or not end.rstrip().endswith(b"}"):
        raise BrokenModel(f"{file} was cut off", "fetch that file again")


def _without_config(folder: Path, names: set[str]) -> ModelError:
    if not names:
        return ModelNotFound(f"{folder} is empty", "fetch the model into it, or give another")
    if "model_index.json" in names:
        return UnsupportedModel(f"{folder} holds a model that makes pictures", OTHER)
    if "adapter_config.json" in names:
        return _only_adapter(folder)
    inner = sorted(name for name in names if (folder / name / "config.json").is_file())
    if inner:
        return ModelNotFound(f"{folder} holds no model itself", f"give {folder / inner[0]}")
    if error := _other_format(folder):
        return error
    if (folder / "manifests").is_dir() and (folder / "blobs").is_dir():
        return UnsupportedModel(
            f"{folder} is a store of Ollama, not a model",
            "choose one of those in it: redraft models",
        )
    if unfinished := _unfinished(folder):
        return BrokenModel(f"{folder} was not fetched to its end: {unfinished} is left", WHOLE)
    if not any(name.endswith((".json", ".safetensors", ".bin", ".model")) for name in names):
        return ModelNotFound(
            f"{folder} holds other files, but no config.json and no weights",
            "give the folder of a model",
        )
    return BrokenModel(f"{folder} has no config.json", WHOLE)


def _without_weights(folder: Path) -> ModelError:
    files = sorted(file.name for file in folder.glob("*.safetensors"))
    if "adapter_model.safetensors" in files:
        return _only_adapter(folder)
    if any(re.search(r"-of-\d+\.safetensors$", name) for name in files):
        return BrokenModel(f"{folder} lacks model.safetensors.index.json", WHOLE)
    if unfinished := _unfinished(folder):
        return BrokenModel(f"{folder} was not fetched to its end: {unfinished} is left", WHOLE)
    if files:
        return BrokenModel(f"{folder} has {files[0]}, but no model.safetensors", WHOLE)
    if any([*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.pth")]):
        return UnsupportedModel(
            f"{folder} holds pickled weights only, which are never loaded",
            "convert them to safetensors",
        )
    if error := _other_format(folder):
        return error
    return BrokenModel(f"{folder} has no weights: no *.safetensors is there", WHOLE)


def _only_adapter(folder: Path) -> ModelError:
    return UnsupportedModel(
        f"{folder} holds an adapter (LoRA) without its model",
        "merge it into its base model and give that folder",
    )


def _other_format(folder: Path) -> ModelError | None:
    """Return the error for a folder with weights of a format that no folder is loaded from."""
    if files := sorted(folder.glob("*.gguf")):
        return ModelNotFound(f"{folder} holds GGUF files", f"give the file itself, as {files[0]}")
    foreign = next((what for pattern, what in _FOREIGN.items() if any(folder.glob(pattern))), "")
    if foreign:
        return UnsupportedModel(
            f"{folder} holds {foreign} only", "fetch the same model with *.safetensors"
        )
    return None


def _unfinished(folder: Path) -> str:
    return next((file.name for pattern in _UNFINISHED for file in sorted(folder.glob(pattern))), "")
