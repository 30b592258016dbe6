"""Older formats of tokenizers, which transformers reads."""

from __future__ import annotations

from pathlib import Path

from accel.errors import ModelNotFound


def converted(folder: Path) -> str:
    """``tokenizer.json`` made by transformers from an older format. Raises ModelNotFound where it
    cannot be."""
    from transformers import AutoTokenizer

    try:
        slow = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        return str(slow.backend_tokenizer.to_str())
    except Exception as error:
        raise ModelNotFound(
            f"{folder} holds no tokenizer.json that can be read; fetch the whole model"
        ) from error
