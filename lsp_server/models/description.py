"""What a model says about itself, from its header alone. Loads no torch."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from accel.errors import ModelError
from accel.model_folder import check_folder
from accel.models.file_identity import sample
from accel.models.gguf.file import GgufFile, is_gguf, parts_of
from accel.models.gguf.metadata import Metadata, StringArray
from accel.text.families import FAMILIES
from accel.weights_file import read_header

_MARKED = 1 << 18
"""Bytes at the start and the end of a file by which it is known again."""
_NEXT_EDITS = re.compile(r"zeta|sweep-next-edit|instinct", re.IGNORECASE)
_TOKENS = "tokenizer.ggml.tokens"


@dataclass(frozen=True, slots=True)
class Description:
    """A model, whatever its place.

    bits: of a weight, on average; does: of ``fim`` (fills in the middle), ``left`` (goes on from
    the left), ``edit`` (has a chat template), ``next-edit``; kv_bytes: of one token, in 16 bits;
    content: the same for the same bytes, and for some others; problem: why it cannot be opened,
    empty where it can.
    """

    family: str = ""
    parameters: int = 0
    bits: float = 0.0
    nbytes: int = 0
    context_tokens: int = 0
    licence: str = ""
    does: tuple[str, ...] = ()
    kv_bytes: int = 0
    content: str = ""
    problem: str = ""


def describe(path: Path) -> Description:
    """What stands at ``path``: a GGUF file or a folder. What cannot be opened has a problem."""
    config: dict[str, Any] = {}
    problem = ""
    try:
        config = check_folder(path)
    except ModelError as error:
        problem = str(error)
    try:
        about = _of_file(path) if is_gguf(path) else _of_folder(path, config)
    except (ModelError, OSError, ValueError) as error:
        about, problem = Description(nbytes=_size(path)), problem or str(error)
    return replace(about, problem=problem)


def _of_file(path: Path) -> Description:
    with GgufFile(path) as file:
        about = file.metadata
        family = about.text("general.architecture") or ""
        parameters = sum(prod(tensor.shape) for tensor in file.tensors.values())
        heads = _number(about, f"{family}.attention.head_count")
        kv_heads = _number(about, f"{family}.attention.head_count_kv") or heads
        depth = _number(about, f"{family}.attention.key_length")
        width = _number(about, f"{family}.embedding_length")
        layers = _number(about, f"{family}.block_count")
        depth = depth or (width // heads if heads else 0)
        name = f"{about.text('general.name') or ''} {path.name}"
        return Description(
            family=family,
            parameters=parameters,
            bits=round(8 * file.nbytes / parameters, 1) if parameters else 0.0,
            nbytes=file.nbytes,
            context_tokens=_number(about, f"{family}.context_length"),
            licence=about.text("general.license") or "",
            does=_abilities(_fills(about), about.text("tokenizer.chat_template"), name),
            kv_bytes=4 * layers * kv_heads * depth,
            content=_content(parts_of(path)),
        )


def _number(about: Metadata, key: str) -> int:
    return _count(about.value(key))


def _count(value: object) -> int:
    """A number that may be one, 0 for anything else."""
    return value if isinstance(value, int) and 0 <= value < 1 << 40 else 0


def _fills(about: Metadata) -> bool:
    tokens = about.value(_TOKENS)
    return isinstance(tokens, StringArray) and _has_fill_names(tokens.data)


def _has_fill_names(data: bytes) -> bool:
    """Whether the names of some family's fill-in-the-middle tokens stand in a vocabulary."""
    return any(all(name.encode() in data for name in family.hole) for family in FAMILIES)


def _abilities(fills: bool, template: str | None, name: str) -> tuple[str, ...]:
    found = ["fim"] if fills else []
    found.append("left")
    found += ["edit"] if template else []
    return (*found, *(["next-edit"] if _NEXT_EDITS.search(name) else []))


def _of_folder(path: Path, config: dict[str, Any]) -> Description:
    """``config``: what stands in ``config.json``."""
    files = sorted(path.glob("*.safetensors"))
    tensors = [one for file in files for one in read_header(file).values()]
    parameters = sum(prod(one.shape) for one in tensors)
    nbytes = sum(file.stat().st_size for file in files)
    tokenizer = path / "tokenizer.json"
    vocabulary = tokenizer.read_bytes() if tokenizer.is_file() else b""
    heads = _count(config.get("num_attention_heads"))
    depth = _count(config.get("head_dim"))
    depth = depth or (_count(config.get("hidden_size")) // heads if heads else 0)
    kv_heads = _count(config.get("num_key_value_heads")) or heads
    layers = _count(config.get("num_hidden_layers"))
    return Description(
        family=str(config.get("model_type", "")),
        parameters=parameters,
        bits=round(8 * nbytes / parameters, 1) if parameters else 0.0,
        nbytes=nbytes,
        context_tokens=_count(config.get("max_position_embeddings")),
        licence=_licence(path / "README.md"),
        does=_abilities(_has_fill_names(vocabulary), _template(path), path.name),
        kv_bytes=4 * layers * kv_heads * depth,
        content=_content(files),
    )


def _template(path: Path) -> str | None:
    if (path / "chat_template.jinja").is_file():
        return "chat_template.jinja"
    config = path / "tokenizer_config.json"
    found = json.loads(config.read_text("utf-8")) if config.is_file() else {}
    templates = isinstance(found, dict) and found.get("chat_template")
    return "tokenizer_config.json" if templates else None


def _licence(card: Path) -> str:
    """What the head of a model card names."""
    if not card.is_file():
        return ""
    found = re.search(r"^license:\s*(\S+)", card.read_text("utf-8", "replace")[:4096], re.MULTILINE)
    return found.group(1) if found else ""


def _content(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(sample(stream).encode())
            stream.seek(0)
            digest.update(stream.read(_MARKED))
            stream.seek(max(0, file.stat().st_size - _MARKED))
            digest.update(stream.read(_MARKED))
    return digest.hexdigest()


def _size(path: Path) -> int:
    files = [path] if path.is_file() else list(path.glob("*.safetensors"))
    try:
        return sum(file.stat().st_size for file in files)
    except OSError:
        return 0
