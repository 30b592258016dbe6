"""The tokenizer of a GGUF file as the files that a model folder has, made once and kept."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from accel.errors import BrokenModel
from accel.models.gguf.file import GgufFile
from accel.models.gguf.tokenizer import VERSION, tokenizer_json
from accel.models.gguf.vocabulary import Vocabulary, read_vocabulary, takes_blanks
from accel.text.tokenizer import plain_head
from accel.text.vocabulary_files import VocabularyFiles


def tokenizer_folder(path: Path) -> Path:
    """The folder with ``tokenizer.json`` and ``tokenizer_config.json`` of a GGUF file. Two files
    with one vocabulary share it. Raises ModelNotFound, BrokenModel or UnsupportedModel."""
    return kept_tokenizer(path)[0]


def kept_tokenizer(path: Path) -> tuple[Path, dict[str, Any]]:
    """``tokenizer_folder``, and what stands in its ``tokenizer_config.json``."""
    with GgufFile(path) as file:
        hashed = f"{file.metadata.fingerprint('tokenizer.')[:32]}-{VERSION}"
        name = f"{hashed}-phi3" if takes_blanks(file.metadata) else hashed
        files = VocabularyFiles(name)
        config = _config_in(files.folder)
        if config is None:
            config = _make(files, read_vocabulary(file.metadata), path)
    return files.folder, config


def _config_in(folder: Path) -> dict[str, Any] | None:
    """What was written last into a folder that is whole; None where it is not."""
    try:
        config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
        found = hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None
    return config if isinstance(config, dict) and config.get("sha256") == found else None


def _make(files: VocabularyFiles, vocabulary: Vocabulary, path: Path) -> dict[str, Any]:
    definition = tokenizer_json(vocabulary, path)
    config = {
        "bos_token": vocabulary.text_of(vocabulary.beginning),
        "eos_token": vocabulary.text_of(vocabulary.end),
        "unk_token": vocabulary.text_of(vocabulary.unknown),
        "chat_template": vocabulary.chat_template,
        "fim_tokens": vocabulary.fim_tokens,
        "edit_lines": vocabulary.edit_lines,
        # As llama.cpp begins one. Of a folder the template alone decides, as in transformers.
        "opens_chats": True,
        "problems": list(vocabulary.problems),
        "plain_head": plain_head(json.loads(definition)),
        "sha256": hashlib.sha256(definition.encode()).hexdigest(),
    }
    try:
        files.write("tokenizer.json", definition)
        # It says that the folder is complete: last.
        files.write("tokenizer_config.json", json.dumps(config, ensure_ascii=False))
    except OSError as error:
        raise BrokenModel(
            f"the tokenizer of {path} cannot be kept ({error})",
            f"make {files.folder.parent} writable",
        ) from error
    return config
