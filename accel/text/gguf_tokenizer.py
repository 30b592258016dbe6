"""The tokenizer of a GGUF file as the files that a model folder has, made once and kept."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel.errors import BrokenModel
from accel.files.gguf.metadata import Metadata
from accel.files.gguf.tokenizer import VERSION, tokenizer_json
from accel.files.gguf.vocabulary import read_vocabulary, takes_blanks
from accel.text.tokenizer import plain_head
from accel.text.vocabulary_files import VocabularyFiles
from operating_system.files import how_to_write


@dataclass(frozen=True, slots=True)
class KeptTokenizer:
    """folder: with ``tokenizer.json`` and ``tokenizer_config.json``; config: what is in the
    latter; definition: what is in the former."""

    folder: Path
    config: dict[str, Any]
    definition: str


def tokenizer_of(metadata: Metadata) -> KeptTokenizer:
    """Return the tokenizer of a GGUF file, made where it is not kept yet; files with one vocabulary
    share it. Raises BrokenModel or UnsupportedModel."""
    return kept_tokenizer(metadata) or _make(_files(metadata), metadata)


def kept_tokenizer(metadata: Metadata) -> KeptTokenizer | None:
    """Return the tokenizer made before for this vocabulary, None if it is missing or damaged."""
    folder = _files(metadata).folder
    try:
        config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
        definition = (folder / "tokenizer.json").read_text("utf-8")
        is_whole = config["sha256"] == _digest(definition, config)
        if not is_whole or not {"end_tokens", "plain_head"} <= config.keys():
            return None
        return KeptTokenizer(folder, config, definition)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _digest(definition: str, config: dict[str, Any]) -> str:
    entries = {name: value for name, value in config.items() if name != "sha256"}
    return hashlib.sha256(f"{definition}{json.dumps(entries, sort_keys=True)}".encode()).hexdigest()


def _files(metadata: Metadata) -> VocabularyFiles:
    hashed = f"{metadata.fingerprint('tokenizer.')[:32]}-{VERSION}"
    return VocabularyFiles(f"{hashed}-phi3" if takes_blanks(metadata) else hashed)


def _make(files: VocabularyFiles, metadata: Metadata) -> KeptTokenizer:
    vocabulary, path = read_vocabulary(metadata), metadata.path
    definition = tokenizer_json(vocabulary, path)
    config: dict[str, Any] = {
        "bos_token": vocabulary.text_of(vocabulary.beginning),
        "eos_token": vocabulary.text_of(vocabulary.end),
        "unk_token": vocabulary.text_of(vocabulary.unknown),
        "chat_template": vocabulary.chat_template,
        "fim_tokens": vocabulary.fim_tokens,
        "edit_lines": vocabulary.edit_lines,
        # As llama.cpp begins one. Of a folder the template alone decides, as in transformers.
        "opens_chats": True,
        "problems": list(vocabulary.problems),
        "end_tokens": sorted(vocabulary.end_tokens),
        "plain_head": plain_head(json.loads(definition)),
    }
    config["sha256"] = _digest(definition, config)
    try:
        files.write("tokenizer.json", definition)
        # It says that the folder is complete: last.
        files.write("tokenizer_config.json", json.dumps(config, ensure_ascii=False))
    except OSError as error:
        raise BrokenModel(
            f"the tokenizer of {path} cannot be kept ({error})",
            how_to_write(error, files.folder.parent),
        ) from error
    return KeptTokenizer(files.folder, config, definition)
