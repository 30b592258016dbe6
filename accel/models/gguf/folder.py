"""The tokenizer of a GGUF file as the files that a model folder has, made once and kept."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path

import platformdirs

from accel.errors import BrokenModel
from accel.models.gguf.file import GgufFile
from accel.models.gguf.tokenizer import VERSION, tokenizer_json
from accel.models.gguf.vocabulary import Vocabulary, read_vocabulary, takes_blanks


def tokenizer_folder(path: Path) -> Path:
    """The folder with ``tokenizer.json`` and ``tokenizer_config.json`` of a GGUF file. Two files
    with one vocabulary share it. Raises ModelNotFound, BrokenModel or UnsupportedModel."""
    with GgufFile(path) as file:
        hashed = f"{file.metadata.fingerprint('tokenizer.')[:32]}-{VERSION}"
        name = f"{hashed}-phi3" if takes_blanks(file.metadata) else hashed
        folder = Path(platformdirs.user_cache_dir("redraft")) / "gguf" / name
        if not (folder / "tokenizer.json").is_file():
            _make(folder, read_vocabulary(file.metadata), path)
    return folder


def _make(folder: Path, vocabulary: Vocabulary, path: Path) -> None:
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
    }
    definition = tokenizer_json(vocabulary, path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "tokenizer_config.json", json.dumps(config, ensure_ascii=False))
        # It says that the folder is complete: last.
        _write(folder / "tokenizer.json", definition)
    except OSError as error:
        raise BrokenModel(
            f"the tokenizer of {path} cannot be kept ({error})", f"make {folder.parent} writable"
        ) from error


def _write(file: Path, content: str) -> None:
    """Put a file in place as a whole: other processes read it while it is made."""
    descriptor, temporary = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(content)
        os.replace(temporary, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
